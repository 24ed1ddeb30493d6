"""A small data set of each structure, for what is timed on all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.datasets import FACE_TREE, make_faces
from maxmargin.features import AMINO_ACIDS, WindowFeatures, chunking_templates
from maxmargin.metrics import tags_to_segments

from . import tagging
from .datasets import alignment, mq2008, multilabel

__all__ = ["STRUCTURES", "Structure"]


class Structure(NamedTuple):
    """An estimator, what it is trained on, and what it predicts from."""

    estimator: Any
    train: tuple[Any, ...]
    X: Any
    n: int  # examples in training

    def first(self, limit: int | None) -> Structure:
        """With the first so many examples of both, or with all."""
        if limit is None:
            return self
        train = tuple(_first(part, limit) for part in self.train)
        return Structure(self.estimator, train, _first(self.X, limit), min(limit, self.n))


def _first(part: Any, n: int) -> Any:
    """The first examples."""
    return tagging.first(part, n) if hasattr(part, "n_tokens") else part[:n]


def _label_trees() -> Structure:
    """Labels of eight nodes of a tree, five each, drawn from a tree model."""
    rng = np.random.default_rng(0)
    n, nodes, labels, width = 3000, 8, 5, 20
    tree = [((node - 1) // 2, node) for node in range(1, nodes)]
    X = rng.normal(size=(n, nodes, width))
    scores = np.einsum("nvf,fk->nvk", X, rng.normal(size=(width, labels)))
    steps = 3.0 * rng.normal(size=(nodes, labels, labels))
    Y = np.empty((n, nodes), np.int64)
    Y[:, 0] = scores[:, 0].argmax(axis=1)
    for parent, node in tree:
        noise = 4.0 * rng.normal(size=(n, labels))
        Y[:, node] = (scores[:, node] + steps[node, Y[:, parent]] + noise).argmax(axis=1)
    return Structure(mm.TreeLabeler(tree=tree, C=0.01), (X, Y), X, n)


def _faces() -> Structure:
    """Parts of drawn faces."""
    faces = make_faces(500, 500, size=24, noise=0.4)
    finder = mm.PartLocator(tree=FACE_TREE, C=0.02)
    return Structure(finder, (faces.X_train, faces.y_train), faces.X_test, 500)


def _alignments() -> Structure:
    """BAliBASE, trimmed sequences."""
    examples = [e for family in alignment.load_families("BBS", None).values() for e in family][:600]
    X, Y = [(x, y) for x, y, _ in examples], [pairs for *_, pairs in examples]
    aligner = mm.SequenceAligner(
        mode="global", symmetric=True, end_gaps="own", alphabet=AMINO_ACIDS + "X", C=0.003
    )
    return Structure(aligner, (X, Y), X, len(X))


def _chunks() -> tuple[Any, list[list[str]], Any]:
    """Words of CoNLL-2000, their tags, and words of the test part."""
    train, test = (tagging.read(f"conll2000/{part}.txt.xz", 2000) for part in ("train", "test"))
    return train.select([0, 1]), train.split(2), test.select([0, 1])


def _segments() -> Structure:
    """Chunks of CoNLL-2000."""
    X, tags, X_test = _chunks()
    segmenter = mm.SequenceSegmenter(features=WindowFeatures(chunking_templates()), C=0.1)
    return Structure(segmenter, (X, tags_to_segments(tags)), X_test, len(tags))


def _second_order() -> Structure:
    """The same as tags, by a chain of order 2."""
    X, tags, X_test = _chunks()
    features = WindowFeatures(chunking_templates())
    return Structure(
        mm.SequenceTagger(order=2, features=features, C=0.1), (X, tags), X_test, len(tags)
    )


def _label_sets(edges: Literal["tree", "pairs"]) -> Structure:
    """Yeast: 14 labels."""
    train, test = multilabel.load("yeast")
    estimator = mm.MultilabelSVM(edges=edges, C=0.01)
    return Structure(estimator, (train.X, train.Y), test.X, len(train.Y))


def _ranking() -> Structure:
    """MQ2008."""
    part = mq2008.joined(1, 2, 3)
    return Structure(mm.RankSVM(C=0.01), (part.X, part.y, part.qid), part.X, len(part.y))


#: What makes them.
STRUCTURES: dict[str, Callable[[], Structure]] = {
    "label trees": _label_trees,
    "faces": _faces,
    "BAliBASE alignments": _alignments,
    "CoNLL-2000 segments": _segments,
    "CoNLL-2000, order 2": _second_order,
    "yeast label sets, tree": lambda: _label_sets("tree"),
    "yeast label sets, pairs": lambda: _label_sets("pairs"),
    "MQ2008": _ranking,
}
