"""Values out of files, checked against declared types."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.utils.schema import (
    Count,
    Labels,
    Names,
    as_annotated,
    as_sparse,
    from_values,
    sparse_blocks,
)
from maxmargin.utils.types import Bools, Floats


class Inner(NamedTuple):
    a: int
    b: tuple[str, ...] = ()


class Outer(NamedTuple):
    inner: Inner
    mask: Bools | None


OBJECTS = np.array([[1], [2]], dtype=object)
OBJECTS_IN_A_ROW = np.fromiter(([1], [2]), dtype=object, count=2)


@pytest.mark.parametrize(
    ("value", "declared", "expected"),
    [
        (3, int, 3),
        (True, int, 1),
        (2.0, int, 2),
        (1, bool, True),
        (0.0, bool, False),
        (3, float, 3),
        (float("nan"), float, None),
        ("x", Any, "x"),
        (None, int | None, None),
        (1, bool | int, 1),
        (True, int | bool, True),
        ("a", Literal["a", "b"], "a"),
        ([1, 2], tuple[int, int], (1, 2)),
        ([1, 2, 3], tuple[int, ...], (1, 2, 3)),
        ((1, 2), list[float], [1, 2]),
        (["x", "y"], list[str], ["x", "y"]),
        (np.array([[0, 1], [1, 2]]), Sequence[tuple[int, int]], [(0, 1), (1, 2)]),
        ({"a": [1]}, dict[str, list[int]], {"a": [1]}),
        ({"a": 1}, Inner, Inner(1)),
        ([1, ["x"]], Inner, Inner(1, ("x",))),
        (("x", 1), Hashable, ("x", 1)),
        (0, Count, 0),
    ],
)
def test_what_fits_is_kept_or_turned_into_what_was_declared(value, declared, expected):
    found = as_annotated(value, declared, "here")
    assert expected is None or (found == expected and type(found) is type(expected))


@pytest.mark.parametrize(
    ("value", "declared", "message"),
    [
        (0.5, int, r"^here: expected int, found float 0\.5$"),
        (2, bool, "expected bool, found int 2"),
        (10**400, int, "expected int, found int$"),
        (10**400, float, "expected float, found int$"),
        (float("nan"), int, "expected int, found float nan"),
        (None, float, "expected float, found NoneType None"),
        ("3", float | None, "expected float, found str '3'"),
        ([], int | str, r"expected int or str, found list \[\]"),
        ("c", Literal["a", "b"], "expected 'a' or 'b', found str 'c'"),
        ([], Literal["a", "b"], "expected 'a' or 'b', found list"),
        ("xy", list[str], "expected list"),
        (["x", 1], list[str], r"^here\[1\]: expected str, found int 1$"),
        ([1], tuple[int, int], r"expected 2 items, found list \[1\]"),
        ({"a": ["x"]}, dict[str, list[int]], r"^here\['a'\]\[0\]: expected int"),
        ([], dict[str, int], "expected a dict"),
        ([1], Hashable, "expected Hashable"),
        (-1, Count, "expected a number >= 0, found int -1"),
        ([1.0], Floats, "expected an array of float64, found list"),
        (np.arange(3), Floats, "expected an array of float64, found an array of int64"),
        (np.arange(3), Inner | None, "expected Inner, found an array"),
        (np.eye(2), Labels, "expected labels"),
        (np.array([1, 1]), Labels, "expected different labels"),
        (OBJECTS_IN_A_ROW, Labels, "expected different labels"),
        (OBJECTS, Names, "expected names"),
        (np.arange(2), Names, "expected names"),
    ],
)
def test_what_does_not_fit_is_named(value, declared, message):
    with pytest.raises(ValueError, match=message):
        as_annotated(value, declared, "here")


def test_records():
    mask = np.zeros(2, dtype=bool)
    outer = from_values(Outer, {"inner": {"a": 1}, "mask": mask, "unheard of": 3}, "file")
    assert outer.inner == Inner(1) and outer.mask is mask
    with pytest.raises(ValueError, match=r"^file\.inner\.a: expected int, found str 'x'$"):
        from_values(Outer, {"inner": Inner("x"), "mask": None}, "file")
    with pytest.raises(ValueError, match=r"^file: found no mask$"):
        from_values(Outer, {"inner": {"a": 1}}, "file")
    with pytest.raises(ValueError, match=r"^file\.inner: found no a, b$"):
        from_values(Outer, {"inner": {}, "mask": None}, "file")


def test_sparse_matrices():
    matrix = sp.csr_matrix([[0.0, 1.0], [2.0, 0.0]])
    parts = sparse_blocks(matrix)
    assert (as_sparse(*parts) != matrix).nnz == 0
    values, columns, starts, _ = parts
    with pytest.raises(ValueError, match="columns"):
        as_sparse(values, columns + 7, starts, (2, 2))
