"""The plane store of dependency trees whose loss adds up over arcs: planes are lists of arcs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.cutting_planes import empty_planes
from ...engine.cost_model import BLOCK_ENTRY
from ...engine.feature_blocks import FeatureBlocks
from ...engine.oracle import Oracle
from ...engine.steps.block_steps import block_gap
from ...engine.store.arena import Arena, new_places, new_scratch
from ...engine.store.block_store import BlockReport, StepRule, visits
from ...engine.store.joint_planes import PlaneRows
from ...engine.store.plane_kernels import (
    append_multiplied,
    enter_plane,
    has_capacity,
    improve_planes,
    list_block,
    local_product,
    rate_plane,
    score_planes,
    sum_block,
)
from ...engine.store.planes import PlaneStore
from ...jit.decorator import kernel
from ...utils.types import Floats, Ints, Ints32
from .features import LABEL_ALONE_MODIFIER, LABEL_PAIR_MODIFIER, ArcKeys
from .kernels import (
    ANY_ERROR,
    RIGHT_LABEL,
    DependencyOptions,
    make_work,
    score_sentence,
    search_sum,
)
from .scores import arc_features, count_fixed

__all__ = ["TreeStore"]


# ----- lists of arcs ------------------------------------------------------------------------------


@kernel(inline=True)
def list_features(arcs, i, arc, features):
    """Write the features of an arc of sentence i, given by its number; returns how many."""
    first = arcs.bounds[i]
    label = -1
    if arcs.n_labels > 0:
        label = arc % arcs.n_labels
        arc //= arcs.n_labels
    nodes = arcs.bounds[i + 1] - first
    return arc_features(arcs, first, arc // nodes, arc % nodes, label, features)


@kernel(allocates=False)
def gather_arcs(arcs, i, chosen, start, end, w, features, out):
    """out[k] = the score of arc chosen[k] of sentence i, by its features."""
    for k in range(start, end):
        total = 0.0
        for e in range(list_features(arcs, i, chosen[k], features)):
            total += w[features[e]]
        out[k] = total


@kernel(allocates=False)
def scatter_arcs(arcs, i, chosen, n_chosen, steps, w, features):
    """Add steps[k] times arc chosen[k] of sentence i to w."""
    for k in range(n_chosen):
        if steps[k] != 0.0:
            for e in range(list_features(arcs, i, chosen[k], features)):
                w[features[e]] += steps[k]


@kernel(allocates=False)
def _write_change(arcs, i, scratch, n_local, w, features):
    """Add the local vector to w and clear it."""
    scatter_arcs(arcs, i, scratch.features, n_local, scratch.dense, w, features)
    for f in range(n_local):
        scratch.dense[f] = 0.0


@kernel(allocates=False)
def _arc_products(arcs, i, scratch, n_local, features):
    """Products of all local arcs with the plane in the local vector, into scratch.products."""
    expanded = scratch.expanded  # zero before and after
    scatter_arcs(arcs, i, scratch.features, n_local, scratch.dense, expanded, features)
    gather_arcs(arcs, i, scratch.features, 0, n_local, expanded, features, scratch.products)
    for f in range(n_local):
        if scratch.dense[f] != 0.0:
            for e in range(list_features(arcs, i, scratch.features[f], features)):
                expanded[features[e]] = 0.0


# ----- one sentence -------------------------------------------------------------------------------


@kernel(allocates=False)
def _keep_scores(n, gold, work, kept):
    """Copy the scores of all arcs before the search changes them."""
    for h in range(n + 1):
        for m in range(1, n + 1):
            kept[h * (n + 1) + m] = work.scores[h, m]
    for m in range(1, n + 1):
        kept[gold[m] * (n + 1) + m] = work.gold_scores[RIGHT_LABEL, m]


@kernel(allocates=False)
def _weigh(arcs, i, scratch, start, end, w, kept, features):
    """Scores of the local arcs from ``start`` on, into scratch.weights."""
    if arcs.n_labels > 0:
        gather_arcs(arcs, i, scratch.features, start, end, w, features, scratch.weights)
        return
    for f in range(start, end):
        scratch.weights[f] = kept[scratch.features[f]]


@kernel(allocates=False)
def _write_row(n, n_labels, gold, gold_labels, heads, work, row):
    """psi(gold) - psi(found) in arcs as the only row of ``row``; returns the number of errors."""
    filled = 0
    for m in range(1, n + 1):
        if work.wrong[ANY_ERROR, m] == 0:
            continue
        right, found = gold[m] * (n + 1) + m, heads[m] * (n + 1) + m
        if n_labels > 0:
            right = right * n_labels + gold_labels[m]
            found = found * n_labels + work.labels[heads[m], m]
        row.indices[filled] = right
        row.indices[filled + 1] = found
        row.values[filled] = 1.0
        row.values[filled + 1] = -1.0
        filled += 2
    row.indptr[1] = filled
    return filled // 2


# ----- passes -------------------------------------------------------------------------------------


@kernel(allocates=False)
def oracle_pass_trees(store, examples, rule, done, report, trees, work, kept, heads, row):
    """Visit the blocks of examples[done:] by true oracle calls.

    Like `plane_kernels.absorb_planes`, with the plane found here, at the weights of the moment.
    ``work`` is scratch of the search, ``kept`` for the scores of all arcs, ``heads`` for a tree,
    ``row`` for one sparse row. Returns how many examples are done.
    """
    arena, _, blocks, used, scratch, w, dual = store
    arcs, features = trees.arcs, work.features[0]
    gaps, hinges = report
    for r in range(done, len(examples)):
        i = examples[r]
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        first = arcs.bounds[i]
        n = arcs.bounds[i + 1] - first - 1
        if not has_capacity(arena, blocks, used, scratch, i, 2 * n):
            return r
        gold = trees.gold[first : first + n + 1]
        labels = trees.labels[first : first + n + 1]
        unit = 1.0 / n if trees.options.normalized else 1.0
        gold_score = score_sentence(arcs, first, n, w, 1.0, gold, labels, work)
        if arcs.n_labels == 0:
            _keep_scores(n, gold, work, kept)
        n_wrong = 0
        row.indptr[1] = 0
        if search_sum(n, gold, gold_score, trees.options, unit, work, heads):
            n_wrong = _write_row(n, arcs.n_labels, gold, labels, heads, work, row)
        n_live, n_known = list_block(arena, blocks, i, scratch)
        n_local = enter_plane(scratch, row, 0, 1.0, n_known)
        _weigh(arcs, i, scratch, 0, n_local, w, kept, features)
        shift = score_planes(arena, scratch, n_live, upper_bound, ridge)
        hinges[r] = n_wrong * unit - local_product(scratch, n_local)
        value = hinges[r] - shift
        gap, steps, new = rate_plane(scratch, n_live, upper_bound, ridge, rule, value)
        gaps[r] = gap
        if new:
            _arc_products(arcs, i, scratch, n_local, features)
            append_multiplied(
                arena,
                blocks,
                used,
                scratch,
                i,
                n_wrong * unit,
                value,
                n_live,
                n_known,
                n_local,
            )
            n_live += 1
            n_known = n_local
        else:
            for f in range(n_local):
                scratch.dense[f] = 0.0
        if steps and rule.max_steps > 0:
            gain, changed = improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap)
            dual[0] += gain
            if changed:
                _write_change(arcs, i, scratch, n_known, w, features)
    return len(examples)


@kernel(allocates=False)
def cached_pass_trees(store, examples, rule, gaps, arcs, features):
    """Improve the blocks of ``examples`` from their stored planes; reports gaps before that."""
    arena, _, blocks, _, scratch, w, dual = store
    for r in range(len(examples)):
        i = examples[r]
        gaps[r] = 0.0
        if blocks.count[i] == 0:
            continue
        upper_bound, ridge = blocks.upper_bound[i], blocks.ridge[i]
        n_live, n_local = list_block(arena, blocks, i, scratch)
        gather_arcs(arcs, i, scratch.features, 0, n_local, w, features, scratch.weights)
        score_planes(arena, scratch, n_live, upper_bound, ridge)
        gap, _ = block_gap(scratch.scores, scratch.alpha, n_live + 1, upper_bound, ridge)
        gaps[r] = gap
        if gap > rule.threshold * upper_bound and rule.max_steps > 0:
            gain, changed = improve_planes(arena, scratch, n_live, upper_bound, ridge, rule, gap)
            dual[0] += gain
            if changed:
                _write_change(arcs, i, scratch, n_local, w, features)


@kernel(allocates=False)
def add_weighted_trees(arena, blocks, weights, scratch, arcs, features, direction):
    """Add sum_p weights[p] a_p to ``direction``."""
    for i in range(len(blocks.first)):
        if sum_block(arena, blocks, i, weights, scratch.dense):
            _, n_local = list_block(arena, blocks, i, scratch)
            _write_change(arcs, i, scratch, n_local, direction, features)


@kernel(allocates=False)
def count_row_features(arcs, block, rows, features, sizes):
    """sizes[k] = features of all arcs of row k, a plane of sentence block[k]."""
    for k in range(len(rows.first)):
        sizes[k] = 0
        for e in range(rows.first[k], rows.last[k]):
            sizes[k] += list_features(arcs, block[k], rows.ids[e], features)


@kernel(allocates=False)
def write_row_features(arcs, block, rows, features, out):
    """Rows of arcs as rows of features."""
    for k in range(len(rows.first)):
        filled = out.first[k]
        for e in range(rows.first[k], rows.last[k]):
            for f in range(list_features(arcs, block[k], rows.ids[e], features)):
                out.ids[filled] = features[f]
                out.values[filled] = rows.values[e]
                filled += 1


if TYPE_CHECKING:
    from .problem import DependencyProblem

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
