"""What a classifier knows of its classes: a taxonomy, features, costs, and its problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.problem import Problem
from ...features.class_features import ClassFeatures
from ...metrics.costs import as_reals, cost_matrix
from ...problems.classes.class_features import ClassFeatureProblem
from ...problems.classes.merging import merge_examples
from ...problems.classes.multiclass import MulticlassProblem
from ...problems.classes.taxonomy import Taxonomy
from ...utils.schema import Count, Labels, Names, SparseBlocks
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ...utils.validation import as_floats
from ...utils.warn import warn_user
from ..abilities.kernels import KernelModel
from ..warm_start import all_classes, check_prior
from .base import canonical

__all__ = [
    "ClassDescription",
    "MulticlassState",
    "as_taxonomy",
    "check_options",
    "check_seen",
    "class_problem",
    "describe",
    "different_examples",
    "numbers_of",
    "set_classes",
    "warn_of_unknown_classes",
    "weights_of_prior",
]


class ClassDescription(NamedTuple):
    """All classes that can be predicted, sorted, and the output features of each."""

    classes: NDArray[Any]
    features: sp.csr_matrix


def as_taxonomy(taxonomy: Any) -> Taxonomy | None:
    """A Taxonomy, also of a mapping of node to parent."""
    if taxonomy is None or isinstance(taxonomy, Taxonomy):
        return taxonomy
    if isinstance(taxonomy, Mapping):
        return Taxonomy(taxonomy)
    raise ValueError(
        "taxonomy must be a maxmargin.Taxonomy or a mapping of node to parent, got "
        f"{type(taxonomy).__name__!r}"
    )


def describe_classes(
    taxonomy: Taxonomy | None, class_features: Any, seen: NDArray[Any]
) -> ClassDescription:
    """Features of the classes that occur in y and of all others that are described.

    With a taxonomy and class features the classes known to both are described, by the features of
    both.
    """
    known = None if class_features is None else _as_class_features(class_features, seen)
    labels = seen.tolist()
    if taxonomy is not None:
        taxonomy.features(labels)  # names the first class that is missing
    if known is not None:
        known.rows(labels)
    rest = list(taxonomy.classes) if taxonomy is not None else list(known.classes if known else ())
    if taxonomy is not None and known is not None:
        described = set(known.classes)
        rest = [label for label in rest if label in described]
    found = set(labels)
    unseen = [label for label in rest if label not in found]
    try:
        every = sorted(labels + unseen)
    except TypeError:
        raise ValueError(
            f"classes of different kinds are described, such as {labels[0]!r} and {unseen[0]!r}"
        ) from None
    matrices = []
    if taxonomy is not None:
        matrices.append(taxonomy.features(every)[0])
    if known is not None:
        matrices.append(known.rows(every))
    classes = np.array(every, dtype=object if seen.dtype == object else None)
    return ClassDescription(classes, sp.hstack(matrices, format="csr"))


def class_costs(
    loss: Any, taxonomy: Taxonomy | None, classes: NDArray[Any], are_described: bool
) -> Floats | None:
    """The cost matrix of the parameter ``loss``; None for zero-one loss."""
    if isinstance(loss, str):
        if loss == "taxonomy":
            if taxonomy is None:
                raise ValueError("loss='taxonomy' needs a taxonomy")
            return taxonomy.losses(classes.tolist())
        if loss != "zero_one":
            raise ValueError(f"loss must be 'zero_one', 'taxonomy' or a cost matrix, got {loss!r}")
        return None
    check_sparse(loss, "loss")
    if isinstance(loss, Mapping):
        return cost_matrix(loss, classes.tolist())
    K = len(classes)
    try:
        costs = as_reals(loss)
    except (TypeError, ValueError):
        raise ValueError(
            "loss must be 'zero_one', 'taxonomy', a mapping from pairs of classes or a table of "
            f"costs, numbers in {K} rows of {K}; got {loss!r:.60}"
        ) from None
    if costs.shape != (K, K):
        found = f"{K} classes are described" if are_described else f"y has {K} classes"
        raise ValueError(f"loss has shape {costs.shape}, but {found}: expected {(K, K)}")
    return costs


def _as_class_features(given: Any, seen: NDArray[Any]) -> ClassFeatures:
    """Class features out of anything that the parameter accepts."""
    if isinstance(given, ClassFeatures):
        return given
    check_sparse(given, "class_features")
    if isinstance(given, Mapping) and not sp.issparse(given):  # a DOK matrix is a mapping, too
        return ClassFeatures.from_mapping(given)
    rows = given if sp.issparse(given) else as_floats(given, "class_features")
    if rows.ndim != 2 or rows.shape[0] != len(seen):
        raise ValueError(
            f"class_features has shape {rows.shape}, but y has {len(seen)} classes: expected one "
            "row for each, in sorted order; use maxmargin.ClassFeatures to name the rows"
        )
    return ClassFeatures(seen.tolist(), rows)


def example_costs(costs: Any, loss: Any, shape: tuple[int, int], are_described: bool) -> Floats:
    """The costs of all classes for each example, which take the place of ``loss``."""
    if are_described or not isinstance(loss, str) or loss != "zero_one":
        raise ValueError(
            "costs of examples replace the loss: they need loss='zero_one', and neither a "
            "taxonomy nor class features"
        )
    check_sparse(costs, "costs")
    try:
        table = as_reals(costs)
    except (TypeError, ValueError):
        raise ValueError(
            f"costs must be numbers in an array of shape {shape}, got {costs!r:.60}"
        ) from None
    if table.shape != shape:
        raise ValueError(
            f"costs has shape {table.shape}; expected {shape}, a row for each example and a "
            "column for each class, in sorted order"
        )
    return table


def check_options(estimator: Any, prior: Any) -> None:
    """Raise ValueError for what does not go together, and for a prior that cannot be one."""
    if estimator.probability and estimator.kernel == "precomputed":
        raise ValueError(
            "probability=True does not support kernel='precomputed', whose columns are "
            "examples too; call calibrate(X, y) with other examples"
        )
    if prior is None:
        return
    check_prior(prior, estimator, ("kernel", "taxonomy", "class_features", "fit_intercept"))
    if estimator.kernel != "linear" or prior._output_features is not None:
        raise ValueError("prior needs kernel='linear', and neither a taxonomy nor class features")
    if prior.n_features_in_ != estimator.n_features_in_:
        raise ValueError(
            f"X has {estimator.n_features_in_} features, but the prior was fitted with "
            f"{prior.n_features_in_}"
        )


def weights_of_prior(prior: Any, classes: NDArray[Any]) -> Floats:
    """Weights of the classes that a prior knows, and zeros for others."""
    learned = prior._weights.reshape(-1, len(prior.classes_))
    weights = np.zeros((len(learned), len(classes)))
    weights[:, np.searchsorted(classes, prior.classes_)] = learned
    return weights.ravel()


def describe(model: Any, prior: Any = None) -> Any:
    """Set ``classes_`` and their features from the classes seen; returns the taxonomy."""
    taxonomy = as_taxonomy(model.taxonomy)
    model.classes_, model._output_features = model.seen_classes_, None
    if taxonomy is not None or model.class_features is not None:
        described = describe_classes(taxonomy, model.class_features, model.seen_classes_)
        model.classes_, model._output_features = described
    elif prior is not None:
        model.classes_ = all_classes(model.seen_classes_, prior.classes_)
    return taxonomy


def set_classes(model: Any, y: NDArray[Any], classes: Any) -> None:
    """Fix all classes there will ever be by a first call of ``partial_fit``."""
    known = np.unique(y if classes is None else np.asarray(classes))
    if len(known) < 2:
        raise ValueError(f"at least 2 classes are needed, got {known.tolist()}")
    model.seen_classes_ = known
    describe(model)


def check_seen(model: Any, y: NDArray[Any], classes: Any) -> None:
    """Raise ValueError for classes that are not those of the first call."""
    seen = model.seen_classes_
    if classes is not None and not np.array_equal(np.unique(classes), seen):
        raise ValueError(
            f"classes must be those of the first call, {seen.tolist()}, "
            f"got {np.unique(classes).tolist()}"
        )
    unknown = np.flatnonzero(~np.isin(y, seen))
    if len(unknown):
        raise ValueError(
            f"y[{unknown[0]}] is {y[unknown[0]]!r}, which is not among the classes of the "
            f"first call, {seen.tolist()}"
        )


def different_examples(
    model: Any, X: Any, codes: Ints, weights: Floats | None, costs: Any, taxonomy: Any
) -> tuple[Any, Ints, Floats | None, Floats | None]:
    """Inputs, classes, weights and costs of different examples; no costs for zero-one loss.

    Costs of their own make all examples different.
    """
    X, codes = canonical(X), codes.astype(np.int64)
    are_described = model._output_features is not None
    if costs is not None:
        shape = len(codes), len(model.classes_)
        return X, codes, weights, example_costs(costs, model.loss, shape, are_described)
    table = class_costs(model.loss, taxonomy, model.classes_, are_described)
    if model._kernel.basis is not None:  # support_ counts all of them
        return X, codes, weights, table
    return *merge_examples(X, codes, weights), table


def class_problem(
    model: Any, X: Any, codes: Ints, costs: Floats | None, own_costs: bool
) -> Problem:
    """The problem of these examples."""
    options: dict[str, Any] = {"costs": costs, "fit_intercept": model._has_intercept}
    if own_costs:
        options["cost_rows"] = np.arange(len(codes))
    if model._output_features is None:
        return MulticlassProblem(X, codes, len(model.classes_), **options)
    seen = np.isin(model.classes_, model.seen_classes_)
    return ClassFeatureProblem(X, codes, model._output_features, allowed=seen, **options)


def numbers_of(known: NDArray[Any], classes: Any) -> Ints:
    """Numbers of the classes that come into question."""
    number = {label: c for c, label in enumerate(known.tolist())}
    chosen = np.unique(np.asarray(classes)).tolist()
    unknown = [label for label in chosen if label not in number]
    if unknown or not chosen:
        raise ValueError(
            f"classes has {unknown[0]!r}, which the model does not know"
            if unknown
            else "classes is empty; expected at least one class"
        )
    return np.array([number[label] for label in chosen])


def warn_of_unknown_classes(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Warn of examples of classes that the model does not know."""
    unknown = np.flatnonzero(~np.isin(y, classes))
    if len(unknown):
        warn_user(
            f"{len(unknown)} of {len(y)} examples have classes unknown to the model and "
            f"count as wrong; the first is y[{unknown[0]}] = {y[unknown[0]]}"
        )


class MulticlassState(NamedTuple):
    """What a file keeps of a classifier."""

    classes: Labels
    n_features: Count
    intercept: bool
    feature_names: Names | None
    seen_classes: Labels | None = None
    output_features: SparseBlocks | None = None
    kernel: KernelModel | None = None
