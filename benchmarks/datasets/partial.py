"""Labels known in part: Spanish entities with half to nine tenths of the tags hidden.

Tags of single tokens are hidden at random. The tagger trains on what is left in several ways, and
for comparison on whole sentences, as many as have as many tags. F1 is that of the test part, with
the same C for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin as mm
from maxmargin.features import PackedSequences, WindowFeatures, ner_templates
from maxmargin.formats import TokenColumns

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target

HIDDEN = (0.5, 0.8, 0.9)
C = 0.1
ALL, CCCP = "all tags", "cccp"
#: What is taken for the right tags, and how F1 compares with that of alternation.
WAYS = {
    CCCP: "rounds of completing and training (the default)",
    "convex": "one round",
    "known tokens": "sentences cut at hidden tags",
    "whole sentences": "as many tags, of whole sentences",
    "sentences left": "sentences without hidden tags",
    "hidden as O": "hidden tags are taken for O",
}
Bools = NDArray[np.bool_]
Tags = list[list[Any]]


class Hidden:
    """Training data with tags hidden, and the test part."""

    def __init__(self, train: TokenColumns, test: TokenColumns, share: float, seed: int) -> None:
        features = WindowFeatures(list(ner_templates()))
        self.packed: PackedSequences = features.fit_transform(train.select([0, 1]))
        self.packed_test: PackedSequences = features.transform(test.select([0, 1]))
        self.tags: Tags = [list(tags) for tags in train.split(2)]
        rng = np.random.default_rng(seed)
        self.hidden: Bools = rng.random(len(train.columns[2])) < share
        self.order = rng.permutation(len(self.tags))

    def rows(self, chosen: Bools, opens: Bools | None = None) -> PackedSequences:
        """The chosen tokens, in sequences that begin where ``opens`` says, or where they did."""
        if opens is None:
            opens = np.zeros(len(chosen), bool)
            opens[self.packed.offsets[:-1]] = True
        offsets = np.append(np.flatnonzero(opens[chosen]), chosen.sum())
        return PackedSequences(self.packed.tokens[chosen], offsets)

    def examples(self, way: str) -> tuple[PackedSequences, Tags]:
        """Inputs and tags for training."""
        if way == ALL:
            return self.packed, self.tags
        hidden = np.split(self.hidden, self.packed.offsets[1:-1])
        if way in ("sentences left", "whole sentences"):
            kept = np.array([not own.any() for own in hidden])
            if way == "whole sentences":
                lengths = np.diff(self.packed.offsets)[self.order]
                kept[self.order] = np.cumsum(lengths) <= int((~self.hidden).sum())
            tags = [own for own, keep in zip(self.tags, kept, strict=True) if keep]
            return self.rows(np.repeat(kept, np.diff(self.packed.offsets))), tags
        if way == "known tokens":
            known = ~self.hidden
            opens = np.append(True, self.hidden[:-1])
            opens[self.packed.offsets[:-1]] = True
            inputs = self.rows(known, opens)
            flat = np.array([tag for own in self.tags for tag in own], object)[known]
            return inputs, [own.tolist() for own in np.split(flat, inputs.offsets[1:-1])]
        in_its_place = "O" if way == "hidden as O" else None
        return self.packed, [
            [in_its_place if hide else tag for tag, hide in zip(tags, own, strict=True)]
            for tags, own in zip(self.tags, hidden, strict=True)
        ]


def cases(options: Options) -> Iterator[Case]:
    """One table for each share of hidden tags."""
    train, test = (
        tagging.read(f"conll2002/esp.{part}.xz", options.size(100)) for part in ("train", "testb")
    )
    for share in HIDDEN:
        data = Hidden(train, test, share, seed=0)
        ways = [way for way in (ALL, *WAYS) if _has_entities(data.examples(way)[1])]
        yield Case(
            f"Spanish entities, {share:.0%} of the tags hidden",
            [Contestant(way, _training(data, way), once=True) for way in ways],
            list(_targets(ways)),
            truth=test.split(2),
        )


def _has_entities(tags: Tags) -> bool:
    """Whether there is something to learn: the few sentences left may have none."""
    return len({tag for own in tags for tag in own if tag is not None}) > 1


def _targets(ways: Sequence[str]) -> Iterator[Target]:
    """F1 and time of each; alternation must beat what ignores or misreads hidden tags."""
    for way in ways:
        yield Target(f"{way}: F1", way, "f1", WAYS.get(way, ""), "%")
        yield Target(f"{way}: time", way, "cpu", unit="s")
    for way in (way for way in ("sentences left", "hidden as O") if way in ways):
        yield Target(
            f"F1 of alternation / {way}",
            CCCP,
            "f1",
            "same run",
            at_least=1.0,
            relative_to=(way, "f1"),
        )
    yield Target("cccp: rounds", CCCP, "rounds")


def _training(data: Hidden, way: str) -> Callable[[], Outcome]:
    """Train one way."""

    def run() -> Outcome:
        X, y = data.examples(way)
        model = mm.SequenceTagger(
            C,
            # Pieces may begin inside of an entity.
            constraints=None if way == "known tokens" else "bio",
            on_violation="repair",
            partial_labels="convex" if way == "convex" else "cccp",
            random_state=0,
        ).fit(X, y)
        measures = {"rounds": float(len(getattr(model, "rounds_", [])))}
        return Outcome(measures, tag=lambda: model.predict(data.packed_test))

    return run
