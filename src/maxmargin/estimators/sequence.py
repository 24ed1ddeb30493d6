"""Sequence tagging with chains of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engine.rows import make_rows
from ..features import FeatureDictionary, WindowFeatures
from ..features.packing import offsets_of
from ..formats import TokenColumns
from ..problems.chain.constraints import ChainConstraints
from ..problems.chain.decoder import ChainDecoder
from ..problems.chain.higher_order.layout import HigherOrderLayout
from ..problems.chain.higher_order.problem import HigherOrderChainProblem
from ..problems.chain.layout import ChainLayout
from ..problems.chain.partial import PartialChains, costs_of_choices
from ..problems.chain.problem import ChainProblem
from ..schema import Count, Labels, Names, checked_arrays, whole
from ..solvers.base import checked_weights
from ..types import Bools, Floats, Ints, Ints32
from ..validation import as_sample_weights
from .base import OnlineMethod
from .chain_predictions import ChainPredictions, labels_of
from .confidence import TokenConfidences, fit_calibration
from .constraints import (
    check_on_violation,
    make_constraints,
    repair_labels,
    sequences_satisfying,
    sequences_with_completion,
)
from .example_weights import used_class_weight
from .examples import materialize
from .higher_order import ChainShape, HigherOrderState, decoder_of
from .kernels import FittedKernel, KernelModel, KernelParameters, check_no_kernel
from .known_labels import allowed_labels
from .label_costs import CostTable, check_loss, label_costs
from .labels import FlatLabels, LabelEncoder, check_known, flatten_labels
from .parameters import with_inherited_parameters
from .partial_labels import PartialLabels, check_something_known, has_unknown, listed_labels
from .prior import check_prior, prior_mean
from .training import Trainer, TrainingSet

__all__ = ["SequenceTagger"]

LOSSES = ("hamming", "normalized-hamming", "zero-one")


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceTagger(ChainPredictions, TokenConfidences, KernelParameters, PartialLabels):
    """Labels for the tokens of sequences: a structural SVM over chains, of first order by default.

    Parameters
    ----------
    loss : {"hamming", "normalized-hamming", "zero-one"} or table of costs, default="hamming"
        Number of wrong labels in a sequence, their share, or 1 if any is wrong. A table has the
        costs that a sequence's labels add up: an array of shape (n_labels, n_labels) with that of
        predicting ``classes_[k]`` where ``classes_[j]`` is right in row j and column k, or a
        mapping ``{(right, predicted): cost}`` or ``{right: {predicted: cost}}``, in which what is
        not named costs 1. Costs are not negative; right labels cost nothing. Margins grow with the
        costs, and where these are large ``rescaling="slack"``, which takes some tens of searches
        for each sequence, may learn better.
    class_weight : mapping of label to weight, or "balanced", optional
        Multiplies the costs of the tokens with this right label, 1 for labels that are not listed.
        "balanced": ``n_tokens / (n_labels * n_tokens of the label)``. "zero-one" ignores it, with a
        warning.
    fit_intercept : bool, default=False
        Append a constant feature to every token, regularised like the rest.
    boundary_weights : bool, default=False
        Learn weights for the first and for the last label of a sequence.
    order : {1, 2, 3}, default=1
        How many labels before a token's own transitions see. Order 2 has weights of triples of
        labels beside those of pairs, order 3 of quadruples as well; see ``label_tuples``.
    emission_order : {0, 1}, default=0
        With 1 token features have weights for pairs of labels (that of the token before and its
        own) beside those for labels: as many times more as there are pairs, see
        ``label_tuples``.
    transition_features : extractor, str, pattern, int, or list of the last four, optional
        Features of a token on the pair of its label and the one before, like templates marked B
        of CRF++: an extractor, which sees what ``features`` sees; or token features, by name, by
        what is before the "=" of their names, by template of ``features``, by a compiled regular
        expression or by column. A few for each token are meant; for all of them there is
        ``emission_order``.
    eta : float, default=1.0
        What transitions and transition features are multiplied by, against emissions: with larger
        values their weights cost less (Tsochantaridis et al. 2005, eq. 13).
    label_tuples : {"seen", "allowed"}, default="seen"
        Which triples and quadruples of labels have weights, and which pairs for features of the
        input: those of the training data, or all that ``constraints`` allow. Labellings with
        others are possible as well; they have the weights of the shorter tuples in them, and of
        plain pairs all have one. "allowed" takes more memory and time, most of all without
        constraints.
    features : WindowFeatures or other extractor, optional
        Makes token features from sequences of words or of tuples of strings; cloned and fitted by
        ``fit``. Without it, tokens are feature vectors, or dicts or lists of feature strings,
        which a `FeatureDictionary` numbers.
    constraints : "bio", array, mapping or list of pairs, optional
        Forbidden transitions; they hold in training and in prediction. "bio": ``I-X`` only after
        ``B-X`` or ``I-X``. A boolean array of shape (n_labels, n_labels) says where the second of
        two labels, in sorted order, may follow the first. A list of pairs (from, to), or a
        mapping from a label to a list of labels, names what is forbidden.
    on_violation : {"raise", "drop", "repair"}, default="raise"
        What to do with training sequences that break the constraints: raise ValueError, which says
        where; leave them out; or, for "bio", change an ``I-X`` that continues nothing to ``B-X``.
        The last two warn, with a count.
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of KernelParameters}
    {parameters of SharedParameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted; an array of objects if they are of several types.
    coef_ : ndarray
        All weights, flat: those of feature f for all labels, then those of feature f + 1, ..., the
        constant feature, the transitions (from-label first), then start and stop weights. With
        ``emission_order`` 1 those of feature f are for all labels, then for all pairs; those of
        triples, quadruples and transition features are behind the transitions. With a kernel,
        support vectors stand in place of features.
    support_, support_vectors_ : ndarray of shape (n_support,) and tokens in rows
        With kernels other than "linear": which tokens of the training data, counted through all
        sequences, have coefficients, and their features.
    kernel_report_ : KernelReport
        With other kernels: rank of the kernel matrix that was trained with, what it lacks of the
        trace (absolute and share), and memory in bytes, in training and of the model.
    transition_weights_ : ndarray of shape (n_labels, n_labels)
        Weights of the transitions, from-label in rows; they count ``eta`` times.
    longer_transition_weights_ : dict of tuple to float
        Weights of triples and quadruples of labels, which also count ``eta`` times.
    features_ : FeatureDictionary, WindowFeatures or None
        What turns tokens into feature vectors.
    n_features_in_ : int
        Number of features of a token, once they are vectors.
    feature_names_in_ : ndarray of str
        Their names, if the training sequences were DataFrames of numbers.
    result_ : Result
        Certificate and history of the training.
    rounds_ : list of Round
        Objectives and gaps of the rounds, if labels were known in part.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["D", "N"], ["D", "N"]]
    >>> tagger = SequenceTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    [['D', 'N']]
    """

    loss: Literal["hamming", "normalized-hamming", "zero-one"] | CostTable = "hamming"
    class_weight: Any = None
    fit_intercept: bool = False
    boundary_weights: bool = False
    order: int = 1
    emission_order: int = 0
    transition_features: Any = None
    eta: float = 1.0
    label_tuples: Literal["seen", "allowed"] = "seen"
    features: Any = None
    constraints: Any = None
    on_violation: Literal["raise", "drop", "repair"] = "raise"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        prior: SequenceTagger | None = None,
    ) -> SequenceTagger:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, 3-D array, or PackedSequences
            A sequence is a 2-D array (tokens in rows), a scipy sparse matrix, a list of lists of
            numbers, of dicts ``{name: value}`` or of lists of feature strings, or a DataFrame: its
            numbers are features, and where a column has strings, its rows are dicts. With
            ``features``, what the extractor takes; or sequences that it has packed, if it is
            fitted. For data larger than memory there is `PackedSequences.open`.
        y : list of sequences of labels
            One label for each token, of any hashable type. None says that a token's label is not
            known, a set or frozenset that it is one of several; see ``partial``. Sequences that
            are stored with their labels need none.
        sample_weight : array of shape (n_sequences,), optional
            Multiplies each sequence's slack.
        prior : SequenceTagger, optional
            A tagger fitted to much other data, say. In place of small weights those near to its own
            are learned, ``1/2 |w - w_prior|^2``. Its features and labels are those of the new one:
            features that it has not seen are ignored. For kernel "linear" and first-order chains.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight, prior=prior)

    def _training_set(
        self, X: Any, y: Any = None, sample_weight: Any = None, prior: Any = None
    ) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = materialize(X), labels_of(X, materialize(y))
        shape = self._checked_shape()
        self._check_partial()
        check_on_violation(self.constraints, self.on_violation)
        if prior is not None:
            self._take_features(prior, shape)
        tokens, offsets = self._fit_features(X) if prior is None else self._packed(X)
        labels = self._flat_labels(X, y, offsets)
        is_partial = has_unknown(labels)
        if is_partial and prior is not None:
            raise ValueError("a prior is for labels that are all known")
        encoder = LabelEncoder.of(listed_labels(labels) if is_partial else labels)
        if prior is not None:
            check_known(LabelEncoder(prior.classes_).encode(labels), labels)
            encoder = LabelEncoder(prior.classes_)
        if len(encoder.classes) < 2:
            raise ValueError(
                f"y has only one label ({encoder.classes.tolist()[0]!r}); at least 2 are needed"
            )
        inputs, self._kernel = FittedKernel.fit(
            self, tokens, None if is_partial else encoder.encode(labels)
        )
        constraints = self._set_model(encoder.classes, int(tokens.shape[1]))
        extra = self._fit_transition_features(X, tokens)
        tokens = inputs
        weights = as_sample_weights(sample_weight)
        if is_partial:
            if not shape.is_plain or extra is not None:
                raise ValueError(
                    "labels that are known in part are for order=1 and emission_order=0, without "
                    "transition_features and with eta=1"
                )
            if self.probability:
                raise ValueError(
                    "probability=True needs labels that are all known; call calibrate(X, y) with "
                    "such sequences"
                )
            self._set_shape(shape, np.empty(0, np.int32), offsets)
            allowed = allowed_labels(labels, encoder.numbers)
            return self._partial_set(labels, tokens, allowed, weights)
        codes = encoder.encode(labels)
        tokens, extra, offsets, codes, weights = self._satisfying_constraints(
            labels, tokens, extra, codes, weights
        )
        self._set_shape(shape, codes, offsets)
        costs = self._costs(codes, offsets, weights)
        name = self.loss if isinstance(self.loss, str) else "costs"
        flags = (bool(self.fit_intercept), bool(self.boundary_weights))
        options = (name, *flags, shape, self.label_tuples)
        masks = () if constraints is None else tuple(constraints)
        data = (tokens, extra, offsets, codes, len(self.classes_), options, costs, *masks)
        shared = {} if prior is None else {"prior": prior}
        return TrainingSet(
            lambda: self._problem(tokens, extra, offsets, codes, costs),
            data,
            weights,
            constraints=None if prior is None else prior_mean(prior._weights),
            calibrate=lambda: fit_calibration(self, X, y, shared, sample_weight=sample_weight),
        )

    def _take_features(self, prior: Any, shape: ChainShape) -> None:
        """Take over the features of a prior, or raise ValueError where it cannot be one."""
        check_prior(prior, self, ("kernel", "fit_intercept", "boundary_weights"))
        if self.kernel != "linear" or not (shape.is_plain and prior._shape.is_plain):
            raise ValueError("prior is for kernel='linear' and first-order chains")
        if self.transition_features is not None or prior._transition_inputs is not None:
            raise ValueError("prior is for chains without transition_features")
        self.features_, self.n_features_in_ = prior.features_, prior.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(prior, "feature_names_in_"):
            self.feature_names_in_ = prior.feature_names_in_

    @OnlineMethod
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> SequenceTagger:
        """Make one pass over more sequences, with an online solver.

        As many calls with the same data as `fit` makes passes give what `fit` gives. After `fit`,
        or with a model that was loaded, training goes on from the weights there are. Features are
        those of the first call: what is new in later ones has no weights and is ignored.

        C multiplies the sum of the slacks of all examples seen so far: `sgd` and `pegasos`
        minimise the objective that `fit` would have on the examples of all calls together.
        Examples of a call that is repeated count once. Of a model that was fitted or loaded, the
        examples of its last training count, with weight 1.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels
            One label for each token.
        classes : list, optional
            All labels there will ever be; by default those of the first call.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _training_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        check_no_kernel(self, "partial_fit")
        shape = self._checked_shape()
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all sequences at once, so partial_fit "
                "takes a mapping of label to weight"
            )
        check_on_violation(self.constraints, self.on_violation)
        is_new = not hasattr(self, "classes_")
        if is_new:
            tokens, offsets = self._fit_features(X)
            labels = self._flat_labels(X, y, offsets)
            listed = labels if classes is None else flatten_labels([list(classes)])
            encoder = LabelEncoder.of(listed)
            if len(encoder.classes) < 2:
                raise ValueError(f"at least 2 labels are needed, got {encoder.classes.tolist()}")
            self._set_model(encoder.classes, int(tokens.shape[1]))
            extra = self._fit_transition_features(X, tokens)
        else:
            self._check_same_shape(shape)
            tokens, offsets = self._packed(X)
            extra = self._transition_features_of(X, tokens)
            labels = self._flat_labels(X, y, offsets)
            encoder = LabelEncoder(self.classes_)
        codes = encoder.encode(labels)
        check_known(codes, labels)
        weights = as_sample_weights(sample_weight)
        tokens, extra, offsets, codes, weights = self._satisfying_constraints(
            labels, tokens, extra, codes, weights
        )
        if is_new:
            self._set_shape(shape, codes, offsets)
        costs = self._costs(codes, offsets, weights)
        problem = self._problem(tokens, extra, offsets, codes, costs)
        return TrainingSet(lambda: problem, (tokens, extra, offsets, codes), weights)

    def _flat_labels(self, X: Any, y: Any, offsets: Ints) -> FlatLabels:
        """Labels of the training data, repaired if that is wanted."""
        labels = flatten_labels(y, offsets)
        if isinstance(X, TokenColumns) and X.lines is not None and len(X.lines) == offsets[-1]:
            labels = labels._replace(source=X.source, lines=X.lines)
        repairs = self.constraints is not None and self.on_violation == "repair"
        return repair_labels(labels) if repairs else labels

    def _satisfying_constraints(
        self,
        labels: FlatLabels,
        tokens: Any,
        extra: Any,
        codes: Ints32,
        weights: Floats | None,
    ) -> tuple[Any, Any, Ints, Ints32, Floats | None]:
        """Features, offsets, codes and weights of the sequences that obey the constraints."""
        offsets, masks = labels.offsets, self._decoder.constraints
        if masks is None:
            return tokens, extra, offsets, codes, weights
        drop = self.on_violation == "drop"
        kept = sequences_satisfying(labels, codes, masks, self.constraints, drop)
        if kept.all():
            return tokens, extra, offsets, codes, weights
        if weights is not None:
            weights = checked_weights(weights, len(kept))[kept]
        lengths = np.diff(offsets)
        rows = np.repeat(kept, lengths)
        extra = None if extra is None else extra[rows]
        return tokens[rows], extra, offsets_of(lengths[kept].tolist()), codes[rows], weights

    def _partial_set(
        self, labels: FlatLabels, tokens: Any, allowed: Bools, weights: Floats | None
    ) -> TrainingSet:
        """What is trained on where labels are known in part.

        Sequences of which nothing is known are left out: whatever the weights, their slack is 0.
        """
        offsets = labels.offsets
        rows = make_rows(tokens, fit_intercept=self._has_intercept)
        assert isinstance(self._decoder, ChainDecoder)
        nothing = np.zeros(self._decoder.layout.size)
        codes = self._decoder.decode_possible(rows, offsets, nothing, allowed)
        drop = self.on_violation == "drop"
        kept = sequences_with_completion(labels, codes, drop)
        says_something = np.logical_or.reduceat(~allowed.all(axis=1), offsets[:-1])
        check_something_known(says_something, labels.wording)
        kept &= says_something
        lengths = np.diff(offsets)
        chosen = np.repeat(kept, lengths)
        if weights is not None:
            weights = checked_weights(weights, len(kept))[kept]
        tokens, codes, allowed = tokens[chosen], codes[chosen], allowed[chosen]
        offsets = offsets_of(lengths[kept].tolist())
        known = allowed.sum(axis=1) == 1
        counts = np.add.reduceat(known, offsets[:-1])
        costs = self._costs(codes[known], offsets_of(counts.tolist()), weights)
        table = costs_of_choices(allowed, costs)
        problem = self._problem(tokens, None, offsets, codes, *table)
        assert isinstance(problem, ChainProblem)
        partial = PartialChains(problem, allowed)
        return TrainingSet(lambda: partial, sample_weight=weights, is_partial=True)

    def _set_model(self, classes: NDArray[Any], n_features: int) -> ChainConstraints | None:
        """Fix labels and the layout of the weights."""
        self.classes_ = classes
        self.n_features_in_ = n_features
        constraints = make_constraints(self.constraints, classes)
        n_inputs = self._kernel.n_inputs(n_features) + bool(self.fit_intercept)
        self._set_decoder(n_inputs, bool(self.boundary_weights), constraints, None)
        return constraints

    def _set_shape(self, shape: ChainShape, codes: Ints32, offsets: Ints) -> None:
        """Make the model one that remembers the tuples of these labels, if it is to."""
        self._shape = shape
        if shape.is_plain and self._transition_inputs is None:
            return
        layout, constraints = self._decoder.layout, self._decoder.constraints
        sizes = (layout.n_inputs, layout.n_labels, layout.boundary)
        self._decoder = self._higher_order_decoder(shape, *sizes, constraints, codes, offsets)

    def _costs(self, codes: Ints32, offsets: Ints, weights: Floats | None) -> Floats | None:
        """Costs of labels, if they are not all the same."""
        check_loss(self.loss, LOSSES)
        class_weight = used_class_weight(
            self.class_weight,
            not (isinstance(self.loss, str) and self.loss == "zero-one"),
            "it weighs tokens, and loss='zero-one' counts sequences; use another loss, or "
            "sample_weight",
        )
        if weights is not None:
            weights = np.repeat(checked_weights(weights, len(offsets) - 1), np.diff(offsets))
        return label_costs(self.loss, class_weight, self.classes_, codes.astype(np.int64), weights)

    def _problem(
        self,
        tokens: Any,
        extra: Any,
        offsets: Ints,
        codes: Ints32,
        costs: Floats | None,
        cost_rows: Ints32 | None = None,
    ) -> ChainProblem | HigherOrderChainProblem:
        """The problem of these sequences."""
        layout = self._decoder.layout
        loss: Any = self.loss if isinstance(self.loss, str) else "hamming"
        if isinstance(layout, HigherOrderLayout):
            return HigherOrderChainProblem(
                tokens,
                offsets,
                codes,
                len(self.classes_),
                layout.tuples,
                extra,
                emission_order=layout.emission_order,
                eta=layout.eta,
                loss=loss,
                costs=costs,
                fit_intercept=self._has_intercept,
                boundary_weights=layout.boundary,
                constraints=self._decoder.constraints,
            )
        return ChainProblem(
            tokens,
            offsets,
            codes,
            len(self.classes_),
            loss=loss,
            costs=costs,
            cost_rows=cost_rows,
            fit_intercept=self._has_intercept,
            boundary_weights=layout.boundary,
            constraints=self._decoder.constraints,
        )

    def _weights_per_input(self) -> int:
        """See `KernelParameters`."""
        layout = self._decoder.layout
        return layout.n_columns if isinstance(layout, HigherOrderLayout) else layout.n_labels

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """See `KernelParameters`: fewer inputs have weights."""
        weights = super()._kept_weights(learned)
        if self._kernel.basis is not None:
            layout, constraints = self._decoder.layout, self._decoder.constraints
            n_inputs = len(self._kernel.basis) + bool(self.fit_intercept)
            self._set_decoder(n_inputs, layout.boundary, constraints, self._higher_order_state())
        return weights

    def _set_decoder(
        self,
        n_inputs: int,
        boundary: bool,
        constraints: ChainConstraints | None,
        histories: HigherOrderState | None,
    ) -> None:
        """A decoder for weights of so many inputs."""
        sizes = (n_inputs, len(self.classes_), boundary)
        if histories is None:
            self._decoder = ChainDecoder(ChainLayout(*sizes), constraints)
        else:
            self._decoder = decoder_of(histories, *sizes, constraints)

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> TaggerState:
        """See `Savable`."""
        return TaggerState(
            self.classes_,
            self.n_features_in_,
            self._decoder.layout.n_inputs,
            self._decoder.layout.boundary,
            self._decoder.constraints,
            self.features_,
            getattr(self, "feature_names_in_", None),
            self._higher_order_state(),
            self._kernel.to_state(),
        )

    def _higher_order_state(self) -> HigherOrderState | None:
        """What a file keeps of labels remembered."""
        layout = self._decoder.layout
        if not isinstance(layout, HigherOrderLayout):
            return None
        return HigherOrderState(self._shape, layout.tuples, self._transition_inputs)

    def _set_state(self, state: TaggerState) -> None:
        """See `Savable`."""
        self.classes_ = state.classes
        self.n_features_in_ = state.n_features
        self.features_ = state.features
        if state.feature_names is not None:
            self.feature_names_in_ = state.feature_names
        self._kernel = FittedKernel.of_state(state.kernel, state.n_features)
        n_inputs = self._kernel.n_inputs(state.n_features)
        if state.n_inputs not in (n_inputs, n_inputs + 1):
            raise ValueError(f"{n_inputs} features, but weights of {state.n_inputs} inputs")
        self._shape, self._transition_inputs = ChainShape(1, 0, 1.0), None
        if state.histories is not None:
            self._shape, _, self._transition_inputs = state.histories
            inputs = self._transition_inputs
            if inputs is not None and inputs.columns is not None:
                index = (np.int32, np.int64)
                form = whole(inputs.n_features, below=n_inputs, types=index)
                checked_arrays({"columns": inputs.columns}, {"columns": form})
        self._set_decoder(state.n_inputs, state.boundary, state.constraints, state.histories)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._decoder.layout.size


class TaggerState(NamedTuple):
    """What a file keeps of a tagger."""

    classes: Labels
    n_features: Count
    n_inputs: Count
    boundary: bool
    constraints: ChainConstraints | None
    features: WindowFeatures | FeatureDictionary | None
    feature_names: Names | None = None
    histories: HigherOrderState | None = None
    kernel: KernelModel | None = None
