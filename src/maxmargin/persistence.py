"""Models as files: a zip archive with a JSON header and arrays in numpy's format, without pickle.

    header.json       format, schema, estimator, params, state, result, extra
    arrays/<n>.npy    arrays, which the header refers to by number

The header is JSON in which ``{"$type": ..., ...}`` stands for what JSON has no words for: arrays,
tuples, dicts with keys that are not strings, and a few classes of this package. Reading builds
those and nothing else, so that a file from an untrusted source can do no more than be wrong.
"""

from __future__ import annotations

import dataclasses
import errno
import importlib
import io
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .formats.opening import PathLike, _give_default_permissions
from .result import Progress, Result

__all__ = ["load", "load_model", "save_model"]

FORMAT = "maxmargin-model"
SCHEMA = 1

#: Estimators that can be saved, and where they live.
ESTIMATORS = {
    "DependencyParser": "maxmargin.estimators.dependency",
    "GrammarParser": "maxmargin.estimators.grammar",
    "MulticlassSVM": "maxmargin.estimators.multiclass",
    "PCFGParser": "maxmargin.estimators.grammar",
    "SequenceAligner": "maxmargin.estimators.alignment",
    "SequenceTagger": "maxmargin.estimators.sequence",
    "TreeLabeler": "maxmargin.estimators.tree",
}
#: Feature extractors, with ``to_state`` and ``from_state``.
EXTRACTORS = {
    "FeatureDictionary": "maxmargin.features.dictionary",
    "WindowFeatures": "maxmargin.features.window",
}
#: Other classes of this package that a parameter may hold; they have the same two methods.
VALUES = {
    "ClassFeatures": "maxmargin.features.class_features",
    "Taxonomy": "maxmargin.features.taxonomy",
}


def load(path: PathLike) -> Any:
    """Read an estimator that ``estimator.save(path)`` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    estimator
        Fitted, with the parameters it had.

    Raises
    ------
    ValueError
        The file is truncated or damaged, is no model file, or was written by a newer version.
    """
    return load_model(path)[0]


def load_model(path: PathLike) -> tuple[Any, dict[str, Any]]:
    """Read an estimator and the extra values that were saved with it."""
    with _reading(path) as archive:
        header = _read_header(path, archive)
        arrays = {
            name.removeprefix("arrays/").removesuffix(".npy"): np.lib.format.read_array(
                io.BytesIO(archive.read(name)), allow_pickle=False
            )
            for name in archive.namelist()
            if name.startswith("arrays/")
        }
        decode = _Decoder(arrays)
        cls = _import(ESTIMATORS, header["estimator"])
        estimator = cls(**decode(header["params"]))
        estimator.coef_ = _unpack_weights(decode(header["coef"]))
        if header["result"] is not None:
            estimator.result_ = _unpack_result(decode(header["result"]), estimator.coef_)
        estimator._set_state(decode(header["state"]))
        extra: dict[str, Any] = decode(header["extra"])
    if extra:
        estimator._saved_extra = extra  # so that saving it again keeps them
    return estimator, extra


def save_model(estimator: Any, path: PathLike, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator, and extra JSON values that belong to it, to one file."""
    estimator._check_fitted()
    state = estimator._get_state()
    name = type(estimator).__name__
    if name not in ESTIMATORS:
        raise ValueError(
            f"{name} is not a class of this package and cannot be saved; keep coef_ with numpy.save"
        )
    encode = _Encoder()
    header = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": __version__,
        "estimator": name,
        "params": _pack_params(estimator, encode),
        "state": encode(state),
        "coef": encode(_pack_weights(estimator.coef_)),
        "result": encode(_pack_result(getattr(estimator, "result_", None))),
        "extra": encode(extra if extra is not None else getattr(estimator, "_saved_extra", {})),
    }
    with _writing(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header), compresslevel=1)
        for number, array in enumerate(encode.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(f"arrays/{number}.npy", buffer.getbuffer(), compresslevel=1)


# ----- parts of a model -------------------------------------------------------------------------


def _pack_params(estimator: Any, encode: _Encoder) -> dict[str, Any]:
    """Parameters as JSON; what cannot be kept is left to its default, with a warning."""
    packed, lost = {}, []
    for name, value in estimator.get_params(deep=False).items():
        if name == "callbacks" and not value:
            continue
        try:
            packed[name] = encode(value)
        except _CannotEncode:
            lost.append(name)
    if lost:
        warnings.warn(
            f"a model file cannot keep the given {', '.join(lost)}; the loaded estimator will "
            "have the default there",
            UserWarning,
            stacklevel=4,
        )
    return packed


def _pack_weights(w: NDArray[np.float64]) -> dict[str, Any]:
    """Weights as they are, or the non-zero ones where that is shorter."""
    nonzero = np.flatnonzero(w)
    if 2 * len(nonzero) < len(w):
        return {"size": len(w), "indices": nonzero, "values": w[nonzero]}
    return {"size": len(w), "indices": None, "values": w}


def _unpack_weights(packed: dict[str, Any]) -> NDArray[np.float64]:
    """The inverse of `_pack_weights`."""
    if packed["indices"] is None:
        w = np.ascontiguousarray(packed["values"], dtype=np.float64)
    else:
        w = np.zeros(packed["size"])
        w[packed["indices"]] = packed["values"]
    if w.shape != (packed["size"],):
        raise ValueError(f"expected {packed['size']} weights, found shape {w.shape}")
    return w


_RESULT_FIELDS = [
    field.name
    for field in dataclasses.fields(Result)
    if field.name not in ("w", "history", "state")
]
_PROGRESS_FIELDS = [field.name for field in dataclasses.fields(Progress)]


def _pack_result(result: Result | None) -> dict[str, Any] | None:
    """A result without its weights and its solver's state; None where nothing was optimised."""
    if result is None:
        return None
    packed = {name: _plain(getattr(result, name)) for name in _RESULT_FIELDS}
    packed["history"] = [
        [_plain(getattr(record, name)) for name in _PROGRESS_FIELDS] for record in result.history
    ]
    packed["history_fields"] = _PROGRESS_FIELDS
    return packed


def _unpack_result(packed: dict[str, Any], w: NDArray[np.float64]) -> Result:
    """The inverse of `_pack_result`."""
    fields = packed["history_fields"]
    history = [Progress(**dict(zip(fields, record, strict=True))) for record in packed["history"]]
    return Result(w=w, history=history, **{name: packed[name] for name in _RESULT_FIELDS})


def _plain(value: Any) -> Any:
    """A Python number for one of numpy's."""
    return value.item() if isinstance(value, np.generic) else value


# ----- JSON with a few more types ---------------------------------------------------------------


class _CannotEncode(ValueError):
    """A value that a model file has no form for."""


class _Encoder:
    """Turns values into JSON, and collects the arrays they hold."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def __call__(self, value: Any) -> Any:
        """The JSON for a value; _CannotEncode (a ValueError) if there is none."""
        value = _plain(value)
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
        if name == "ChainConstraints":
            return {"$type": name, "masks": [self(mask) for mask in value]}
        if name == "ArcTemplates":
            return {"$type": name, "groups": self(tuple(value))}
        if name in EXTRACTORS and isinstance(value, _import(EXTRACTORS, name)):
            if hasattr(value, "n_features_out_"):
                return {"$type": name, "state": self(value.to_state())}
            return {"$type": name, "params": self(value.get_params(deep=False))}
        if name in VALUES and isinstance(value, _import(VALUES, name)):
            return {"$type": name, "state": self(value.to_state())}
        raise _CannotEncode(
            f"a model file cannot keep {value!r:.60} of type {type(value).__name__}"
        )

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        """Numbers go to a file of their own; strings and objects into the header."""
        if value.dtype.kind in "biuf":
            self.arrays.append(value)
            return {"$type": "array", "number": len(self.arrays) - 1}
        if value.dtype.kind == "U" or value.dtype == object:
            items = [self(item) for item in value.ravel().tolist()]
            shape = list(value.shape)
            return {"$type": "items", "dtype": value.dtype.str, "shape": shape, "items": items}
        raise _CannotEncode(f"a model file cannot keep arrays of type {value.dtype}")


class _Decoder:
    """The inverse of `_Encoder`."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": lambda value: self.arrays[str(value["number"])],
            "items": self._items,
            "tuple": lambda value: tuple(self(item) for item in value["items"]),
            "dict": lambda value: {self(key): self(item) for key, item in value["items"]},
            "ChainConstraints": self._constraints,
            "ArcTemplates": self._templates,
        }

    def __call__(self, value: Any) -> Any:
        """The value of some JSON."""
        if isinstance(value, list):
            return [self(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$type")
        if kind is None:
            return {key: self(item) for key, item in value.items()}
        if kind in self._makers:
            return self._makers[kind](value)
        cls = _import({**EXTRACTORS, **VALUES}, kind)
        if "state" in value:
            return cls.from_state(self(value["state"]))
        return cls(**self(value["params"]))

    def _items(self, value: dict[str, Any]) -> NDArray[Any]:
        """An array of strings or objects."""
        dtype = np.dtype(value["dtype"])
        array = np.empty(len(value["items"]), dtype=dtype)
        array[:] = [self(item) for item in value["items"]]
        return array.reshape(value["shape"])

    def _constraints(self, value: dict[str, Any]) -> Any:
        """Masks of forbidden transitions."""
        from .problems.chain.problem import ChainConstraints

        return ChainConstraints(*(self(mask) for mask in value["masks"]))

    def _templates(self, value: dict[str, Any]) -> Any:
        """Features of the arcs of trees."""
        from .problems.dependency.features import ArcTemplates

        return ArcTemplates(*self(value["groups"]))


def _import(homes: dict[str, str], name: str) -> Any:
    """A class out of a fixed list; nothing else is ever imported for a file."""
    if name not in homes:
        raise ValueError(f"unknown type {name!r}")
    return getattr(importlib.import_module(homes[name]), name)


# ----- files ------------------------------------------------------------------------------------


def _read_header(path: PathLike, archive: zipfile.ZipFile) -> dict[str, Any]:
    """The header, once it is known to be one that this version understands."""
    try:
        header = json.loads(archive.read("header.json"))
        is_model = isinstance(header, dict) and header.get("format") == FORMAT
    except (KeyError, UnicodeDecodeError, json.JSONDecodeError):
        is_model = False
    if not is_model:
        raise _Refused(f"{path}: not a model file of maxmargin")
    if not isinstance(header.get("schema"), int) or header["schema"] > SCHEMA:
        raise _Refused(
            f"{path}: written by maxmargin {header.get('version')} in schema "
            f"{header.get('schema')}, and this version ({__version__}) reads up to schema "
            f"{SCHEMA}; upgrade maxmargin"
        )
    return header


class _Refused(ValueError):
    """An error that says all there is to say."""


@contextmanager
def _reading(path: PathLike) -> Iterator[zipfile.ZipFile]:
    """Open a model file; whatever is wrong with its content becomes a ValueError with its path."""
    with open(path, "rb") as stream:
        beginning = stream.read(4)
        if not beginning:
            raise ValueError(f"{path}: the file is empty")
        if beginning[:2] != b"PK":
            raise ValueError(f"{path}: not a model file of maxmargin")
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except _Refused:
            raise
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            NotImplementedError,
            AttributeError,
        ) as error:
            raise ValueError(f"{path}: truncated or damaged model file ({error})") from error


def check_folder(path: PathLike) -> None:
    """Raise unless the folder exists in which a model is to be written."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", str(path))


@contextmanager
def _writing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` once it is complete."""
    target = Path(path)
    check_folder(target)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _give_default_permissions(temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
