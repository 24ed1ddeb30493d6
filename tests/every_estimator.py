"""Every estimator with small data of two kinds, for tests of what all of them must do."""

from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.features import KernelMap
from maxmargin.formats.trees import as_tree

RNG = np.random.default_rng(0)


class Kind(NamedTuple):
    """An estimator with two data sets that agree in nothing: numbers of features, labels, nodes."""

    make: Any
    first: tuple[Any, Any]
    second: tuple[Any, Any]


class Interval(mm.Problem):
    """An output of the user's own: a stretch of a signal."""

    def joint_feature(self, x, y):
        return np.concatenate([x[: y[0]].sum(axis=0), x[y[0] : y[1]].sum(axis=0)])

    def outputs(self, x):
        return [(i, j) for i in range(len(x)) for j in range(i + 1, len(x) + 1)]

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max(self.outputs(x), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max(self.outputs(x), key=lambda z: w @ self.joint_feature(x, z))


def examples(n_features, n_classes, n=12):
    y = np.arange(n) % n_classes
    return RNG.normal(size=(n, n_features)) + y[:, None], y


def label_sets(n_features, n_labels, n=12):
    Y = (np.arange(n)[:, None] >> np.arange(n_labels)) & 1
    return RNG.normal(size=(n, n_features)) + Y.sum(axis=1, keepdims=True), Y


def sequences(n_features, n_labels, n=6):
    Y = [np.arange(k, k + 4) % n_labels for k in range(n)]
    return [RNG.normal(size=(4, n_features)) + y[:, None] for y in Y], Y


def segments(n_features, labels, n=6):
    Y = [[(k % 3, k % 3 + 2, labels[k % len(labels)])] for k in range(n)]
    X = [RNG.normal(size=(5, n_features)) for _ in Y]
    for x, [(start, stop, label)] in zip(X, Y, strict=True):
        x[start:stop] += 2.0 + ord(label) % 3
    return X, Y


def nodes(n_nodes, n_features, n_labels, n=8):
    Y = (np.arange(n)[:, None] + np.arange(n_nodes)) % n_labels
    return RNG.normal(size=(n, n_nodes, n_features)) + Y[:, :, None], Y


def intervals(n_features, n=6):
    X = [RNG.normal(size=(5, n_features)) for _ in range(n)]
    return X, [(k % 3, k % 3 + 2) for k in range(n)]


def matchings(n_left, n_right, n_features, n=6):
    Y = [(np.arange(n_left) + k) % (n_right + 1) - 1 for k in range(n)]
    X = [RNG.normal(size=(n_left, n_right, n_features)) for _ in Y]
    for x, y in zip(X, Y, strict=True):
        x[np.flatnonzero(y >= 0), y[y >= 0]] += 2.0
    return X, Y


def images(n_parts, size, n=5):
    Y = (np.arange(n)[:, None, None] + np.arange(n_parts)[:, None] * [1, 2]) % size
    return RNG.normal(size=(n, size, size)), Y


def rings(n_nodes, n_features, n_labels, n=6):
    edges = [(v, (v + 1) % n_nodes) for v in range(n_nodes)]
    Y = [(np.arange(n_nodes) + k) % n_labels for k in range(n)]
    return [(RNG.normal(size=(n_nodes, n_features)) + y[:, None], edges) for y in Y], Y


def candidates(pairs, alignments):
    """Each second sequence beside a decoy."""
    X = [(first, [second, second[::-1] + second[:1]]) for first, second in pairs]
    return X, [(0, alignment) for alignment in alignments]


SENTENCES = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
MORE_SENTENCES = [[("we", "P"), ("see", "V"), ("them", "P"), (".", ".")]] * 2
TREES = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))", "(S (NP (NN we)) (VP (VBZ go)))"]
TREES = [as_tree(tree) for tree in TREES]
MORE_TREES = ["(X (A a) (B b) (C c))", "(X (Y (A a) (B b)) (C c))", "(X (C c))"]
MORE_TREES = [as_tree(tree) for tree in MORE_TREES]


ALIGNED = [("ACGT", "AGT"), ("TCGA", "TGA")], [("ACGT", "A-GT"), ("TCGA", "T-GA")]
MORE_ALIGNED = [("abcdef", "abdf")] * 2, [("abcdef", "ab-d-f")] * 2
FEATURES = np.eye(3)[:, :2] + 0.1

KINDS = {
    "classes": Kind(mm.MulticlassSVM, examples(3, 3), examples(5, 2)),
    "described": Kind(
        lambda **p: mm.MulticlassSVM(class_features=dict(enumerate(FEATURES)), **p),
        examples(3, 3),
        examples(5, 2),
    ),
    "kernel classes": Kind(
        lambda **p: mm.MulticlassSVM(kernel="rbf", **p), examples(3, 3), examples(5, 2)
    ),
    "kernel tagger": Kind(
        lambda **p: mm.SequenceTagger(kernel=KernelMap("poly", coef0=1.0), **p),
        sequences(3, 3),
        sequences(5, 2),
    ),
    "kernel measure": Kind(
        lambda **p: mm.PerformanceSVM(kernel="rbf", **p), examples(3, 2), examples(5, 2)
    ),
    "tagger": Kind(
        lambda **p: mm.SequenceTagger(boundary_weights=True, **p), sequences(3, 3), sequences(5, 2)
    ),
    "higher-order tagger": Kind(
        lambda **p: mm.SequenceTagger(
            order={"transitions": 3, "emissions": 1}, transition_features=[0, 1], **p
        ),
        sequences(3, 3),
        sequences(5, 2),
    ),
    "segmenter": Kind(mm.SequenceSegmenter, segments(3, "ab"), segments(5, "c")),
    "dependency": Kind(
        lambda **p: mm.DependencyParser(hash_bits=9, labeled=True, **p),
        (SENTENCES, [[(2, "det"), (3, "subj"), (0, "root")], [(2, "subj"), (0, "root")]]),
        (MORE_SENTENCES, [[(2, "a"), (0, "b"), (2, "c"), (2, "d")]] * 2),
    ),
    "grammar": Kind(mm.GrammarParser, (TREES, None), (MORE_TREES, None)),
    "sets": Kind(mm.MultilabelSVM, label_sets(3, 4), label_sets(5, 2)),
    "sets in a tree": Kind(
        lambda **p: mm.MultilabelSVM(edges="tree", loss="f1", **p),
        label_sets(3, 4),
        label_sets(5, 2),
    ),
    "grades": Kind(mm.OrdinalSVM, examples(3, 3), examples(5, 2)),
    "grades by pairs": Kind(
        lambda **p: mm.OrdinalSVM(loss="pairs", **p), examples(3, 3), examples(5, 2)
    ),
    "ranker": Kind(mm.RankSVM, examples(3, 3), examples(5, 2)),
    "aligner": Kind(lambda **p: mm.SequenceAligner(mode="global", **p), ALIGNED, MORE_ALIGNED),
    "homologues": Kind(mm.HomologyRanker, candidates(*ALIGNED), candidates(*MORE_ALIGNED)),
    "matcher": Kind(
        lambda **p: mm.SetMatcher(allow_unmatched=True, **p), matchings(2, 3, 2), matchings(3, 3, 4)
    ),
    "labels": Kind(mm.TreeLabeler, nodes(3, 2, 3), nodes(4, 3, 2)),
    "positions": Kind(lambda **p: mm.PartLocator(patch=3, **p), images(3, 8), images(4, 9)),
    "performance": Kind(
        lambda **p: mm.PerformanceSVM(measure="f1", **p), examples(3, 2), examples(5, 2)
    ),
    "graphs": Kind(mm.GraphLabeler, rings(4, 2, 3), rings(5, 3, 2)),
    "own": Kind(lambda **p: mm.StructuralSVM(Interval(), **p), intervals(2), intervals(3)),
}
#: Those with `partial_fit`, and what it is told of the classes.
ONLINE = {
    "classes": {"classes": [0, 1, 2]},
    "described": {"classes": [0, 1, 2]},
    "tagger": {"classes": [0, 1, 2]},
    "segmenter": {"classes": ["a", "b"]},
    "sets": {},
    "sets in a tree": {},
    "ranker": {},
}


def make(kind, **parameters):
    return KINDS[kind].make(C=1.0, tol=0.1, random_state=0, **parameters)
