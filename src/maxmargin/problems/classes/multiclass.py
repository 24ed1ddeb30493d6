"""Multiclass classification: the joint features of (x, y) are x, placed in the slot of class y.

Weights are feature-major, ``w[f * K + y]``, an optional constant feature last.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import Accelerators
from ...engine.oracle import Oracle
from ...engine.packed_problem import (
    PackedProblem,
    entries_of,
    matrix_of,
    rows_at,
    rows_of,
    scores_of_rows,
    sparse_row,
)
from ...engine.rows import Rows, check_codes, make_rows
from ...engine.steps.online_steps import OnlineRule, OnlineState
from ...search.distribution import Distribution, Tables
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...utils.types import Floats, Ints
from .class_pool import ClassPool
from .class_store import ClassStore
from .multiclass_kernels import ClassTerms, best_classes, class_k_best, class_online, class_oracle

__all__ = ["ClassDistribution", "MulticlassProblem", "checked_costs", "class_scores"]


class MulticlassProblem(PackedProblem):
    """Classes with zero-one loss or a cost matrix.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_examples, n_inputs)
        Inputs.
    y : array of int
        Classes, in ``0..n_classes - 1``.
    n_classes : int, optional
        Number of classes; by default one more than the largest.
    costs : array of shape (n_classes, n_classes), optional
        ``costs[y, z]`` is the loss of predicting z for y; zero on the diagonal, positive elsewhere.
        By default 1 off the diagonal.
    cost_rows : array of int, shape (n_examples,), optional
        With it, ``costs`` has any number of rows, of which each example has one: ``costs[row, z]``
        is the loss of predicting z for it, zero for its own class and not negative for others.
    fit_intercept : bool
        Append a constant feature.
    """

    in_threads = True

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        n_classes: int | None = None,
        *,
        costs: ArrayLike | None = None,
        cost_rows: ArrayLike | None = None,
        fit_intercept: bool = False,
    ) -> None:
        self.rows = make_rows(X, fit_intercept=fit_intercept)
        self.labels = np.ascontiguousarray(y, dtype=np.int64)
        if len(self.labels) == 0 and n_classes is None:
            raise ValueError("the number of classes cannot be inferred without examples")
        self.n_classes = int(n_classes if n_classes is not None else self.labels.max() + 1)
        K = self.n_classes
        if len(self.labels) != self.rows.n_rows:
            raise ValueError(f"X has {self.rows.n_rows} rows but y has {len(self.labels)} labels")
        check_codes(self.labels, K, "y")
        self.n_features = self.rows.n_inputs * K
        check_number_of_weights(
            self.n_features, f"{self.rows.n_inputs} features x {K} classes make"
        )
        self._terms: dict[tuple[str, bool], tuple[Floats, Floats, bool]] = {}
        self._own_rows = cost_rows is not None
        if cost_rows is None:
            self.costs, self.cost_rows = checked_costs(costs, K), self.labels
        else:
            self.costs, self.cost_rows = costs_of_rows(costs, cost_rows, self.labels, K)

    def __getstate__(self) -> dict[str, Any]:
        """All but what is computed when it is first asked for."""
        return {**vars(self), "_terms": {}}

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def subset(self, indices: Ints) -> MulticlassProblem:
        """See `Problem.subset`."""
        feature_block = copy.copy(self)
        feature_block.rows, feature_block.labels = rows_at(self.rows, indices), self.labels[indices]
        feature_block.cost_rows = (
            self.cost_rows[indices] if self._own_rows else feature_block.labels
        )
        return feature_block

    def input_of(self, i: int) -> Any:
        """Row i of the inputs, an array or CSR matrix of one row."""
        return matrix_of(self.rows, i, i + 1)

    def output_of(self, i: int) -> int:
        """Class of example i."""
        return int(self.labels[i])

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`: x in the slot of class y."""
        _, inputs, values = entries_of(x, self.rows)
        return sparse_row(inputs * self.n_classes + y, values, self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """The cost of predicting ``y_hat`` for ``y``; see `Problem.loss`."""
        if self._own_rows:
            raise ValueError("the costs of classes depend on their examples, not on the true class")
        return float(self.costs[y, y_hat])

    def predict(self, x: Any, w: Floats) -> int:
        """The class of the largest score; see `Problem.predict`."""
        return int(np.argmax(class_scores(rows_of(x, self.rows), w, self.n_classes)[0]))

    def terms(self, formulation: Formulation) -> ClassTerms:
        """Offsets and scales of the planes of all classes, by rows of the costs."""
        key = formulation.rescaling, formulation.uses_sqrt_loss
        if key not in self._terms:
            offsets, scales = pair_terms(self.costs, formulation)
            others = slice(None) if self._own_rows else ~np.eye(self.n_classes, dtype=bool)
            self._terms[key] = offsets, scales, bool(np.all(scales[others] == 1.0))
        return ClassTerms(*self._terms[key], self.cost_rows)

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated class of each listed example."""
        terms = self.terms(Formulation(rescaling, sqrt_loss=sqrt_loss))
        best = np.empty(len(examples), np.int64)
        K = self.n_classes
        class_oracle(self.rows, self.labels, examples, w, terms, K, best)
        return self._as_planes(examples, best)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong classes of each listed example; see `Problem.k_best`."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        terms = self.terms(Formulation(rescaling, sqrt_loss=sqrt_loss))
        best = np.empty((len(examples), k), np.int64)
        K = self.n_classes
        class_k_best(self.rows, self.labels, examples, w, terms, K, k, best)
        return self._as_planes(examples.repeat(k), best.ravel())

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Best class of each listed example; see `Problem.predictions`."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        best = np.empty(len(examples), np.int64)
        best_classes(self.rows, examples, w, self.n_classes, best)
        return self._as_planes(examples, best)

    def accelerators(self, formulation: Formulation) -> ClassAccelerators:
        """Blocks and pools without copies of x, and steps of online solvers."""
        return ClassAccelerators(self, formulation)

    def _as_planes(self, examples: Ints, candidates: Ints) -> Planes:
        """Rows ``x at the true class minus x at the candidate``, empty where they are the same."""
        rows, K = self.rows, self.n_classes
        truths = self.labels[examples]
        wrong = np.flatnonzero(candidates != truths)
        lengths = np.zeros(len(examples), np.int64)
        if rows.dense.shape[0]:
            inputs = np.arange(rows.n_columns)
            features = np.tile(inputs, len(wrong))
            values = rows.dense[examples[wrong]].ravel()
            counts = np.full(len(wrong), rows.n_columns)
        else:
            starts, ends = rows.indptr[examples[wrong]], rows.indptr[examples[wrong] + 1]
            counts = ends - starts
            shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            entries = np.arange(int(counts.sum())) + shifts
            features, values = rows.indices[entries], rows.values[entries]
        row_of = np.repeat(np.arange(len(wrong)), counts)
        if rows.bias:
            features = np.concatenate([features, np.full(len(wrong), rows.n_columns)])
            values = np.concatenate([values, np.full(len(wrong), rows.bias)])
            row_of = np.concatenate([row_of, np.arange(len(wrong))])
            order = np.argsort(row_of, kind="stable")
            features, values, row_of = features[order], values[order], row_of[order]
            counts = counts + 1
        good = features * K + truths[wrong][row_of]
        bad = features * K + candidates[wrong][row_of]
        lengths[wrong] = 2 * counts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        indices = np.stack([good, bad], axis=1).ravel().astype(np.int32)
        both = np.stack([values, -values], axis=1).ravel().astype(np.float64)
        return Planes(indptr, indices, both, self.costs[self.cost_rows[examples], candidates])


class ClassAccelerators(Accelerators):
    """Multipliers by class, all classes as candidates, and online steps in one kernel."""

    def __init__(self, problem: MulticlassProblem, formulation: Formulation) -> None:
        self.problem = problem
        self.formulation = formulation

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> bool:
        """See `Accelerators`."""
        problem, rows = self.problem, self.problem.rows
        longest = rows.n_columns if rows.dense.shape[0] else int(np.diff(rows.indptr).max())
        row = empty_planes(1, 2 * (longest + 1))
        terms = problem.terms(self.formulation)
        class_online(
            rows, problem.labels, examples, weights, terms, problem.costs, rule, state, row
        )
        return True

    def store(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> ClassStore | None:
        """Blocks as multipliers per class, without copies of x."""
        has_slack = self.formulation.slack != "none"
        return ClassStore(oracle, self.problem, upper_bounds) if has_slack else None

    def pool(self, oracle: Oracle) -> ClassPool:
        """All classes as candidates, scored by one product with the inputs."""
        return ClassPool(oracle, self.problem)


def checked_costs(costs: ArrayLike | None, K: int) -> Floats:
    """A cost matrix of K classes, zero-one if None; ValueError unless it is one."""
    matrix = 1.0 - np.eye(K) if costs is None else np.array(costs, dtype=np.float64)
    if matrix.shape != (K, K):
        raise ValueError(f"costs must have shape {(K, K)}, got {matrix.shape}")
    wrong = ~np.isfinite(matrix) | (matrix < 0)
    wrong |= (matrix == 0) != np.eye(K, dtype=bool)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"costs[{row}, {column}] is {matrix[row, column]}; costs must be 0 on the "
            "diagonal and positive elsewhere"
        )
    return matrix


def costs_of_rows(
    costs: ArrayLike | None, cost_rows: ArrayLike, labels: Ints, K: int
) -> tuple[Floats, Ints]:
    """Costs by rows that examples name; ValueError unless their own classes cost nothing."""
    table = np.array(costs, dtype=np.float64)
    rows = np.ascontiguousarray(cost_rows, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != K or rows.shape != labels.shape:
        raise ValueError(
            f"costs must have rows of {K} classes, and cost_rows one for each of {len(labels)} "
            f"examples; got shapes {table.shape} and {rows.shape}"
        )
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table):
        raise ValueError(f"cost_rows must be in 0..{len(table) - 1}, the rows of costs")
    wrong = ~(np.isfinite(table) & (table >= 0.0))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"costs[{row}, {column}] is {table[row, column]}; costs must be finite numbers >= 0"
        )
    own = table[rows, labels]
    if own.any():
        i = int(np.argmax(own))
        raise ValueError(
            f"costs[{rows[i]}, {labels[i]}] is {own[i]}, the cost of the true class of example "
            f"{i}; it must be 0"
        )
    return table, rows


def pair_terms(costs: Floats, formulation: Formulation) -> tuple[Floats, Floats]:
    """Offset and scale of the plane of each (true class, other class)."""
    offsets, scales = formulation.plane_terms(costs.ravel())
    return offsets.reshape(costs.shape).copy(), scales.reshape(costs.shape).copy()


def class_scores(rows: Rows, w: Floats, n_classes: int, n_jobs: int | None = None) -> Floats:
    """Scores <w, psi(x, y)> of all classes for every row."""
    weights = as_weights(w, rows.n_inputs * n_classes)
    return scores_of_rows(rows, weights.reshape(rows.n_inputs, n_classes), n_jobs)


class ClassDistribution(Distribution):
    """Classes of examples by their scores, one of each example in a row."""

    def __init__(self, scores: Floats) -> None:
        self.scores = scores.astype(np.float64)

    def sums(self, temperature: float, *, soft: bool) -> tuple[Tables, Floats]:
        """See `Distribution`; all examples are in one table, where they have the same sum."""
        scaled = self.scores / temperature
        reduce = np.logaddexp.reduce if soft else np.maximum.reduce
        return [scaled - reduce(scaled, axis=1, keepdims=True)], np.zeros(1)

    def check_possible(self, example: int) -> None:
        """See `Distribution`: some class is always possible."""

    def lengths(self) -> Ints:
        """See `Distribution`."""
        return np.ones(len(self.scores), np.int64)

    def shown(self, tables: Tables) -> Any:
        """See `Distribution`."""
        return tables[0]
