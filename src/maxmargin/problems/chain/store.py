"""The plane store of chains whose loss adds up over tokens: visits without detours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...engine.oracle import Oracle
from ...engine.planes import BlockReport, PlaneStore, StepRule
from ...engine.work import RECOMBINATION
from ...plane_rows import empty_planes
from ...types import Floats, Ints, Ints32
from .store_kernels import visit_chains

if TYPE_CHECKING:
    from .problem import ChainProblem

__all__ = ["ChainStore"]


class SearchWork(NamedTuple):
    """Work arrays of the two searches, for the longest sequence.

    ``forbidden`` is 0 or -inf for transitions (rows 0..K-1), starts (row K) and stops (row K + 1).
    """

    forbidden: Floats
    transition: Floats
    start: Floats
    stop: Floats
    unary: Floats
    forward: Floats
    path: Ints32
    labels: Ints32
    n_labels: Ints32
    back: Ints32


class ChainStore(PlaneStore):
    """Planes of chains, with the oracle inside the pass over the blocks.

    A visit finds each example's plane at the weights its predecessors left, with no array handed
    around in between. A revisit also looks for the best recombination of the block's planes, if the
    rule says so.
    """

    visits_in_order = True

    def __init__(
        self, oracle: Oracle, problem: ChainProblem, caps: Floats, cache_bytes: int
    ) -> None:
        super().__init__(oracle, caps, cache_bytes)
        self.problem = problem
        K, longest = problem.layout.n_labels, problem.longest
        self._work = SearchWork(
            problem.decoder.forbidden(),
            np.empty((K, K)),
            np.empty(K),
            np.empty(K),
            np.empty((longest, K)),
            np.empty((longest, K)),
            np.empty(longest, np.int32),
            np.empty((longest, K), np.int32),
            np.empty(longest, np.int32),
            np.empty((longest, K), np.int32),
        )
        self._longest_row = 4 * longest + 4
        self._row = empty_planes(1, self._longest_row)

    def visit(self, examples: Ints, rule: StepRule) -> BlockReport:
        """True oracle calls, new planes and steps, one example after the other."""
        report = self._pass(examples, rule, cached=False)
        self.oracle.count(len(examples))
        return report

    def revisit(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes and maybe recombinations; returns the blocks' gaps before."""
        if not rule.recombine:
            return super().revisit(examples, rule)
        return self._pass(examples, rule, cached=True).gaps

    def _pass(self, examples: Ints, rule: StepRule, cached: bool) -> BlockReport:
        """Run the kernel until all examples are done, with more space where it asks for it."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        work = self._work_on(examples)
        search = RECOMBINATION * work if cached else len(examples) * self.oracle.work
        self.work += work + search
        done = 0
        while True:
            self._reserve_scratch(examples, self._longest_row)
            done = visit_chains(
                self._arrays,
                examples,
                rule,
                done,
                report,
                self.problem.data,
                self._work,
                self._row,
                cached,
            )
            if done == len(examples):
                return report
            self._reserve(self._longest_row + int(self.blocks.n_features[examples[done:]].max()))
