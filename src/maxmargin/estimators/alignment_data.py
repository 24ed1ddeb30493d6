"""What users hand to an aligner, taken apart: pairs, candidates, alignments, letters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._warn import warn_user
from ..formats.fasta import pairs_of_rows
from ..problems.alignment.kernels import Strings
from ..problems.alignment.layout import pack_strings
from ..types import Ints, Ints32

__all__ = [
    "as_pairs",
    "encode",
    "letters_of",
    "partners_as_pairs",
    "split_homologues",
    "split_pairs",
]

MOST_LETTERS = 255  # one code is left for letters that are not known


def letters_of(strings: list[Any], alphabet: Any = None) -> list[Any]:
    """The letters that are given, or those of the strings, sorted."""
    if alphabet is not None:
        letters = list(alphabet)
        if len(set(letters)) != len(letters):
            raise ValueError(f"alphabet has a letter twice: {alphabet!r:.60}")
    else:
        letters = sorted({letter for string in strings for letter in string})
    if not 1 <= len(letters) <= MOST_LETTERS:
        raise ValueError(f"expected 1 to {MOST_LETTERS} letters, found {len(letters)}")
    return letters


def encode(strings: list[Any], alphabet: list[Any], *, warn: bool = False) -> Strings:
    """Strings as codes; an unknown letter is an error, or gets a code of its own and a warning."""
    code = {letter: k for k, letter in enumerate(alphabet)}
    unknown = len(code)
    packed = pack_strings([[code.get(letter, unknown) for letter in s] for s in strings])
    bad = np.flatnonzero(packed.letters == unknown)
    if len(bad):
        i = int(np.searchsorted(packed.offsets, bad[0], side="right")) - 1
        letter = strings[i][int(bad[0] - packed.offsets[i])]
        if not warn:
            raise ValueError(f"a sequence has the letter {letter!r}, which is not in the alphabet")
        warn_user(
            f"{len(bad)} letters are unknown to the model and score 0 in pairs; the first is "
            f"{letter!r}"
        )
    return packed


def partners_as_pairs(partner: Ints32) -> Ints:
    """Paired positions, from the position of each letter's partner or -1."""
    paired = partner >= 0
    return np.column_stack([np.flatnonzero(paired), partner[paired]]).astype(np.int64)


def split_pairs(X: Any, which: int = 0) -> list[Any]:
    """First or second parts of pairs."""
    parts = []
    for i, pair in enumerate(X):
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"X[{i}] must be a pair, got {pair!r:.60}")
        parts.append(pair[which])
    return parts


def split_homologues(
    X: Any, outputs: Any
) -> tuple[list[Any], list[Any], list[Any], list[Any], Ints]:
    """Natives, homologues, their alignments, decoys of all examples, and how many each has."""
    natives, homologues, alignments, decoys, counts = [], [], [], [], [0]
    for i, ((native, candidates), y) in enumerate(zip(X, outputs, strict=True)):
        if not isinstance(y, (tuple, list)) or len(y) != 2:
            raise ValueError(
                f"y[{i}] must be (number of the homologue, its alignment), got {y!r:.60}"
            )
        number = int(y[0])
        if not 0 <= number < len(candidates):
            raise ValueError(f"y[{i}] names candidate {number}, but there are {len(candidates)}")
        natives.append(native)
        homologues.append(candidates[number])
        alignments.append(y[1])
        others = [c for k, c in enumerate(candidates) if k != number]
        decoys += others
        counts.append(len(others))
    return natives, homologues, alignments, decoys, np.cumsum(counts, dtype=np.int64)


def as_pairs(alignment: Any, x: Any, y: Any, i: int) -> Ints:
    """Paired positions, of an array or of two rows with gaps."""
    rows = isinstance(alignment, (tuple, list)) and len(alignment) == 2
    if rows and all(isinstance(row, str) for row in alignment):
        try:
            plain_x, plain_y, pairs = pairs_of_rows(*alignment)
        except ValueError as error:
            raise ValueError(f"y[{i}]: {error}") from None
        if plain_x != "".join(x) or plain_y != "".join(y):
            raise ValueError(f"y[{i}] shows other sequences than X[{i}] has")
        return pairs
    return np.asarray(alignment).reshape(0, 2) if np.size(alignment) == 0 else np.asarray(alignment)
