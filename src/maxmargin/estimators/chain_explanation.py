"""What differs between two labellings of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..problems.chain.layout import ChainLayout
from ..types import Floats, Ints32
from .explanation import Evidence, Names, input_evidence

__all__ = ["chain_evidence"]


def chain_evidence(
    layout: ChainLayout,
    w: Floats,
    tokens: Any,
    names: Names,
    classes: Sequence[Any],
    chosen: Ints32,
    rival: Ints32,
) -> list[Evidence]:
    """What differs between two labellings of a sequence, whose tokens are rows of a matrix."""
    emissions, transitions = layout.emissions(w), layout.transitions(w)
    start, stop = layout.boundaries(w)
    found, last = [], len(chosen) - 1
    for t, (a, b) in enumerate(zip(chosen.tolist(), rival.tolist(), strict=True)):
        if a != b:
            found += input_evidence(tokens[[t]], t, emissions[:, a] - emissions[:, b], names)
        if t > 0:
            before = int(chosen[t - 1]), int(rival[t - 1])
            if (before[0], a) != (before[1], b):
                name = " -> ".join(str(classes[k]) for k in (before[0], a))
                other = " -> ".join(str(classes[k]) for k in (before[1], b))
                weight = transitions[before[0], a] - transitions[before[1], b]
                found.append(Evidence(f"{name}, not {other}", t, 1.0, float(weight)))
        for at, weights, name in ((0, start, "first"), (last, stop, "last")):
            if layout.boundary and t == at and a != b:
                label = f"{name} label {classes[a]}, not {classes[b]}"
                found.append(Evidence(label, t, 1.0, float(weights[a] - weights[b])))
    return found
