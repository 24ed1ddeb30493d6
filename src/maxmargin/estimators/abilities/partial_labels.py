"""Labels that are known in part, in training data and of new inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal

import numpy as np

from ...features.containers import as_list
from ...utils.types import Bools, Ints
from ...utils.validation import check_choice
from ..examples import CodedLabels, FlatLabels, Wording, flatten_labels, is_hashable

__all__ = [
    "PartialLabels",
    "allowed_labels",
    "allowed_node_labels",
    "allowed_pixels",
    "check_something_known",
    "choice_of",
    "flatten_fixed",
    "has_unknown",
    "is_choice",
    "listed_labels",
]


@dataclass(kw_only=True, eq=False, repr=False)
class PartialLabels:
    """For estimators that train on labels which are known in part.

    Parameters
    ----------
    partial_labels : {"cccp", "convex"}, default="cccp"
        How to train where ``y`` has None or sets of labels in place of labels: any label that
        agrees with what is known counts as right. The objective is then no longer convex.
        "cccp" completes labels by the model and trains on them in turn, beginning with a
        model of the known labels alone; its objective falls from round to round, to a local
        optimum. "convex" makes one such round: it minimises an upper bound on the objective, the
        one with the first completion. ``result_`` has the certificate of the last training, with
        completions as they were then, and not one of the whole.
    max_rounds : int, default=10
        How often "cccp" trains at most.
    """

    partial_labels: Literal["cccp", "convex"] = "cccp"
    max_rounds: int = 10

    def _check_partial(self) -> None:
        """Raise ValueError for parameters that are none."""
        check_choice(self.partial_labels, ("cccp", "convex"), "partial_labels")
        if not isinstance(self.max_rounds, Integral) or self.max_rounds < 1:
            raise ValueError(f"max_rounds must be a whole number >= 1, got {self.max_rounds!r:.40}")


def check_something_known(says_something: Bools, wording: Wording) -> None:
    """Raise ValueError where every label of every example is as right as any other."""
    if not says_something.any():
        raise ValueError(
            f"y says nothing: any {wording.label} of any {wording.part} of all "
            f"{len(says_something)} {wording.example}s would be right"
        )


def has_unknown(labels: FlatLabels) -> bool:
    """Whether some labels are not known, or known to be one of several."""
    if isinstance(labels.values, CodedLabels):
        return False
    return any(value is None or is_choice(value) for value in labels.values)


def listed_labels(labels: FlatLabels, first: int = 0, step: int = 1) -> FlatLabels:
    """All labels that are known of any token, for a `LabelEncoder`; errors name the token.

    Only every ``step``-th token counts, from the first on: one node of trees, say.
    """
    found: dict[Any, None] = {}
    for t in range(first, len(labels.values), step):
        value = labels.values[t]
        if value is None:
            continue
        if not is_hashable(value) and not is_choice(value):
            raise ValueError(f"{labels.place(t)}: label {value!r:.40} is not hashable")
        for label in value if is_choice(value) else (value,):
            if label is None or label != label:
                raise ValueError(f"{labels.place(t)}: {label} is not a label")
            found[label] = None
    if not found:
        of = "" if step == 1 else f" of {labels.wording.part} {first}"
        raise ValueError(f"y has no label{of}: every one is None or an empty set")
    return labels._replace(values=list(found))


# ----- what is known of labels: nothing (None), the label, or a set of those it may be -----------


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
