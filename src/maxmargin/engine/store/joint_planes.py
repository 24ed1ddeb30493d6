"""What stores of sparse planes hand to the joint QP: rows of parts, their products and sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...utils.types import Floats, Ints, Ints32
from ..cost_model import BLOCK_ENTRY
from ..feature_blocks import (
    FeatureBlocks,
    clear_blocks,
    gather_blocks,
    mean_block_size,
    scatter_blocks,
)
from ..steps.joint_qp import JointPlanes, joint_work
from .plane_kernels import list_block

if TYPE_CHECKING:
    from .planes import PlaneStore

__all__ = [
    "MOST_BLOCKS",
    "MOST_PLANES",
    "NO_PRODUCTS",
    "KnownProducts",
    "PlaneRows",
    "add_rows",
    "all_products",
    "copied_planes",
    "planes_work",
    "row_values",
    "solve_planes_jointly",
    "taken_if_better",
]

MOST_PLANES, MOST_BLOCKS = 1000, 500  # that are solved for together


class PlaneRows(NamedTuple):
    """Planes as rows of entries in parts: row k is ``first[k]..last[k] - 1``."""

    first: Ints
    last: Ints
    ids: Ints32
    values: Floats


def planes_work(
    n_planes: int,
    n_new: int,
    n_entries: int,
    feature_blocks: FeatureBlocks,
    solution: float | None = None,
) -> float:
    """Work of new products, and of a solution, a guess unless it is given."""
    if n_planes > MOST_PLANES:
        return np.inf
    pairs = n_new * (1.0 - 0.5 * n_new / max(n_planes, 1))
    products = BLOCK_ENTRY * mean_block_size(feature_blocks) * pairs * n_entries
    return products + (joint_work(n_planes) if solution is None else solution)


def all_products(rows: PlaneRows, feature_blocks: FeatureBlocks, n_weights: int) -> Floats:
    """Products of all pairs of rows."""
    gram = np.empty((len(rows.first), len(rows.first)))
    _add_products(rows, feature_blocks, n_weights, gram, 0)
    return gram


def _add_products(
    rows: PlaneRows, feature_blocks: FeatureBlocks, n_weights: int, gram: Floats, start: int
) -> None:
    """Products of the rows from ``start`` on with all rows."""
    longest = int((rows.last - rows.first).max(initial=0))
    _multiply(rows, feature_blocks, np.zeros(n_weights), np.empty(longest), gram, start)


class KnownProducts(NamedTuple):
    """Products of planes from one joint solution to the next, of rows in the order of ``ids``."""

    ids: Ints
    gram: Floats

    def renumbered(self, planes: Ints, places: Ints) -> KnownProducts:
        """Planes that stay get ids 0, 1, ...: by the places of their blocks, then by old ids."""
        moved = planes[np.lexsort((planes, places))]
        number = np.full(int(max(moved.max(initial=-1), self.ids.max(initial=-1))) + 1, -1)
        number[moved] = np.arange(len(moved))
        ids = number[self.ids]
        kept = np.flatnonzero(ids >= 0)
        return KnownProducts(ids[kept], self._among(kept))

    def order(self, ids: Ints) -> tuple[Ints, Ints]:
        """These ids, sorted ones, those whose products are known first; and the rows of these."""
        wanted = np.zeros(int(max(ids.max(initial=-1), self.ids.max(initial=-1))) + 1, np.bool_)
        wanted[ids] = True
        rows = np.flatnonzero(wanted[self.ids])
        known = self.ids[rows]
        wanted[known] = False
        return np.concatenate([known, np.flatnonzero(wanted)]), rows

    def extended(
        self, known: Ints, rows: PlaneRows, feature_blocks: FeatureBlocks, d: int
    ) -> Floats:
        """Products of all planes in ``rows``, of which the first are these known ones."""
        gram = np.empty((len(rows.first), len(rows.first)))
        gram[: len(known), : len(known)] = self._among(known)
        _add_products(rows, feature_blocks, d, gram, len(known))
        return gram

    def _among(self, rows: Ints) -> Floats:
        """The products of these rows, in increasing order."""
        return self.gram if len(rows) == len(self.ids) else self.gram[np.ix_(rows, rows)]


NO_PRODUCTS = KnownProducts(np.empty(0, np.int64), np.empty((0, 0)))


@kernel
def _multiply(rows, feature_blocks, expanded, buffer, gram, start):
    """From row ``start`` on each is written out as a vector, and the rows before it are scored."""
    for k in range(start, len(rows.first)):
        first, last = rows.first[k], rows.last[k]
        ids = rows.ids[first:last]
        scatter_blocks(feature_blocks, ids, last - first, rows.values[first:last], expanded)
        for q in range(k + 1):
            at, end = rows.first[q], rows.last[q]
            gather_blocks(feature_blocks, rows.ids[at:end], 0, end - at, expanded, buffer)
            product = 0.0
            for e in range(end - at):
                product += rows.values[at + e] * buffer[e]
            gram[k, q] = product
            gram[q, k] = product
        clear_blocks(feature_blocks, ids, last - first, expanded)


def row_values(rows: PlaneRows, feature_blocks: FeatureBlocks, w: Floats) -> Floats:
    """Products of all rows with w."""
    longest = int((rows.last - rows.first).max(initial=0))
    found = np.empty(len(rows.first))
    _row_values(rows, feature_blocks, w, np.empty(longest), found)
    return found


@kernel
def _row_values(rows, feature_blocks, w, buffer, found):
    """Row by row."""
    for k in range(len(found)):
        first, last = rows.first[k], rows.last[k]
        gather_blocks(feature_blocks, rows.ids[first:last], 0, last - first, w, buffer)
        found[k] = 0.0
        for e in range(last - first):
            found[k] += rows.values[first + e] * buffer[e]


def add_rows(rows: PlaneRows, feature_blocks: FeatureBlocks, weights: Floats, w: Floats) -> None:
    """Add the sum of the rows, weighted, to w."""
    longest = int((rows.last - rows.first).max(initial=0))
    _add_rows(rows, feature_blocks, weights, np.empty(longest), w)


@kernel
def _add_rows(rows, feature_blocks, weights, buffer, w):
    """Row by row."""
    for k in range(len(weights)):
        if weights[k] != 0.0:
            first, last = rows.first[k], rows.last[k]
            for e in range(last - first):
                buffer[e] = weights[k] * rows.values[first + e]
            scatter_blocks(feature_blocks, rows.ids[first:last], last - first, buffer, w)


def copied_planes(store: PlaneStore, planes: Ints) -> PlaneRows:
    """Planes of the store as rows of what its dictionaries name."""
    arena = store.arena
    size = int((arena.entry_start[planes + 1] - arena.entry_start[planes]).sum())
    ends = np.empty(len(planes), np.int64), np.empty(len(planes), np.int64)
    rows = PlaneRows(*ends, np.empty(size, np.int32), np.empty(size))
    blocks = arena.block[planes].astype(np.int64)
    store.reserve_scratch(blocks, 0)
    order = np.argsort(blocks, kind="stable")
    _copy_planes(arena, store.blocks, store.scratch, planes, order, rows)
    return rows


@kernel
def _copy_planes(arena, blocks, scratch, planes, order, rows):
    """Copy planes of the arena as rows of global parts, in an order that goes block by block."""
    listed = -1
    filled = 0
    for k in order:
        p = planes[k]
        if arena.block[p] != listed:
            listed = arena.block[p]
            list_block(arena, blocks, listed, scratch)
        rows.first[k] = filled
        for e in range(arena.entry_start[p], arena.entry_start[p + 1]):
            rows.ids[filled] = scratch.features[arena.ids[e]]
            rows.values[filled] = arena.values[e]
            filled += 1
        rows.last[k] = filled


def taken_if_better(
    take: Callable[[Floats], float], before: Floats, after: Floats, value: float
) -> bool:
    """Take the multipliers of a joint solution, unless the true dual is lower there; see `take`.

    Where features differ much in size, products of planes have no digits left for some of them:
    what the solution claims to gain is then rounding. ``take`` sets multipliers and returns the
    dual value, computed afresh from them; ``value`` is that of those before.
    """
    if take(after) >= value:
        return True
    take(before)
    return False


def solve_planes_jointly(store: PlaneStore, stop_gap: float, most_work: float) -> float | None:
    """Solve for the multipliers of all live planes of the plane store.

    None, and nothing is changed, where that takes too much work, or where products of planes are
    rounded too much: by the true dual there is then no gain.
    """
    arena, used, known = store.arena, int(store.used[0]), store.known_products
    chosen = np.flatnonzero(arena.alive[:used] & (store.upper_bounds[arena.block[:used]] > 0))
    m = len(chosen)
    if m == 0 or m > MOST_PLANES or len(np.unique(arena.block[chosen])) > MOST_BLOCKS:
        return None
    chosen, known_rows = known.order(chosen)
    n_known = len(known_rows)
    sizes = arena.entry_start[chosen + 1] - arena.entry_start[chosen]
    size = int(sizes.sum() * store.entry_size)
    if planes_work(m, m - n_known, size, store.feature_blocks) > most_work:
        return None
    rows, feature_blocks = store.plane_rows(chosen)
    number, block = np.unique(arena.block[chosen], return_inverse=True)
    gram = known.extended(known_rows, rows, feature_blocks, len(store.w))
    store.known_products = KnownProducts(chosen, gram)
    upper_bound, before = store.upper_bounds[number], arena.alpha[chosen]
    if store.formulation.slack != "l1":
        upper_bound = np.full(len(upper_bound), np.inf)
    planes = JointPlanes(
        gram, arena.offset[chosen], before, block, upper_bound, store.blocks.ridge[number]
    )
    solution = store.solve_joint(planes, rows, feature_blocks, stop_gap, most_work)
    store.work += planes_work(m, m - n_known, size, store.feature_blocks, solution.work)

    def take(alpha: Floats) -> float:
        arena.alpha[chosen] = alpha
        store.rebuild()
        return store.dual()

    if solution.gain > 0.0 and not taken_if_better(take, before, solution.alpha, store.dual()):
        return None
    arena.idle[chosen] = np.where(solution.alpha > 0.0, 0, arena.idle[chosen] + 1)
    return solution.gap
