"""The working set of the one-slack solver: aggregated planes, their Gram matrix and multipliers."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import dual_value, line_step
from ...utils.schema import Count, Number, checked_arrays, from_values, numbers, whole
from ...utils.types import Floats, Ints, Ints32
from ..parallel.threads import Threads, each_range
from ..steps.joint_qp import JointPlanes, solve_jointly
from ..store.arena import grown
from ..store.compaction import keep_rows
from ..training.state import FULL, Arrays, StoredPlanes, check_budget, from_text, to_text
from .master import fsmo, line_searches, master_gap, printed_fsmo, smo
from .pool_kernels import sparse_combination, sparse_products, write_non_zeros

__all__ = ["Bundle", "stored_dense"]

logger = logging.getLogger("maxmargin")

DENSE_BELOW = 2**16  # features up to which planes are stored dense
KEPT = ("offset", "alpha", "scores", "idle", "gram", "matrix", "starts", "ids", "values")
PRODUCT_WORK = 2.0  # counted work of an entry of a plane in a product or sum
# Bytes of an entry of a plane, dense or sparse, while arrays grow: old and new are both there then,
# of the sparse ones number by number and value by value.
DENSE_ENTRY, SPARSE_ENTRY = 16, 20
GRAM_FRACTION = 0.25  # of the room, for products of planes
LEAST_PLANES = 4  # for which there has to be room
FILLED = 0.67  # share of the room that is filled after planes were dropped for lack of it
MOST_STEPS = 10**6  # of pairs, in a solution by the rules of papers
ALIKE = 1e-14  # relative difference of planes that are the same but for rounding


class _KeptNumbers(NamedTuple):
    """Planes in use, their bound, bytes."""

    size: Count
    upper_bound: Number
    room: Count


def stored_dense(n_features: int) -> bool:
    """Whether planes of so many features are stored dense."""
    return n_features <= DENSE_BELOW


class Bundle:
    """Aggregated planes ``(b, a)`` with multipliers that sum to at most ``cap``.

    Planes are stored dense where there are few features, else sparse. The Gram matrix gets a row
    with each plane and loses one with each that is dropped; the multipliers and the planes' values
    at ``w = sum alpha a`` stay those of the last solution.

    Parameters
    ----------
    n_features : int
        Length of the planes.
    cap : float
        Bound on the sum of the multipliers.
    dense : bool, optional
        Whether planes are stored dense; those that are may not become longer.
    room : int
        Bytes for planes and their products. Where it is short, planes without weight go first, then
        those with the least are merged into one, which changes neither ``w`` nor the dual value.
    """

    def __init__(
        self, n_features: int, upper_bound: float, dense: bool | None = None, room: int = 2**62
    ) -> None:
        self.n_features = n_features
        self.upper_bound = upper_bound
        self.room = room
        self._warned_of_room = self._warned_of_merging = False
        self.dense = stored_dense(n_features) if dense is None else dense
        self.size = 0
        self.offset: Floats = np.zeros(8)
        self.alpha: Floats = np.zeros(8)
        self.scores: Floats = np.zeros(8)  # offset - gram @ alpha
        self.idle: Ints = np.zeros(8, np.int64)
        self.gram: Floats = np.zeros((8, 8))
        rows = min(8, max(LEAST_PLANES, self._most_entries // max(n_features, 1)))
        self.matrix: Floats = np.zeros((rows if self.dense else 0, n_features))
        self.starts: Ints = np.zeros(9, np.int64)
        self.ids: Ints32 = np.empty(0, np.int32)
        self.values: Floats = np.empty(0)

    def arrays(self) -> Arrays:
        """The planes and multipliers, as arrays by name."""
        kept = {name: getattr(self, name) for name in KEPT}
        numbers = {name: getattr(self, name) for name in ("size", "upper_bound", "room")}
        return {**kept, "numbers": to_text(numbers)}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of a bundle of planes of this kind has given."""
        kept = from_values(_KeptNumbers, from_text(arrays["numbers"]), "numbers")
        m, room, n_entries = kept.size, len(arrays["offset"]), len(arrays["ids"])
        declared = {
            **{name: numbers(room) for name in ("offset", "scores")},
            "alpha": numbers(room, low=0.0),
            "idle": whole(room),
            "gram": numbers(room, room),
            "matrix": numbers(None, self.n_features) if self.dense else numbers(0, None),
            "starts": whole(None, below=n_entries + 1),
            "ids": whole(n_entries, below=self.n_features, types=(np.int32,)),
            "values": numbers(n_entries),
        }
        own = checked_arrays(arrays, declared)
        rows, ids = own["starts"][: m + 1], own["ids"]
        in_rows = np.ones(n_entries, np.bool_)  # entries that follow one of the same plane
        in_rows[rows[rows < n_entries]] = False
        in_rows[rows[-1] :] = False
        for fits, what in (
            (m <= (min(room, len(own["matrix"])) if self.dense else room), "numbers.size"),
            (kept.upper_bound == self.upper_bound, "numbers.cap"),
            (own["alpha"][:m].sum() <= self.upper_bound * (1.0 + FULL), "alpha"),
            (len(own["starts"]) > room and rows[0] == 0 and (np.diff(rows) >= 0).all(), "starts"),
            ((np.diff(ids) > 0)[in_rows[1:]].all(), "ids"),
        ):
            if not fits:
                raise ValueError(f"{what}: does not fit the other arrays")
        self.room = check_budget(kept.room, self.room, sum(array.nbytes for array in own.values()))
        self.size = m
        for name in KEPT:
            setattr(self, name, own[name])

    def planes_at(self, w: Floats, sums: Floats) -> StoredPlanes:
        """See `SolverState`; planes are sums over all examples, by these weights."""
        offsets = self.offset[: self.size]

        def vector(k: int) -> Floats:
            alpha, total = np.zeros(self.size), np.zeros(self.n_features)
            alpha[k] = 1.0
            if self.dense:
                return self.matrix[k].copy()
            sparse_combination(self.starts, self.ids, self.values, self.size, alpha, 0, total)
            return total

        values = offsets - self.products(w)
        return StoredPlanes(np.full(self.size, -1), values, offsets, vector, sums)

    @property
    def n_support_vectors(self) -> int:
        """Planes whose multiplier is positive."""
        return int(np.count_nonzero(self.alpha[: self.size] > 0.0))

    @property
    def slack(self) -> float:
        """The master's slack: the largest value of a plane at ``w``, at least 0."""
        return max(0.0, float(self.scores[: self.size].max(initial=0.0)))

    def widen(self, n_features: int) -> None:
        """Make the planes longer, by zeros."""
        self.n_features = n_features

    def weights(self, threads: Threads | int = 1) -> Floats:
        """``w = sum alpha a``."""
        m = self.size
        if self.dense:
            return np.asarray(self.alpha[:m] @ self.matrix[:m])
        w = np.zeros(self.n_features)

        def combine(first: int, end: int) -> None:
            own = slice(first, end)
            sparse_combination(self.starts, self.ids, self.values, m, self.alpha, first, w[own])

        work = PRODUCT_WORK * int(self.starts[m]) / max(self.n_features, 1)
        each_range(threads, self.n_features, work, combine)
        return w

    def dual(self, w: Floats | None = None) -> float:
        """Dual value; from ``w`` if that is at hand, which is more exact than the Gram matrix."""
        if w is not None:
            return dual_value(w, self.linear(), Formulation(), 1.0)
        m = self.size
        return 0.5 * (self.linear() + float(self.alpha[:m] @ self.scores[:m]))

    def linear(self) -> float:
        """Sum of the multipliers times the offsets."""
        m = self.size
        return float(self.alpha[:m] @ self.offset[:m])

    def products(self, plane: Floats, threads: Threads | int = 1) -> Floats:
        """Inner products of all planes with a vector."""
        m = self.size
        if self.dense:
            return np.asarray(self.matrix[:m] @ plane)
        out = np.empty(m)

        def multiply(first: int, end: int) -> None:
            sparse_products(self.starts, self.ids, self.values, first, end, plane, out)

        each_range(threads, self.starts[: m + 1], PRODUCT_WORK, multiply)
        return out

    def add(self, plane: Floats, offset: float, threads: Threads | int = 1) -> None:
        """Append a plane with multiplier 0, unless it is there."""
        row, square = self.products(plane, threads), float(plane @ plane)
        if self._has(plane, offset, row, square):
            return
        if self._make_room(self.n_features if self.dense else int(np.count_nonzero(plane))):
            row = self.products(plane, threads)
        self._append(plane, offset, row, square)

    def _append(self, plane: Floats, offset: float, row: Floats, square: float) -> None:
        """Append a plane with multiplier 0, given its products."""
        m = self.size
        self._grow()
        self.gram[m, :m] = row
        self.gram[:m, m] = row
        self.gram[m, m] = square
        if self.dense:
            self.matrix[m] = plane
        else:
            self._append_sparse(plane)
        self.offset[m] = offset
        self.alpha[m] = 0.0
        self.scores[m] = offset - float(row @ self.alpha[:m])
        self.idle[m] = 0
        self.size = m + 1

    def _has(self, plane: Floats, offset: float, row: Floats, square: float) -> bool:
        """Whether the plane is stored already, given its products with all and with itself.

        Copies would share the weight of one plane, which steps then take off one by one.
        """
        m = self.size
        squares = self.gram.diagonal()[:m]
        near = np.abs(squares - 2.0 * row + square) <= ALIKE * square  # |a - plane|^2
        near &= np.abs(self.offset[:m] - offset) <= ALIKE * abs(offset)
        return any(self._is_stored(plane, int(k)) for k in np.flatnonzero(near))

    def _is_stored(self, plane: Floats, k: int) -> bool:
        """Whether plane k is this one, up to rounding of its sums."""
        if self.dense:
            stored = self.matrix[k]
        else:
            entries = slice(self.starts[k], self.starts[k + 1])
            stored, plane = self.values[entries], plane[self.ids[entries]]
        return bool(
            np.abs(stored - plane).max(initial=0.0) <= ALIKE * np.abs(stored).max(initial=0)
        )

    def solve(
        self, stop_gap: float, threshold: float = 0.0, max_rounds: int = 2000, qp: str = "fsmo"
    ) -> float:
        """Improve the multipliers up to a duality gap of the master; returns the gap reached.

        Multipliers whose scores are off by no more than ``threshold`` are left as they are.
        """
        m = self.size
        self.refresh()
        upper_bound = self.upper_bound
        problem = self.gram, self.scores, self.alpha, m, upper_bound
        if qp == "fsmo_paper":
            gap = printed_fsmo(*problem, threshold, MOST_STEPS)
            self._count_idle()
            return float(gap)
        if qp == "smo":
            gap = smo(*problem, stop_gap, threshold, MOST_STEPS)
        else:
            gap = fsmo(*problem, stop_gap, threshold, max_rounds)
        if gap > stop_gap and threshold == 0.0 and upper_bound > 0.0:
            gap = min(gap, self._move_all(stop_gap))
        self._count_idle()
        return float(gap)

    def _move_all(self, stop_gap: float) -> float:
        """Improve all multipliers together, where single steps take too long; returns the gap."""
        m = self.size
        one_block = np.zeros(m, np.int64), np.array([self.upper_bound]), np.zeros(1)
        planes = JointPlanes(self.gram[:m, :m], self.offset[:m], self.alpha[:m], *one_block)
        self.alpha[:m] = solve_jointly(planes, stop_gap).alpha
        self.refresh()
        return float(master_gap(self.scores, self.alpha, m, self.upper_bound))

    def search_lines(self, stop_gap: float) -> float:
        """Improve the multipliers by a line search for each plane; returns the gap reached."""
        m = self.size
        self.refresh()
        gap = line_searches(
            self.gram, self.offset, self.scores, self.alpha, m, self.upper_bound, stop_gap
        )
        self._count_idle()
        return float(gap)

    def search_line(self) -> float:
        """Improve the multipliers by one exact line search; returns the gap reached.

        It leads from all multipliers, in proportion, to the plane of largest score: the direction
        in the proof of Theorem 5 of Joachims et al. (2009).
        """
        m = self.size
        self.refresh()
        alpha, scores = self.alpha[:m], self.scores[:m]
        direction = -alpha
        if m and scores.max() > 0.0:
            direction[np.argmax(scores)] += self.upper_bound
        slope = float(direction @ scores)
        step, _ = line_step(slope, float(direction @ self.gram[:m, :m] @ direction))
        alpha += step * direction
        np.maximum(alpha, 0.0, out=alpha)
        self.refresh()
        self._count_idle()
        return float(master_gap(self.scores, self.alpha, m, self.upper_bound))

    def _count_idle(self) -> None:
        """Count another solution for the planes that have no weight in it."""
        m = self.size
        self.idle[:m] = np.where(self.alpha[:m] > 0.0, 0, self.idle[:m] + 1)

    def refresh(self) -> None:
        """Compute the scores afresh: what rounding added in many steps is gone."""
        m = self.size
        self.scores[:m] = self.offset[:m] - self.gram[:m, :m] @ self.alpha[:m]

    def rescale(self, upper_bound: float) -> None:
        """Change the bound, scaling the multipliers with it."""
        self.alpha *= upper_bound / self.upper_bound if self.upper_bound > 0.0 else 0.0
        self.upper_bound = upper_bound
        self.refresh()

    def drop(self, idle_limit: int) -> None:
        """Drop planes that had no weight in the last ``idle_limit`` solutions."""
        m = self.size
        keep = np.flatnonzero((self.idle[:m] < idle_limit) | (self.alpha[:m] > 0.0))
        if len(keep) < m:
            self._select(keep)

    @property
    def _most_entries(self) -> int:
        """Entries of planes for which there is room."""
        return int((1.0 - GRAM_FRACTION) * self.room) // (
            DENSE_ENTRY if self.dense else SPARSE_ENTRY
        )

    @property
    def _most_planes(self) -> int:
        """Planes for whose products there is room, those before they grow included."""
        return max(LEAST_PLANES, int((GRAM_FRACTION * self.room / 16) ** 0.5))

    def _make_room(self, entries: int) -> bool:
        """Drop and merge planes where one more, of so many entries, does not fit; whether it did.

        The planes with the largest multipliers stay, then those that had some last.
        """
        m = self.size
        lengths = np.full(m, self.n_features) if self.dense else np.diff(self.starts[: m + 1])
        total = int(lengths.sum()) + entries
        if total <= self._most_entries and m < self._most_planes:
            return False
        least = LEAST_PLANES * max(entries, int(lengths.max(initial=0)))
        if self._most_entries < least:
            self.room = int(least * (DENSE_ENTRY if self.dense else SPARSE_ENTRY) * 1.1)
            self.room = int(self.room / (1.0 - GRAM_FRACTION))
            if not self._warned_of_room:
                self._warned_of_room = True
                logger.warning(
                    "cache_mb is too small for a few aggregated planes; using %.3g MB for them",
                    self.room / 2**20,
                )
        order = np.lexsort((self.idle[:m], -self.alpha[:m]))
        merged = min(self.n_features, int(lengths.sum()))
        filled = np.cumsum(lengths[order]) + entries + merged
        stays = filled <= FILLED * self._most_entries
        stays[max(1, int(FILLED * self._most_planes) - 2) :] = False
        rest = order[~stays]
        weighty = np.sort(rest[self.alpha[rest] > 0.0])
        keep = np.sort(order[stays])
        if len(weighty) > 1:
            self._merge(weighty, keep)
        else:
            self._select(np.sort(np.concatenate((keep, weighty))))
        return True

    def _merge(self, which: Ints, keep: Ints) -> None:
        """Put one plane, their mean by weight, in place of these, and keep only those beside it."""
        m = self.size
        if not self._warned_of_merging:
            self._warned_of_merging = True
            logger.warning(
                "cache_mb is too small for all aggregated planes that have weight: some are "
                "merged, and training takes longer"
            )
        weight = float(self.alpha[which].sum())
        shards = np.zeros(m)
        shards[which] = self.alpha[which] / weight
        plane = np.zeros(self.n_features)
        if self.dense:
            plane += shards @ self.matrix[:m]
        else:
            sparse_combination(self.starts, self.ids, self.values, m, shards, 0, plane)
        row, offset = self.gram[:m, :m] @ shards, float(shards @ self.offset[:m])
        self._select(keep)
        self._append(plane, offset, row[keep], float(plane @ plane))
        self.alpha[self.size - 1] = weight
        self.refresh()

    def _select(self, keep: Ints) -> None:
        """Keep these planes only."""
        k = len(keep)
        for name in ("offset", "alpha", "scores", "idle"):
            array = getattr(self, name)
            array[:k] = array[keep]
        self.gram[:k, :k] = self.gram[np.ix_(keep, keep)]
        if self.dense:
            for new, old in enumerate(keep):
                if new != old:
                    self.matrix[new] = self.matrix[old]
        else:
            ids, values, starts = self.ids, self.values, self.starts
            keep_rows(starts[:-1], starts[1:], keep, ids, values, ids, values, starts)
        self.size = k

    def _append_sparse(self, plane: Floats) -> None:
        """Store the non-zero entries of a plane behind the others."""
        m, most = self.size, self._most_entries
        start = int(self.starts[m])
        count = write_non_zeros(plane, self.ids, self.values, start)
        if start + count > len(self.ids):
            self.ids = grown(self.ids, start, start + count, most=most)
            self.values = grown(self.values, start, start + count, most=most)
            write_non_zeros(plane, self.ids, self.values, start)
        self.starts[m + 1] = start + count

    def _grow(self) -> None:
        """Make the arrays larger where there is no place for one more plane."""
        m = self.size
        if self.dense:
            most = self._most_entries // max(self.n_features, 1)
            self.matrix = grown(self.matrix, m, m + 1, most=most)
        if m < len(self.offset):
            return
        for name in ("offset", "alpha", "scores", "idle"):
            array = getattr(self, name)
            setattr(self, name, grown(array, m, m + 1, most=self._most_planes))
        self.starts = grown(self.starts, m + 1, len(self.offset) + 1, factor=1.0)
        gram = np.zeros((len(self.offset), len(self.offset)))
        gram[:m, :m] = self.gram[:m, :m]
        self.gram = gram
