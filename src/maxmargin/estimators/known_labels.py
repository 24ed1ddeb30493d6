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
    "allowed_arcs",
    "allowed_labels",
    "allowed_node_labels",
    "allowed_pixels",
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
    for label in _choice(known, t):
        number = numbers.get(label) if is_hashable(label) else None
        if number is None:
            raise ValueError(
                f"{known.place(t)}: label {label!r:.40} is not known to the model; expected one "
                "of its labels, a set of them, or None"
            )
        allowed[number] = True
    if known.values[t] is None:
        allowed[:] = True


def _choice(known: FlatLabels, t: int) -> Iterable[Any]:
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
        places = list(_choice(known, t))
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


def allowed_arcs(
    known: FlatLabels, numbers: Mapping[Any, int] | None
) -> list[tuple[Bools, Bools] | None]:
    """Which arcs, head first, and which labels of these each sentence may have; None for all.

    A token has a head, or where there are labels a pair (head, label) of which either may be None.
    """
    n_labels = 0 if numbers is None else len(numbers)
    masks: list[tuple[Bools, Bools] | None] = []
    for first, end in pairwise(known.offsets.tolist()):
        N = end - first + 1
        if all(value is None for value in known.values[first:end]):
            masks.append(None)
            continue
        arcs, labels = np.ones((N, N), bool), np.ones((N, N, n_labels), bool)
        for m in range(1, N):
            t = first + m - 1
            if known.values[t] is None:
                continue
            arcs[:, m] = labels[:, m] = False
            for arc in _choice(known, t):
                heads, label = _arc(known, t, arc, N, m, numbers)
                arcs[heads, m] = True
                labels[heads, m, label] = True
        masks.append((arcs, labels))
    return masks


def _arc(
    known: FlatLabels, t: int, arc: Any, N: int, m: int, numbers: Mapping[Any, int] | None
) -> tuple[Any, Any]:
    """Heads and labels, as indices, that an arc into node m stands for."""
    head, label = arc, None
    if numbers is not None and isinstance(arc, (tuple, list)) and len(arc) == 2:
        head, label = arc
    anywhere = head is None and numbers is not None
    if not anywhere and not (isinstance(head, Integral) and 0 <= int(head) < N and head != m):
        pairs = ", a pair (head, label), either of which may be None" if numbers else ""
        raise ValueError(
            f"{known.place(t)}: {arc!r:.40}, expected 0 (root) or another word, 1 to {N - 1}"
            f"{pairs}, a set of such, or None"
        )
    heads = slice(None) if anywhere else int(head)
    if label is None:
        return heads, slice(None)
    assert numbers is not None
    if not is_hashable(label) or label not in numbers:
        raise ValueError(f"{known.place(t)}: label {label!r:.40} is not known to the model")
    return heads, numbers[label]
