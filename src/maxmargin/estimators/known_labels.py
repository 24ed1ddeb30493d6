"""What is known of labels: of a token nothing (None), its label, or a set of those it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from ..features.containers import as_list
from ..types import Bools, Ints
from .labels import FlatLabels, Wording, flatten_labels, is_hashable

__all__ = [
    "allowed_labels",
    "allowed_node_labels",
    "allowed_pixels",
    "choice_of",
    "flatten_fixed",
    "is_choice",
]


def is_choice(value: Any) -> bool:
    """Whether a value stands for several labels, of which one is right."""
    return isinstance(value, (set, frozenset))


def flatten_fixed(fixed: Any, offsets: Ints, wording: Wording | None = None) -> FlatLabels:
    """What is known of all tokens; an example of which nothing is known may be None itself."""
    fixed = as_list(fixed, "fixed")
    if hasattr(fixed, "__len__") and not isinstance(fixed, (str, bytes)):
        lengths = np.diff(offsets).tolist()
        fixed = [
            [None] * lengths[i] if known is None and i < len(lengths) else known
            for i, known in enumerate(fixed)
        ]
    return flatten_labels(fixed, offsets, wording, name="fixed")


def allowed_labels(known: FlatLabels, numbers: Mapping[Any, int]) -> Bools:
    """Which labels each token may have, shape (n_tokens, n_labels); errors name the token."""
    allowed = np.zeros((len(known.values), len(numbers)), dtype=bool)
    for t in range(len(allowed)):
        _mark(known, t, numbers, allowed[t])
    return allowed


def allowed_node_labels(known: FlatLabels, numbers: Sequence[Mapping[Any, int]]) -> Bools:
    """The same for nodes with label sets of their own, shape (n_examples, n_nodes, most labels)."""
    V = len(numbers)
    allowed = np.zeros((len(known.offsets) - 1, V, max(map(len, numbers))), dtype=bool)
    for t in range(len(known.values)):
        i, v = divmod(t, V)
        _mark(known, t, numbers[v], allowed[i, v, : len(numbers[v])])
    return allowed


def _mark(known: FlatLabels, t: int, numbers: Mapping[Any, int], allowed: Bools) -> None:
    """Set what token t may have."""
    for label in choice_of(known, t):
        number = numbers.get(label) if is_hashable(label) else None
        if number is None:
            raise ValueError(
                f"{known.place(t)}: label {label!r:.40} is not known to the model; expected one "
                "of its labels, a set of them, or None"
            )
        allowed[number] = True
    if known.values[t] is None:
        allowed[:] = True


def choice_of(known: FlatLabels, t: int) -> Iterable[Any]:
    """What is allowed for token t, none if nothing is known."""
    value = known.values[t]
    if is_choice(value) and not value:
        raise ValueError(f"{known.place(t)}: an empty set leaves no {known.wording.label}")
    return () if value is None else value if is_choice(value) else (value,)


def allowed_pixels(known: FlatLabels, grids: Ints) -> list[list[Ints | None]]:
    """Where each part of each image may be, an array of shape (n, 2), or None for anywhere."""
    pixels: list[Ints | None] = []
    for t, value in enumerate(known.values):
        i = int(np.searchsorted(known.offsets, t, side="right")) - 1
        height, width = grids[i].tolist()
        places = list(choice_of(known, t))
        for place in places:
            whole = isinstance(place, (tuple, list)) and len(place) == 2
            if not (
                whole
                and all(isinstance(x, Integral) for x in place)
                and 0 <= place[0] < height
                and 0 <= place[1] < width
            ):
                raise ValueError(
                    f"{known.place(t)}: {place!r:.40}, expected (row, column) within the image of "
                    f"{height} x {width} pixels, a set of them, or None"
                )
        pixels.append(None if value is None else np.array(sorted(map(tuple, places)), np.int64))
    return [pixels[first:end] for first, end in pairwise(known.offsets.tolist())]
