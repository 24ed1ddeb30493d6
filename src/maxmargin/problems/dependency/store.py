"""The plane store of dependency trees whose loss adds up over arcs: planes are lists of arcs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...cutting_planes import empty_planes
from ...engine.arena import Arena, new_places, new_scratch
from ...engine.block_store import BlockReport, StepRule, visits
from ...engine.cost_model import BLOCK_ENTRY
from ...engine.feature_blocks import FeatureBlocks
from ...engine.joint_planes import PlaneRows
from ...engine.oracle import Oracle
from ...engine.planes import PlaneStore
from ...types import Floats, Ints, Ints32
from .features import LABEL_ALONE_MODIFIER, LABEL_PAIR_MODIFIER, ArcKeys
from .scores import count_fixed
from .store_kernels import (
    add_weighted_trees,
    cached_pass_trees,
    count_row_features,
    oracle_pass_trees,
    write_row_features,
)
from .work import DependencyOptions, make_work

if TYPE_CHECKING:
    from .problem import DependencyProblem

__all__ = ["TreeStore"]

# Work of a feature of an arc, and of a feature of its label, in a search.
ARC_FEATURE, LABEL_FEATURE = 5.0, 1.5


class Trees(NamedTuple):
    """The examples, as kernels need them: keys of the nodes, true heads and labels by node."""

    arcs: ArcKeys
    gold: Ints32
    labels: Ints32
    options: DependencyOptions


class TreeStore(PlaneStore):
    """Planes of dependency trees in arcs, with the oracle inside the pass over the blocks.

    An arc has some eighty features, so that planes take a fraction of the memory and of the time to
    move them. Their features are found by hashing, as in the search.
    """

    visits_in_order = True

    def __init__(
        self, oracle: Oracle, problem: DependencyProblem, upper_bounds: Floats, cache_bytes: int
    ) -> None:
        arcs = problem.arcs
        self.trees = Trees(arcs, problem.gold, problem.gold_labels, problem.options)
        super().__init__(oracle, upper_bounds, cache_bytes)
        self.entry_size = float(count_fixed(arcs))
        self._block_work = BLOCK_ENTRY * self.entry_size

    @property
    def counts_blocks(self) -> bool:
        """See `PlaneStore`; an arc is in the true tree, or in the other one."""
        return True

    @property
    def search_work(self) -> float:
        """See `PlaneStore`: all arcs are scored, under all labels."""
        arcs = self.trees.arcs
        of_labels = arcs.starts[LABEL_ALONE_MODIFIER + 1] - arcs.starts[LABEL_PAIR_MODIFIER]
        of_arc = ARC_FEATURE * (count_fixed(arcs) - of_labels)
        of_arc += LABEL_FEATURE * of_labels * arcs.n_labels
        return float(np.mean(np.diff(arcs.bounds).astype(np.float64) ** 2) * of_arc)

    def _make_arrays(self, n_filled: int) -> None:
        """See `PlaneStore`."""
        super()._make_arrays(n_filled)
        arcs, options = self.trees.arcs, self.trees.options
        longest = int(np.diff(arcs.bounds).max(initial=1))
        places = new_places(longest * longest * max(arcs.n_labels, 1))
        self.scratch = new_scratch(places, np.zeros(self.oracle.n_features), 1024, 32)
        self._work = make_work(arcs, longest, options.projective)
        self._kept = np.empty(longest * longest)
        self._heads = np.empty(longest, np.int32)
        self._longest_row = 2 * longest
        self._row = empty_planes(1, self._longest_row)
        self._row.indptr[0] = 0

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """True oracle calls, new planes and steps, one sentence after the other."""
        report = BlockReport(np.empty(len(examples)), np.empty(len(examples)))
        self.work += self.work_on(examples) + len(examples) * self.oracle.work

        def oracle_pass(done: int) -> int:
            return oracle_pass_trees(
                self._arrays,
                examples,
                rule,
                done,
                report,
                self.trees,
                self._work,
                self._kept,
                self._heads,
                self._row,
            )

        self._until_done(examples, self._longest_row, oracle_pass)
        self.oracle.count(len(examples))
        return report

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """See `BlockStore`; the oracle outside has no planes in arcs."""
        return visits(self, examples, size, rule)

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Steps from stored planes; returns the blocks' gaps before."""
        gaps = np.empty(len(examples))
        self.reserve_scratch(examples, 0)
        self.work += self.work_on(examples)
        cached_pass_trees(self._arrays, examples, rule, gaps, self.trees.arcs, self._features)
        return gaps

    @property
    def _n_parts(self) -> int:
        """See `PlaneStore`: arcs are numbered within their sentence."""
        return len(self.scratch.places.table)

    def _check_parts(self, arena: Arena) -> None:
        """See `PlaneStore`."""
        arcs = self.trees.arcs
        block = np.repeat(arena.block, np.diff(arena.new_start))
        nodes = (arcs.bounds[block + 1] - arcs.bounds[block]).astype(np.int64)
        heads, modifiers = np.divmod(arena.new_features // max(arcs.n_labels, 1), nodes)
        if not ((heads < nodes) & (modifiers > 0) & (heads != modifiers)).all():
            raise ValueError("arena.new_features: a sentence has arcs of other tokens")

    @property
    def _features(self) -> Ints32:
        """Space for the features of an arc."""
        return self._work.features[0]

    def add_planes(self, weights: Floats, total: Floats) -> None:
        """See `PlaneStore`."""
        self.reserve_scratch(np.arange(len(self.upper_bounds)), 0)
        given = self.arena, self.blocks, weights, self.scratch, self.trees.arcs, self._features
        add_weighted_trees(*given, total)

    def plane_rows(self, planes: Ints) -> tuple[PlaneRows, FeatureBlocks]:
        """See `PlaneStore`; in single weights."""
        in_arcs, feature_blocks = super().plane_rows(planes)
        block, sizes = self.arena.block[planes], np.empty(len(planes), np.int64)
        count_row_features(self.trees.arcs, block, in_arcs, self._features, sizes)
        ends = np.cumsum(sizes)
        size = int(ends[-1]) if len(ends) else 0
        rows = PlaneRows(ends - sizes, ends, np.empty(size, np.int32), np.empty(size))
        write_row_features(self.trees.arcs, block, in_arcs, self._features, rows)
        return rows, feature_blocks
