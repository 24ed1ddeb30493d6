"""Brute-force twin of segmentations: all lists of segments that do not overlap."""

import itertools

import numpy as np

from brute import Twin, _raw
from cases import Case, random_inputs
from maxmargin.engine.rows import Rows
from maxmargin.problems.segments.layout import Pieces, segments_of
from maxmargin.problems.segments.problem import SegmentProblem


def all_segmentations(n, longest, start=0):
    """Every list of segments of the tokens from ``start`` on."""
    if start >= n:
        yield ()
        return
    yield from all_segmentations(n, longest, start + 1)
    for label, most in enumerate(longest):
        for stop in range(start + 1, min(start + most, n) + 1):
            for rest in all_segmentations(n, longest, stop):
                yield ((start, stop, label), *rest)


def tags(segments, n):
    """BIO tags."""
    found = ["O"] * n
    for start, stop, label in segments:
        found[start:stop] = [("I", label)] * (stop - start)
        found[start] = ("B", label)
    return found


class SegmentTwin(Twin):
    def __init__(
        self, tokens, offsets, segments, longest, *, loss, fit_intercept=False, last_tokens=True
    ):
        X = _raw(tokens, fit_intercept)
        self.X = [X[first:end] for first, end in itertools.pairwise(offsets)]
        self.Y = [tuple(own) for own in segments]
        self.longest, self.K = [int(n) for n in longest], len(longest)
        self.n_inputs, self.loss_name = X.shape[1], loss
        self.n_examples = len(self.Y)
        K = self.K
        self.n_columns = 3 * K + 1 if last_tokens else 2 * K + 1
        self.n_features = self.n_inputs * self.n_columns + (K + 1) ** 2 + sum(self.longest)

    def truth(self, i):
        return self.Y[i]

    def outputs(self, i):
        return list(all_segmentations(len(self.X[i]), self.longest))

    def psi(self, i, y):
        K, x = self.K, self.X[i]
        of_tokens = np.zeros((self.n_inputs, 3 * K + 1))
        transitions = np.zeros((K + 1, K + 1))
        lengths = [np.zeros(n) for n in self.longest]
        labels = np.full(len(x), K)
        for start, stop, label in y:
            labels[start:stop] = label
            of_tokens[:, K + 1 + label] += x[start]
            of_tokens[:, 2 * K + 1 + label] += x[stop - 1]
            lengths[label][stop - start - 1] += 1
        for t, label in enumerate(labels):
            of_tokens[:, label] += x[t]
        inner = {t for start, stop, _ in y for t in range(start + 1, stop)}
        for t in range(1, len(x)):
            if t not in inner:
                transitions[labels[t - 1], labels[t]] += 1
        of_tokens = of_tokens[:, : self.n_columns]
        return np.concatenate([of_tokens.ravel(), transitions.ravel(), *lengths])

    def loss(self, i, y):
        gold, n = self.Y[i], len(self.X[i])
        right = len(set(gold) & set(y))
        if self.loss_name == "hamming":
            return float(sum(a != b for a, b in zip(tags(gold, n), tags(y, n), strict=True)))
        if self.loss_name == "segments":
            return float(len(gold) - right + len(y) - right)
        if self.loss_name == "f1":
            return 1.0 - 2.0 * right / (len(gold) + len(y)) if gold or y else 0.0
        return float(gold != y)


def random_segments(rng, n, longest):
    every = list(all_segmentations(n, longest))
    return every[rng.integers(len(every))]


def segment_case(
    rng,
    *,
    loss="hamming",
    lengths=(3, 1, 2, 4),
    longest=(2, 3),
    n_inputs=2,
    fit_intercept=False,
    layout="dense",
    last_tokens=True,
):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = random_inputs(rng, offsets[-1], n_inputs, layout)
    segments = [random_segments(rng, n, longest) for n in lengths]
    given = (tokens, offsets, segments, longest)
    options = {"loss": loss, "fit_intercept": fit_intercept, "last_tokens": last_tokens}
    return Case(SegmentProblem(*given, **options), SegmentTwin(*given, **options))


def decode_segments(case, w):
    """Best outputs of all examples at once."""
    rows: Rows = case.problem.data.rows
    offsets = case.problem.data.offsets
    labels, lengths = case.problem.decoder.decode(rows, offsets, w)
    return [
        tuple(segments_of(Pieces(labels[first:end], lengths[first:end]), case.twin.K))
        for first, end in itertools.pairwise(offsets)
    ]
