"""Models as files: a zip archive with a JSON header and arrays in numpy's format, without pickle.

    header.json       format, schema, estimator, params, state, result, extra, calibration
    arrays/<n>.npy    arrays, which the header refers to by number, in the form that it names

The header is JSON in which ``{"$type": ..., ...}`` stands for what JSON has no words for: arrays,
tuples, dicts with keys that are not strings, and a few classes of this package. Reading builds
those and nothing else, so that a file from an untrusted source can do no more than be wrong.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._version import __version__
from .core.result import Progress, Result
from .formats.model_values import (
    SAVED_ESTIMATORS,
    Decoder,
    Encoder,
    divide_classes,
    import_saved,
    plain_number,
    renamed_parameters,
)
from .formats.opening import PathLike
from .formats.writing import write_atomically
from .registry import entry_of
from .utils.defaults import KEEPING
from .utils.schema import Count, annotated_types, as_annotated, from_values
from .utils.types import Floats
from .utils.warn import warn_user

__all__ = ["load", "load_model", "peek", "save_model"]

FORMAT = "maxmargin-model"
SCHEMA = 2  # 1 had arrays in the plain form alone
MOST_RECORDS = 2000  # of a history
#: How many bytes a file may unpack to: any small number, and so many times its own size. (The most
#: that deflate can do is 1,030 times; weights that are zero are left out of files.)
MOST_SMALL, MOST_RATIO = 2**26, 200
MOST_ZEROS = 2**28  # bytes of weights that are not in a file, in any case


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
        raw = _read_header(path, archive)
        arrays = {
            name.removeprefix("arrays/").removesuffix(".npy"): _read_array(archive.read(name))
            for name in archive.namelist()
            if name.startswith("arrays/")
        }
        cls = import_saved(SAVED_ESTIMATORS, raw["estimator"])
        raw["params"] = renamed_parameters(raw["estimator"], raw["params"])
        _check_params_known(path, raw, cls)
        header = from_values(_Header, Decoder(arrays)(raw), "header")
        estimator = cls(**_checked_params(cls, header.params))
        w = _unpack_weights(header.coef)
        estimator._set_weights(w)
        if header.result is not None:
            estimator.result_ = _unpack_result(header.result, w)
        state = annotated_types(cls._set_state)["state"]
        estimator._set_state(from_values(state, header.state, "state"))
        if header.calibration is not None:
            estimator._set_calibration(header.calibration)
        estimator._weights  # noqa: B018 - raises ValueError if they are not those of the state
    if header.extra:
        estimator._saved_extra = header.extra  # so that saving it again keeps them
    return estimator, header.extra


def peek(path: PathLike) -> tuple[str, bool]:
    """Class of a saved model, and whether it has a certificate; reads no more than the header."""
    with _reading(path) as archive:
        header = _read_header(path, archive)
        result = header["result"]
        certified = result is not None and result["dual"] is not None
        return str(header["estimator"]), certified and not result.get("relative_to_oracle", False)


def save_model(estimator: Any, path: PathLike, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator, and extra JSON values that belong to it, to one file."""
    estimator._check_fitted()
    state = estimator._get_state()._asdict()
    name, entry = type(estimator).__name__, entry_of(type(estimator))
    if entry is None or not entry.is_saved:
        raise ValueError(
            f"{name} is not a class of this package and cannot be saved; keep coef_ with numpy.save"
        )
    encode = Encoder()
    header = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": __version__,
        "estimator": name,
        "params": _pack_params(estimator, encode),
        "state": encode(state),
        "coef": encode(_pack_weights(estimator._get_weights())),
        "result": encode(_pack_result(getattr(estimator, "result_", None))),
        "extra": encode(extra if extra is not None else getattr(estimator, "_saved_extra", {})),
    }
    if hasattr(estimator, "calibration_"):
        header["calibration"] = encode(estimator.calibration_)
    with (
        write_atomically(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr("header.json", json.dumps(header))
        for number, array in enumerate(encode.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            # Those that compression makes too small would not be read again.
            stored = (
                array.nbytes > MOST_ZEROS and np.count_nonzero(array) < array.nbytes // MOST_RATIO
            )
            method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            archive.writestr(f"arrays/{number}.npy", buffer.getbuffer(), method)


# ----- parts of a model -------------------------------------------------------------------------


class _Header(NamedTuple):
    """What a model file says of its model."""

    params: dict[str, Any]
    state: dict[str, Any]
    coef: dict[str, Any]
    result: dict[str, Any] | None
    extra: dict[str, Any]
    calibration: dict[str, Any] | None = None


def _pack_params(estimator: Any, encode: Encoder) -> dict[str, Any]:
    """Parameters as JSON; what cannot be kept is left to its default, with a warning."""
    packed, lost = {}, []
    for name, value in estimator.get_params(deep=False).items():
        if name == "training" and value is not None:
            value, has_callbacks = _kept_options(value)
            lost += ["callbacks"] if has_callbacks else []
        try:
            packed[name] = encode(value)
            _checked_params(type(estimator), {name: plain_number(value)})  # as loading will do
        except ValueError:
            packed.pop(name, None)
            lost.append(name)
    if lost:
        warn_user(
            f"a model file cannot store {', '.join(lost)}; the loaded estimator will have "
            "the default value"
        )
    return packed


def _kept_options(training: Any) -> tuple[Any, bool]:
    """Options of a training without those that no file keeps, and whether callbacks are lost."""
    given = training.get_params() if hasattr(training, "get_params") else training
    if not isinstance(given, dict):
        return training, False
    lost = (*KEEPING, "cluster", "callbacks")
    kept = {name: value for name, value in given.items() if name not in lost}
    return type(training)(**kept), bool(given.get("callbacks"))


def _checked_params(cls: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the types that their class has declared."""
    types = annotated_types(cls)
    return {
        name: as_annotated(value, types.get(name, Any), f"params.{name}")
        for name, value in params.items()
    }


class _Weights(NamedTuple):
    """Weights as they are in a file."""

    size: Count
    indices: NDArray[np.integer] | None
    values: NDArray[np.floating]


def _pack_weights(w: Floats) -> dict[str, Any]:
    """Weights as they are, or the non-zero ones where that is shorter, none with idle digits."""
    w = np.asarray(w, dtype=np.float64)
    nonzero = np.flatnonzero(w)
    fits = 2 * len(nonzero) < len(w) <= _most_weights(len(nonzero))
    indices = nonzero if fits else None
    values = w if indices is None else w[indices]
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return {
        "size": len(w),
        "indices": indices,
        "values": single if np.array_equal(single, values) else values,
    }


def _unpack_weights(packed: dict[str, Any]) -> Floats:
    """The inverse of `_pack_weights`; no more memory than a file of this size may need."""
    size, indices, values = from_values(_Weights, packed, "coef")
    if indices is None:
        w = np.ascontiguousarray(values, dtype=np.float64)
    else:
        if size > _most_weights(len(values)):
            raise ValueError(f"{size} weights but the file has only {len(values)} of them")
        if (indices.ndim, indices.shape) != (1, values.shape) or (np.diff(indices) <= 0).any():
            raise ValueError("coef.indices: expected rising numbers, one for each value")
        if len(indices) and not (indices[0] >= 0 and indices[-1] < size):
            raise ValueError(f"coef.indices: expected numbers from 0 to {size - 1}")
        w = np.zeros(size)
        w[indices] = values
    if w.shape != (size,):
        raise ValueError(f"expected {size} weights, found shape {w.shape}")
    return w


def _most_weights(n_values: int) -> int:
    """How many weights may be left out of a file, for so many that are in it."""
    return (MOST_ZEROS + MOST_RATIO * n_values) // 8


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
    packed = {name: plain_number(getattr(result, name)) for name in _RESULT_FIELDS}
    packed["history"] = [
        [plain_number(getattr(record, name)) for name in _PROGRESS_FIELDS]
        for record in _thinned(result.history)
    ]
    packed["history_fields"] = _PROGRESS_FIELDS
    return packed


def _thinned(history: list[Progress]) -> list[Progress]:
    """A history that a file can hold: of millions of records, as many as a plot can show."""
    if len(history) <= MOST_RECORDS:
        return history
    chosen = np.linspace(0, len(history) - 1, MOST_RECORDS).astype(np.int64)
    return [history[k] for k in chosen.tolist()]


def _unpack_result(packed: dict[str, Any], w: Floats) -> Result:
    """The inverse of `_pack_result`."""
    fields = as_annotated(packed["history_fields"], list[str], "result.history_fields")
    records = as_annotated(packed["history"], list[list[Any]], "result.history")
    history = [
        from_values(Progress, dict(zip(fields, record, strict=True)), f"result.history[{k}]")
        for k, record in enumerate(records)
    ]
    known = {name: packed[name] for name in _RESULT_FIELDS if name in packed}
    return from_values(Result, {"w": w, "history": history, **known}, "result")


# ----- files ------------------------------------------------------------------------------------


def _read_header(path: PathLike, archive: zipfile.ZipFile) -> dict[str, Any]:
    """The header, once it is known to be one that this version understands."""
    if "header.json" not in archive.namelist():
        raise _Refused(f"{path}: this is not a model file")
    header = json.loads(archive.read("header.json"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _Refused(f"{path}: this is not a model file")
    if not isinstance(header.get("schema"), int) or header["schema"] > SCHEMA:
        raise _Refused(
            f"{path}: written by maxmargin {header.get('version')!s:.20} in schema "
            f"{header.get('schema')!s:.20}, and this version ({__version__}) reads up to schema "
            f"{SCHEMA}; upgrade maxmargin"
        )
    divide_classes(header)
    return header


def _check_params_known(path: PathLike, header: dict[str, Any], cls: Any) -> None:
    """Raise if another version has parameters that this one lacks; they may matter."""
    unknown = sorted(set(header["params"]) - set(cls._get_param_names()))
    if unknown and header.get("version") != __version__:
        raise _Refused(
            f"{path}: written by maxmargin {header.get('version')!s:.20}, with "
            f"{', '.join(unknown):.200}, which this version ({__version__}) does not know; "
            "load it with that version"
        )


def _read_array(data: bytes) -> NDArray[Any]:
    """An array in numpy's format, once it is known to be as large as its header says."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    shape, _, dtype = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} in {len(data)} bytes")
    stream.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    # Kernels take arrays in the order of this machine and of C.
    return np.asarray(array, dtype=dtype.newbyteorder("="), order="C")


class _Refused(ValueError):
    """An error that says all there is to say."""


def _check_unpacked_size(path: PathLike, archive: zipfile.ZipFile, size: int) -> None:
    """Raise if what is in a file would take far more memory than models of its size do."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MOST_SMALL + MOST_RATIO * size:
        raise _Refused(
            f"{path}: {size} bytes that unpack to {unpacked >> 20} MB are not a maxmargin model"
        )


@contextmanager
def _reading(path: PathLike) -> Iterator[zipfile.ZipFile]:
    """Open a model file; whatever is wrong with its content becomes a ValueError with its path."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:  # of the system; those below are of the content
        error.filename = str(path)
        raise
    if not data:
        raise ValueError(f"{path}: the file is empty")
    if data[:2] != b"PK":
        raise ValueError(f"{path}: this is not a model file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_unpacked_size(path, archive, len(data))
            yield archive
    except _Refused:
        raise
    except Exception as error:  # damage shows as almost any error of zipfile, zlib, json or numpy
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: truncated or damaged model file ({reason:.200})") from error
