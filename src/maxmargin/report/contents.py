"""What a model holds, for programs.

Estimators answer by what they offer: ``top_features``, ``top_rules``,
``top_transitions``, ``transition_weights_``, ``coef_``.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ..estimators.abilities.explanation import strongest
from ..registry import entry_of

__all__ = ["contents_of"]

_CERTIFICATE = ("status", "primal", "dual", "gap", "relative_gap", "converged")
_WORK = ("n_passes", "n_oracle_calls", "n_planes", "seconds")
_FIRST_PARAMETERS = ("C", "loss", "rescaling", "slack", "solver", "tol", "epsilon")
_OUTSIDE = "(outside)"


def contents_of(estimator: Any, top: int, label: str | None = None) -> dict[str, Any]:
    """All that is known of a model; of one label only, if it is named."""
    entry = entry_of(type(estimator))
    labels = _labels(estimator)
    if label is not None:
        _check_known(label, labels)
    contents: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "task": None if entry is None else entry.task,
        "sizes": _sizes(estimator, labels),
        "parameters": {
            name: _plain(value) for name, value in estimator.get_params(deep=False).items()
        },
        "given": _given(estimator),
        "certificate": _certificate(estimator),
        "labels": labels,
        "label": label,
    }
    contents |= _features(estimator, top, label)
    if hasattr(estimator, "top_rules"):
        contents["rules"] = _both_ways(estimator.top_rules, top)
    if hasattr(estimator, "transition_weights_"):
        contents |= _transitions(estimator, labels or [], top, label)
    return contents


def _labels(estimator: Any) -> list[str] | None:
    """Names of the labels, if there are any."""
    labels = getattr(estimator, "classes_", None)
    if isinstance(labels, np.ndarray) and labels.ndim == 1:  # of trees each node has its own
        return [str(label) for label in list(labels)]
    return None


def _check_known(label: str, labels: list[str] | None) -> None:
    """Raise ValueError for a label that the model does not have."""
    if labels is None:
        raise ValueError(f"no label {label!r}: the model has no labels")
    if label not in labels:
        shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
        raise ValueError(f"no label {label!r}: the model has the labels {shown}")


def _sizes(estimator: Any, labels: list[str] | None) -> dict[str, Any]:
    """How large the model is."""
    weights = np.asarray(estimator._get_weights()).ravel()
    sizes = {
        "labels": None if labels is None else len(labels),
        "features": getattr(estimator, "n_features_in_", None),
        "weights": len(weights),
        "weights_not_0": int(np.count_nonzero(weights)),
        "norm": float(np.linalg.norm(weights)),
    }
    return {name: _plain(value) for name, value in sizes.items() if value is not None}


def _given(estimator: Any) -> list[str]:
    """Names of the parameters that matter most, and of those that are not the defaults."""
    defaults = {
        name: parameter.default
        for name, parameter in signature(type(estimator)).parameters.items()
        if parameter.default is not parameter.empty
    }
    params = estimator.get_params(deep=False)
    first = [name for name in _FIRST_PARAMETERS if params.get(name) is not None]
    others = [
        name
        for name, value in params.items()
        if name not in first and repr(value) != repr(defaults.get(name))
    ]
    return [*first, *others]


def _certificate(estimator: Any) -> dict[str, Any] | None:
    """What training has proved; None where there was none."""
    result = getattr(estimator, "result_", None)
    if result is None:
        return None
    chosen = {name: getattr(estimator, name, None) for name in ("C", "tol", "epsilon")}
    known = {name: getattr(result, name) for name in (*_CERTIFICATE, *_WORK)}
    return {name: _plain(value) for name, value in {**chosen, **known}.items()}


def _features(estimator: Any, top: int, label: str | None) -> dict[str, Any]:
    """The features that speak for and against each label; else the strongest weights of all."""
    if not hasattr(estimator, "top_features"):
        return {} if label is not None else _strongest_weights(estimator, top)
    try:
        speak_for, against = (
            estimator.top_features(top, against=against) for against in (False, True)
        )
    except ValueError as error:  # of kernels there are none
        return {"note": str(error)}
    found = {
        _OUTSIDE if name is None else str(name): {
            "for": speak_for[name],
            "against": against[name],
        }
        for name in speak_for
        if label is None or str(name) == label
    }
    return {"features": found}


def _strongest_weights(estimator: Any, top: int) -> dict[str, Any]:
    """The strongest weights, by the names of their features if there is one weight for each."""
    try:
        table = np.asarray(estimator.coef_, np.float64)
    except (AttributeError, ValueError):
        return {}
    weights, names = table.ravel(), getattr(estimator, "feature_names_in_", None)
    n_features = getattr(estimator, "n_features_in_", None)
    is_named = isinstance(n_features, int) and table.shape[-1] == n_features

    def name_of(place: int) -> str:
        if not is_named:
            return f"weight {place}"
        label, f = divmod(place, table.shape[-1])
        feature = f"x{f}" if names is None else str(names[f])
        return feature if len(weights) == n_features else f"label {label}: {feature}"

    def listed(n: int, *, against: bool) -> list[tuple[str, float]]:
        chosen = strongest(weights, n, against)
        return [(name_of(f), float(weights[f])) for f in chosen]

    return {"weights": _both_ways(listed, top)}


def _transitions(estimator: Any, labels: list[str], top: int, label: str | None) -> dict[str, Any]:
    """Weights of pairs of labels, as a table and as lists."""
    table = np.asarray(estimator.transition_weights_)
    labels = [*labels, *[_OUTSIDE] * (len(table) - len(labels))]
    if label is not None:
        k = labels.index(label)
        own = {"to": dict(zip(labels, table[k].tolist(), strict=True))}
        own["from"] = dict(zip(labels, table[:, k].tolist(), strict=True))
        return {"transitions_of_label": own}
    found: dict[str, Any] = {"transitions": {"labels": labels, "weights": table.tolist()}}
    if hasattr(estimator, "top_transitions"):
        found["top_transitions"] = _both_ways(estimator.top_transitions, top)
    return found


def _both_ways(listed: Callable[..., list[Any]], top: int) -> dict[str, Any]:
    """The strongest of something, of either sign."""
    return {"for": listed(top, against=False), "against": listed(top, against=True)}


def _plain(value: Any) -> Any:
    """A value that JSON has, or its text."""
    value = value.item() if isinstance(value, np.generic) else value
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else repr(value)
