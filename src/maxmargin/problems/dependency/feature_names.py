"""Arc features in words: what was hashed, in the order in which `arc_features` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .features import (
    ALONE_HEAD,
    ALONE_MODIFIER,
    BETWEEN_HEAD,
    BETWEEN_MODIFIER,
    BETWEEN_VALUE,
    LABEL_ALONE_HEAD,
    LABEL_ALONE_MODIFIER,
    LABEL_PAIR_HEAD,
    LABEL_PAIR_MODIFIER,
    PAIR_HEAD,
    PAIR_MODIFIER,
    PREFIX,
    ArcKeys,
    ArcTemplates,
    columns_of,
    field_and_shift,
)

__all__ = ["arc_feature_names"]

ROOT, OUTSIDE = "(root)", "(outside)"
DISTANCES = ("", "1", "2", "3", "4", "5", "6-10", "> 10")  # of the buckets


def arc_feature_names(
    templates: ArcTemplates,
    sentence: Sequence[Sequence[str]],
    arcs: ArcKeys,
    head: int,
    modifier: int,
    label: str | None = None,
) -> list[str]:
    """Names of the features of an arc of a single sentence, whose nodes are counted from the root.

    Without a label those of labels are left out.
    """
    return list(_names(templates, sentence, arcs, head, modifier, label))


def _names(
    templates: ArcTemplates,
    sentence: Sequence[Sequence[str]],
    arcs: ArcKeys,
    head: int,
    modifier: int,
    label: str | None,
) -> Iterator[str]:
    """See `arc_feature_names`."""
    groups = columns_of(templates, labeled=label is not None)

    def sides(pair: tuple[int, int], one_head: int, one_modifier: int) -> Iterator[str]:
        for (_, a), (_, b) in zip(groups[pair[0]], groups[pair[1]], strict=True):
            yield f"{_side(sentence, a, head)} <- {_side(sentence, b, modifier)}"
        yield from (f"head {_side(sentence, a, head)}" for _, a in groups[one_head])
        yield from (f"word {_side(sentence, b, modifier)}" for _, b in groups[one_modifier])

    way = "head before" if head < modifier else "head behind"
    distance = f"distance {DISTANCES[int(arcs.buckets[abs(head - modifier)])]}"
    for name in sides((PAIR_HEAD, PAIR_MODIFIER), ALONE_HEAD, ALONE_MODIFIER):
        yield f"{name}, {way}"
        yield f"{name}, {way}, {distance}"
    if label is not None:
        for name in sides(
            (LABEL_PAIR_HEAD, LABEL_PAIR_MODIFIER), LABEL_ALONE_HEAD, LABEL_ALONE_MODIFIER
        ):
            yield f"{label}: {name}, {way}"
    low, high = min(head, modifier), max(head, modifier)
    between = zip(
        groups[BETWEEN_HEAD], groups[BETWEEN_MODIFIER], groups[BETWEEN_VALUE], strict=True
    )
    for t, ((_, a), (_, b), (_, value)) in enumerate(between):
        ends = f"{_side(sentence, a, head)} <- {_side(sentence, b, modifier)}, {way}"
        for node in range(low + 1, high):
            if arcs.same[node, t, 0] <= low:  # what comes twice counts once
                yield f"{ends}, {_side(sentence, value, node)} between"


def _side(sentence: Sequence[Sequence[str]], side: str, node: int) -> str:
    """The fields of a template's side at a node."""
    return " ".join(f"{part}={_value(sentence, part, node)}" for part in side.split())


def _value(sentence: Sequence[Sequence[str]], part: str, node: int) -> str:
    """One field; what `TokenFields` hashes."""
    name, shift = field_and_shift(part)
    place = node + shift
    if not 0 <= place <= len(sentence):
        return OUTSIDE
    if place == 0:
        return ROOT
    token = sentence[place - 1]
    if name in ("word", "prefix"):
        word = token[0].lower()
        return word[:PREFIX] if name == "prefix" else word
    return token[1] if name == "tag" else token[-1]
