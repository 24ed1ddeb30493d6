"""python-crfsuite's averaged perceptron, on the same chunking features as strings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from maxmargin.formats import TokenColumns

from ..case import Contestant, Outcome, Tags
from ..timing import timed

Strings = Iterator[list[list[str]]]  # features of the tokens of each sequence
HOW_TO_INSTALL = 'python-crfsuite is left out; python -m pip install ".[benchmarks]" brings it'


def is_installed() -> bool:
    """Whether the peer can take part."""
    try:
        import pycrfsuite  # noqa: F401
    except ImportError:
        return False
    return True


def feature_strings(data: TokenColumns) -> Strings:
    """The 22 features of `maxmargin.features.chunking_templates` of every token."""
    for words, tags in zip(data.split(0), data.split(1), strict=True):
        yield list(_of_sequence(words, tags))


def _of_sequence(words: list[str], tags: list[str]) -> Iterator[list[str]]:
    """Features token by token, with a sign for what lies outside on each side."""
    w = ["<", "<", *words, ">", ">"]
    p = ["<", "<", *tags, ">", ">"]
    for t, word in enumerate(words, start=2):
        yield [
            *(f"w{k}={w[t + k]}" for k in range(-2, 3)),
            *(f"p{k}={p[t + k]}" for k in range(-2, 3)),
            *(f"pp{k}={p[t + k]}|{p[t + k + 1]}" for k in range(-2, 2)),
            *(f"ww{k}={w[t + k]}|{w[t + k + 1]}" for k in (-1, 0)),
            *(f"prefix{k}={word[:k]}" for k in (1, 2, 3)),
            *(f"suffix{k}={word[-k:]}" for k in (1, 2, 3)),
        ]


def _loaded(train: TokenColumns, rounds: int) -> Any:
    """A trainer that holds the data."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="ap", verbose=False)
    trainer.set_params({"max_iterations": rounds})
    for tokens, tags in zip(feature_strings(train), train.split(-1), strict=True):
        trainer.append(tokens, tags)
    return trainer


def _tags(model: Path, test: TokenColumns) -> Tags:
    """Tag with a model file."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return [tagger.tag(tokens) for tokens in feature_strings(test)]


def averaged_perceptron(
    read: Callable[[], TokenColumns], test: TokenColumns, rounds: int
) -> Contestant:
    """Read the training file, build features, load them, train: timed as a whole and in parts."""

    def run() -> Outcome:
        trainer, loading = timed(lambda: _loaded(read(), rounds))
        folder = tempfile.TemporaryDirectory()
        model = Path(folder.name) / "model"
        _, training = timed(lambda: trainer.train(str(model)))
        measures = {"loading_cpu": loading.cpu, "training_cpu": training.cpu}
        # CPU seconds of each round, as the trainer's log has them.
        rounds_took = [float(one["time"]) for one in trainer.logparser.iterations]
        measures["per_round"] = median(rounds_took)

        def tag() -> Tags:
            with folder:
                return _tags(model, test)

        return Outcome(measures, tag=tag)

    return Contestant(f"crfsuite {rounds} rounds", run)
