"""Probabilities of tags: chunks (CoNLL-2000) and Spanish entities, next to CRFsuite's marginals.

Of each token of the test part the probability of the tag that is predicted, in 15 groups of equal
width: ECE is the mean of |probability - share of right ones|. The features are the same for both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.core.formulation import C_from_paper
from maxmargin.features import WindowFeatures, chunking_templates, ner_templates
from maxmargin.formats import TokenColumns
from maxmargin.metrics import Reliability, chunk_f1, reliability

from .. import tagging
from ..case import Case, Contestant, Floats, Options, Outcome, Target
from ..peers import crfsuite
from ..timing import timed

MOST_WORSE = 0.01  # ECE beyond CRFsuite's
ITERATIONS = 100
PEER = "CRFsuite"
#: What `draw` shows, by case and contestant.
_FOUND: dict[str, dict[str, Reliability]] = {}


class Corpus(NamedTuple):
    """Training and test part, perhaps a third one to calibrate on, templates and C."""

    name: str
    train: TokenColumns
    test: TokenColumns
    other: TokenColumns | None
    templates: list[str]
    C: float

    def tagger(self, **options: Any) -> mm.SequenceTagger:
        """A trained tagger."""
        tagger = mm.SequenceTagger(
            C=self.C, features=WindowFeatures(self.templates), random_state=0, **options
        )
        return tagger.fit(self.train.select([0, 1]), self.train.split(2))


def _corpora(options: Options) -> Iterator[Corpus]:
    """Chunks, then entities."""
    size = options.size(100)
    train, test = (tagging.read(f"conll2000/{part}.txt.xz", size) for part in ("train", "test"))
    C = C_from_paper(1000, train.n_sequences, "joachims")
    yield Corpus("CoNLL-2000", train, test, None, list(chunking_templates()), C)
    names = ("train", "testb", "testa")
    train, test, other = (tagging.read(f"conll2002/esp.{name}.xz", size) for name in names)
    yield Corpus("Spanish entities", train, test, other, list(ner_templates()), 0.1)


def cases(options: Options) -> Iterator[Case]:
    """A table for each corpus."""
    for corpus in _corpora(options):
        contestants = []
        if options.peers and crfsuite.is_installed():
            contestants.append(Contestant(PEER, _Peer(corpus), once=True))
        elif options.peers:
            print(crfsuite.HOW_TO_INSTALL)
        contestants.append(Contestant("by folds", _Ours(corpus, "by folds"), once=True))
        if corpus.other is not None:
            contestants.append(Contestant("by testa", _Ours(corpus, "by testa"), once=True))
        labels = [contestant.label for contestant in contestants]
        yield Case(
            f"{corpus.name}, probabilities",
            contestants,
            [
                *(
                    Target(
                        f"{label}: ECE beyond CRFsuite's", label, "ece_beyond", at_most=MOST_WORSE
                    )
                    for label in labels
                    if label != PEER
                ),
                *(
                    Target(f"{label}: {what}", label, measure, unit=unit)
                    for label in labels
                    for what, measure, unit in (
                        ("ECE", "ece", ""),
                        ("ECE of tags but O", "ece_inside", ""),
                        ("log loss of a token", "log_loss", ""),
                        ("right tags", "accuracy", "%"),
                        ("F1 of chunks", "f1", "%"),
                        ("training", "training_cpu", "s"),
                        ("temperature", "temperature", ""),
                        ("time", "cpu", "s"),
                    )
                ),
            ],
        )


def draw(path: Path) -> None:
    """Reliability diagrams, a corpus in each."""
    from matplotlib.figure import Figure

    from maxmargin.report import plot_reliability

    figure = Figure(figsize=(4.6 * len(_FOUND), 4.4), dpi=120, layout="constrained")
    places = figure.subplots(1, len(_FOUND), squeeze=False)[0]
    for axes, (name, found) in zip(places, _FOUND.items(), strict=True):
        plot_reliability(found, title=name, axes=axes)
    figure.savefig(path)


def _evaluate(
    corpus: Corpus, label: str, classes: list[str], predicted: list[str], P: Floats
) -> dict[str, float]:
    """Figures of predicted tags and of the probabilities of all tags, token by token."""
    number = {tag: k for k, tag in enumerate(classes)}
    gold = np.array([number.get(tag, -1) for tag in corpus.test.columns[2]])
    codes = np.array([number[tag] for tag in predicted])
    own, right = P[np.arange(len(P)), codes], codes == gold
    found = reliability(own, right)
    inside = codes != number["O"]
    known = np.flatnonzero(gold >= 0)  # the other tags are not in the training part
    _FOUND.setdefault(corpus.name, {})[label] = found
    measures = {
        "ece": found.ece,
        "ece_inside": reliability(own[inside], right[inside]).ece,
        "log_loss": -float(np.log(np.maximum(P[known, gold[known]], 1e-15)).mean()),
        "accuracy": 100.0 * float(right.mean()),
        "f1": 100.0
        * chunk_f1(corpus.test.split(2), np.split(predicted, corpus.test.offsets[1:-1])),
    }
    if PEER in _FOUND[corpus.name] and label != PEER:
        measures["ece_beyond"] = found.ece - _FOUND[corpus.name][PEER].ece
    return measures


class _Ours:
    """A tagger, calibrated by folds of the training part or by another file."""

    def __init__(self, corpus: Corpus, label: str) -> None:
        self.corpus, self.label = corpus, label

    def __call__(self) -> Outcome:
        corpus, test = self.corpus, self.corpus.test.select([0, 1])
        _, training = timed(corpus.tagger)  # alone: calibration by folds trains five more
        if self.label == "by folds":
            tagger = corpus.tagger(probability=True)
        else:
            assert corpus.other is not None
            tagger = corpus.tagger()
            tagger.calibrate(corpus.other.select([0, 1]), corpus.other.split(2))
        predicted = [tag for tags in tagger.predict(test) for tag in tags]
        P = np.concatenate(tagger.predict_proba(test))
        measures = _evaluate(corpus, self.label, tagger.classes_.tolist(), predicted, P)
        measures["training_cpu"] = training.cpu
        return Outcome({"temperature": tagger.calibration_.temperature, **measures})


class _Peer:
    """CRFsuite, trained by L-BFGS with the default regulariser."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def __call__(self) -> Outcome:
        import pycrfsuite

        corpus = self.corpus
        features = WindowFeatures(corpus.templates).fit(corpus.train.select([0, 1]))
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c2": 1.0, "max_iterations": ITERATIONS})
        tags_of = corpus.train.split(2)
        for tokens, tags in zip(_strings(features, corpus.train), tags_of, strict=True):
            trainer.append(tokens, tags)
        with tempfile.TemporaryDirectory() as folder:
            model = str(Path(folder) / "model")
            _, training = timed(lambda: trainer.train(model))
            tagger = pycrfsuite.Tagger()
            tagger.open(model)
            classes, predicted, rows = tagger.labels(), [], []
            for tokens in _strings(features, corpus.test):
                predicted += tagger.tag(tokens)
                rows += [[tagger.marginal(y, t) for y in classes] for t in range(len(tokens))]
        P = np.clip(np.array(rows), 0.0, 1.0)  # by rounding they may be a little more than 1
        measures = _evaluate(corpus, PEER, classes, predicted, P)
        return Outcome({"training_cpu": training.cpu, **measures})


def _strings(features: WindowFeatures, data: TokenColumns) -> Iterator[list[list[str]]]:
    """The features of the tokens of each sentence, by name."""
    packed, names = features.transform(data.select([0, 1])), features.get_feature_names_out()
    tokens, bounds = packed.tokens, packed.offsets.tolist()
    for first, end in pairwise(bounds):
        yield [
            [str(names[f]) for f in tokens.indices[tokens.indptr[t] : tokens.indptr[t + 1]]]
            for t in range(first, end)
        ]
