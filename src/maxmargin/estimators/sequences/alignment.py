"""Alignment of two sequences with learned scores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...features.containers import as_list
from ...metrics import pair_accuracies
from ...problem import Problem
from ...problems.alignment.homologues import HomologueProblem
from ...problems.alignment.kernels import Strings
from ...problems.alignment.layout import Aligner, AlignmentLayout, pack_alignments
from ...problems.alignment.problem import AlignmentProblem
from ...result import Result
from ...types import Floats, Ints
from ...validation import as_sample_weights, is_list, is_one_of
from ...weight_constraints import WeightConstraints
from ..abilities.explanation import Explanation, differing_parts, explain_whole
from ..base import MaxMarginEstimator, checked_k
from ..inputs.costs import score_weights
from ..inputs.labels import Outputs
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .alignment_data import (
    alignment_parts,
    as_pairs,
    encode,
    letters_of,
    partners_as_pairs,
    rows_of_alignment,
    split_homologues,
    split_pairs,
)

__all__ = ["SequenceAligner"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceAligner(MaxMarginEstimator):
    """Alignments of two sequences by learned substitution scores and gap penalties.

    The score of an alignment is the sum of the substitution scores of its pairs of letters and of
    the scores of its gaps; the best alignment is found exactly. Scores are learned either from
    true alignments, or from what a sequence's homologue is among decoys.

    Parameters
    ----------
    mode : {"local", "global"}, default="local"
        Whether letters before the first and after the last pair cost nothing (Smith-Waterman) or
        count as gaps (Needleman-Wunsch).
    gaps : {"linear", "affine"}, default="affine"
        Whether a gap scores a weight for each letter, or in addition one for its being there.
    task : {"align", "rank"}, default="align"
        What is predicted: the alignment of two sequences, or which of several candidates is
        homologous to a sequence, by the scores of their best alignments.
    loss : {"pairs", "residues", "zero-one"}, default="pairs"
        For alignments: share of the true pairs that are missed, share of the letters whose partner
        (or lack of one) is not the true one, or 1 for every alignment but the true one. Among
        candidates, each that is not the homologue has loss 1.
    symmetric : bool, default=False
        Learn one score for two letters in either order.
    end_gaps : {"same", "own"}, default="same"
        In global mode, whether gaps at the ends have the weights of other gaps or their own.
    alphabet : str or sequence, optional
        The letters; by default those of the training sequences, sorted.
    gap_signs : {"any", "nonpositive"}, default="any"
        Whether scores of gaps may be positive, which rewards gaps, or all are to be penalties.
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

    mode: Literal["local", "global"] = "local"
    gaps: Literal["linear", "affine"] = "affine"
    task: Literal["align", "rank"] = "align"
    loss: Literal["pairs", "residues", "zero-one"] = "pairs"
    symmetric: bool = False
    end_gaps: Literal["same", "own"] = "same"
    alphabet: Any = None
    gap_signs: Literal["any", "nonpositive"] = "any"

    @classmethod
    def from_scores(
        cls,
        substitution: ArrayLike,
        alphabet: Sequence[Any],
        *,
        gap_open: float = 0.0,
        gap_extend: float,
        end_gap_open: float | None = None,
        end_gap_extend: float | None = None,
        **parameters: Any,
    ) -> SequenceAligner:
        """Make an aligner with given scores, without training.

        Parameters
        ----------
        substitution : array of shape (n_letters, n_letters)
            Scores of pairs of letters.
        alphabet : str or sequence
            The letters.
        gap_open, gap_extend : float
            Scores of a gap and of each of its letters, penalties being negative: "gap 11/1" of
            BLAST is -11 and -1.
        end_gap_open, end_gap_extend : float, optional
            The same for gaps at the ends in global mode; by default those of other gaps.
        **parameters
            Parameters of the estimator such as ``mode`` and ``task``.

        Returns
        -------
        SequenceAligner
            Ready to predict; its ``result_`` has the status "given" and no certificate.
        """
        ends = (end_gap_open, end_gap_extend)
        chosen = {"alphabet": alphabet, "gaps": "affine"}
        if ends != (None, None):
            chosen["end_gaps"] = "own"
        aligner = cls(**{**chosen, **parameters})
        aligner.alphabet_ = letters_of([], alphabet)
        layout = aligner._make_layout()
        scores = np.asarray(substitution, dtype=np.float64)
        K = layout.n_letters
        if scores.shape != (K, K) or not np.isfinite(scores).all():
            raise ValueError(
                f"substitution must be finite, of shape ({K}, {K}); got shape {scores.shape}"
            )
        if layout.symmetric and not np.array_equal(scores, scores.T):
            raise ValueError("symmetric=True, but the given substitution scores are not")
        if not layout.affine and gap_open != 0.0:
            raise ValueError(f"linear gaps have no gap_open, got {gap_open}")
        inner = [gap_open, gap_extend]
        given = [a if b is None else b for a, b in zip(inner, ends, strict=True)]
        aligner._set_weights(layout.weights(scores, np.array(inner + given, dtype=np.float64)))
        aligner.result_ = Result(aligner.coef_, None, None, False, "given", 0.0, 0, 0, 0, 0.0)
        aligner._aligner = Aligner(layout)
        return aligner

    # ----- training -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> SequenceAligner:
        """Train on aligned sequences.

        Parameters
        ----------
        X : list
            With ``task="align"``, pairs (x, y) of sequences: strings, or lists of letters of any
            hashable type. With ``task="rank"``, pairs (native, candidates).
        y : list
            With ``task="align"``, alignments: integer arrays of shape (n_pairs, 2) with paired
            positions, or two strings of equal length with gaps ``-``. With ``task="rank"``, pairs
            (number of the homologue among the candidates, its alignment with the native).
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
        X, y = as_list(X), as_list(y, "y")
        if len(X) != len(y):
            raise ValueError(
                f"X has {len(X)} examples but y has {len(y)}; first without a partner: "
                f"{min(len(X), len(y))}"
            )
        if len(X) == 0:
            raise ValueError("expected at least one example, found none")
        weights = as_sample_weights(sample_weight)
        if self.task == "align":
            firsts, seconds, alignments = split_pairs(X), split_pairs(X, 1), list(y)
            rest: list[Any] = []
            groups = np.zeros(len(X) + 1, dtype=np.int64)
        else:
            firsts, seconds, alignments, rest, groups = split_homologues(X, y)
        self.alphabet_ = letters_of([*firsts, *seconds, *rest], self.alphabet)
        layout = self._make_layout()
        xs, ys, decoys = (encode(strings, self.alphabet_) for strings in (firsts, seconds, rest))
        pairs = [
            as_pairs(a, x, y, i)
            for i, (a, x, y) in enumerate(zip(alignments, firsts, seconds, strict=True))
        ]
        partners = pack_alignments(pairs, xs, ys)

        def make_problem() -> Problem:
            if self.task == "align":
                return AlignmentProblem(xs, ys, partners, layout, self.loss)
            return HomologueProblem(xs, ys, partners, decoys, groups, layout)

        options = (self.task, self.loss, tuple(layout))
        self._aligner = Aligner(layout)
        data = (*xs, *ys, *decoys, partners, groups, options)
        return TrainingSet(make_problem, data, weights, self._constraints(layout))

    def _constraints(self, layout: AlignmentLayout) -> WeightConstraints | None:
        """The signs that scores of gaps must have."""
        if self.gap_signs == "any":
            return None
        return WeightConstraints(nonpositive=np.arange(layout.n_pairs, layout.size))

    # ----- prediction ---------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Best alignments, or the candidates with the best scores.

        Parameters
        ----------
        X : list
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (n_pairs, 2), or ndarray of int
            With ``task="align"`` the paired positions of each example, none where a sequence is
            empty; with ``task="rank"`` the number of the candidate, -1 where there is none.
        """
        if self.task == "align":
            return self.align(X)
        scores = self.decision_function(X)
        return np.array([int(np.argmax(row)) if len(row) else -1 for row in scores], dtype=np.int64)

    def predict_k(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """The k best alignments of each pair of sequences, or the k best candidates, with scores.

        Parameters
        ----------
        X : list
            As for `fit`.
        k : int
            How many to return for each example.

        Returns
        -------
        list of list of (alignment, score) or (number, score)
            For each example, best first: with ``task="align"`` its k alignments of the largest
            score, each as `predict` gives it and none twice; with ``task="rank"`` the numbers of
            the k candidates whose best alignments have the largest scores. The list is shorter
            where there are not so many.
        """
        k = checked_k(k)
        if self.task == "align":
            weights, X = self._weights, as_list(X)
            xs, ys = self._encode(split_pairs(X), split_pairs(X, 1))
            return [
                [(partners_as_pairs(best.partner), best.score) for best in ranked]
                for ranked in self._aligner.align_k(xs, ys, weights, k, self.n_jobs)
            ]
        orders = ((row, np.argsort(-row, kind="stable")[:k]) for row in self.decision_function(X))
        return [[(int(c), float(row[c])) for c in order] for row, order in orders]

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted alignment or candidate, and not another: pairs and gaps that decided.

        Parameters
        ----------
        x : pair of sequences, or (native, candidates)
            As in the X of `predict`.
        y_hat : alignment, or number of a candidate, optional
            What to compare with, as in the y of `fit`; by default the second best.
        n : int, default=5
            How many pairs and gaps the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the scores. Candidates are compared by
            their best alignments.
        """
        n, scoring = checked_k(n, "n"), self._aligner.layout.scoring(self._weights)
        first, second = split_pairs([x])[0], split_pairs([x], 1)[0]
        ranked = self.predict_k([x], 2)[0]
        chosen, rival = ranked[0][0], ranked[1][0] if len(ranked) > 1 else None
        if self.task == "align":
            rival = rival if y_hat is None else as_pairs(y_hat, first, second, 0)
            both = [(second, own) for own in (chosen, rival) if own is not None]
        else:
            if y_hat is not None and not 0 <= int(y_hat) < len(second):
                raise ValueError(f"y_hat is {y_hat}, but there are {len(second)} candidates")
            rival = rival if y_hat is None else int(y_hat)
            others = [second[k] for k in (chosen, rival) if k is not None]
            both = [(other, self.align([(first, other)])[0]) for other in others]
        shown, parts = [], []
        for other, pairs in both:
            xs, ys = self._encode([first], [other])
            pack_alignments([pairs], xs, ys)  # refuses what is none
            parts.append(alignment_parts(xs.letters, ys.letters, pairs, scoring, first, other))
            shown.append(rows_of_alignment(first, other, pairs))
        if self.task == "rank":
            shown = [f"candidate {chosen}", f"candidate {rival}"]
        if rival is None:
            return explain_whole(chosen, None, (), n, (shown[0], None))
        return explain_whole(chosen, rival, differing_parts(*parts), n, shown)

    def align(self, X: Any) -> list[Ints]:
        """Best alignment of each pair of sequences, whatever the task.

        Parameters
        ----------
        X : list of (x, y)
            Pairs of sequences.

        Returns
        -------
        list of ndarray of int64, shape (n_pairs, 2)
            Paired positions.
        """
        X = as_list(X)
        partners, _, offsets = self._align(split_pairs(X), split_pairs(X, 1))
        rows = (partners[a:b] for a, b in pairwise(offsets))
        return Outputs(partners_as_pairs(row) for row in rows)

    def similarity(self, X: Any) -> Floats:
        """Score of the best alignment of each pair of sequences, whatever the task.

        Parameters
        ----------
        X : list of (x, y)
            Pairs of sequences.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        X = as_list(X)
        return self._align(split_pairs(X), split_pairs(X, 1))[1]

    def decision_function(self, X: Any) -> list[Floats]:
        """Scores of the candidates of each sequence, for ``task="rank"``.

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

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean share of the true pairs that are found, or share of homologues that are found.

        Parameters
        ----------
        X, y : list
            As for `fit`; with ``task="rank"``, y may also be just the numbers of the homologues.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        X, y = as_list(X), as_list(y, "y")
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples but y has {len(y)}")
        weights = score_weights(sample_weight, len(X))
        predicted = self.predict(X)
        if self.task == "rank":
            gold = [_number_of_homologue(a, i) for i, a in enumerate(y)]
            return float(np.average(predicted == np.array(gold), weights=weights))
        pairs = [as_pairs(a, x, z, i) for i, (a, (x, z)) in enumerate(zip(y, X, strict=True))]
        return float(np.average(pair_accuracies(pairs, predicted), weights=weights))

    @property
    def substitution_scores_(self) -> Floats:
        """Scores of pairs of letters, letter of the first sequence in rows."""
        K = len(self.alphabet_)
        return self._aligner.layout.scoring(self._weights).substitution[:K, :K]

    @property
    def gap_scores_(self) -> dict[str, float]:
        """Scores of gaps; 0 where there is no weight."""
        names = ("open", "extend", "end_open", "end_extend")
        values = self._aligner.layout.scoring(self._weights).gaps.tolist()
        return dict(zip(names, values, strict=True))

    # ----- sequences ----------------------------------------------------------------------------

    def _align(self, firsts: list[Any], seconds: list[Any]) -> tuple[Any, Floats, Any]:
        """Partners, scores and offsets of the best alignments."""
        weights = self._weights
        xs, ys = self._encode(firsts, seconds)
        partners, scores = self._aligner.align(xs, ys, weights, self.n_jobs)
        return partners, scores, xs.offsets

    def _encode(self, firsts: list[Any], seconds: list[Any]) -> tuple[Strings, Strings]:
        """Sequences by the letters of the alphabet, with a warning for letters that it lacks."""
        return (
            encode(firsts, self.alphabet_, warn=True),
            encode(seconds, self.alphabet_, warn=True),
        )

    def _check_options(self) -> None:
        """Raise ValueError for a parameter that is none of its values."""
        for name, values in (
            ("mode", ("local", "global")),
            ("gaps", ("linear", "affine")),
            ("task", ("align", "rank")),
            ("loss", ("pairs", "residues", "zero-one")),
            ("end_gaps", ("same", "own")),
            ("gap_signs", ("any", "nonpositive")),
        ):
            if not is_one_of(getattr(self, name), values):
                shown = " or ".join(repr(value) for value in values)
                raise ValueError(f"{name} must be {shown}, got {getattr(self, name)!r}")

    def _make_layout(self) -> AlignmentLayout:
        """What has a weight, by the parameters."""
        self._check_options()
        return AlignmentLayout(
            len(self.alphabet_),
            local=self.mode == "local",
            affine=self.gaps == "affine",
            symmetric=bool(self.symmetric),
            own_ends=self.mode == "global" and self.end_gaps == "own",
        )

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> AlignerState:
        """See `Savable`."""
        return AlignerState(self.alphabet_, self._aligner.layout)

    def _set_state(self, state: AlignerState) -> None:
        """See `Savable`."""
        self.alphabet_ = state.alphabet
        layout = state.layout
        if len(self.alphabet_) != layout.n_letters:
            raise ValueError(f"expected {layout.n_letters} letters, found {len(self.alphabet_)}")
        self._aligner = Aligner(layout)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._aligner.layout.size


class AlignerState(NamedTuple):
    """What a file keeps of an aligner."""

    alphabet: list[Hashable]
    layout: AlignmentLayout


def _number_of_homologue(given: Any, i: int) -> int:
    """Of the example i of a score: the number alone, or with its pairs."""
    number = given[0] if isinstance(given, (tuple, list)) and len(given) else given
    if not isinstance(number, Integral):
        raise ValueError(f"y[{i}] must have the number of the homologue, got {number!r:.60}")
    return int(number)
