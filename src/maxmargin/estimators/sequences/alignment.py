"""Alignment of two sequences with learned scores; homologues among decoys by such scores."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...features.containers import as_list
from ...metrics import pair_accuracies
from ...problems.alignment.homologues import HomologueProblem
from ...problems.alignment.problem import AlignmentProblem
from ...utils.types import Floats, Ints
from ...utils.validation import as_sample_weights, check_choice, is_list
from ..abilities.explanation import Explanation, differing_parts, explain_whole
from ..base import checked_k
from ..costs import score_weights
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .alignment_model import (
    AlignmentModel,
    as_pairs,
    check_examples,
    encode,
    partners_as_pairs,
    split_homologues,
    split_pairs,
)

__all__ = ["HomologyRanker", "SequenceAligner"]

LOSSES = ("pairs", "residues", "zero_one")


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceAligner(AlignmentModel):
    """Alignments of two sequences by learned substitution scores and gap penalties.

    The score of an alignment is the sum of the substitution scores of its pairs of letters and of
    the scores of its gaps; the best alignment is found exactly. `HomologyRanker` learns the same
    scores from homologues among decoys.

    Parameters
    ----------
    loss : {"pairs", "residues", "zero_one"}, default="pairs"
        Share of the true pairs that are missed, share of the letters whose partner (or lack of one)
        is not the true one, or 1 for every alignment but the true one.
    {parameters of AlignmentModel}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    alphabet_ : list
        The letters.
    coef_ : ndarray
        All weights, flat: pairs of letters, then gaps; see the properties below.
    substitution_scores_ : ndarray of shape (n_letters, n_letters)
        Scores of pairs, letter of the first sequence in rows.
    gap_scores_ : dict
        Scores "open" (of a gap) and "extend" (of each of its letters), and "end_open" and
        "end_extend" for gaps at the ends.
    result_ : Result
        Certificate and history of the training.

    Notes
    -----
    Slack rescaling and square-root losses (the default for ``slack="l2"``) search by number of
    errors, which takes time and memory proportional to the product of both lengths and the number
    of true pairs ("pairs") or letters ("residues").

    Examples
    --------
    >>> X = [("ACGT", "AGT"), ("TCGA", "TGA")]
    >>> y = [("ACGT", "A-GT"), ("TCGA", "T-GA")]
    >>> aligner = SequenceAligner(mode="global", random_state=0).fit(X, y)
    >>> aligner.predict([("ACGA", "AGA")])[0].tolist()
    [[0, 0], [2, 1], [3, 2]]
    """

    loss: Literal["pairs", "residues", "zero_one"] = "pairs"

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> SequenceAligner:
        """Train on aligned sequences.

        Parameters
        ----------
        X : list of pairs of sequences
            Pairs (x, y): strings, or lists of letters of any hashable type.
        y : list of alignments
            Integer arrays of shape (n_pairs, 2) with paired positions, or two strings of equal
            length with gaps ``-``.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        self._check_options()
        check_choice(self.loss, LOSSES, "loss")
        X, y = check_examples(X, y)
        pairs, layout = self._aligned(split_pairs(X), split_pairs(X, 1), y, [])
        data = (*pairs.firsts, *pairs.seconds, pairs.partners, (self.loss, tuple(layout)))
        return TrainingSet(
            lambda: AlignmentProblem(*pairs, layout, self.loss),
            data,
            as_sample_weights(sample_weight),
            self._constraints(layout),
        )

    def predict(self, X: Any) -> list[Ints]:
        """Best alignments.

        Parameters
        ----------
        X : list of pairs of sequences
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (n_pairs, 2)
            The paired positions of each example, none where a sequence is empty.
        """
        return self.align(X)

    def predict_k(self, X: Any, k: int) -> list[list[tuple[Ints, float]]]:
        """The k best alignments of each pair of sequences, with their scores.

        Parameters
        ----------
        X : list of pairs of sequences
            As for `fit`.
        k : int
            How many to return for each example.

        Returns
        -------
        list of list of (alignment, score)
            For each example its k alignments of the largest score, best first, each as `predict`
            gives it and none twice. The list is shorter where there are fewer.
        """
        k, weights, X = checked_k(k), self._weights, as_list(X)
        xs, ys = self._encode(split_pairs(X), split_pairs(X, 1))
        return [
            [(partners_as_pairs(best.partner), best.score) for best in ranked]
            for ranked in self._aligner.align_k(xs, ys, weights, k, self.n_jobs)
        ]

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted alignment, and not another: pairs and gaps that decided.

        Parameters
        ----------
        x : pair of sequences
            As in the X of `predict`.
        y_hat : alignment, optional
            What to compare with, as in the y of `fit`; by default the second best.
        n : int, default=5
            How many pairs and gaps the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the scores.
        """
        n, (first, second) = checked_k(n, "n"), (split_pairs([x], part)[0] for part in (0, 1))
        ranked = self.predict_k([x], 2)[0]
        chosen, rival = ranked[0][0], ranked[1][0] if len(ranked) > 1 else None
        rival = rival if y_hat is None else as_pairs(y_hat, first, second, 0)
        shown = [self._shown(first, second, own) for own in (chosen, rival) if own is not None]
        if rival is None:
            return explain_whole(chosen, None, (), n, (shown[0], None))
        parts = (self._parts(first, second, own) for own in (chosen, rival))
        return explain_whole(chosen, rival, differing_parts(*parts), n, shown)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean fraction of the true pairs that are found.

        Parameters
        ----------
        X, y : list
            As for `fit`.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        X, y = check_examples(X, y)
        weights = score_weights(sample_weight, len(X))
        pairs = [as_pairs(a, x, z, i) for i, (a, (x, z)) in enumerate(zip(y, X, strict=True))]
        return float(np.average(pair_accuracies(pairs, self.predict(X)), weights=weights))


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class HomologyRanker(AlignmentModel):
    """Which of several candidates is homologous to a sequence, by the scores of their alignments.

    A candidate scores what its best alignment with the sequence scores. The scores of pairs of
    letters and of gaps are learned such that homologues rank before decoys; every candidate that is
    not the homologue has loss 1. `SequenceAligner` learns the same scores from alignments alone.

    Parameters
    ----------
    {parameters of AlignmentModel}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    alphabet_ : list
        The letters.
    coef_ : ndarray
        All weights, flat: pairs of letters, then gaps; see the properties below.
    substitution_scores_ : ndarray of shape (n_letters, n_letters)
        Scores of pairs, letter of the first sequence in rows.
    gap_scores_ : dict
        Scores "open" (of a gap) and "extend" (of each of its letters), and "end_open" and
        "end_extend" for gaps at the ends.
    result_ : Result
        Certificate and history of the training.

    Examples
    --------
    >>> X = [("ACGT", ["AGT", "TTT"]), ("TCGA", ["CCC", "TGA"])]
    >>> y = [(0, ("ACGT", "A-GT")), (1, ("TCGA", "T-GA"))]
    >>> ranker = HomologyRanker(mode="global", random_state=0).fit(X, y)
    >>> ranker.predict([("ACGA", ["TTC", "AGA"])]).tolist()
    [1]
    """

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> HomologyRanker:
        """Train on sequences with a homologue among decoys.

        Parameters
        ----------
        X : list of (native, candidates)
            Sequences, each with a list of candidates: strings, or lists of letters of any hashable
            type.
        y : list of (number, alignment)
            The number of the homologue among the candidates, and its alignment with the native: an
            integer array of shape (n_pairs, 2) with paired positions, or two strings of equal
            length with gaps ``-``.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        self._check_options()
        firsts, seconds, alignments, rest, groups = split_homologues(*check_examples(X, y))
        pairs, layout = self._aligned(firsts, seconds, alignments, rest)
        decoys = encode(rest, self.alphabet_)
        data = (*pairs.firsts, *pairs.seconds, *decoys, pairs.partners, groups, tuple(layout))
        return TrainingSet(
            lambda: HomologueProblem(*pairs, decoys, groups, layout),
            data,
            as_sample_weights(sample_weight),
            self._constraints(layout),
        )

    def predict(self, X: Any) -> Ints:
        """The candidates with the best scores.

        Parameters
        ----------
        X : list of (native, candidates)
            As for `fit`.

        Returns
        -------
        ndarray of int, shape (n_examples,)
            The number of the candidate, -1 where there is none.
        """
        scores = self.decision_function(X)
        return np.array([int(np.argmax(row)) if len(row) else -1 for row in scores], dtype=np.int64)

    def predict_k(self, X: Any, k: int) -> list[list[tuple[int, float]]]:
        """The k best candidates of each sequence, with their scores.

        Parameters
        ----------
        X : list of (native, candidates)
            As for `fit`.
        k : int
            How many to return for each example.

        Returns
        -------
        list of list of (number, score)
            For each example the numbers of the k candidates whose best alignments have the largest
            scores, best first. The list is shorter where there are fewer.
        """
        k = checked_k(k)
        orders = ((row, np.argsort(-row, kind="stable")[:k]) for row in self.decision_function(X))
        return [[(int(c), float(row[c])) for c in order] for row, order in orders]

    def decision_function(self, X: Any) -> list[Floats]:
        """Scores of the candidates of each sequence.

        Parameters
        ----------
        X : list of (native, candidates)
            Sequences and their candidates.

        Returns
        -------
        list of ndarray
            One score for each candidate.
        """
        self._check_fitted()
        X = as_list(X)
        groups = split_pairs(X, 1)
        for i, candidates in enumerate(groups):
            if not is_list(candidates):
                raise ValueError(f"X[{i}] must be (native, list of candidates), got {X[i]!r:.60}")
        natives = [x for x, group in zip(split_pairs(X), groups, strict=True) for _ in group]
        candidates = [y for group in groups for y in group]
        scores = self._align(natives, candidates)[1]
        ends = np.cumsum([0, *map(len, groups)])
        return [scores[first:end] for first, end in pairwise(ends)]

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted candidate, and not another: pairs and gaps that decided.

        Parameters
        ----------
        x : (native, candidates)
            As in the X of `predict`.
        y_hat : int, optional
            The number of the candidate to compare with; by default the second best.
        n : int, default=5
            How many pairs and gaps the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the scores. Candidates are compared by
            their best alignments.
        """
        n, (first, candidates) = checked_k(n, "n"), (split_pairs([x], part)[0] for part in (0, 1))
        numbers = [number for number, _ in self.predict_k([x], 2)[0]]
        if y_hat is not None:
            if not 0 <= int(y_hat) < len(candidates):
                raise ValueError(f"y_hat is {y_hat}, but there are {len(candidates)} candidates")
            numbers[1:] = [int(y_hat)]
        shown = [f"candidate {number}" for number in numbers]
        if len(numbers) == 1:
            return explain_whole(numbers[0], None, (), n, (shown[0], None))
        others = [candidates[number] for number in numbers]
        pairs = self.align([(first, other) for other in others])
        parts = (self._parts(first, other, own) for other, own in zip(others, pairs, strict=True))
        return explain_whole(numbers[0], numbers[1], differing_parts(*parts), n, shown)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Fraction of the sequences whose homologue is found.

        Parameters
        ----------
        X : list of (native, candidates)
            As for `fit`.
        y : list
            Numbers of the homologues, with or without their alignments.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        X, y = check_examples(X, y)
        weights = score_weights(sample_weight, len(X))
        gold = [_number_of_homologue(a, i) for i, a in enumerate(y)]
        return float(np.average(self.predict(X) == np.array(gold), weights=weights))


def _number_of_homologue(given: Any, i: int) -> int:
    """Of the example i of a score: the number alone, or with its pairs."""
    number = given[0] if isinstance(given, (tuple, list)) and len(given) else given
    if not isinstance(number, Integral):
        raise ValueError(f"y[{i}] must have the number of the homologue, got {number!r:.60}")
    return int(number)
