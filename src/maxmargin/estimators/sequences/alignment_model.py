"""What alignments score, for estimators that learn it; sequences and alignments of users."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core.result import Result
from ...core.weight_constraints import WeightConstraints
from ...features.containers import as_list
from ...formats.fasta import pairs_of_rows
from ...problems.alignment.kernels import Scoring, Strings
from ...problems.alignment.problem import Aligner, AlignmentLayout, pack_alignments, pack_strings
from ...utils.types import Floats, Ints, Ints32
from ...utils.validation import as_floats, check_same_length, is_list, is_one_of
from ...utils.warn import warn_user
from ..abilities.explanation import Part
from ..base import MaxMarginEstimator
from ..examples import Outputs

__all__ = [
    "AlignedPairs",
    "AlignmentModel",
    "alignment_parts",
    "as_pairs",
    "check_examples",
    "encode",
    "letters_of",
    "partners_as_pairs",
    "rows_of_alignment",
    "split_homologues",
    "split_pairs",
]

MOST_LETTERS = 255  # one code is left for letters that are not known


def check_examples(X: Any, y: Any) -> tuple[Any, Any]:
    """Inputs and outputs as lists; ValueError unless there are as many of both, at least one."""
    X, y = as_list(X), as_list(y, "y")
    check_same_length(len(X), len(y))
    if len(X) == 0:
        raise ValueError("expected at least one example, found none")
    return X, y


def letters_of(strings: list[Any], alphabet: Any = None) -> list[Any]:
    """The letters that are given, or those of the strings, sorted."""
    if alphabet is not None:
        if not isinstance(alphabet, str) and not is_list(alphabet):
            raise ValueError(f"alphabet must be a string or list of letters, got {alphabet!r:.60}")
        letters = list(alphabet)
        try:
            n_different = len(set(letters))
        except TypeError as error:
            raise ValueError(f"alphabet has an entry that is not a letter: {error}") from None
        if n_different != len(letters):
            raise ValueError(f"alphabet has a letter twice: {alphabet!r:.60}")
    else:
        check_sequences(strings)
        try:
            letters = sorted({letter for string in strings for letter in string})
        except TypeError as error:
            raise ValueError(f"the letters of sequences cannot be sorted: {error}") from None
    if not 1 <= len(letters) <= MOST_LETTERS:
        raise ValueError(f"expected 1 to {MOST_LETTERS} letters, found {len(letters)}")
    return letters


def check_sequences(strings: list[Any]) -> None:
    """Raise ValueError for what is neither a string nor a list of letters."""
    for string in strings:
        if not isinstance(string, str) and not is_list(string):
            raise ValueError(f"a sequence is {string!r:.60}, expected a string of letters")


def encode(strings: list[Any], alphabet: list[Any], *, warn: bool = False) -> Strings:
    """Strings as codes; an unknown letter is an error, or gets a code of its own and a warning."""
    code = {letter: k for k, letter in enumerate(alphabet)}
    unknown = len(code)
    check_sequences(strings)
    try:
        packed = pack_strings([[code.get(letter, unknown) for letter in s] for s in strings])
    except TypeError as error:
        raise ValueError(f"a sequence has a letter that is not a key: {error}") from None
    bad = np.flatnonzero(packed.letters == unknown)
    if len(bad):
        i = int(np.searchsorted(packed.offsets, bad[0], side="right")) - 1
        letter = strings[i][int(bad[0] - packed.offsets[i])]
        if not warn:
            raise ValueError(f"a sequence has the letter {letter!r}, which is not in the alphabet")
        warn_user(
            f"letters unknown to the model score 0 in pairs: {len(bad)} in all, the first "
            f"is {letter!r}"
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
        if not is_list(pair) or len(pair) != 2:
            raise ValueError(f"X[{i}] must be a pair, got {pair!r:.60}")
        parts.append(pair[which])
    return parts


def split_homologues(
    X: Any, outputs: Any
) -> tuple[list[Any], list[Any], list[Any], list[Any], Ints]:
    """Natives, homologues, their alignments, decoys of all examples, and how many each has."""
    natives, homologues, alignments, decoys, counts = [], [], [], [], [0]
    groups = zip(split_pairs(X), split_pairs(X, 1), outputs, strict=True)
    for i, (native, candidates, y) in enumerate(groups):
        if not is_list(candidates):
            raise ValueError(f"X[{i}] must be (native, list of candidates), got {X[i]!r:.60}")
        if not isinstance(y, (tuple, list)) or len(y) != 2 or not isinstance(y[0], Integral):
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
    found = as_floats(alignment, f"y[{i}]: paired positions")
    if found.size == 0:
        return np.asarray(alignment).reshape(0, 2)
    if found.shape[1:] == (2,) and not ((found >= 0) & (found < (len(x), len(y)))).all():
        raise ValueError(
            f"alignment {i} has a position outside its strings of {len(x)} and {len(y)} letters"
        )
    return np.asarray(alignment)


# ----- explanations ------------------------------------------------------------------------------

LONGEST = 60  # letters of a row that are shown


def alignment_parts(
    codes: Any, other_codes: Any, pairs: Ints, scoring: Scoring, first: Any, second: Any
) -> Iterator[Part]:
    """Pairs and gaps of an alignment by their places in the first sequence; see `kernels`."""
    last, ends = (-1, -1), 2  # the first gap is an end
    for i, j in [*pairs.tolist(), (len(first), len(second))]:
        is_end = i == len(first)
        for gap, which in ((i - last[0] - 1, "second"), (j - last[1] - 1, "first")):
            yield from _gap(gap, which, i, 2 if is_end else ends, scoring)
        if not is_end:
            weight = float(scoring.substitution[codes[i], other_codes[j]])
            yield f"pair {first[i]} {second[j]}", i, weight
        last, ends = (i, j), 0


def _gap(length: int, which: str, place: int, ends: int, scoring: Scoring) -> Iterator[Part]:
    """A gap in one of the sequences, of so many letters of the other one."""
    kind = f"{'end ' if ends else ''}gap in the {which} sequence"
    if length and scoring.gap_feature[ends] >= 0:
        yield f"{kind}, opened", place, float(scoring.gaps[ends])
    if length and scoring.gap_feature[ends + 1] >= 0:
        for _ in range(length):
            yield f"{kind}, letters", place, float(scoring.gaps[ends + 1])


def rows_of_alignment(first: Sequence[Any], second: Sequence[Any], pairs: Ints) -> str:
    """An alignment as two rows with gaps, the ends that are not shown left out."""
    rows: tuple[list[str], list[str]] = ([], [])
    at = (0, 0)
    for i, j in [*pairs.tolist(), (len(first), len(second))]:
        alone = [*first[at[0] : i]], [*second[at[1] : j]]
        rows[0].extend([*map(str, alone[0]), *["-"] * len(alone[1])])
        rows[1].extend([*["-"] * len(alone[0]), *map(str, alone[1])])
        if i < len(first):
            rows[0].append(str(first[i]))
            rows[1].append(str(second[j]))
        at = (i + 1, j + 1)
    return " / ".join(
        "".join(row[:LONGEST]) + ("..." if len(row) > LONGEST else "") for row in rows
    )


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
