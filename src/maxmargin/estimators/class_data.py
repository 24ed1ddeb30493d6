"""What a classifier knows of its classes beforehand: a taxonomy, features, costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..features.class_features import ClassFeatures
from ..metrics.costs import as_reals, cost_matrix
from ..problems.classes.taxonomy import Taxonomy
from ..sparse_format import check_sparse
from ..types import Floats
from ..validation import as_floats
from .warm_start import check_prior

__all__ = [
    "ClassDescription",
    "as_taxonomy",
    "check_class_prior",
    "class_costs",
    "describe_classes",
    "example_costs",
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
        if loss != "zero-one":
            raise ValueError(f"loss must be 'zero-one', 'taxonomy' or a cost matrix, got {loss!r}")
        return None
    check_sparse(loss, "loss")
    if isinstance(loss, Mapping):
        return cost_matrix(loss, classes.tolist())
    K = len(classes)
    try:
        costs = as_reals(loss)
    except (TypeError, ValueError):
        raise ValueError(
            "loss must be 'zero-one', 'taxonomy', a mapping from pairs of classes or a table of "
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
    if are_described or not isinstance(loss, str) or loss != "zero-one":
        raise ValueError(
            "costs of examples take the place of loss, which must be 'zero-one' then, and are "
            "not for classes with a taxonomy or class features"
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


def check_class_prior(prior: Any, estimator: Any) -> None:
    """Raise ValueError for a prior of a classifier that cannot be one."""
    check_prior(prior, estimator, ("kernel", "taxonomy", "class_features", "fit_intercept"))
    if estimator.kernel != "linear" or prior._output_features is not None:
        raise ValueError("prior is for kernel='linear', without a taxonomy or class features")
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
