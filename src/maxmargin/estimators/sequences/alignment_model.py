"""What alignments score: substitutions and gaps, for estimators that learn these scores."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.result import Result
from ...core.weight_constraints import WeightConstraints
from ...features.containers import as_list
from ...problems.alignment.kernels import Strings
from ...problems.alignment.problem import Aligner, AlignmentLayout, pack_alignments
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import is_one_of
from ..abilities.explanation import Part
from ..base import MaxMarginEstimator
from ..inputs.labels import Outputs
from .alignment_data import (
    alignment_parts,
    as_pairs,
    encode,
    letters_of,
    partners_as_pairs,
    rows_of_alignment,
    split_pairs,
)

__all__ = ["AlignedPairs", "AlignmentModel"]


class AlignedPairs(NamedTuple):
    """Pairs of encoded sequences with their alignments."""

    firsts: Strings
    seconds: Strings
    partners: Ints32


@dataclass(kw_only=True, eq=False, repr=False)
class AlignmentModel(MaxMarginEstimator):
    """For estimators whose weights are the scores of alignments.

    Parameters
    ----------
    mode : {"local", "global"}, default="local"
        Whether letters before the first and after the last pair cost nothing (Smith-Waterman) or
        count as gaps (Needleman-Wunsch).
    gaps : {"linear", "affine"}, default="affine"
        Whether a gap scores a weight for each letter, or in addition one for its being there.
    symmetric : bool, default=False
        Learn one score for two letters in either order.
    end_gaps : {"same", "own"}, default="same"
        In global mode, whether gaps at the ends have the weights of other gaps or their own.
    alphabet : str or sequence, optional
        The letters; by default those of the training sequences, sorted.
    gap_signs : {"any", "nonpositive"}, default="any"
        Whether scores of gaps may be positive, which rewards gaps, or all are to be penalties.
    """

    mode: Literal["local", "global"] = "local"
    gaps: Literal["linear", "affine"] = "affine"
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
    ) -> Self:
        """Make an estimator with given scores, without training.

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
            Parameters of the estimator such as ``mode``.

        Returns
        -------
        estimator
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

    def _aligned(
        self, firsts: list[Any], seconds: list[Any], alignments: list[Any], others: list[Any]
    ) -> tuple[AlignedPairs, AlignmentLayout]:
        """Fix the letters and the layout of the weights, and encode aligned sequences."""
        self.alphabet_ = letters_of([*firsts, *seconds, *others], self.alphabet)
        layout = self._make_layout()
        xs, ys = encode(firsts, self.alphabet_), encode(seconds, self.alphabet_)
        pairs = [
            as_pairs(a, x, y, i)
            for i, (a, x, y) in enumerate(zip(alignments, firsts, seconds, strict=True))
        ]
        self._aligner = Aligner(layout)
        return AlignedPairs(xs, ys, pack_alignments(pairs, xs, ys)), layout

    def _constraints(self, layout: AlignmentLayout) -> WeightConstraints | None:
        """The signs that scores of gaps must have."""
        if self.gap_signs == "any":
            return None
        return WeightConstraints(nonpositive=np.arange(layout.n_pairs, layout.size))

    # ----- alignments ---------------------------------------------------------------------------

    def align(self, X: Any) -> list[Ints]:
        """Best alignment of each pair of sequences.

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
        """Score of the best alignment of each pair of sequences.

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

    def _shown(self, first: Any, second: Any, pairs: Ints) -> str:
        """An alignment in two rows; ValueError where it is none of these sequences."""
        pack_alignments([pairs], *self._encode([first], [second]))
        return rows_of_alignment(first, second, pairs)

    def _parts(self, first: Any, second: Any, pairs: Ints) -> Iterator[Part]:
        """Pairs and gaps of an alignment, with their scores."""
        xs, ys = self._encode([first], [second])
        scoring = self._aligner.layout.scoring(self._weights)
        return alignment_parts(xs.letters, ys.letters, pairs, scoring, first, second)

    def _check_options(self) -> None:
        """Raise ValueError for a parameter that is none of its values."""
        for name, values in (
            ("mode", ("local", "global")),
            ("gaps", ("linear", "affine")),
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
