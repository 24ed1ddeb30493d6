"""Pairs of strings that align over a part of their length, and decoys that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..types import Ints

__all__ = ["HomologueSearch", "make_homologues"]

LETTERS = "ABCDEFGHIJKLMNOPQRST"
_MATCH, _SUBSTITUTE, _INSERT, _DELETE = range(4)


class HomologueSearch(NamedTuple):
    """Strings, and for each of them candidates of which one is its homologue.

    Attributes
    ----------
    natives : list of str
        One string for each example.
    candidates : list of list of str
        The homologue of the string and its decoys, in random order.
    homologues : ndarray of int64, shape (n_examples,)
        Which of the candidates is the homologue.
    alignments : list of ndarray of int64, shape (n_pairs, 2)
        Paired positions in the native and in the homologue.
    """

    natives: list[str]
    candidates: list[list[str]]
    homologues: Ints
    alignments: list[Ints]


def make_homologues(
    n_examples: int = 100,
    *,
    n_decoys: int = 10,
    length: int = 50,
    n_operations: int = 30,
    operations: Sequence[float] = (0.2, 0.4, 0.2, 0.2),
    random_state: int | np.random.Generator | None = 0,
) -> HomologueSearch:
    """Make the synthetic data of Tsochantaridis et al. (2005), section 5.3.

    Letter c = 1..20 of the alphabet A..T has probability c / 210 wherever a letter is drawn. A
    homologue comes from a stretch of its native at a random place: operations drawn one by one
    copy a letter, replace it by the next of the alphabet (T by A), insert a drawn one, or leave
    one out. Drawn letters around the result, at a random place, fill it up to the full length.
    Decoys are drawn.

    Parameters
    ----------
    n_examples : int, default=100
        Number of native strings.
    n_decoys : int, default=10
        Candidates of each that are not related to it.
    length : int, default=50
        Length of all strings.
    n_operations : int, default=30
        Number of operations that make the related part of a homologue.
    operations : sequence of 4 floats, default=(0.2, 0.4, 0.2, 0.2)
        Probabilities of match, substitution, insertion and deletion.
    random_state : int, Generator or None, default=0
        Seed; the same seed gives the same strings.

    Returns
    -------
    HomologueSearch

    Examples
    --------
    >>> data = make_homologues(3, n_decoys=2)
    >>> len(data.natives), len(data.candidates[0]), len(data.natives[0])
    (3, 3, 50)
    """
    if n_examples < 1 or n_decoys < 0:
        raise ValueError(f"expected n_examples >= 1 and n_decoys >= 0: {n_examples}, {n_decoys}")
    if not 0 <= n_operations <= length:
        raise ValueError(f"expected 0 <= n_operations <= length: {n_operations}, {length}")
    chances = np.asarray(operations, dtype=np.float64)
    if chances.shape != (4,) or chances.min() < 0 or not np.isclose(chances.sum(), 1.0):
        raise ValueError(f"operations must be 4 probabilities that sum to 1, got {operations!r}")
    rng = np.random.default_rng(random_state)
    data = HomologueSearch([], [], np.empty(n_examples, np.int64), [])
    for i in range(n_examples):
        native = _draw(rng, length)
        homologue, pairs = _mutate(rng, native, rng.choice(4, n_operations, p=chances))
        strings = [_draw(rng, length) for _ in range(n_decoys)]
        place = int(rng.integers(n_decoys + 1))
        strings.insert(place, homologue)
        data.natives.append(_spell(native))
        data.candidates.append([_spell(codes) for codes in strings])
        data.homologues[i] = place
        data.alignments.append(pairs)
    return data


def _draw(rng: np.random.Generator, length: int) -> Ints:
    """Random letters."""
    weights = np.arange(1.0, len(LETTERS) + 1.0)
    return rng.choice(len(LETTERS), length, p=weights / weights.sum())


def _spell(codes: Ints) -> str:
    """Letters of codes."""
    return "".join(LETTERS[c] for c in codes)


def _mutate(rng: np.random.Generator, native: Ints, operations: Ints) -> tuple[Ints, Ints]:
    """A homologue of a string, and the pairs of positions they share."""
    n_read = int((operations != _INSERT).sum())
    n_written = int((operations != _DELETE).sum())
    i = int(rng.integers(len(native) - n_read + 1))
    j = int(rng.integers(len(native) - n_written + 1))
    homologue = _draw(rng, len(native))  # letters that no operation writes stay as they are
    pairs = []
    for operation in operations:
        if operation in (_MATCH, _SUBSTITUTE):
            homologue[j] = (native[i] + (operation == _SUBSTITUTE)) % len(LETTERS)
            pairs.append((i, j))
        i += operation != _INSERT
        j += operation != _DELETE
    return homologue, np.array(pairs, dtype=np.int64).reshape(-1, 2)
