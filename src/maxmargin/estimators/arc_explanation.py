"""What differs between two dependency trees of a sentence: features of arcs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..problems.dependency.feature_names import arc_feature_names
from ..problems.dependency.features import ArcKeys, ArcTemplates
from ..problems.dependency.kernels import most_arc_features
from ..problems.dependency.scores import arc_features
from ..types import Floats
from .explanation import Evidence, Part, differing_parts

__all__ = ["Sentence", "arc_evidence"]


class Sentence(NamedTuple):
    """A sentence as users have it and as kernels do, and what makes its arcs' features."""

    tokens: Sequence[Sequence[str]]
    keys: ArcKeys
    templates: ArcTemplates
    labels: list[Any]  # empty where arcs have none


def arc_evidence(
    sentence: Sentence, chosen: Sequence[Any], rival: Sequence[Any], w: Floats
) -> list[Evidence]:
    """Features of arcs that one of the trees has and the other one has not, word by word."""
    return differing_parts(
        *(
            [part for t, arc in _differing(one, other) for part in _parts(sentence, t, arc, w)]
            for one, other in ((chosen, rival), (rival, chosen))
        )
    )


def _differing(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, Any]]:
    """Arcs of one tree that the other one has not, by their words."""
    pairs = enumerate(zip(one, other, strict=True))
    return [(t, a) for t, (a, b) in pairs if a != b]


def _parts(sentence: Sentence, t: int, arc: Any, w: Floats) -> Iterator[Part]:
    """Features of the arc into word t."""
    head, label = arc if sentence.labels else (arc, None)
    code = sentence.labels.index(label) if sentence.labels else -1
    keys = sentence.keys
    features = np.empty(most_arc_features(keys, len(sentence.tokens) + 1), np.int32)
    count = arc_features(keys, 0, head, t + 1, code, features)
    shown = None if label is None else str(label)
    names = arc_feature_names(sentence.templates, sentence.tokens, keys, head, t + 1, shown)
    for name, feature in zip(names, features[:count].tolist(), strict=True):
        yield name, t, float(w[feature])
