"""Label sequences of any type to numbers and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FlatLabels", "LabelEncoder", "Wording", "flatten_labels"]


class Wording(NamedTuple):
    """What errors call an example, its parts, and what is given for each part."""

    example: str = "sequence"
    part: str = "token"
    label: str = "label"


class FlatLabels(NamedTuple):
    """Labels of all sequences in one list, with the offsets of the sequences."""

    values: list[Any]
    offsets: NDArray[np.int64]
    wording: Wording = Wording()

    def place(self, token: int) -> str:
        """Sequence and token of a position in the list."""
        sequence = int(np.searchsorted(self.offsets, token, side="right")) - 1
        example, part, _ = self.wording
        return f"{example} {sequence}, {part} {token - int(self.offsets[sequence])}"


def flatten_labels(
    Y: Any, offsets: NDArray[np.int64] | None = None, wording: Wording | None = None
) -> FlatLabels:
    """Check label sequences, against the lengths of the inputs if their offsets are given.

    Raises ValueError that names the first sequence that is wrong.
    """
    wording = wording or Wording()
    example, part, label = wording
    if isinstance(Y, (str, bytes)) or not hasattr(Y, "__len__"):
        raise ValueError(
            f"Y must be a list of {label}s for each {example}, got {type(Y).__name__} {Y!r:.40}"
        )
    if offsets is not None and len(Y) != len(offsets) - 1:
        n = len(offsets) - 1
        raise ValueError(
            f"X has {n} {example}s but Y has {len(Y)}; first without a partner: {min(n, len(Y))}"
        )
    for i, labels in enumerate(Y):
        if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
            raise ValueError(
                f"Y[{i}] is {labels!r:.40}, expected a sequence of {label}s, one for each {part}"
            )
    lengths = np.fromiter(map(len, Y), np.int64, len(Y))
    if offsets is not None:
        wrong = np.flatnonzero(lengths != np.diff(offsets))
        if len(wrong):
            i = int(wrong[0])
            raise ValueError(
                f"{example} {i} has {offsets[i + 1] - offsets[i]} {part}s but {lengths[i]} {label}s"
            )
    plain = (labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in Y)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return FlatLabels(list(chain.from_iterable(plain)), bounds, wording)


class LabelEncoder:
    """Numbers for labels: of any hashable type, mixed types included.

    Parameters
    ----------
    classes : ndarray
        The labels in the order of their numbers.
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        self._numbers = {label: k for k, label in enumerate(classes.tolist())}

    @classmethod
    def of(cls, labels: FlatLabels) -> LabelEncoder:
        """An encoder for the labels found, sorted."""
        try:
            distinct = list(dict.fromkeys(labels.values))
        except TypeError:
            token = next(t for t, v in enumerate(labels.values) if not _is_hashable(v))
            raise ValueError(
                f"{labels.place(token)}: label {labels.values[token]!r:.40} is not hashable"
            ) from None
        for label in distinct:
            if label is None or label != label:
                token = next(t for t, v in enumerate(labels.values) if v is label)
                raise ValueError(f"{labels.place(token)}: {label} is not a label")
        return cls(_as_array(_sorted(distinct)))

    def encode(self, labels: FlatLabels) -> NDArray[np.int32]:
        """Numbers of the labels; -1 for labels that are not known."""
        get = self._numbers.get
        return np.fromiter((get(v, -1) for v in labels.values), np.int32, len(labels.values))


def _is_hashable(value: Any) -> bool:
    """Whether a value can be the key of a dict."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _sorted(values: list[Any]) -> list[Any]:
    """Sort values; those of types that cannot be compared by type and then by text."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _as_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array that gives every value back as it was; of objects where the types differ."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = set(map(type, plain))
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        array = np.array(plain)
        if array.dtype != object and array.tolist() == plain:  # not for large ints, "a\0"
            return array
    objects = np.empty(len(plain), dtype=object)
    objects[:] = plain
    return objects
