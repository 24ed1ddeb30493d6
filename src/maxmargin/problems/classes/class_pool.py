"""The complete pool of a multiclass problem: all classes of every example, scored at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...engine.cuts.pool import TablePool
from ...engine.oracle import Oracle
from ...engine.rows import add_scores
from ...engine.training.state import Arrays
from ...jit.decorator import kernel
from ...search.violation import plane_value
from ...utils.types import Floats, Ints

if TYPE_CHECKING:
    from .multiclass import MulticlassProblem

__all__ = ["ClassPool"]


class ClassPool(TablePool):
    """All classes as candidates, class y in slot y; see `pool.Pool` for the methods."""

    complete = True
    grows = False

    def __init__(self, oracle: Oracle, problem: MulticlassProblem) -> None:
        self.oracle = oracle
        self.problem = problem
        self.terms = problem.terms(oracle.formulation)

    @property
    def n_weights(self) -> int:
        """Length of the weights."""
        return int(self.problem.n_features or 0)

    def expand(self, w: Floats) -> Floats:
        """The problem's weights: the pool has no others."""
        return w

    def values(self, w: Floats) -> Floats:
        """Values of all classes at ``w``; the gold class has 0."""
        rows, K = self.problem.rows, self.problem.n_classes
        if rows.dense.shape[0]:
            weights = w.reshape(rows.n_inputs, K).astype(rows.dense.dtype, copy=False)
            table = np.ascontiguousarray(rows.dense @ weights[: rows.n_columns], dtype=np.float64)
            if rows.bias:
                table += rows.bias * weights[-1]
        else:
            table = np.zeros((len(self.problem.labels), K))
            sparse_scores(rows, w, K, table)
        scores_to_values(table, self.problem.labels, self.terms)
        return table

    def call(self, w: Floats, check: Callable[[], None]) -> tuple[Floats, Ints]:
        """Hinge values and most violated classes at ``w``."""
        table = self.values(w)
        self.oracle.count(len(table))
        check()
        chosen = np.argmax(table, axis=1)
        hinges = table[np.arange(len(table)), chosen]
        return hinges, np.where(hinges > 0.0, chosen, -1)

    def arrays(self) -> Arrays:
        """Nothing: all classes are known at any time."""
        return {}

    def restore(self, arrays: Arrays) -> None:
        """See `Pool`."""

    def add_up(self, chosen: Ints, weights: Floats, plane: Floats) -> float:
        """Add the planes of the chosen classes, weighted, to ``plane``; returns their offsets."""
        problem = self.problem
        used = np.flatnonzero((chosen >= 0) & (chosen != problem.labels) & (weights != 0.0))
        gold, others = problem.labels[used], chosen[used]
        term_rows = self.terms.rows[used]
        steps = weights[used] * self.terms.scales[term_rows, others]
        rows, K = problem.rows, problem.n_classes
        if rows.dense.shape[0]:
            signs = np.zeros((len(used), K))
            signs[np.arange(len(used)), gold] = steps
            signs[np.arange(len(used)), others] = -steps
            grid = plane.reshape(rows.n_inputs, K)
            grid[: rows.n_columns] += rows.dense[used].T @ signs
            if rows.bias:
                grid[-1] += rows.bias * signs.sum(axis=0)
        else:
            add_class_rows(rows, used, gold, others, steps, K, plane)
        return float(weights[used] @ self.terms.offsets[term_rows, others])


@kernel
def sparse_scores(rows, w, K, table):
    """table[i] = scores of all classes for row i."""
    for i in range(table.shape[0]):
        add_scores(rows, i, w, K, table[i])


@kernel
def scores_to_values(table, labels, terms):
    """Turn scores into hinge values, in place."""
    for i in range(table.shape[0]):
        gold, row = labels[i], terms.rows[i]
        own = table[i, gold]
        for y in range(table.shape[1]):
            gain = table[i, y] - own
            table[i, y] = plane_value(terms.offsets[row, y], terms.scales[row, y], gain)
        table[i, gold] = 0.0


@kernel
def add_class_rows(rows, used, gold, others, steps, K, plane):
    """Add steps[r] times (row used[r] at its gold minus at the other class) to ``plane``."""
    for r in range(len(used)):
        step = steps[r]
        good, bad = gold[r], others[r]
        for e in range(rows.indptr[used[r]], rows.indptr[used[r] + 1]):
            base = np.int64(rows.indices[e]) * K
            x = step * rows.values[e]
            plane[base + good] += x
            plane[base + bad] -= x
        if rows.bias != 0.0:
            base = np.int64(rows.n_columns) * K
            plane[base + good] += step * rows.bias
            plane[base + bad] -= step * rows.bias
