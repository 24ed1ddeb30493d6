"""A problem of one's own: a chain written with `njit` beside the built-in one, and plain Python.

The chains are drawn, of the size of the OCR letters. Both oracles are asked for all of them at the
same weights, and find the same violations. What is around a call of methods in plain Python is
measured beside the bare calls of the same methods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from maxmargin.core.cutting_planes import Planes, empty_planes, trim
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.violations import violations
from maxmargin.problems.chain.problem import ChainProblem

from .case import Case, Contestant, Floats, Options, Outcome, Target

BUILT_IN, OWN = "ChainProblem", "a chain of one's own"
K, N_INPUTS = 26, 128


@njit  # type: ignore[untyped-decorator]
def most_violated_chains(tokens, offsets, gold, examples, w, planes):  # type: ignore[no-untyped-def]
    """Viterbi with Hamming loss for each example; writes the rows of feature differences."""
    indptr, columns, values, losses = planes
    starts, inputs, numbers = tokens
    n_labels = K
    emissions = w[: -n_labels * n_labels].reshape((-1, n_labels))
    transitions = w[-n_labels * n_labels :].reshape((n_labels, n_labels))
    filled, longest = 0, np.max(np.diff(offsets))
    scores, best = np.empty((longest, n_labels)), np.empty(n_labels)
    back, path = np.empty((longest, n_labels), np.int64), np.empty(longest, np.int64)
    for r in range(len(examples)):
        first, end = offsets[examples[r]], offsets[examples[r] + 1]
        length = end - first
        for t in range(length):
            for k in range(n_labels):
                scores[t, k] = 1.0
            scores[t, gold[first + t]] = 0.0
            for e in range(starts[first + t], starts[first + t + 1]):
                number, f = numbers[e], inputs[e]
                for k in range(n_labels):
                    scores[t, k] += number * emissions[f, k]
        for t in range(1, length):
            for k in range(n_labels):
                best[k], back[t, k] = scores[t - 1, 0] + transitions[0, k], 0
            for j in range(1, n_labels):
                before = scores[t - 1, j]
                for k in range(n_labels):
                    total = before + transitions[j, k]
                    better = total > best[k]
                    best[k] = total if better else best[k]
                    back[t, k] = j if better else back[t, k]
            for k in range(n_labels):
                scores[t, k] += best[k]
        path[length - 1] = np.argmax(scores[length - 1])
        for t in range(length - 1, 0, -1):
            path[t - 1] = back[t, path[t]]
        for t in range(length):
            true, found = gold[first + t], path[t]
            if true != found:
                losses[r] += 1.0
                start, size = starts[first + t], starts[first + t + 1] - starts[first + t]
                own_inputs, own_numbers = inputs[start:], numbers[start:]
                plus, minus = columns[filled:], columns[filled + size :]
                for e in range(size):
                    plus[e] = own_inputs[e] * n_labels + true
                    minus[e] = own_inputs[e] * n_labels + found
                plus_values, minus_values = values[filled:], values[filled + size :]
                for e in range(size):
                    plus_values[e] = own_numbers[e]
                    minus_values[e] = -own_numbers[e]
                filled += 2 * size
            if t > 0 and (true != found or gold[first + t - 1] != path[t - 1]):
                base = len(w) - n_labels * n_labels
                columns[filled] = base + gold[first + t - 1] * n_labels + true
                columns[filled + 1] = base + path[t - 1] * n_labels + found
                values[filled], values[filled + 1] = 1.0, -1.0
                filled += 2
        indptr[r + 1] = filled


class OwnChains(Problem):
    """What a user would write: arrays, and one compiled function for a batch."""

    n_features = N_INPUTS * K + K * K

    def __init__(self, tokens: sp.csr_matrix, offsets: Any, labels: Any) -> None:
        self.tokens = (tokens.indptr, tokens.indices, tokens.data)
        self.offsets, self.labels = offsets, labels
        self.row_sizes = 2 * (np.diff(tokens.indptr[offsets]) + np.diff(offsets))

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    def oracle(
        self, indices: Any, w: Floats, rescaling: str = "margin", sqrt_loss: bool = False
    ) -> Planes:
        """See `Problem.oracle`; for margin rescaling."""
        planes = empty_planes(len(indices), int(self.row_sizes[indices].sum()))
        most_violated_chains(self.tokens, self.offsets, self.labels, indices, w, planes)
        return trim(planes)


class PlainClasses(Problem):
    """Five classes with features of their own, in plain Python."""

    def joint_feature(self, x: Floats, y: int) -> Floats:
        """Features of a class."""
        features: Floats = x[y]
        return features

    def loss(self, y: int, y_hat: int) -> float:
        """Zero-one loss."""
        return float(y != y_hat)

    def most_violated(self, x: Floats, y: int, w: Floats, rescaling: str) -> int:
        """Best of the classes, with the loss."""
        scores = x @ w + 1.0
        scores[y] -= 1.0
        return int(scores.argmax())


def cases(options: Options) -> Iterator[Case]:
    """Throughput of the chains, and what is around a call in plain Python."""
    n = 50 if options.quick else 1000
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 14, n))])
    tokens = sp.random(offsets[-1], N_INPUTS, 0.2, "csr", random_state=0)
    labels = rng.integers(0, K, offsets[-1])
    w = rng.normal(size=OwnChains.n_features)
    built_in = Oracle(ChainProblem(tokens, offsets, labels, K), Formulation())
    own = Oracle(OwnChains(tokens, offsets, labels), Formulation())
    every = np.arange(n)
    values = [violations(oracle.call_features(every, w), w) for oracle in (built_in, own)]
    if not np.allclose(values[0], values[1]):
        raise AssertionError("the two oracles do not find the same violations")

    def throughput(oracle: Oracle) -> Callable[[], Outcome]:
        def run() -> Outcome:
            started = time.process_time()
            for _ in range(5):
                oracle.call_features(every, w)
            return Outcome({"calls_per_second": 5 * n / (time.process_time() - started)})

        return run

    yield Case(
        "oracle calls of chains",
        [Contestant(BUILT_IN, throughput(built_in)), Contestant(OWN, throughput(own))],
        [
            Target("built-in", BUILT_IN, "calls_per_second", unit="1/s"),
            Target("one's own, with njit", OWN, "calls_per_second", unit="1/s"),
            Target(
                "built-in / own",
                BUILT_IN,
                "calls_per_second",
                at_most=1.5,
                relative_to=(OWN, "calls_per_second"),
            ),
        ],
    )
    X, Y = list(rng.normal(size=(n, 5, 10))), rng.integers(0, 5, n).tolist()
    sizes = (1, 16, 512)
    yield Case(
        "around a call of methods in plain Python",
        [Contestant("plain", lambda: Outcome(_around(PlainClasses().bind(X, Y), sizes)))],
        [
            Target(f"batches of {size}", "plain", f"around_{size}", unit="us", at_most=20.0)
            for size in sizes
        ],
    )


def _around(problem: Problem, sizes: tuple[int, ...]) -> dict[str, float]:
    """Microseconds that a call of the oracle takes besides the problem's own methods."""
    w, every = np.ones(int(problem.n_features or 0)), np.arange(problem.n_examples)
    oracle = Oracle(problem, Formulation())
    oracle.call(every, w)
    started = time.process_time()
    for x, y in zip(problem.X, problem.Y, strict=True):
        found = problem.most_violated(x, y, w, "margin")
        problem.loss(y, found)
        problem.joint_feature(x, y)
        problem.joint_feature(x, found)
    bare = time.process_time() - started
    measures = {}
    for size in sizes:
        started = time.process_time()
        for first in range(0, len(every), size):
            oracle.call(every[first : first + size], w)
        spent = time.process_time() - started - bare
        measures[f"around_{size}"] = 1e6 * spent / len(every)
    return measures
