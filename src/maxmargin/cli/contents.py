"""What a model file holds: for programs, and in words.

Whatever the estimator is, it is asked by what estimators offer: ``top_features``, ``top_rules``,
``top_transitions``, ``transition_weights_``, ``coef_``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ..estimators.top_weights import strongest
from ..registry import entry_of
from ..tables import columns, named_values

__all__ = ["contents_of", "in_words"]

WIDEST_TABLE = 12  # labels of a table of transitions that fits a page
_CERTIFICATE = ("status", "primal", "dual", "gap", "relative_gap", "converged")
_WORK = ("n_passes", "n_oracle_calls", "n_planes", "seconds")
_FIRST_PARAMETERS = ("C", "loss", "rescaling", "slack", "solver", "tol", "epsilon")
_OUTSIDE = "(outside)"


def contents_of(path: str, estimator: Any, top: int, label: str | None) -> dict[str, Any]:
    """All that is known of a model; of one label only, if it is named."""
    entry = entry_of(type(estimator))
    labels = _labels(estimator)
    if label is not None:
        _refuse_unknown(path, label, labels)
    contents: dict[str, Any] = {
        "model": path,
        "estimator": type(estimator).__name__,
        "task": entry.task.name if entry is not None and entry.task is not None else None,
        "bytes": os.path.getsize(path),
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
    for name in ("classes_", "labels_"):
        labels = getattr(estimator, name, None)
        if labels is not None and np.ndim(labels) == 1:
            return [str(label) for label in list(labels)]
    return None


def _refuse_unknown(path: str, label: str, labels: list[str] | None) -> None:
    """Raise ValueError for a label that the model does not have."""
    if labels is None:
        raise ValueError(f"--label {label}: the model in {path} has no labels")
    if label not in labels:
        shown = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
        raise ValueError(f"--label {label}: the model in {path} has the labels {shown}")


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
    asked = {name: getattr(estimator, name, None) for name in ("C", "tol", "epsilon")}
    known = {name: getattr(result, name) for name in (*_CERTIFICATE, *_WORK)}
    return {name: _plain(value) for name, value in {**asked, **known}.items()}


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
        str(name): {"for": speak_for[name], "against": against[name]}
        for name in speak_for
        if label is None or str(name) == label
    }
    return {"features": found}


def _strongest_weights(estimator: Any, top: int) -> dict[str, Any]:
    """The strongest weights, by the names of their features if there is one weight for each."""
    try:
        weights = np.asarray(estimator.coef_, np.float64).ravel()
    except (AttributeError, ValueError):
        return {}
    n_features = getattr(estimator, "n_features_in_", None)
    names = getattr(estimator, "feature_names_in_", None)
    letter = "x" if len(weights) == n_features else "weight "

    named = dict(enumerate(names)) if names is not None and len(names) == len(weights) else {}

    def listed(n: int, *, against: bool) -> list[tuple[str, float]]:
        chosen = strongest(weights, n, against)
        return [(str(named.get(f, f"{letter}{f}")), float(weights[f])) for f in chosen]

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


# ----- in words ---------------------------------------------------------------------------------


def in_words(contents: dict[str, Any], *, wide: bool) -> str:
    """The contents as text; a table of transitions only if it is narrow, or may be wide."""
    if contents["label"] is not None:
        return "\n\n".join(_weights_in_words(contents, wide))
    task = f" (task {contents['task']})" if contents["task"] else ""
    rows = [
        ("model", contents["model"]),
        ("estimator", contents["estimator"] + task),
        ("bytes", str(contents["bytes"])),
        *((name.replace("_", " "), _number(value)) for name, value in contents["sizes"].items()),
    ]
    parts = [named_values(rows)]
    if contents["labels"] is not None:
        parts.append(_wrapped("labels: " + ", ".join(contents["labels"])))
    given = {name: contents["parameters"][name] for name in contents["given"]}
    parts.append("parameters\n" + _indented((n, _number(v)) for n, v in given.items()))
    parts.append("certificate\n" + _certificate_in_words(contents["certificate"]))
    return "\n\n".join([*parts, *_weights_in_words(contents, wide)])


def _weights_in_words(contents: dict[str, Any], wide: bool) -> list[str]:
    """What was learned."""
    parts = []
    for name, lists in contents.get("features", {}).items():
        parts.append(_side_by_side(f"features of {name}", lists))
    for key, title in (("weights", "strongest weights"), ("rules", "rules")):
        if key in contents:
            parts.append(_side_by_side(title, contents[key]))
    if "note" in contents:
        parts.append(contents["note"])
    if "top_transitions" in contents:
        parts.append(_side_by_side("transitions", contents["top_transitions"]))
    table = contents.get("transitions")
    if table is not None and (wide or len(table["labels"]) <= WIDEST_TABLE):
        parts.append(_table(table["labels"], table["weights"]))
    if "transitions_of_label" in contents:
        own = contents["transitions_of_label"]
        rows_of_label = [("transitions", "from", "to")]
        rows_of_label += [(n, _weight(own["from"][n]), _weight(own["to"][n])) for n in own["to"]]
        parts.append(columns(rows_of_label))
    return parts


def _certificate_in_words(certificate: dict[str, Any] | None) -> str:
    """What training has proved."""
    if certificate is None:
        return "  none: nothing was optimised"
    known = [(n.replace("_", " "), _number(v)) for n, v in certificate.items() if v is not None]
    if certificate["gap"] is None:
        known.append(("gap", "not certified"))
    return _indented(known)


def _side_by_side(title: str, lists: dict[str, Any]) -> str:
    """What speaks for something, and against it."""
    sides = [
        [(_named(entry[:-1]), _weight(entry[-1])) for entry in side] for side in lists.values()
    ]
    n = max(map(len, sides))
    left, right = (side + [("", "")] * (n - len(side)) for side in sides)
    widths = [max([len(title), *(len(name) for name, _ in left)]), 8, 7]
    lines = [f"{title:<{widths[0]}}  {'for':>{widths[1]}}   against"]
    for (a, x), (b, y) in zip(left, right, strict=True):
        lines.append(f"{a:<{widths[0]}}  {x:>{widths[1]}}   {y:>{widths[2]}}  {b}".rstrip())
    return "\n".join(lines)


def _named(parts: Any) -> str:
    """A feature, a rule, or labels one after the other; None is before and after a sequence."""
    return " -> ".join("(end)" if part is None else str(part) for part in parts)


def _table(labels: list[str], weights: list[list[float]]) -> str:
    """A table of transitions, from-labels in rows."""
    rows = [("from \\ to", *labels)]
    rows += [(name, *map(_weight, row)) for name, row in zip(labels, weights, strict=True)]
    return columns(rows)


def _indented(rows: Any) -> str:
    """Names and values, set in."""
    return "\n".join(f"  {line}" for line in named_values(rows).splitlines())


def _wrapped(text: str) -> str:
    """A long line as several."""
    import textwrap

    return textwrap.fill(text, width=96, subsequent_indent="  ", break_on_hyphens=False)


def _weight(value: float) -> str:
    """A weight; most are 0 in some models, and forbidden transitions are too."""
    return "." if value == 0.0 else f"{value:.3f}"


def _number(value: Any) -> str:
    """A number for people."""
    is_float = isinstance(value, float)
    return f"{value:.6g}" if is_float else str(value)
