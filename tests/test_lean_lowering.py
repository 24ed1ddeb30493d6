"""Numba's lowering as kernels use it: what it makes of variables, items and arguments."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.types.functions import BaseFunction

from maxmargin.jit.decorator import kernel

pytestmark = pytest.mark.nojit


class Arrays(NamedTuple):
    table: np.ndarray
    numbers: np.ndarray
    scale: float
    is_signed: bool


@kernel
def _items(arrays, small, unsigned, out):
    """Signed, unsigned and short indices, from the front and from behind, of one and two axes."""
    table, numbers = arrays.table, arrays.numbers
    out[0] = numbers[-1] + numbers[small[0]] + numbers[small[1]]
    out[1] = table[-1, small[1]] + table[small[0], unsigned[0]] + table[np.int8(-2), -1]
    out[-1] = numbers[unsigned[0]] + table[unsigned[0], small[0]]
    table[small[0], -2] = 7
    table[-1, unsigned[0]] = True
    numbers[np.uint8(0)] = 2.9
    return table[1].sum() + numbers[1:].sum()


@kernel(inline=True)
def _scaled(arrays, k):
    """One of several arguments in one piece, a truth value among them."""
    first = arrays.numbers[k]
    if arrays.is_signed:
        first = -first
    return first * arrays.scale, k + 1


@kernel
def _row(arrays, k):
    return arrays.table[k], arrays


@kernel
def _loops(arrays, n):
    """Variables with one assignment in a branch or a loop, and with several."""
    total, k, last = 0.0, 0, -1.0
    for step in range(n):
        if step % 2:
            twice = 2 * step
            value, k = _scaled(arrays, k % 3)
            total += value * twice
        elif step > 4:
            row, same = _row(arrays, step % 2)
            total += row[step % 3] + same.numbers[0]
            last = total
        while k > 2:
            k -= 2
    return total, k, last


def _arrays(is_signed=True):
    return Arrays(np.arange(6.0).reshape(2, 3), np.arange(1, 4), 0.5, is_signed)


def test_items_are_those_of_numpy():
    small, unsigned = np.array([0, -1], np.int8), np.array([1], np.uint16)
    found, expected = _arrays(), _arrays()
    out = np.zeros((2, 5))
    result = _items(found, small, unsigned, out[0])
    plain = getattr(_items, "py_func", _items)
    assert plain(expected, small, unsigned, out[1]) == result
    assert out[0].any() and (out[0] == out[1]).all()
    assert (found.table == expected.table).all() and (found.numbers == expected.numbers).all()


@pytest.mark.parametrize("is_signed", [True, False])
def test_loops_and_calls_do_what_python_does(is_signed):
    arrays = _arrays(is_signed)
    for n in (0, 1, 5, 12):
        assert _loops(arrays, n) == getattr(_loops, "py_func", _loops)(arrays, n)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_arrays_outlive_the_kernels_that_return_them():
    arrays = _arrays()
    for _ in range(50):
        row, same = _row(arrays, 1)
        assert row.base is not None and same.table.tolist() == arrays.table.tolist()
        del row, same
    assert _row(arrays, 1)[0].tolist() == [3.0, 4.0, 5.0]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_numba_is_left_as_it_was():
    finds = BaseFunction.get_call_type
    kernel(lambda x: x + 1)(1)
    with pytest.raises(numba.TypingError):
        kernel(lambda x: x + "no number")(1)
    assert BaseFunction.get_call_type is finds
    assert finds.__module__.startswith("numba.")
