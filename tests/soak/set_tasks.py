"""Sets of labels, and segments of sequences."""

from functools import partial
from itertools import combinations, product

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

from .class_tasks import random_inputs, with_constant
from .label_tasks import random_tree
from .listing import Example, Task


def f1_loss(n_right, n_true, n_found):
    return 1.0 - 2.0 * n_right / (n_true + n_found) if n_true + n_found else 0.0


def label_sets(rng):
    """Labels that are on or off, alone, in a tree or with all pairs."""
    n, L = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    X = random_inputs(rng, n, int(rng.integers(1, 4)))
    Y = (rng.random((n, L)) < rng.choice([0.2, 0.5, 0.8])).astype(int)
    kind = str(rng.choice(["none", "tree", "given", "pairs"]))
    edges = {"none": None, "given": random_tree(rng, L)}.get(kind, kind)
    loss = str(rng.choice(["hamming", "f1", "zero_one"]))
    intercept = bool(rng.random() < 0.5)

    def psi(model, x, labels):
        together = [labels[a] * labels[b] for a, b in model.edges_.tolist()]
        return np.concatenate([np.outer(x, labels).ravel(), together])

    def loss_of(truth, labels):
        wrong = sum(a != b for a, b in zip(truth, labels, strict=True))
        if loss == "f1":
            n_right = sum(a * b for a, b in zip(truth, labels, strict=True))
            return f1_loss(n_right, sum(truth), sum(labels))
        return float(wrong > 0) if loss == "zero_one" else float(wrong)

    def examples(model):
        assert kind != "pairs" or len(model.edges_) == len(list(combinations(range(L), 2)))
        every = list(product((0, 1), repeat=L))
        return [
            Example.of(truth, partial(psi, model, x), partial(loss_of, truth), every)
            for x, truth in zip(with_constant(X, intercept), map(tuple, Y.tolist()), strict=True)
        ]

    given = sp.csr_matrix(X) if rng.random() < 0.4 else X
    return Task(
        "label sets",
        partial(mm.MultilabelSVM, loss=loss, edges=edges, fit_intercept=intercept),
        given,
        Y,
        examples,
        lambda labels: tuple(np.asarray(labels).tolist()),
        n,
        has_k_best=False,
        refusals=[(given[:-1], Y), (given, 2 * Y + 2), (X * np.nan, Y)],
    )


def every_segmentation(n, longest, start=0):
    """All lists of segments of the tokens from ``start`` on."""
    if start == n:
        return [()]
    found = list(every_segmentation(n, longest, start + 1))
    for label, most in longest.items():
        for stop in range(start + 1, min(start + most, n) + 1):
            rests = every_segmentation(n, longest, stop)
            found += [((start, stop, label), *rest) for rest in rests]
    return found


def tags_of(segments, n):
    """What each token is: outside, or in a segment of a label, as its first token or not."""
    tags = [None] * n
    for start, stop, label in segments:
        for t in range(start, stop):
            tags[t] = (label, t == start)
    return tags


def segments(rng):
    """Segments of sequences, of labels with lengths of their own."""
    labels = ["x", "y"][: int(rng.integers(1, 3))]
    longest = {label: int(rng.integers(1, 4)) for label in labels}
    lengths = rng.integers(1, 5, int(rng.integers(1, 5))).tolist()
    listed = [every_segmentation(n, longest) for n in lengths]
    Y = [list(options[int(rng.integers(len(options)))]) for options in listed]
    if {label for own in Y for _, _, label in own} != set(labels):
        return segments(rng)
    given_lengths = longest if rng.random() < 0.5 else None
    loss = str(rng.choice(["segments", "hamming", "f1", "zero_one"]))
    intercept = bool(rng.random() < 0.4)
    tokens = [random_inputs(rng, n, 2) for n in lengths]
    K = len(labels)

    def psi(model, x, found):
        of_tokens = np.zeros((x.shape[1], 3 * K + 1))  # inside, outside, first, last
        follows = np.zeros((K + 1, K + 1))
        of_lengths = {label: np.zeros(model.max_segment_lengths_[label]) for label in labels}
        tags = tags_of(found, len(x))
        columns = [K if tag is None else labels.index(tag[0]) for tag in tags]
        for t, column in enumerate(columns):
            of_tokens[:, column] += x[t]
            if t > 0 and (tags[t] is None or tags[t][1]):
                follows[columns[t - 1], column] += 1.0
        for start, stop, label in found:
            of_tokens[:, K + 1 + labels.index(label)] += x[start]
            of_tokens[:, 2 * K + 1 + labels.index(label)] += x[stop - 1]
            of_lengths[label][stop - start - 1] += 1.0
        return np.concatenate([of_tokens.ravel(), follows.ravel(), *of_lengths.values()])

    def loss_of(truth, n, found):
        n_right = len(set(truth) & set(found))
        if loss == "segments":
            return float(len(truth) + len(found) - 2 * n_right)
        if loss == "f1":
            return f1_loss(n_right, len(truth), len(found))
        wrong = sum(a != b for a, b in zip(tags_of(truth, n), tags_of(found, n), strict=True))
        return float(wrong) if loss == "hamming" else float(wrong > 0)

    def examples(model):
        assert model.classes_.tolist() == labels
        return [
            Example.of(
                tuple(y),
                partial(psi, model, with_constant(x, intercept)),
                partial(loss_of, y, len(x)),
                every_segmentation(len(x), model.max_segment_lengths_),
            )
            for x, y in zip(tokens, Y, strict=True)
        ]

    X = [sp.csr_matrix(x) for x in tokens] if rng.random() < 0.4 else tokens
    options = {"loss": loss, "max_segment_length": given_lengths, "fit_intercept": intercept}
    return Task(
        "segments",
        partial(mm.SequenceSegmenter, **options),
        X,
        Y,
        examples,
        tuple,
        len(Y),
        has_k_best=False,
        refusals=[(X[:-1], Y), (X, [[]] * len(Y)), (X, [[(0, 9, "x")]] * len(Y))],
    )
