"""Segments: Spanish entities and CoNLL-2000 chunks, the segmenter beside the tagger.

Both train on the same features of tokens, to the same precision and with the same C, but for
1 - F1: its losses are at most 1, and need a larger one. F1 is that of the test part, as conlleval
counts. For 1 - F1 one Spanish sequence of 1,238 tokens is left out of training: tables of its
levels would take tens of gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.engine.packed_problem import chunks_of
from maxmargin.features import WindowFeatures, chunking_templates, ner_templates
from maxmargin.formats import TokenColumns
from maxmargin.metrics import segments_to_tags, tags_to_segments
from maxmargin.problems.segments.problem import SegmentLoss

from .. import tagging
from ..case import Case, Contestant, Options, Outcome, Target

TAGGER = "tagger"
MOST_SECONDS: dict[SegmentLoss, int | None] = {"segments": 60, "hamming": 60, "f1": None}
DEFAULT: SegmentLoss = "segments"  # whose F1 must be no worse than the tagger's
LONGEST = 1000
C = {"f1": 1.0}  # of all others 0.1
TOLERANCE = 0.02


class Corpus(NamedTuple):
    """A training part and a test part: words, parts of speech, tags."""

    name: str
    train: TokenColumns
    test: TokenColumns
    templates: tuple[str, ...]


def corpora(options: Options) -> Iterator[Corpus]:
    """Both data sets."""
    limit = options.size(100)
    for name, folder, train, test, templates in (
        ("Spanish entities", "conll2002", "esp.train", "esp.testb", ner_templates()),
        ("CoNLL-2000 chunks", "conll2000", "train.txt", "test.txt", chunking_templates()),
    ):
        first, second = (tagging.read(f"{folder}/{part}.xz", limit) for part in (train, test))
        yield Corpus(name, first, second, tuple(templates))


def cases(options: Options) -> Iterator[Case]:
    """One table for each data set."""
    for corpus in corpora(options):
        yield Case(
            f"{corpus.name}, relative gap {TOLERANCE:g}",
            [_tagger(corpus), *(_segmenter(corpus, loss) for loss in MOST_SECONDS)],
            list(_targets()),
            truth=corpus.test.split(2),
        )


def _targets() -> Iterator[Target]:
    """F1 no worse than the tagger's, in minutes."""
    yield Target("tagger: F1", TAGGER, "f1", unit="%")
    yield Target("tagger: time", TAGGER, "cpu", unit="s")
    for loss, seconds in MOST_SECONDS.items():
        yield Target(f"{loss}: F1", loss, "f1", unit="%")
        yield Target(
            f"{loss}: F1 / the tagger's",
            loss,
            "f1",
            "tagger, same run",
            at_least=1.0 if loss == DEFAULT else None,
            relative_to=(TAGGER, "f1"),
        )
        yield Target(f"{loss}: time", loss, "cpu", unit="s", at_most=seconds)
        yield Target(f"{loss}: passes", loss, "passes")


def _parameters(corpus: Corpus, loss: str = "") -> dict[str, Any]:
    """What both estimators are told."""
    features = WindowFeatures(list(corpus.templates))
    return {"C": C.get(loss, 0.1), "tol": TOLERANCE, "features": features, "random_state": 0}


def _tagger(corpus: Corpus) -> Contestant:
    """The tagger of single tokens, with its loss of single tokens."""

    def run() -> Outcome:
        model = mm.SequenceTagger(**_parameters(corpus))
        model.fit(corpus.train.select([0, 1]), corpus.train.split(2))
        measures = {"passes": model.result_.n_passes}
        return Outcome(measures, tag=lambda: model.predict(corpus.test.select([0, 1])))

    return Contestant(TAGGER, run, lambda: _compile(mm.SequenceTagger, False, corpus))


def _segmenter(corpus: Corpus, loss: SegmentLoss) -> Contestant:
    """The segmenter with a loss."""

    def run() -> Outcome:
        model = mm.SequenceSegmenter(loss=loss, **_parameters(corpus, loss))
        train = _shorter(corpus.train, LONGEST) if loss == "f1" else corpus.train
        model.fit(train.select([0, 1]), tags_to_segments(train.split(2)))

        def tag() -> list[list[str]]:
            found = model.predict(corpus.test.select([0, 1]))
            return segments_to_tags(found, [len(tags) for tags in corpus.test.split(2)])

        return Outcome({"passes": model.result_.n_passes}, tag=tag)

    once = loss == "f1"
    return Contestant(loss, run, lambda: _compile(mm.SequenceSegmenter, True, corpus), once)


def _shorter(data: TokenColumns, longest: int) -> TokenColumns:
    """The sequences of at most so many tokens."""
    lengths = np.diff(data.offsets)
    tokens, offsets = chunks_of(data.offsets, np.flatnonzero(lengths <= longest))
    return TokenColumns([[column[t] for t in tokens] for column in data.columns], offsets)


def _compile(estimator: type, as_segments: bool, corpus: Corpus) -> None:
    """Train on a few sentences, so that kernels are compiled."""
    few = tagging.first(corpus.train, 50)
    tags = few.split(2)
    model = estimator(**_parameters(corpus))
    model.fit(few.select([0, 1]), tags_to_segments(tags) if as_segments else tags)
