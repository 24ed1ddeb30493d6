"""Some of the sequences that a model of chains is asked about, as its decoder takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..engine.packed_problem import rows_between
from ..engine.rows import Rows, are_usable
from ..problems.chain.higher_order.scratch import HigherOrderInputs
from ..types import Bools, Ints

__all__ = ["SequenceBatch"]


class SequenceBatch(NamedTuple):
    """Some sequences: their features, where each begins, which tokens they are.

    ``before`` is the number of sequences before these; ``allowed`` (token, label) tells which
    labels the tokens may have, if anything is known of them.
    """

    rows: Rows | HigherOrderInputs
    offsets: Ints
    tokens: slice
    before: int = 0
    allowed: Bools | None = None

    def between(self, first: int, end: int) -> SequenceBatch:
        """The sequences ``first`` to ``end - 1`` of these, for kernels."""
        own = self.offsets[first : end + 1]
        start, stop = int(own[0]), int(own[-1])
        rows: Rows | HigherOrderInputs
        if isinstance(self.rows, HigherOrderInputs):
            rows = HigherOrderInputs(*(rows_between(each, start, stop) for each in self.rows))
        else:
            rows = rows_between(self.rows, start, stop)
        tokens = slice(self.tokens.start + start, self.tokens.start + stop)
        mask = None if self.allowed is None else self.allowed[start:stop]
        return SequenceBatch(rows, own - start, tokens, self.before + first, mask)

    def is_usable(self) -> bool:
        """Whether the features of the tokens are numbers of columns there are."""
        rows: Any = self.rows.rows if isinstance(self.rows, HigherOrderInputs) else self.rows
        return are_usable(rows, 0, rows.n_rows)
