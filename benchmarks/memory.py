"""Sequences against memory: seconds of a pass next to what its bytes take at the stream's rate.

The stream's rate is that of ``a = b + 3 c`` over vectors far larger than caches. Bytes are those
that an algorithm of this kind has to touch, however it is written. Oracle pass: the features of all
tokens, the row of weights of each (one of K weights), the planes. Cached pass: planes, products,
and each weight of the planes' parts read and written once, with its index. What fits into a cache
may be faster than the stream; rows are shorter than the lines of the cache that they are in, and
weights much shorter: the rate of gathering them, measured beside it, is the nearer limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from maxmargin.engine.store.arena import PLANE_BYTES, entry_types
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.plane_kernels import ENTRIES, FEATURES, GRAM, PLANES
from maxmargin.jit.decorator import kernel
from maxmargin.problems.chain.store import ChainStore
from maxmargin.solvers import make_solver

from .case import FORMULATION, Case, Contestant, Floats, Options, Outcome, Target
from .datasets.conll2000 import Chunking
from .datasets.conll2002 import entities
from .tagging import Tagging

Cs = (1.0, 10.0)
TOLERANCE = 1e-3
STREAM_LENGTH = 2**23
INPUT, WEIGHT, PART = 12, 8, 4  # bytes: a feature of a token, a weight, a number of a part


@kernel
def triad(a, b, c):
    """The stream."""
    for i in range(len(a)):
        a[i] = b[i] + 3.0 * c[i]


@kernel
def gather_rows(indices, w, K, total):
    """Sum of the rows of K weights that are listed."""
    for e in range(len(indices)):
        row = w[np.int64(indices[e]) * K :]
        for k in range(K):
            total[k] += row[k]


def rate(call: Callable[[], None], n_bytes: float, repeats: int = 7) -> float:
    """Bytes per second of CPU time, median; the first call is not timed."""
    call()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return n_bytes / max(median(seconds), 1e-9)


def stream_rate(length: int) -> float:
    """Bytes per second of a stream."""
    a, b, c = np.zeros(length), np.ones(length), np.ones(length)
    return rate(lambda: triad(a, b, c), 3.0 * 8 * length)


@dataclass
class Pass:
    """Sums over passes of a kind."""

    seconds: float = 0.0
    examples: float = 0.0
    n_bytes: float = 0.0


class Watch:
    """Times the visits and revisits of stores, and counts the bytes they have to move."""

    def __init__(self) -> None:
        self.oracle, self.cached = Pass(), Pass()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch all stores of chains."""
        stores: Any = ChainStore
        visit, cached_pass = stores.visit, stores.cached_pass

        def watched_visit(store: ChainStore, examples: Any, rule: StepRule) -> Any:
            return self._timed(self.oracle, visit, store, examples, rule)

        def watched_revisit(store: ChainStore, examples: Any, rule: StepRule) -> Any:
            return self._timed(self.cached, cached_pass, store, examples, rule)

        stores.visit, stores.cached_pass = watched_visit, watched_revisit
        try:
            yield
        finally:
            stores.visit, stores.cached_pass = visit, cached_pass

    def _timed(self, kind: Pass, call: Any, store: ChainStore, examples: Any, rule: Any) -> Any:
        started = time.process_time()
        answer = call(store, examples, rule)
        kind.seconds += time.process_time() - started
        kind.examples += len(examples)
        kind.n_bytes += bytes_of_planes(store, examples, kind is self.cached)
        if kind is self.oracle:
            kind.n_bytes += bytes_of_tokens(store, examples)
        return answer


def bytes_of_tokens(store: ChainStore, examples: Any) -> float:
    """Features of the examples' tokens and their rows of weights."""
    data = store.problem.data
    indptr, offsets = data.rows.indptr, data.offsets
    entries = float((indptr[offsets[examples + 1]] - indptr[offsets[examples]]).sum())
    return entries * (INPUT + WEIGHT * data.n_labels)


def bytes_of_planes(store: ChainStore, examples: Any, with_weights: bool) -> float:
    """Planes, dictionaries and products of the examples' blocks, by the mean of all blocks."""
    used, parts, blocks = store.used, store.feature_blocks, store.blocks
    planes, listed = float(blocks.count[examples].sum()), float(blocks.n_features[examples].sum())
    entry = entry_types(store.arena).nbytes
    per_plane = PLANE_BYTES + (entry * used[ENTRIES] + WEIGHT * used[GRAM]) / max(used[PLANES], 1)
    per_part = float(PART)
    if with_weights and used[FEATURES] > 0:
        names = store.arena.new_features[: used[FEATURES]]
        rows = names[names < parts.n_row_blocks] // parts.n_labels
        weights = (parts.indptr[rows + 1] - parts.indptr[rows]).sum() + len(names) - len(rows)
        per_part += (4 + 2 * WEIGHT) * weights / len(names)
    return planes * per_plane + listed * per_part


def cases(options: Options) -> Iterator[Case]:
    """Two data sets at two values of C."""
    length = options.size(2**16, STREAM_LENGTH) or STREAM_LENGTH
    stream = stream_rate(length)
    for name, load in (("CoNLL-2000", _chunks), ("Spanish entities", entities)):
        names = {f"memory: {name}, C = {C:g}": C for C in Cs}
        wanted = [label for label in names if options.only in label]
        if wanted:
            data = load(options)
            gathered = gather_rate(data)
            yield from (_case(label, data, names[label], stream, gathered) for label in wanted)


def _chunks(options: Options) -> Tagging:
    """CoNLL-2000."""
    return Chunking(options.quick)


def gather_rate(data: Tagging) -> float:
    """Bytes per second of gathering the rows of weights of all tokens, in random order of these."""
    K, tokens = len(data.labels), data.packed.tokens
    order = np.random.default_rng(0).permutation(tokens.shape[0])
    indices = tokens[order].indices.astype(np.int32)
    w: Floats = np.ones(tokens.shape[1] * K)
    return rate(lambda: gather_rows(indices, w, K, np.zeros(K)), indices.size * (4.0 + 8.0 * K))


def _case(name: str, data: Tagging, C: float, stream: float, gathered: float) -> Case:
    """One data set and C."""

    def run() -> Outcome:
        watch, problem = Watch(), data.problem(None)
        with watch.watching():
            started = time.process_time()
            result = make_solver("auto", tol=TOLERANCE).solve(problem, FORMULATION, C)
            seconds = time.process_time() - started
        measures = {
            "training": seconds,
            "passes": result.n_passes,
            "cached_passes": result.n_cache_hits / problem.n_examples,
            "converged": float(result.converged),
            "stream": stream / 1e9,
            "gathered": gathered / 1e9,
        }
        for kind, seen in (("oracle", watch.oracle), ("cached", watch.cached)):
            passes = max(seen.examples / problem.n_examples, 1e-9)
            measures[f"{kind}_ms"] = 1e3 * seen.seconds / passes
            measures[f"{kind}_mb"] = seen.n_bytes / passes / 1e6
            measures[f"{kind}_limit"] = 1e3 * seen.n_bytes / passes / stream
            measures[f"{kind}_ratio"] = seen.seconds * stream / max(seen.n_bytes, 1.0)
        inside = watch.oracle.seconds + watch.cached.seconds
        measures["outside"] = 100.0 * (1.0 - inside / max(seconds, 1e-9))
        return Outcome(measures)

    def warm_up() -> None:
        make_solver("auto", tol=1e-6, max_passes=8).solve(data.problem(200), FORMULATION, C)

    targets = [("training", "training", "s"), ("passes", "passes", "")]
    targets += [("cached passes", "cached_passes", ""), ("outside of passes", "outside", "%")]
    targets += [("stream", "stream", "GB/s"), ("rows gathered", "gathered", "GB/s")]
    for kind in ("oracle", "cached"):
        targets += [
            (f"{kind} pass", f"{kind}_ms", "ms"),
            (f"{kind} pass moves", f"{kind}_mb", "MB"),
            (f"{kind} pass at the stream's rate", f"{kind}_limit", "ms"),
            (f"{kind} pass / that", f"{kind}_ratio", ""),
        ]
    return Case(
        name,
        [Contestant("auto", run, warm_up)],
        [Target(title, "auto", measure, unit=unit) for title, measure, unit in targets],
    )
