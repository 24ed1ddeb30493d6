"""Substitution scores that are not trained by margins: BLOSUM62, and log-odds of counted pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..utils.types import Floats

__all__ = ["AMINO_ACIDS", "blosum62", "log_odds_scores"]


AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
#: Lower triangle of BLOSUM62 (Henikoff & Henikoff 1992) in the order of `AMINO_ACIDS`.
_BLOSUM62 = """
 4
-1  5
-2  0  6
-2 -2  1  6
 0 -3 -3 -3  9
-1  1  0  0 -3  5
-1  0  0  2 -4  2  5
 0 -2  0 -1 -3 -2 -2  6
-2  0  1 -1 -3  0  0 -2  8
-1 -3 -3 -3 -1 -3 -3 -4 -3  4
-1 -2 -3 -4 -1 -2 -3 -4 -3  2  4
-1  2  0 -1 -3  1  1 -2 -1 -3 -2  5
-1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5
-2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7
 1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4
 0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7
 0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
"""


def blosum62() -> Floats:
    """BLOSUM62, in half bits, for the letters of ``AMINO_ACIDS``.

    Returns
    -------
    ndarray of shape (20, 20)
    """
    K = len(AMINO_ACIDS)
    scores = np.zeros((K, K))
    scores[np.tril_indices(K)] = [float(word) for word in _BLOSUM62.split()]
    return scores + np.tril(scores, -1).T


def log_odds_scores(
    X: Sequence[tuple[Sequence[Any], Sequence[Any]]],
    alignments: Iterable[Any],
    alphabet: Sequence[Any],
    *,
    pseudocount: float = 1.0,
) -> Floats:
    """Scores of a generative model of aligned pairs, ``log P(a, b) / (P(a) P(b))``.

    The baseline of Tsochantaridis et al. (2005), section 5.3 (see Durbin et al. 1998): pairs are
    counted in the alignments, letters in all strings, and both with Laplace's correction.

    Parameters
    ----------
    X : sequence of (x, y)
        Pairs of strings.
    alignments : iterable of array of int, shape (n_pairs, 2)
        Paired positions of each.
    alphabet : str or sequence
        The letters.
    pseudocount : float, default=1.0
        Added to every count.

    Returns
    -------
    ndarray of shape (n_letters, n_letters)
        Letter of x in rows.
    """
    code = {letter: k for k, letter in enumerate(alphabet)}
    joint = np.full((len(code), len(code)), float(pseudocount))
    single = np.full(len(code), float(pseudocount))
    for (x, y), pairs in zip(X, alignments, strict=True):
        for i, j in pairs:
            joint[code[x[i]], code[y[j]]] += 1.0
        for string in (x, y):
            for letter in string:
                single[code[letter]] += 1.0
    joint /= joint.sum()
    single /= single.sum()
    scores: Floats = np.log(joint / np.outer(single, single))
    return scores
