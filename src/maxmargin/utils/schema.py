"""Values out of files, checked against the types that were declared for what they are to become.

Types are read from annotations: those of NamedTuples, of dataclasses and of methods. What a type
cannot say (how large, how many) is a function in ``Annotated``, which raises ValueError.
"""

from __future__ import annotations

import contextlib
import functools
import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .validation import LARGEST

__all__ = [
    "Amount",
    "ArrayOf",
    "Count",
    "Labels",
    "Names",
    "Number",
    "SparseBlocks",
    "annotated_types",
    "as_annotated",
    "as_sparse",
    "checked_arrays",
    "flags",
    "from_values",
    "numbers",
    "rows_at",
    "sparse_blocks",
    "whole",
]

Record = TypeVar("Record")
_LARGEST = 2**63 - 1


def from_values(cls: type[Record], values: Any, place: str) -> Record:
    """An instance of a NamedTuple or dataclass out of a dict of its fields, once they are checked.

    Raises ValueError that names the field, what was expected there and what was found. Fields that
    have a default may be missing (they are younger than the file).
    """
    types = annotated_types(typing.cast("Any", cls))
    _expect(isinstance(values, dict), place, "a dict", values)
    known = {name: item for name, item in values.items() if name in types}
    checked = {name: as_annotated(known[name], types[name], f"{place}.{name}") for name in known}
    try:
        return cls(**checked)
    except TypeError:
        missing = ", ".join(name for name in types if name not in known)
        raise ValueError(f"{place}: found no {missing}") from None


@functools.cache
def annotated_types(declaring: Any) -> dict[str, Any]:
    """Types of the fields of a class, or of the arguments of a function."""
    return typing.get_type_hints(declaring, include_extras=True)


def as_annotated(value: Any, declared: Any, place: str) -> Any:
    """The value, if it is of the declared type; ValueError otherwise.

    What differs in kind only is turned into what was declared: 1 into True, a list into a tuple.
    Types that this function knows nothing of allow everything.
    """
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (Union, UnionType):
        return _one_of(value, arguments, place)
    if origin is Annotated:
        value = as_annotated(value, arguments[0], place)
        for check in arguments[1:]:
            check(value, place)
        return value
    if origin is Literal:
        _expect(isinstance(value, str) and value in arguments, place, _name(declared), value)
        return value
    if origin is np.ndarray:
        return _array(value, declared, place)
    if origin in (list, tuple, Sequence, Iterable):
        return _sequence(value, declared, place)
    if origin in (dict, Mapping):
        _expect(isinstance(value, dict), place, "a dict", value)
        keys, items = arguments
        return {
            as_annotated(key, keys, place): as_annotated(item, items, f"{place}[{key!r:.40}]")
            for key, item in value.items()
        }
    if not isinstance(declared, type) or declared is Any:
        return value
    if declared in _NUMBERS:
        return _number(value, declared, place)
    if hasattr(declared, "_fields") and isinstance(value, (dict, list, tuple)):
        return from_values(declared, _fields(value, declared, place), place)
    _expect(isinstance(value, declared), place, _name(declared), value)
    return value


def _fields(value: Any, declared: Any, place: str) -> dict[str, Any]:
    """The fields of a NamedTuple, by name or in their order."""
    if isinstance(value, dict):
        return value
    names = declared._fields
    _expect(len(value) == len(names), place, f"{len(names)} items", value)
    return dict(zip(names, value, strict=True))


_NUMBERS = (bool, int, float)


def _number(value: Any, declared: type, place: str) -> Any:
    """A truth value, whole number or floating-point number, of moderate size."""
    fits = isinstance(value, _NUMBERS)
    if fits and declared is not float:
        fits = math.isfinite(value) if isinstance(value, float) else abs(value) <= _LARGEST
        fits = fits and declared(value) == value
    elif fits and isinstance(value, int):
        fits = abs(value) < 2**1023
    _expect(fits, place, _name(declared), value)
    return value if declared is float else declared(value)


def _one_of(value: Any, declared: Sequence[Any], place: str) -> Any:
    """A value of one of several types: that with the same name first, for 1 is also True."""
    if value is None and NoneType in declared:
        return None
    kinds = [kind for kind in declared if kind is not NoneType]
    if len(kinds) == 1:  # whose error says more
        return as_annotated(value, kinds[0], place)
    for kind in sorted(kinds, key=lambda kind: kind is not type(value)):
        with contextlib.suppress(ValueError):
            return as_annotated(value, kind, place)
    raise _mismatch(place, " or ".join(_name(kind) for kind in declared), value)


def _array(value: Any, declared: Any, place: str) -> NDArray[Any]:
    """An array of a type of numbers, or of anything."""
    _expect(isinstance(value, np.ndarray), place, _name(declared), value)
    (kind,) = typing.get_args(typing.get_args(declared)[1])
    fits = kind is Any or np.issubdtype(value.dtype, kind)
    _expect(fits, place, _name(declared), value)
    return typing.cast("NDArray[Any]", value)


def _sequence(value: Any, declared: Any, place: str) -> Any:
    """A list or tuple of a declared type."""
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    value = value.tolist() if isinstance(value, np.ndarray) else value
    _expect(isinstance(value, (list, tuple)), place, _name(declared), value)
    if origin is tuple and arguments[-1] is not Ellipsis:
        _expect(len(value) == len(arguments), place, f"{len(arguments)} items", value)
        kinds = arguments
    elif set(map(type, value)) <= _unchecked(arguments[0]):  # millions of strings, say
        return tuple(value) if origin is tuple else list(value)
    else:
        kinds = (arguments[0],) * len(value)
    pairs = enumerate(zip(value, kinds, strict=True))
    items = [as_annotated(item, kind, f"{place}[{k}]") for k, (item, kind) in pairs]
    return tuple(items) if origin is tuple else items


def _unchecked(declared: Any) -> set[type]:
    """Types whose values are all right where this one was declared."""
    if typing.get_origin(declared) in (Union, UnionType):
        return {kind for part in typing.get_args(declared) for kind in _unchecked(part)}
    return {declared} & {str, bool, float, NoneType}


# ----- what types cannot say --------------------------------------------------------------------


def _check_count(value: int, place: str) -> None:
    """Refuse a negative number."""
    _expect(value >= 0, place, "a number >= 0", value)


def _check_amount(value: float, place: str) -> None:
    """Refuse a negative number, and one that is not finite."""
    _expect(0 <= value <= LARGEST, place, "a finite number >= 0", value)


def _check_number(value: float, place: str) -> None:
    """Refuse what is not a number."""
    _expect(not math.isnan(value), place, "a number", value)


def _check_labels(value: NDArray[Any], place: str) -> None:
    """Refuse what is no list of different labels."""
    _expect(value.ndim == 1, place, "labels", value)
    labels = value.tolist()
    try:
        repeated = len(set(labels)) < len(labels)
    except TypeError:  # not hashable
        repeated = True
    _expect(not repeated, place, "different labels", labels)


def _check_names(value: NDArray[Any], place: str) -> None:
    """Refuse what is no list of strings."""
    _expect(value.ndim == 1 and set(map(type, value.tolist())) <= {str}, place, "names", value)


Count = Annotated[int, _check_count]
#: A finite number >= 0.
Amount = Annotated[float, _check_amount]
#: It may be infinite, but not NaN.
Number = Annotated[float, _check_number]
Labels = Annotated[NDArray[Any], _check_labels]
Names = Annotated[NDArray[Any], _check_names]
#: What a sparse matrix is made of: values, columns, where rows begin, and its shape.
SparseBlocks = tuple[
    NDArray[np.floating], NDArray[np.integer], NDArray[np.integer], tuple[Count, Count]
]


def sparse_blocks(matrix: sp.csr_matrix) -> SparseBlocks:
    """A sparse matrix as values that a model file can keep."""
    n_rows, n_columns = matrix.shape
    return matrix.data, matrix.indices, matrix.indptr, (int(n_rows), int(n_columns))


def as_sparse(values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """The inverse of `sparse_blocks`; ValueError where they do not fit together.

    All is checked here: scipy looks no further where the last of the starts is 0.
    """
    n_rows, n_columns = shape
    index = (np.int32, np.int64)
    declared = {
        "values": ArrayOf((np.float32, np.float64), (len(values),), -LARGEST, LARGEST),
        "columns": whole(len(values), below=n_columns, types=index),
        "starts": rows_at(n_rows, len(values))._replace(types=index),
    }
    found = {"values": values, "columns": columns, "starts": starts}
    return sp.csr_matrix(tuple(checked_arrays(found, declared).values()), shape=shape)


# ----- arrays -----------------------------------------------------------------------------------


class ArrayOf(NamedTuple):
    """What an array out of a file has to be before kernels may have it, which check nothing.

    Parameters
    ----------
    types : tuple of type
        One of these is its type, in the byte order of this machine.
    shape : tuple of int or None
        Its shape; None is any length.
    low, high : float
        Range of its values, both ends included; NaN is in none.
    rises : bool
        Whether its values never fall, from ``low`` to ``high``, and both are reached.
    """

    types: tuple[type[np.generic], ...]
    shape: tuple[int | None, ...]
    low: float = -np.inf
    high: float = np.inf
    rises: bool = False


def numbers(*shape: int | None, low: float = -LARGEST, high: float = LARGEST) -> ArrayOf:
    """Floating-point numbers; finite by default, and so are their products."""
    return ArrayOf((np.float64,), shape, low, high)


def whole(
    *shape: int | None, low: float = 0, below: float = np.inf, types: Any = (np.int64,)
) -> ArrayOf:
    """Whole numbers from ``low`` to ``below - 1``: indices, counts."""
    return ArrayOf(types, shape, low, below - 1)


def rows_at(n_rows: int, size: int) -> ArrayOf:
    """Where rows begin in an array of this size, and where the last one ends."""
    return ArrayOf((np.int64,), (n_rows + 1,), 0, size, rises=True)


def flags(*shape: int | None) -> ArrayOf:
    """Truth values."""
    return ArrayOf((np.bool_,), shape, 0, 1)


def checked_arrays(
    arrays: Mapping[str, NDArray[Any]], declared: Mapping[str, ArrayOf]
) -> dict[str, NDArray[Any]]:
    """Copies of the declared arrays; ValueError that names the first that is not as declared."""
    found = {}
    for name, form in declared.items():
        if name not in arrays:
            raise ValueError(f"found no {name}")
        _check_array(arrays[name], form, name)
        found[name] = arrays[name].copy()
    return found


def _check_array(array: NDArray[Any], form: ArrayOf, place: str) -> None:
    """Raise ValueError unless an array is as declared."""
    if array.dtype not in form.types:
        expected = " or ".join(np.dtype(kind).name for kind in form.types)
        raise ValueError(f"{place}: expected an array of {expected}, found one of {array.dtype}")
    if len(array.shape) != len(form.shape) or any(
        wanted not in (None, length) for wanted, length in zip(form.shape, array.shape, strict=True)
    ):
        wanted_shape = ", ".join("any" if wanted is None else str(wanted) for wanted in form.shape)
        raise ValueError(f"{place}: expected shape ({wanted_shape}), found {array.shape}")
    if array.size == 0:
        return
    least, most = array.min(), array.max()  # NaN where there is one
    if not (least >= form.low and most <= form.high):
        raise ValueError(
            f"{place}: expected values from {form.low} to {form.high}, found {least} to {most}"
        )
    if form.rises:
        if array[0] != form.low or array[-1] != form.high or bool((np.diff(array) < 0).any()):
            raise ValueError(f"{place}: expected values that rise from {form.low} to {form.high}")


# ----- words ------------------------------------------------------------------------------------


def _expect(fits: Any, place: str, expected: str, found: Any) -> None:
    """Raise ValueError unless a value fits."""
    if not fits:
        raise _mismatch(place, expected, found)


def _mismatch(place: str, expected: str, found: Any) -> ValueError:
    """What was expected, and what came."""
    if isinstance(found, np.ndarray):
        return ValueError(f"{place}: expected {expected}, found an array of {found.dtype}")
    kind = type(found).__name__
    shown = (
        f"{kind}" if isinstance(found, int) and abs(found) > _LARGEST else f"{kind} {found!r:.40}"
    )
    return ValueError(f"{place}: expected {expected}, found {shown}")


def _name(declared: Any) -> str:
    """A type in words."""
    if declared is None or declared is NoneType:
        return "None"
    if typing.get_origin(declared) is Literal:
        return " or ".join(repr(choice) for choice in typing.get_args(declared))
    if typing.get_origin(declared) is np.ndarray:
        (kind,) = typing.get_args(typing.get_args(declared)[1])
        return "an array" if kind is Any else f"an array of {kind.__name__}"
    if typing.get_origin(declared) is Annotated:
        return _name(typing.get_args(declared)[0])
    return declared.__name__ if isinstance(declared, type) else str(declared)
