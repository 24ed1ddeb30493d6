"""What differs between two labellings of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..problems.chain.layout import ChainLayout
from ..types import Floats, Ints32
from .explanation import Evidence, Names, input_evidence

__all__ = ["SequenceFeatures", "chain_evidence"]

Labels = tuple[int, ...]  # of a token and those before it
MOST_LABELS = 4  # that a weight is for


class SequenceFeatures(NamedTuple):
    """Features of the tokens of one sequence, and of its transitions if these have any."""

    tokens: Any
    names: Names
    pairs: Any = None
    pair_names: Names | None = None


def chain_evidence(
    layout: ChainLayout,
    w: Floats,
    inputs: SequenceFeatures,
    classes: Sequence[Any],
    chosen: Ints32,
    rival: Ints32,
) -> list[Evidence]:
    """What differs between two labellings of a sequence, whose tokens are rows of a matrix."""
    weights = _Weights(layout, w)
    start, stop = layout.boundaries(w)
    found, last = [], len(chosen) - 1
    differ = np.flatnonzero(chosen != rival)
    # A label has weights together with those before it.
    for t in sorted({t for d in differ.tolist() for t in range(d, min(d + MOST_LABELS, last + 1))}):
        first = max(0, t + 1 - MOST_LABELS)
        a, b = (tuple(y[first : t + 1].tolist()) for y in (chosen, rival))
        if a[-2:] != b[-2:]:
            of_token = weights.token(a) - weights.token(b)
            if a[-1] != b[-1] or of_token.any():
                found += input_evidence(inputs.tokens[[t]], t, of_token, inputs.names)
        of_pair = weights.pair(a) - weights.pair(b)
        if of_pair.any() and inputs.pair_names is not None:
            here = input_evidence(inputs.pairs[[t]], t, of_pair, inputs.pair_names)
            found += [one._replace(name=f"{one.name} on the transition") for one in here]
        for n in range(2, len(a) + 1):
            weight = weights.transition(a[-n:]) - weights.transition(b[-n:])
            if a[-n:] != b[-n:] and (n == 2 or weight):
                name, other = (" -> ".join(str(classes[k]) for k in own[-n:]) for own in (a, b))
                found.append(Evidence(f"{name}, not {other}", t, 1.0, weight))
        for at, ends, name in ((0, start, "first"), (last, stop, "last")):
            if layout.boundary and t == at and a[-1] != b[-1]:
                label = f"{name} label {classes[a[-1]]}, not {classes[b[-1]]}"
                found.append(Evidence(label, t, 1.0, float(ends[a[-1]] - ends[b[-1]])))
    return found


class _Weights:
    """Weights of what a token, its label and the labels before it add to the score."""

    def __init__(self, layout: ChainLayout, w: Floats) -> None:
        self.emissions, self.transitions = layout.emissions(w), layout.transitions(w)
        self.longer, self.eta = layout.longer_transitions(w), layout.eta
        self.number = {tuple(p): k for k, p in enumerate(layout.tuples.pairs.tolist())}
        self.of_pairs, self.pair_features = layout.pair_emissions(w), layout.pair_features(w)

    def token(self, labels: Labels) -> Floats:
        """Of the features of a token."""
        own, pair = self.emissions[:, labels[-1]], self.number.get(labels[-2:], -1)
        return own if pair < 0 or not self.of_pairs.shape[1] else own + self.of_pairs[:, pair]

    def pair(self, labels: Labels) -> Floats:
        """Of its transition features."""
        pair = self.number.get(labels[-2:], -1)
        column = self.pair_features[:, pair] if pair >= 0 else np.zeros(len(self.pair_features))
        return self.eta * column

    def transition(self, labels: Labels) -> float:
        """Of labels that follow each other."""
        if len(labels) == 2:
            return self.eta * float(self.transitions[labels])
        return self.eta * self.longer.get(labels, 0.0)
