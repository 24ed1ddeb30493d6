"""Segmentation of sequences with a semi-Markov model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...engine.packed_problem import sparse_rows
from ...engine.rows import Rows
from ...features import FeatureDictionary, PackedSequences, WindowFeatures
from ...features.tokens import TokenChunks
from ...metrics.segments import segment_f1
from ...problems.segments.layout import SegmentLayout, segments_by_sequence
from ...problems.segments.problem import LOSSES, SegmentDecoder, SegmentLoss, SegmentProblem
from ...utils.schema import Count, Labels, Names
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ..abilities.explanation import Explanation, strongest_by_label
from ..base import MaxMarginEstimator, OnlineMethod, checked_k
from ..examples import (
    FlatLabels,
    LabelEncoder,
    Outputs,
    answers_empty,
    flatten_labels,
    label_objects,
    passes_empty,
    warn_of_unknown,
)
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .segment_data import (
    Segments,
    coded_segments,
    examples_within,
    explain_segments,
    fixed_pieces,
    labels_of,
    longest_by_label,
    ranked_segments,
    read_segments,
)
from .token_inputs import TokenInputs, from_vectors

__all__ = ["SequenceSegmenter"]

PLACES = ("inside", "first", "last")


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceSegmenter(MaxMarginEstimator):
    """Labelled segments of sequences, such as entities or phrases: a semi-Markov structural SVM.

    Segments do not overlap, and tokens between them belong to none. Where a tagger scores tokens,
    this model scores whole segments: the features of their tokens under their label, those of
    their first and of their last token once more under weights of their own, their lengths, and
    pairs of labels that follow each other, where a token of no segment has a label, too.

    Parameters
    ----------
    loss : {"segments", "hamming", "f1", "zero_one"}, default="segments"
        What wrong segments of a sequence cost: the number of missed plus that of false segments,
        where a segment is right if start, stop and label are; the number of tokens with a wrong
        tag, where tags tell the label of the token's segment and whether the token is the first
        one of it (BIO); 1 - F1 of the segments; or 1 if anything is wrong. The first two add up
        along the search with ``rescaling="margin"``; all else is searched for each possible
        number of errors, which takes many times as long.
    max_segment_length : int, or mapping of label to int, optional
        Number of tokens that a segment has at most, in training and in prediction; where it is not
        given, that of the label's longest segment of the training data; never more than the longest
        training sequence has. Time grows with it.
    on_violation : {"raise", "drop"}, default="raise"
        What to do with training sequences that have longer segments than ``max_segment_length``:
        raise ValueError, which says where; or leave them out, with a warning that counts them.
    last_tokens : bool, default=True
        Whether features of a segment's last token have weights of their own, as those of its first
        token do. Without them the model is nearer to that of a tagger, and smaller.
    fit_intercept : bool, default=False
        Append a constant feature to every token, regularised like the rest.
    features : WindowFeatures or other extractor, optional
        Makes token features from sequences of words or of tuples of strings; cloned and fitted by
        ``fit``. Without it, tokens are feature vectors, or dicts or lists of feature strings,
        which a `FeatureDictionary` numbers.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels of segments, sorted; an array of objects if they are of several types.
    coef_ : ndarray
        All weights, flat: for each feature those of tokens inside segments of each label, of tokens
        outside, of first tokens and (with ``last_tokens``) of last tokens of segments of each
        label; then the transitions (from-label first, outside is the last label), then the lengths
        of each label's segments.
    max_segment_lengths_ : dict of label to int
        Number of tokens that segments have at most.
    transition_weights_ : ndarray of shape (n_labels + 1, n_labels + 1)
        Weights of labels that follow each other, from-label in rows; outside is the last.
    length_weights_ : dict of label to ndarray
        Weights of segments of 1, 2, ... tokens.
    features_ : FeatureDictionary, WindowFeatures or None
        What turns tokens into feature vectors.
    n_features_in_ : int
        Number of features of a token, once they are vectors.
    feature_names_in_ : ndarray of str
        Their names, if the training sequences were DataFrames of numbers.
    result_ : Result
        Certificate and history of the training.

    Notes
    -----
    `maxmargin.metrics` turns tags into segments and back (``tags_to_segments``,
    ``segments_to_tags``) and scores segments (``segment_scores``).

    Examples
    --------
    >>> X = [[["in"], ["New"], ["York"]], [["York"], ["is"], ["old"]], [["New"], ["is"], ["in"]]]
    >>> y = [[(1, 3, "place")], [(0, 1, "place")], []]
    >>> segmenter = SequenceSegmenter(C=10.0, random_state=0).fit(X, y)
    >>> segmenter.predict([[["is"], ["in"], ["New"], ["York"]]])
    [[(2, 4, 'place')]]
    """

    loss: SegmentLoss = "segments"
    max_segment_length: Any = None
    on_violation: Literal["raise", "drop"] = "raise"
    last_tokens: bool = True
    fit_intercept: bool = False
    features: Any = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> SequenceSegmenter:
        """Train on sequences with their segments.

        Parameters
        ----------
        X : list of sequences, 3-D array, or PackedSequences
            As for `SequenceTagger`: a sequence is a 2-D array (tokens in rows), a scipy sparse
            matrix, a list of dicts ``{name: value}`` or of lists of feature strings, or a
            DataFrame. With ``features``, what the extractor takes.
        y : list of lists of (start, stop, label)
            Segments of each sequence: tokens ``start`` to ``stop - 1``, counted from 0. Labels are
            of any hashable type. A list may be empty.
        sample_weight : array of shape (n_sequences,), optional
            Multiplies each sequence's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        self._check_parameters()
        inputs, packed = TokenInputs.fit(self.features, X)
        inputs.set_attributes(self)
        segments = read_segments(y, packed.offsets)
        kept = examples_within(
            self.max_segment_length, packed, segments, sample_weight, self.on_violation == "drop"
        )
        self._fit_labels(kept[1], labels_of(kept[1]), kept[0])
        return self._batch(*kept, self.loss)

    @OnlineMethod
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> SequenceSegmenter:
        """Make one pass over more sequences, with an online solver.

        {passes}

        Features and lengths are those of the first call: what is new in later ones has no weights.
        Features are then ignored; ``on_violation`` says what becomes of longer segments.

        {C of all sequences}

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of lists of (start, stop, label)
            Segments of each sequence.
        classes : list, optional
            All labels there will ever be; by default those of the first call. Those that have no
            segment in it need a ``max_segment_length``, or get one of 1.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _training_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        self._check_parameters()
        if first := not hasattr(self, "classes_"):
            inputs, packed = TokenInputs.fit(self.features, X)
            inputs.set_attributes(self)
        else:
            packed = TokenInputs.of(self).packed(X)
        segments = read_segments(y, packed.offsets)
        if first:
            listed = labels_of(segments) if classes is None else flatten_labels([list(classes)])
            self._fit_labels(segments, listed, packed)
        kept = examples_within(
            self._longest(), packed, segments, sample_weight, self.on_violation == "drop"
        )
        return self._batch(*kept)

    def _check_parameters(self) -> None:
        """Raise ValueError for wrong ones, before the features are built."""
        check_choice(self.loss, LOSSES, "loss")
        check_choice(self.on_violation, ("raise", "drop"), "on_violation")

    def _fit_labels(
        self, segments: list[Segments], labels: FlatLabels, packed: PackedSequences
    ) -> None:
        """Fix labels, their lengths and the layout of the weights."""
        if not labels.values:
            raise ValueError("y has no segments; at least one is needed")
        encoder = LabelEncoder.of(labels)
        known = set(classes := encoder.classes.tolist())
        of_known = [[one for one in own if one[2] in known] for own in segments]
        most = int(np.diff(packed.offsets).max())  # tokens of a sequence
        longest = longest_by_label(self.max_segment_length, of_known, classes, most)
        n_features = int(packed.tokens.shape[1])
        n_inputs = n_features + bool(self.fit_intercept)
        layout = SegmentLayout(n_inputs, np.array(longest), bool(self.last_tokens))
        self._set_model(encoder.classes, n_features, layout)

    def _batch(
        self, packed: PackedSequences, segments: list[Segments], weights: Any, *more: Any
    ) -> TrainingSet:
        """What is trained on; ValueError for a segment that the model does not know."""
        layout = self._decoder.layout
        options: Any = {"fit_intercept": self._has_intercept, "last_tokens": layout.last_tokens}
        data: tuple[Any, ...] = (*packed, coded_segments(segments, self.classes_), layout.longest)
        return TrainingSet(
            lambda: SegmentProblem(*data, loss=self.loss, **options),
            (*data, options, *more),
            weights,
        )

    def _set_model(self, classes: NDArray[Any], n_features: int, layout: SegmentLayout) -> None:
        """Fix labels and the layout of the weights."""
        self.classes_ = classes
        self.n_features_in_ = n_features
        self._decoder = SegmentDecoder(layout)

    @answers_empty(lambda _: [])
    def predict(self, X: Any, fixed: Any = None) -> list[list[tuple[int, int, Any]]]:
        """Best segments of each sequence.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        fixed : list, optional
            What is known already: for each sequence None (nothing), or a list of segments (start,
            stop, label) that the output must have. Instead of a label, a set has those that the
            segment may have, and None allows any.

        Returns
        -------
        list of lists of (start, stop, label)
            Segments of each sequence, from left to right, none of an empty one. As an array, it is
            one of lists.
        """
        self._check_fitted()
        inputs = TokenInputs.of(self)
        if fixed is not None:
            return Outputs(ranked[0][0] for ranked in self._ranked(inputs.packed(X), 1, fixed))
        if not inputs.takes_words(X):
            return self._segments(inputs.packed(X))

        def listed(packed: PackedSequences, _: int) -> list[Segments]:
            return self._listed(sparse_rows(packed.tokens, self._has_intercept), packed.offsets)

        found = inputs.from_words(TokenChunks(X), listed, "segments", self.n_jobs)
        return Outputs(chain.from_iterable(found))

    @answers_empty(lambda _: [([], 0.0)])
    def predict_k(self, X: Any, k: int, fixed: Any = None) -> list[list[tuple[Segments, float]]]:
        """The k best lists of segments of each sequence, with their scores.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        k : int
            How many to return for each sequence.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (segments, score)
            For each sequence its k lists of segments of the largest score ``<w, psi(x, y)>``, best
            first, each as `predict` gives it. The list is shorter where there are fewer.
        """
        self._check_fitted()
        return self._ranked(TokenInputs.of(self).packed(X), checked_k(k), fixed)

    def _ranked(
        self, packed: PackedSequences, k: int, fixed: Any
    ) -> list[list[tuple[Segments, float]]]:
        """The k best segmentations of sequences whose features are known."""
        labels, longest = label_objects(self.classes_), self._decoder.layout.longest.tolist()
        offsets = packed.offsets
        known = None if fixed is None else fixed_pieces(fixed, offsets, labels.tolist(), longest)

        def ranked(rows: Rows, offsets: Ints, tokens: slice) -> list[list[tuple[Segments, float]]]:
            part = None if known is None else known.between(tokens)
            best = self._decoder.decode_k_best(rows, offsets, self._weights, k, part)
            return ranked_segments(best, offsets, labels)

        return self._in_chunks(packed, ranked, k)

    def _segments(self, packed: PackedSequences) -> list[Segments]:
        """Best segments of sequences whose features are known."""
        return Outputs(
            self._in_chunks(packed, lambda rows, offsets, _: self._listed(rows, offsets))
        )

    def _in_chunks(self, packed: PackedSequences, decode: Any, k: int = 1) -> list[Any]:
        """What `from_vectors` makes of sequences."""
        rows = sparse_rows(packed.tokens, self._has_intercept)
        work = self._decoder.token_work(rows, k)
        return from_vectors(rows, packed.offsets, decode, work, self.n_jobs)

    def _listed(self, rows: Rows, offsets: Ints) -> list[Segments]:
        """Best segments of some sequences."""
        found = self._decoder.decode(rows, offsets, self._weights)
        return segments_by_sequence(found, offsets, label_objects(self.classes_))

    @passes_empty
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """F1 of the segments, of all sequences and labels together.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of lists of (start, stop, label)
            True segments; those of a label that is not known to the model count as missed, with a
            warning.
        sample_weight : array of shape (n_sequences,), optional
            What the segments of each sequence count.

        Returns
        -------
        float
            1 where neither ``y`` nor the predictions have any segments.
        """
        self._check_fitted()
        packed = TokenInputs.of(self).packed(X)
        segments = read_segments(y, packed.offsets)
        labels = labels_of(segments)
        warn_of_unknown(LabelEncoder(self.classes_).encode(labels), labels)
        return segment_f1(segments, self._segments(packed), sample_weight)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted segments, and not others: what decided, piece by piece.

        Parameters
        ----------
        x : sequence
            One sequence, as in the X of `predict`.
        y_hat : list of (start, stop, label), optional
            Other segments, to be compared with those predicted. By default every segment, and every
            token outside of them, has a rival: the best segmentation that lacks it.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions piece by piece; with ``y_hat`` token by token, where anything differs.
        """
        self._check_fitted()
        return explain_segments(self, x, y_hat, self._weights, checked_k(n, "n"))

    # ----- what was learned ---------------------------------------------------------------------

    @property
    def max_segment_lengths_(self) -> dict[Any, int]:
        """Number of tokens that segments of each label have at most."""
        self._check_fitted()
        return self._longest()

    def _longest(self) -> dict[Any, int]:
        """See `max_segment_lengths_`."""
        longest = self._decoder.layout.longest.tolist()
        return dict(zip(self.classes_.tolist(), longest, strict=True))

    @property
    def transition_weights_(self) -> Floats:
        """Weights of labels that follow each other, from-label in rows; outside is the last."""
        weights = self._weights
        return self._decoder.layout.transitions(weights).copy()

    @property
    def length_weights_(self) -> dict[Any, Floats]:
        """Weights of segments of 1, 2, ... tokens, of each label."""
        weights = self._weights
        layout = self._decoder.layout
        return {
            label: layout.lengths(weights, k).copy()
            for k, label in enumerate(self.classes_.tolist())
        }

    def top_features(
        self,
        n: int = 10,
        *,
        where: Literal["inside", "first", "last"] = "inside",
        against: bool = False,
    ) -> dict[Any, list[tuple[str, float]]]:
        """Token features that speak most for segments of each label, or against them.

        Parameters
        ----------
        n : int, default=10
            How many to list for a label, at most.
        where : {"inside", "first", "last"}, default="inside"
            Weights of all tokens of a segment, or what its first or last token adds to them.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        dict of label to list of (name, weight)
            Strongest first. Features without names are called x0, x1, ...; the constant feature is
            called "intercept". For "inside" there are also those of tokens outside, under None.
        """
        check_choice(where, PLACES, "where")
        self._check_fitted()
        if where == "last" and not self._decoder.layout.last_tokens:
            raise ValueError("last tokens have no separate weights: last_tokens is False")
        weights = self._decoder.layout.of_tokens(self._weights)
        labels, K = self.classes_.tolist(), len(self.classes_)
        first = 0 if where == "inside" else K + 1 + K * (where == "last")
        labels += [None] if where == "inside" else []
        chosen = weights[:, first : first + len(labels)]
        return strongest_by_label(chosen, labels, n, against, TokenInputs.of(self).feature_names)

    @property
    def _has_intercept(self) -> bool:
        """Whether the model has a constant feature behind the others."""
        return self._decoder.layout.n_inputs > self.n_features_in_

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> SegmenterState:
        """See `Savable`."""
        return SegmenterState(
            self.classes_,
            self.n_features_in_,
            self._decoder.layout.n_inputs,
            self._decoder.layout.longest,
            self.features_,
            getattr(self, "feature_names_in_", None),
            self._decoder.layout.last_tokens,
        )

    def _set_state(self, state: SegmenterState) -> None:
        """See `Savable`."""
        if state.n_inputs not in (state.n_features, state.n_features + 1):
            raise ValueError(f"{state.n_features} features, but weights of {state.n_inputs} inputs")
        longest = state.max_lengths
        if longest.shape != state.classes.shape or longest.min(initial=1) < 1:
            raise ValueError(f"{len(state.classes)} labels, but max_lengths are {longest}")
        layout = SegmentLayout(state.n_inputs, longest.astype(np.int64), state.last_tokens)
        self._set_model(state.classes, state.n_features, layout)
        self.features_ = state.features
        if state.feature_names is not None:
            self.feature_names_in_ = state.feature_names

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._decoder.layout.size


class SegmenterState(NamedTuple):
    """What a file keeps of a segmenter."""

    classes: Labels
    n_features: Count
    n_inputs: Count
    max_lengths: NDArray[np.integer]
    features: WindowFeatures | FeatureDictionary | None
    feature_names: Names | None = None
    last_tokens: bool = True
