"""What taggers are trained on: sequences, what is known of their labels, and costs."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...features import FeatureDictionary, StoredSequences, WindowFeatures
from ...features.packing import offsets_of
from ...formats import TokenColumns
from ...problems.chain.costs import costs_of_choices, known_runs
from ...problems.chain.decoder import ChainDecoder
from ...problems.chain.layout import ChainConstraints, ChainLayout, label_tuples
from ...problems.chain.problem import ChainProblem
from ...solvers.base import checked_weights
from ...utils.schema import Count, Labels, Names, checked_arrays, whole
from ...utils.types import Bools, Floats, Ints, Ints32
from ...utils.validation import as_sample_weights, is_at_least
from ..abilities.kernels import FittedKernel, KernelModel, check_no_kernel
from ..abilities.partial_labels import (
    allowed_labels,
    check_something_known,
    has_unknown,
    listed_labels,
)
from ..costs import check_loss, label_costs, used_class_weight
from ..examples import FlatLabels, LabelEncoder, check_known, flatten_labels
from ..warm_start import check_prior
from .constraints import (
    check_on_violation,
    make_constraints,
    repair_labels,
    sequences_satisfying,
    sequences_with_completion,
)
from .sequence_model import (
    FIRST_ORDER,
    ChainShape,
    HigherOrderState,
    SequenceModel,
    make_layout,
)
from .token_inputs import TokenInputs, TransitionInputs, fit_transition_inputs

__all__ = ["TaggedSequences", "TaggerState", "labels_of", "more_data", "training_data"]

LOSSES = ("hamming", "normalized_hamming", "zero_one")
ORDERS = (1, 2, 3)


class TaggedSequences(NamedTuple):
    """Training data: features of tokens and transitions, numbers of labels, weights of sequences.

    Where labels are not known, ``allowed`` (token, label) marks those that may be right, and
    ``codes`` are any that agree with it; None: all are known.
    """

    tokens: Any
    extra: Any
    offsets: Ints
    codes: Ints32
    weights: Floats | None
    allowed: Bools | None = None

    def at(self, kept: Bools) -> TaggedSequences:
        """Some of the sequences."""
        if kept.all():
            return self
        lengths = np.diff(self.offsets)
        rows = np.repeat(kept, lengths)
        weights = self.weights
        return TaggedSequences(
            self.tokens[rows],
            None if self.extra is None else self.extra[rows],
            offsets_of(lengths[kept].tolist()),
            self.codes[rows],
            None if weights is None else checked_weights(weights, len(kept))[kept],
            None if self.allowed is None else self.allowed[rows],
        )

    def satisfying(
        self, labels: FlatLabels, constraints: ChainConstraints | None, estimator: Any
    ) -> TaggedSequences:
        """The sequences that obey the constraints, or have a completion that does."""
        drop = estimator.on_violation == "drop"
        if self.allowed is None:
            if constraints is None:
                return self
            given = estimator.constraints
            return self.at(sequences_satisfying(labels, self.codes, constraints, given, drop))
        # Constraints are on neighbours: a chain of first order without weights finds completions.
        K, n_columns = self.allowed.shape[1], int(self.tokens.shape[1])
        chain = ChainDecoder(ChainLayout(n_columns, K, False), constraints)
        nothing = np.zeros(chain.layout.size)
        inputs = chain.inputs(self.tokens)
        codes = chain.decode_possible(inputs, self.offsets, nothing, self.allowed)
        kept = sequences_with_completion(labels, codes, drop)
        # Whatever the weights, the slack of a sequence of which nothing is known is 0.
        says_something = np.logical_or.reduceat(~self.allowed.all(axis=1), self.offsets[:-1])
        check_something_known(says_something, labels.wording)
        return self._replace(codes=codes).at(kept & says_something)

    def known_labels(self) -> tuple[Ints32, Ints]:
        """Labels that are known, and where runs of neighbours among them begin."""
        if self.allowed is None:
            return self.codes, self.offsets
        tokens, offsets = known_runs(self.allowed, self.offsets)
        return self.codes[tokens], offsets

    def costs(self, estimator: Any, classes: NDArray[Any]) -> Floats | None:
        """Costs of labels, if they are not all the same."""
        loss = estimator.loss
        check_loss(loss, LOSSES)
        class_weight = used_class_weight(
            estimator.class_weight,
            not (isinstance(loss, str) and loss == "zero_one"),
            "it weighs tokens, and loss='zero_one' counts sequences; use another loss, or "
            "sample_weight",
        )
        codes, weights = self.codes.astype(np.int64), self.weights
        if weights is not None:
            lengths = np.diff(self.offsets)
            weights = np.repeat(checked_weights(weights, len(lengths)), lengths)
        if self.allowed is not None:
            known = self.allowed.sum(axis=1) == 1
            codes, weights = codes[known], None if weights is None else weights[known]
        return label_costs(loss, class_weight, classes, codes, weights)

    def problem(self, loss: Any, model: SequenceModel, costs: Floats | None) -> ChainProblem:
        """The problem of these sequences."""
        layout, rows = model.chain.layout, None
        if self.allowed is not None:
            costs, rows = costs_of_choices(self.allowed, costs)
        return ChainProblem(
            self.tokens,
            self.offsets,
            self.codes,
            layout.n_labels,
            layout.tuples,
            self.extra,
            emission_order=layout.emission_order,
            eta=layout.eta,
            loss=loss if isinstance(loss, str) else "hamming",  # type: ignore[arg-type]
            costs=costs,
            cost_rows=rows,
            fit_intercept=layout.n_inputs > self.tokens.shape[1],
            boundary_weights=layout.boundary,
            constraints=model.chain.constraints,
        )

    def content(self, tagger: Any, model: SequenceModel, costs: Floats | None) -> tuple[Any, ...]:
        """All that the problem is made of."""
        name = tagger.loss if isinstance(tagger.loss, str) else "costs"
        flags = bool(tagger.fit_intercept), bool(tagger.boundary_weights)
        options = (name, *flags, model.shape, _order_options(tagger).label_tuples)
        masks = model.chain.constraints or ()
        return (*self[:4], len(model.classes), options, costs, *masks)


def training_data(
    tagger: Any, X: Any, y: Any, sample_weight: Any, prior: Any
) -> tuple[SequenceModel, FittedKernel, TaggedSequences]:
    """What `fit` learns from, and the model that is to have weights for it."""
    shape = _checked_shape(tagger)
    check_on_violation(tagger.constraints, tagger.on_violation)
    known = None if prior is None else _checked_prior(prior, tagger, shape)
    if known is None:
        inputs, (tokens, offsets) = TokenInputs.fit(tagger.features, X)
    else:
        inputs, (tokens, offsets) = known.inputs, known.inputs.packed(X)
    labels = _flat_labels(tagger, X, y, offsets)
    is_partial = has_unknown(labels)
    if known is None:
        encoder = LabelEncoder.of(listed_labels(labels) if is_partial else labels)
    elif is_partial:
        raise ValueError("prior needs labels that are all known")
    else:
        encoder = LabelEncoder(known.classes)
        check_known(encoder.encode(labels), labels)
    if len(encoder.classes) < 2:
        raise ValueError(
            f"y has only one label ({encoder.classes.tolist()[0]!r}); at least 2 are needed"
        )
    if is_partial and tagger.probability:
        raise ValueError(
            "probability=True needs labels that are all known; call calibrate(X, y) with "
            "such sequences"
        )
    codes = np.empty(0, np.int32) if is_partial else encoder.encode(labels)
    values, kernel = FittedKernel.fit(tagger, tokens, None if is_partial else codes)
    if known is None:
        transitions, extra = fit_transition_inputs(tagger.transition_features, inputs, X, tokens)
    else:
        transitions = known.transitions
        extra = None if transitions is None else transitions.of(X, tokens)
    allowed = allowed_labels(labels, encoder.numbers) if is_partial else None
    constraints = make_constraints(tagger.constraints, encoder.classes)
    weights = as_sample_weights(sample_weight)
    data = TaggedSequences(values, extra, offsets, codes, weights, allowed)
    data = data.satisfying(labels, constraints, tagger)
    if known is None:
        model = _new_model(tagger, encoder, inputs, shape, transitions, data, constraints)
    else:
        model = known._replace(chain=ChainDecoder(known.chain.layout, constraints))
    return model, kernel, data


def more_data(
    tagger: Any, model: SequenceModel | None, X: Any, y: Any, classes: Any, sample_weight: Any
) -> tuple[SequenceModel, TaggedSequences]:
    """What `partial_fit` learns from, and the model: a new one if there is none yet."""
    check_no_kernel(tagger, "partial_fit")
    shape = _checked_shape(tagger)
    if isinstance(tagger.class_weight, str):
        raise ValueError(
            f"class_weight={tagger.class_weight!r} needs all sequences at once, so partial_fit "
            "takes a mapping of label to weight"
        )
    check_on_violation(tagger.constraints, tagger.on_violation)
    if model is None:
        inputs, (tokens, offsets) = TokenInputs.fit(tagger.features, X)
        labels = _flat_labels(tagger, X, y, offsets)
        listed = labels if classes is None else flatten_labels([list(classes)])
        encoder = LabelEncoder.of(listed)
        if len(encoder.classes) < 2:
            raise ValueError(f"at least 2 labels are needed, got {encoder.classes.tolist()}")
        transitions, extra = fit_transition_inputs(tagger.transition_features, inputs, X, tokens)
        constraints = make_constraints(tagger.constraints, encoder.classes)
    else:
        _check_same_shape(model, shape, tagger.transition_features)
        inputs, transitions, constraints = model.inputs, model.transitions, model.chain.constraints
        tokens, offsets = inputs.packed(X)
        extra = None if transitions is None else transitions.of(X, tokens)
        labels, encoder = _flat_labels(tagger, X, y, offsets), LabelEncoder(model.classes)
    codes = encoder.encode(labels)
    check_known(codes, labels)
    data = TaggedSequences(tokens, extra, offsets, codes, as_sample_weights(sample_weight))
    data = data.satisfying(labels, constraints, tagger)
    if model is None:
        model = _new_model(tagger, encoder, inputs, shape, transitions, data, constraints)
    return model, data


def _new_model(
    tagger: Any,
    encoder: LabelEncoder,
    inputs: TokenInputs,
    shape: ChainShape,
    transitions: TransitionInputs | None,
    data: TaggedSequences,
    constraints: ChainConstraints | None,
) -> SequenceModel:
    """The model that the parameters ask for.

    Of partially labelled data it has weights for tuples of neighbours whose labels are known.
    """
    classes = encoder.classes
    tuples = label_tuples(
        *data.known_labels(),
        len(classes),
        order=shape.order,
        pairs=shape.emission_order == 1 or transitions is not None,
        which=_order_options(tagger).label_tuples,
        may_follow=None if constraints is None else constraints.transitions,
    )
    n_inputs = int(data.tokens.shape[1]) + bool(tagger.fit_intercept)
    state = HigherOrderState(shape, tuples, transitions)
    layout = make_layout(state, n_inputs, len(classes), bool(tagger.boundary_weights))
    return SequenceModel(classes, inputs, ChainDecoder(layout, constraints), shape, transitions)


def _checked_prior(prior: Any, tagger: Any, shape: ChainShape) -> SequenceModel:
    """The model of a prior; ValueError where it cannot be one."""
    check_prior(prior, tagger, ("kernel", "fit_intercept", "boundary_weights"))
    if tagger.kernel != "linear":
        raise ValueError("prior needs kernel='linear'")
    model: SequenceModel = prior._model
    _check_same_shape(model, shape, tagger.transition_features)
    return model


def _check_same_shape(model: SequenceModel, shape: ChainShape, transition_features: Any) -> None:
    """Raise ValueError unless parameters ask for the features that a model has."""
    has_inputs = model.transitions is not None
    if shape != model.shape or (transition_features is not None) != has_inputs:
        made = dict(zip(("transitions", "emissions", "eta"), model.shape, strict=True))
        raise ValueError(
            f"the model was made with order={made} and {'' if has_inputs else 'no '}"
            "transition features: call fit, or create a new estimator, to change that"
        )


def _checked_shape(estimator: Any) -> ChainShape:
    """What features are to see of the labels; ValueError for bad parameters."""
    options = _order_options(estimator)
    orders = (
        ("order", options.transitions, ORDERS),
        ("order: emissions", options.emissions, (0, 1)),
    )
    for name, value, known in orders:
        if isinstance(value, bool) or not isinstance(value, Integral) or value not in known:
            shown = ", ".join(map(str, known[:-1]))
            raise ValueError(f"{name} must be {shown} or {known[-1]}, got {value!r:.40}")
    eta: Any = options.eta
    if isinstance(eta, bool) or not is_at_least(eta, 0) or float(eta) == 0.0:
        raise ValueError(f"order: eta must be a positive, finite number, got {eta!r:.40}")
    which = options.label_tuples
    if not isinstance(which, str) or which not in ("seen", "allowed"):
        raise ValueError(f"order: label_tuples must be 'seen' or 'allowed', got {which!r:.40}")
    return ChainShape(int(options.transitions), int(options.emissions), float(eta))


class _OrderOptions(NamedTuple):
    """What ``order`` says, as users have written it."""

    transitions: Any = 1
    emissions: Any = 0
    label_tuples: Any = "seen"
    eta: Any = 1.0


def _order_options(estimator: Any) -> _OrderOptions:
    """The order, alone or with its options; ValueError for others."""
    given = estimator.order
    if not isinstance(given, dict):
        return _OrderOptions(given)
    unknown = [name for name in given if name not in _OrderOptions._fields]
    if unknown:
        known = ", ".join(_OrderOptions._fields)
        raise ValueError(f"order has no option {unknown[0]!r:.60}; its options are {known}")
    return _OrderOptions(**given)


def labels_of(X: Any, y: Any) -> Any:
    """The labels that are given, or else those stored with the sequences."""
    if y is not None:
        return y
    labels = X.labels if isinstance(X, StoredSequences) else None
    if labels is None:
        raise ValueError("y is missing, and X is not stored with labels")
    return labels


def _flat_labels(estimator: Any, X: Any, y: Any, offsets: Ints) -> FlatLabels:
    """Labels of the training data, repaired if that is wanted."""
    labels = flatten_labels(y, offsets)
    if isinstance(X, TokenColumns) and X.lines is not None and len(X.lines) == offsets[-1]:
        labels = labels._replace(source=X.source, lines=X.lines)
    repairs = estimator.constraints is not None and estimator.on_violation == "repair"
    return repair_labels(labels) if repairs else labels


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

    @classmethod
    def of(cls, model: SequenceModel, kernel: FittedKernel) -> TaggerState:
        """What is kept of a model."""
        inputs, layout = model.inputs, model.chain.layout
        return cls(
            model.classes,
            inputs.n_features,
            layout.n_inputs,
            layout.boundary,
            model.chain.constraints,
            inputs.extractor,
            inputs.names,
            model.state(),
            kernel.to_state(),
        )

    def model(self, n_inputs: int) -> SequenceModel:
        """The model of so many inputs, the constant one aside; ValueError where they do not fit."""
        if self.n_inputs not in (n_inputs, n_inputs + 1):
            raise ValueError(f"{n_inputs} features, but weights of {self.n_inputs} inputs")
        shape, transitions = FIRST_ORDER, None
        if self.histories is not None:
            shape, _, transitions = self.histories
            if transitions is not None and transitions.columns is not None:
                index = (np.int32, np.int64)
                form = whole(transitions.n_features, below=n_inputs, types=index)
                checked_arrays({"columns": transitions.columns}, {"columns": form})
        layout = make_layout(self.histories, self.n_inputs, len(self.classes), self.boundary)
        inputs = TokenInputs(self.features, self.n_features, self.feature_names)
        chain = ChainDecoder(layout, self.constraints)
        return SequenceModel(self.classes, inputs, chain, shape, transitions)
