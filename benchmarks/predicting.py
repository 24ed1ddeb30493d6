"""Tagging with the CoNLL-2000 model: tokens a second, and the size of its file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import maxmargin as mm

from .case import Case, Contestant, Options, Outcome, Target
from .datasets.conll2000 import fit_tagger, limit_of, read

EPSILON = 0.1
ROOM = 0.05  # relative gap of the compacted model; that of the training is 0.048
PASSES = 5  # over the test part in one timed run


def cases(options: Options) -> Iterator[Case]:
    """Features built, columns, words, sentence by sentence; and files."""
    limit = limit_of(options.quick)
    train, test = read("train", limit), read("test", limit)
    tagger = fit_tagger(limit, EPSILON)
    columns, n = test.select([0, 1]), test.n_tokens
    packed = tagger.features_.transform(columns)
    words = [
        list(zip(*(column[a:b] for column in columns.columns), strict=True))
        for a, b in pairwise(test.offsets.tolist())
    ]
    vectors = of_vectors(tagger)
    yield Case(
        "CoNLL-2000 prediction, tokens a second",
        [
            _timed("features built", n, lambda: vectors.predict(packed)),
            _timed("columns", n, lambda: tagger.predict(columns)),
            _timed("words", n, lambda: tagger.predict(words)),
            _timed("one by one", n, lambda: [tagger.predict([s])[0] for s in words], passes=1),
        ],
        [
            Target("features built", "features built", "rate", unit="1/s", at_least=200_000),
            Target("columns of a file", "columns", "rate", unit="1/s", at_least=60_000),
            Target("from words", "words", "rate", unit="1/s", at_least=60_000),
            Target("from words, sentence by sentence", "one by one", "rate", unit="1/s"),
            Target("chunk F1", "words", "f1", unit="%"),
        ],
        truth=test.split(2),
    )
    short = fit_tagger(limit, EPSILON)
    gap = short.result_.relative_gap or 0.0
    room = max(ROOM, 1.05 * gap)  # --quick ends elsewhere
    started = time.process_time()
    short.compact(train.select([0, 1]), train.split(2), tol=room)
    seconds = time.process_time() - started
    yield Case(
        "CoNLL-2000 model file",
        [
            _stored("as trained", tagger, columns),
            _stored("compacted", short, columns, compacting=seconds),
        ],
        [
            Target("as trained", "as trained", "mb", unit="MB"),
            Target("compacted", "compacted", "mb", unit="MB", at_most=2.0),
            Target("relative gap as trained", "as trained", "own_gap"),
            Target("relative gap, compacted", "compacted", "own_gap", at_most=room),
            Target("compacting", "compacted", "compacting", unit="s"),
            Target("chunk F1 as trained", "as trained", "f1", unit="%"),
            Target("chunk F1, compacted", "compacted", "f1", unit="%"),
        ],
        truth=test.split(2),
    )


def of_vectors(tagger: mm.SequenceTagger) -> mm.SequenceTagger:
    """The same model for features that are built already."""
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder) / "model.mm")
        twin: mm.SequenceTagger = mm.load(Path(folder) / "model.mm")
    twin.features_ = None
    return twin


def _timed(label: str, n_tokens: int, tag: Callable[[], Any], passes: int = PASSES) -> Contestant:
    """Predictions, some times over."""

    def run() -> Outcome:
        started = time.process_time()
        for _ in range(passes):
            tags = tag()
        rate = passes * n_tokens / (time.process_time() - started)
        return Outcome({"rate": rate}, tag=lambda: tags)

    def prepare() -> None:
        tag()

    return Contestant(label, run, prepare)


def _stored(label: str, tagger: mm.SequenceTagger, columns: Any, **known: float) -> Contestant:
    """A model through its file; saving and loading is what is timed."""

    def run() -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mm"
            tagger.save(path)
            size = path.stat().st_size / 1e6
            loaded = mm.load(path)
        measures = {"mb": size, "own_gap": loaded.result_.relative_gap or 0.0, **known}
        return Outcome(measures, tag=lambda: loaded.predict(columns))

    return Contestant(label, run)
