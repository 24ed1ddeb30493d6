"""What is known of arcs: of a word nothing (None), its head, its label, both, or a set of such."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from .._warn import warn_user
from ..problems.dependency.partial import ANY, ArcChoices
from ..problems.dependency.problem import check_trees
from ..problems.dependency.trees import crossing_trees, projectivised
from ..types import Bools, Ints, Ints32
from ..validation import is_one_of
from .known_labels import choice_of
from .labels import FlatLabels, is_hashable

__all__ = [
    "allowed_arcs",
    "arc_choices",
    "check_on_crossing",
    "labels_of_arcs",
    "projective_heads",
    "some_trees",
]

ON_CROSSING = ("keep", "raise", "drop", "repair")


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
            for arc in choice_of(known, t):
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


def labels_of_arcs(known: FlatLabels) -> FlatLabels:
    """All labels of arcs that are known to be possible; errors name the word."""
    found: dict[Any, None] = {}
    for t in range(len(known.values)):
        for arc in choice_of(known, t):
            label = arc[1] if isinstance(arc, (tuple, list)) and len(arc) == 2 else None
            if label is not None and (not is_hashable(label) or label != label):
                raise ValueError(f"{known.place(t)}: {label!r:.40} is not a label")
            if label is not None:
                found[label] = None
    if not found:
        raise ValueError("y has no label of an arc: every one is None")
    return known._replace(values=list(found))


def arc_choices(known: FlatLabels, numbers: Mapping[Any, int] | None) -> list[ArcChoices]:
    """Right heads and labels of the words of which something is known, by sentence."""
    choices: list[ArcChoices] = []
    for first, end in pairwise(known.offsets.tolist()):
        own: dict[int, list[tuple[int, int]]] = {}
        for m in range(1, end - first + 1):
            for arc in choice_of(known, first + m - 1):
                heads, label = _arc(known, first + m - 1, arc, end - first + 1, m, numbers)
                head = ANY if isinstance(heads, slice) else heads
                number = ANY if isinstance(label, slice) else label
                own.setdefault(m, []).append((head, 0 if numbers is None else number))
        choices.append(own)
    return choices


def some_trees(offsets: Ints, choices: list[ArcChoices]) -> tuple[Ints32, Ints32, Bools]:
    """Heads and labels of all words: the trees that are known, and any where they are not.

    The last array tells which sentences have a known tree.
    """
    heads, labels = np.zeros(int(offsets[-1]), np.int32), np.zeros(int(offsets[-1]), np.int32)
    is_known = np.zeros(len(choices), dtype=bool)
    for i, (own, (first, end)) in enumerate(zip(choices, pairwise(offsets.tolist()), strict=True)):
        single = [own.get(m, ()) for m in range(1, end - first + 1)]
        is_known[i] = all(len(arcs) == 1 and ANY not in arcs[0] for arcs in single)
        heads[first:end] = np.arange(end - first)  # every word hangs on the one before
        if is_known[i]:
            heads[first:end], labels[first:end] = zip(*(arcs[0] for arcs in single), strict=True)
    return heads, labels, is_known


# ----- training trees with crossing arcs ------------------------------------------------------


def check_on_crossing(on_violation: Any) -> None:
    """Raise ValueError unless this can be done with trees that have crossing arcs."""
    if not is_one_of(on_violation, ON_CROSSING):
        listed = ", ".join(map(repr, ON_CROSSING))
        raise ValueError(f"on_violation must be one of {listed}, got {on_violation!r:.40}")


def projective_heads(heads: Ints32, bounds: Ints, on_violation: str) -> tuple[Ints32, Bools]:
    """The heads, repaired if that is wanted, and which trees to train on; raises, or warns."""
    crosses = crossing_trees(heads, bounds)
    if not crosses.any():
        return heads, ~crosses
    check_trees(heads, bounds, single_root=False)
    first = f"the first is sentence {int(np.argmax(crosses))}"
    count = f"{np.count_nonzero(crosses)} of {len(crosses)} training trees have crossing arcs"
    if on_violation == "drop" and not crosses.all():
        warn_user(f"{count} and are left out; {first}")
        return heads, ~crosses
    if on_violation == "repair":
        heads, starts = heads.copy(), bounds - np.arange(len(bounds))
        for i in np.flatnonzero(crosses):
            own = slice(starts[i], starts[i + 1])
            heads[own] = projectivised(heads[own].tolist())
        warn_user(f"{count} and were made projective; {first}")
        return heads, np.ones(len(crosses), np.bool_)
    message = f"{count}, which projective=True never predicts; {first}"
    if on_violation == "keep":
        warn_user(
            f"{message}. projective=False predicts them; on_violation='repair' trains on the "
            "nearest projective trees, on_violation='drop' leaves them out"
        )
        return heads, np.ones(len(crosses), np.bool_)
    raise ValueError(f"{message}. Set projective=False, or on_violation='repair' or 'keep'")
