"""What problems refuse, in words, before memory or integers run out."""

from __future__ import annotations

__all__ = ["MOST_TABLE_BYTES", "check_number_of_weights"]

#: Tables of a search that are larger than this are refused.
MOST_TABLE_BYTES = 4 * 2**30
MOST_WEIGHTS = 2**31 - 1  # planes number them by 32 bits


def check_number_of_weights(n_weights: int, made_by: str = "") -> None:
    """Raise ValueError if there are too many; ``made_by`` says what they come from."""
    if n_weights > MOST_WEIGHTS:
        makes = f"{made_by} " if made_by else ""
        raise ValueError(f"{makes}{n_weights} weights; at most 2**31 - 1 are supported")
