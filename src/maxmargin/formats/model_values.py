"""Values of model files: JSON with a few more types, arrays that compress well, earlier names.

Arrays are kept in the form that compresses best, without loss:

plain         as it is
planes        the first bytes of all numbers, then the second bytes, ...: of numbers that are
              small, or have few digits, most planes are zero
differences   planes of the differences of neighbours: for sorted numbers
ranks         for permutations: they are cut into groups within which they grow, and what is
              kept is each entry's group, in planes. Features that are numbered by their counts
              have few groups.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..registry import ESTIMATORS, SAVED_PARAMETERS, SAVED_TUPLES, SAVED_VALUES, import_name
from ..utils.defaults import CACHE_MB

__all__ = [
    "SAVED_ESTIMATORS",
    "Decoder",
    "Encoder",
    "array_from",
    "divide_classes",
    "import_saved",
    "plain_number",
    "renamed_parameters",
    "shortest_form",
]

#: Parameters that earlier versions called otherwise, by estimator or extractor; None: of each.
OLD_PARAMS: dict[str | None, dict[str, str]] = {
    None: {"partial": "partial_labels", "n_basis": "n_components"},
    "DependencyParser": {"templates": "features"},
    "GrammarParser": {"max_length": "max_sentence_length"},
    "PCFGParser": {"max_length": "max_sentence_length"},
    "SequenceSegmenter": {"max_length": "max_segment_length"},
    "SetMatcher": {"partial": "allow_unmatched"},
}
#: Values that earlier versions spelled otherwise, by the name that the parameter has now.
OLD_VALUES: dict[str, dict[str, str]] = {
    "loss": {
        "zero-one": "zero_one",
        "normalized-hamming": "normalized_hamming",
        "normalized-swaps": "normalized_swaps",
        "average-precision": "average_precision",
    },
    "measure": {
        "rocarea": "roc_auc",
        "precision@k": "precision_at_k",
        "recall@k": "recall_at_k",
        "precision@recall": "precision_at_recall",
        "recall@precision": "recall_at_precision",
        "average-precision": "average_precision",
    },
    "partial_labels": {"alternate": "cccp"},
    "solver": {"one-slack": "one_slack", "n-slack": "n_slack", "dcd-light": "dcd_light"},
}
#: Parameters of a tagger that are options of its ``order``, and of its ``kernel``, now.
OLD_ORDER = {"emission_order": "emissions", "label_tuples": "label_tuples", "eta": "eta"}
OLD_KERNEL = ("gamma", "degree", "coef0", "kernel_params", "n_components", "basis")
#: Parameters that are options of ``training`` now, with their defaults; files had no others.
OLD_OPTIONS = {"cache_mb": CACHE_MB, "on_interrupt": "raise"}
SAVED_ESTIMATORS = {entry.name: entry.module for entry in ESTIMATORS if entry.is_saved}


# ----- JSON with a few more types ---------------------------------------------------------------


class _CannotEncode(ValueError):
    """A value that a model file has no form for."""


class Encoder:
    """Turns values into JSON, and collects the arrays they hold."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def __call__(self, value: Any) -> Any:
        """The JSON for a value; _CannotEncode (a ValueError) if there is none."""
        value = plain_number(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value) is list:
            return [self(item) for item in value]
        if type(value) is tuple:
            return {"$type": "tuple", "items": [self(item) for item in value]}
        if type(value) is dict:
            if all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {key: self(item) for key, item in value.items()}
            pairs = [[self(key), self(item)] for key, item in value.items()]
            return {"$type": "dict", "items": pairs}
        name = type(value).__name__
        if name in SAVED_TUPLES:
            return {"$type": name, SAVED_TUPLES[name].items: [self(item) for item in value]}
        if hasattr(value, "_asdict"):
            return self(value._asdict())
        if (
            name in SAVED_PARAMETERS
            and isinstance(value, import_saved(SAVED_PARAMETERS, name))
            and _is_unfitted(value)
        ):
            return {"$type": name, "params": self(value.get_params(deep=False))}
        if name in SAVED_VALUES and isinstance(value, import_saved(SAVED_VALUES, name)):
            if _is_unfitted(value):
                return {"$type": name, "params": self(value.get_params(deep=False))}
            return {"$type": name, "state": self(value.to_state())}
        raise _CannotEncode(
            f"a model file cannot keep {value!r:.60} of type {type(value).__name__}"
        )

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        """Numbers go to a file of their own; strings and objects into the header."""
        if value.dtype.kind in "biuf":
            form, content = shortest_form(value)
            self.arrays.append(content)
            known = {"$type": "array", "number": len(self.arrays) - 1}
            return known if form == "plain" else {**known, "form": form, "dtype": value.dtype.str}
        if value.dtype.kind == "U" or value.dtype == object:
            items = [self(item) for item in value.ravel().tolist()]
            shape = list(value.shape)
            return {"$type": "items", "dtype": value.dtype.str, "shape": shape, "items": items}
        raise _CannotEncode(f"a model file cannot keep arrays of type {value.dtype}")


class Decoder:
    """The inverse of `Encoder`."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def __call__(self, value: Any) -> Any:
        """The value of some JSON."""
        if isinstance(value, list):
            return [self(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$type")
        if kind is None:
            return {key: self(item) for key, item in value.items()}
        match kind:
            case "array":
                return self._array(value)
            case "items":
                return self._items(value)
            case "tuple":
                return tuple(self(item) for item in value["items"])
            case "dict":
                return {self(key): self(item) for key, item in value["items"]}
        if kind in SAVED_TUPLES:
            module, items = SAVED_TUPLES[kind]
            return import_name(module, kind)(*self(value[items]))
        cls = import_saved({**SAVED_VALUES, **SAVED_PARAMETERS}, kind)
        if "state" in value:
            return cls.from_state(self(value["state"]))
        return cls(**self(renamed_parameters(kind, value["params"])))

    def _array(self, value: dict[str, Any]) -> NDArray[Any]:
        """An array of numbers."""
        content = self.arrays[str(value["number"])]
        return array_from(value.get("form", "plain"), value.get("dtype", ""), content)

    def _items(self, value: dict[str, Any]) -> NDArray[Any]:
        """An array of strings or objects."""
        items = [self(item) for item in value["items"]]
        dtype = np.dtype(value["dtype"])
        if dtype.kind == "U":  # as wide as its strings, whatever a damaged header asks for
            return np.array(items, dtype=str).reshape(value["shape"])
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(value["shape"])


def import_saved(homes: dict[str, str], name: str) -> Any:
    """A class out of a fixed list; nothing else is ever imported for a file."""
    if name not in homes:
        raise ValueError(f"unknown type {name!r}")
    return import_name(homes[name], name)


def _is_unfitted(value: Any) -> bool:
    """Whether this is an extractor that has nothing to keep but its parameters."""
    return hasattr(value, "get_params") and not any(
        hasattr(value, name) for name in ("n_features_out_", "n_features_in_")
    )


def plain_number(value: Any) -> Any:
    """A Python number for one of numpy's."""
    return value.item() if isinstance(value, np.generic) else value


# ----- names of earlier versions ---------------------------------------------------------------


def divide_classes(header: dict[str, Any]) -> None:
    """Name a model by its class of today, where it was an option of another class before 1.0."""
    name, params, state = (header.get(key) for key in ("estimator", "params", "state"))
    if not isinstance(params, dict) or not isinstance(state, dict):
        return
    others: tuple[str, ...] = ()
    if name == "TreeLabeler" and "outputs" in params:
        positions = params.pop("outputs") == "positions"
        params["loss"] = params.get("loss") or ("deviation" if positions else "hamming")
        if positions:
            header["estimator"], header["state"] = "PartLocator", {"layout": state.get("layout")}
            others = ("class_weight", "fit_intercept", "probability")
        else:
            others = ("patch", "size")
    elif name == "SequenceAligner" and "task" in params:
        ranks = params.pop("task") == "rank"
        if ranks:
            header["estimator"], others = "HomologyRanker", ("loss",)
    for other in others:
        params.pop(other, None)


def renamed_parameters(owner: str, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file by the names and with the values that they have now."""
    names = OLD_PARAMS.get(None, {}) | OLD_PARAMS.get(owner, {})
    renamed = {names.get(name, name): value for name, value in params.items()}
    renamed = {
        name: OLD_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
        for name, value in renamed.items()
    }
    if owner in SAVED_ESTIMATORS:
        given = {name: renamed.pop(name) for name in list(renamed) if name in OLD_OPTIONS}
        changed = {name: value for name, value in given.items() if value != OLD_OPTIONS[name]}
        if changed:
            renamed["training"] = {"$type": "TrainingOptions", "params": changed}
    if owner == "SequenceTagger":
        _merge_options(renamed)
    return renamed


def _merge_options(params: dict[str, Any]) -> None:
    """Parameters of a tagger that became options of its order or of its kernel."""
    order = {name: params.pop(old) for old, name in OLD_ORDER.items() if old in params}
    if order not in ({}, {"emissions": 0, "label_tuples": "seen", "eta": 1.0}):
        params["order"] = {"transitions": params.get("order", 1), **order}
    kernel = {name: params.pop(name) for name in OLD_KERNEL if name in params}
    if kernel and params.get("kernel", "linear") != "linear":
        options = {"kernel": params["kernel"], **kernel}
        params["kernel"] = {"$type": "KernelMap", "params": options}


# ----- arrays ---------------------------------------------------------------------------------

SHORT = 4096  # bytes, below which it is not worth the trouble


def shortest_form(array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Name and content of the form that compresses best."""
    if array.ndim != 1 or array.nbytes < SHORT or array.dtype.kind not in "iuf":
        return "plain", array
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    forms = {"plain": array, "planes": _planes(array)}
    if array.dtype.kind in "iu":
        forms["differences"] = _planes(_differences(array))
        if _is_permutation(array):
            forms["ranks"] = _planes(_groups(array))
    name = min(forms, key=lambda name: len(zlib.compress(forms[name].data, 1)))
    return name, forms[name]


def array_from(form: str, dtype: str, content: NDArray[Any]) -> NDArray[Any]:
    """The array of a form, ValueError if there is none."""
    if form == "plain":
        return content
    kind = np.dtype(dtype)
    is_known = form == "planes" or (form in ("differences", "ranks") and kind.kind in "iu")
    if not is_known or kind.kind not in "iuf":
        raise ValueError(f"arrays of type {dtype} have no form {form!r}")
    if content.dtype != np.uint8 or content.ndim != 2 or len(content) != kind.itemsize:
        raise ValueError(
            f"{content.dtype} of shape {content.shape} cannot be read as bytes of {dtype}"
        )
    values = np.ascontiguousarray(content.T).reshape(-1).view(kind.newbyteorder("<"))
    values = values.astype(kind.newbyteorder("="), copy=False)
    if form == "differences":
        return np.cumsum(values, dtype=values.dtype)
    if form == "ranks":
        ranks = np.empty(len(values), values.dtype)
        ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
        return ranks
    return values


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Bytes of the numbers, in columns."""
    return np.ascontiguousarray(array.view(np.uint8).reshape(len(array), array.itemsize).T)


def _differences(array: NDArray[Any]) -> NDArray[Any]:
    """The first number and the differences of neighbours, which may wrap around."""
    return np.diff(array, prepend=array.dtype.type(0))


def _is_permutation(array: NDArray[Any]) -> bool:
    """Whether these are the numbers from 0 on, in some order."""
    return bool(np.array_equal(np.sort(array), np.arange(len(array))))


def _groups(ranks: NDArray[Any]) -> NDArray[Any]:
    """For each entry of a permutation its group, such that a stable sort by groups inverts it."""
    places = np.argsort(ranks)
    starts = np.diff(places, prepend=0) < 0
    return np.cumsum(starts)[ranks].astype(ranks.dtype)
