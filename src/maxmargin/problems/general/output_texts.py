"""Outputs of a user's problem as texts, for checkpoints.

Plain outputs - numbers, texts, arrays, and tuples, lists, sets and dicts of these - are written
out, each with its type. Of any other object a file has only where it is found again: it is the
given output of its example, or one of those that the problem lists. So to read a file runs nothing
that it brings, as unpickling would.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel_points import output_key

__all__ = ["OutputTexts"]

#: Types that JSON has itself; not their subclasses, which would come back as these.
OWN = (bool, int, float, str, type(None))
SEQUENCES: dict[str, type] = {
    kind.__name__: kind for kind in (tuple, set, frozenset)
}  # lists are JSON's own
#: Kinds of arrays that are no more than their bytes.
KINDS = "biufcmMSU"


class OutputTexts:
    """Outputs of examples as texts, and back.

    Parameters
    ----------
    inputs, truths : sequence
        The examples.
    listing : callable, optional
        Lists all outputs of an input, the same ones in the same order at any time.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        truths: Sequence[Any],
        listing: Callable[[Any], Sequence[Any]] | None,
    ) -> None:
        self._inputs = inputs
        self._truths = truths
        self._listing = listing
        self._last: tuple[int, list[Any], dict[Hashable, int]] | None = None

    def text(self, i: int, y: Any) -> str:
        """The text of an output of an example; ValueError where there is none."""
        try:
            return json.dumps(_form(y))
        except _NotPlain:
            return json.dumps(self._found_again(i, y))

    def outputs(self, examples: Sequence[int], forms: Sequence[Any]) -> list[Any]:
        """The outputs of these examples whose texts, read as JSON, are these."""
        return [self._output(i, form) for i, form in zip(examples, forms, strict=True)]

    def _found_again(self, i: int, y: Any) -> dict[str, Any]:
        """Where an output that is not plain is found."""
        key = output_key(y)
        if key == output_key(self._truths[i]):
            return {"given": i}
        if self._listing is not None:
            listed, places = self._listed(i)
            if key in places:
                return {"listed": [places[key], _content(listed[places[key]])]}
        raise ValueError(
            f"checkpoint: the output {y!r:.60} of example {i}, of type {type(y).__name__}, cannot "
            "be kept in a file. Outputs have to be numbers, texts, arrays, or tuples, lists, sets "
            "and dicts of these, or else among those that outputs(x) lists"
        )

    def _output(self, i: int, form: Any) -> Any:
        """The output of an example that a text stands for."""
        if isinstance(form, dict) and "given" in form:
            return self._truths[i]
        if not (isinstance(form, dict) and "listed" in form):
            return _value(form)
        place, content = form["listed"]
        listed = [] if self._listing is None else self._listed(i)[0]
        if place >= len(listed) or _content(listed[place]) != content:
            raise ValueError(
                f"outputs(x) lists other outputs for example {i} than when the checkpoint was "
                "written, or in another order; let it always list the same ones"
            )
        return listed[place]

    def _listed(self, i: int) -> tuple[list[Any], dict[Hashable, int]]:
        """All outputs of an example, and where each is; fresh ones, that nothing has changed."""
        assert self._listing is not None
        if self._last is None or self._last[0] != i:
            listed = list(self._listing(self._inputs[i]))
            places: dict[Hashable, int] = {}
            for place, y in enumerate(listed):
                places.setdefault(output_key(y), place)
            self._last = i, listed, places
        return self._last[1], self._last[2]


def _content(y: Any) -> str | None:
    """Hash of an object; None where that cannot be told."""
    import joblib

    try:
        return str(joblib.hash(y))
    except Exception:  # whatever a user's objects raise when they are pickled
        return None


# ----- plain outputs ------------------------------------------------------------------------------


class _NotPlain(Exception):
    """An output has something in it that is no plain value."""


def _form(y: Any) -> Any:
    """A plain value as JSON."""
    kind = type(y)
    if kind in OWN:
        return y
    if kind is list:
        return [_form(item) for item in y]
    if SEQUENCES.get(kind.__name__) is kind:
        return {kind.__name__: [_form(item) for item in y]}
    if kind is dict:
        return {"dict": [[_form(key), _form(item)] for key, item in y.items()]}
    if kind is bytes:
        return {"bytes": b64encode(y).decode()}
    if isinstance(y, np.generic) and y.dtype.kind in KINDS:
        return {"number": [y.dtype.str, b64encode(y.tobytes()).decode()]}
    if kind is np.ndarray:
        return _array_form(y)
    raise _NotPlain


def _array_form(y: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON; products of matrices may be rounded by the order of their entries."""
    if y.dtype == object:
        return {"objects": [y.shape, [_form(item) for item in y.ravel().tolist()]]}
    if y.dtype.kind not in KINDS:
        raise _NotPlain
    order = "F" if y.flags.f_contiguous and not y.flags.c_contiguous else "C"
    content = b64encode(y.tobytes(order)).decode()  # type: ignore[arg-type]
    return {"array": [y.dtype.str, y.shape, order, content]}


def _value(form: Any) -> Any:
    """The inverse of `_form`."""
    if isinstance(form, list):
        return [_value(item) for item in form]
    if not isinstance(form, dict):
        return form
    ((name, content),) = form.items()
    if name in SEQUENCES:
        return SEQUENCES[name](_value(item) for item in content)
    match name:
        case "dict":
            return {_value(key): _value(item) for key, item in content}
        case "bytes":
            return b64decode(content)
        case "number":
            return np.frombuffer(b64decode(content[1]), np.dtype(content[0]))[0]
        case "objects":
            shape, items = content
            array = np.empty(len(items), object)
            array[:] = [_value(item) for item in items]
            return array.reshape(shape)
        case "array":
            dtype, shape, order, data = content
            flat = np.frombuffer(b64decode(data), np.dtype(dtype))
            return flat.reshape(shape, order=order).copy(order)
    raise ValueError(f"{name!r:.40} is not a kind of output")
