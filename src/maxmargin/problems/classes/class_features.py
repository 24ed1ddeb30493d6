"""Classes with features: the joint features of (x, y) are all products x_f Lambda(y)_r.

Weights are feature-major, ``w[f * m + r]`` for m output features, an optional constant input
last: a table W of inputs times output features, which scores class y by ``x W Lambda(y)``. With the
identity for Lambda this is the plain multiclass problem; shared output features let classes learn
from each other (Tsochantaridis et al. 2005, section 4.2).
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.cutting_planes import Planes, empty_planes, trim
from ...core.formulation import Formulation, Rescaling
from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.feature_blocks import write_block
from ...engine.packed_problem import (
    PackedProblem,
    entries_of,
    feature_blocks_of,
    matrix_of,
    rows_at,
    rows_of,
    sparse_row,
    sparse_rows,
)
from ...engine.rows import Rows, add_scores, check_codes
from ...jit.decorator import kernel
from ...search.limits import as_examples, as_weights, check_number_of_weights
from ...search.violation import plane_value
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints, Ints32
from .multiclass import checked_costs, class_scores, pair_terms
from .multiclass_kernels import keep_best

__all__ = ["ClassFeatureProblem", "described_class_scores"]


class OutputFeatures(NamedTuple):
    """Features of the classes as CSR rows, and which classes may be candidates."""

    indptr: Ints
    indices: Ints32
    values: Floats
    allowed: Bools
    n_columns: int


class ClassFeatureProblem(PackedProblem):
    """Classes with output features and any costs.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_examples, n_inputs)
        Inputs.
    y : array of int
        Classes, in ``0..n_classes - 1``.
    features : array or sparse matrix of shape (n_classes, n_output_features)
        Output features of the classes.
    costs : array of shape (n_classes, n_classes), optional
        ``costs[y, z]`` is the loss of predicting z for y; zero on the diagonal, positive elsewhere.
        By default 1 off the diagonal.
    allowed : array of bool, optional
        Classes that the oracle may propose. By default those that occur in ``y``: a class without
        examples should not be pushed away from all of them.
    fit_intercept : bool
        Append a constant input.
    """

    in_threads = True

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        features: Any,
        *,
        costs: ArrayLike | None = None,
        allowed: ArrayLike | None = None,
        fit_intercept: bool = False,
    ) -> None:
        rows = sparse_rows(X, fit_intercept)
        labels = np.ascontiguousarray(y, dtype=np.int64)
        check_sparse(features, "features")
        matrix = sp.csr_matrix(features, dtype=np.float64)
        matrix.sum_duplicates()
        K, m = matrix.shape
        if len(labels) != rows.n_rows:
            raise ValueError(f"X has {rows.n_rows} rows but y has {len(labels)} labels")
        check_codes(labels, K, "y")
        if m == 0:
            raise ValueError("the classes have no features that tell them apart")
        self.n_features = rows.n_inputs * m
        check_number_of_weights(
            self.n_features, f"{rows.n_inputs} features x {m} output features make"
        )
        self.n_classes = K
        self.costs = checked_costs(costs, K)
        may = np.zeros(K, dtype=np.bool_)
        may[labels if allowed is None else np.asarray(allowed, dtype=np.bool_)] = True
        self.output = OutputFeatures(
            matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, may, m
        )
        self._terms: dict[tuple[str, bool], tuple[Floats, Floats]] = {}
        self._hold(rows, labels)

    def _hold(self, rows: Rows, labels: Ints) -> None:
        """Take the examples, and note how long their planes may be."""
        self.rows, self.labels = rows, labels
        self.feature_blocks = feature_blocks_of(rows, self.output.n_columns, self.n_features)
        lengths = np.diff(self.output.indptr)
        self._longest_parts = lengths[labels] + int(lengths.max())
        inputs = np.diff(rows.indptr) + int(rows.bias != 0.0)
        self._longest_rows = self._longest_parts * inputs

    def __getstate__(self) -> dict[str, Any]:
        """All but what is computed when it is first asked for."""
        return {**vars(self), "_terms": {}}

    def subset(self, indices: Ints) -> ClassFeatureProblem:
        """See `Problem.subset`; the allowed classes stay those of all examples."""
        feature_block = copy.copy(self)
        feature_block._hold(rows_at(self.rows, indices), self.labels[indices])
        return feature_block

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def accelerators(self, formulation: Formulation) -> ClassFeatureAccelerators:
        """Inputs under output features as parts."""
        return ClassFeatureAccelerators(self, formulation)

    def input_of(self, i: int) -> Any:
        """Row i of the inputs, a CSR matrix of one row."""
        return matrix_of(self.rows, i, i + 1)

    def output_of(self, i: int) -> int:
        """Class of example i."""
        return int(self.labels[i])

    def joint_feature(self, x: Any, y: Any) -> Any:
        """See `Problem.joint_feature`: all products of x and the features of class y."""
        _, inputs, values = entries_of(x, self.rows)
        features = self._features()[[y]]
        columns = np.add.outer(inputs * self.output.n_columns, features.indices)
        return sparse_row(columns.ravel(), np.outer(values, features.data).ravel(), self.n_features)

    def loss(self, y: Any, y_hat: Any) -> float:
        """The cost of predicting ``y_hat`` for ``y``; see `Problem.loss`."""
        return float(self.costs[y, y_hat])

    def predict(self, x: Any, w: Floats) -> int:
        """The allowed class of the largest score; see `Problem.predict`."""
        w = as_weights(w, self.n_features)
        scores = described_class_scores(rows_of(x, self.rows), w, self._features())[0]
        return int(np.argmax(np.where(self.output.allowed, scores, -np.inf)))

    def _features(self) -> sp.csr_matrix:
        """Output features of all classes, a class in a row."""
        arrays = self.output.values, self.output.indices, self.output.indptr
        return sp.csr_matrix(arrays, shape=(self.n_classes, self.output.n_columns))

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated class of each listed example."""
        return self._search(examples, w, rescaling, sqrt_loss, as_blocks=False)

    def factored_oracle(
        self, indices: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """The oracle in parts: an example's whole input under an output feature."""
        return self._search(indices, w, rescaling, sqrt_loss, as_blocks=True)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong classes of each listed example; see `Problem.k_best`."""
        return self._search(indices, w, rescaling, sqrt_loss, as_blocks=False, k=k)

    def _search(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling,
        sqrt_loss: bool,
        as_blocks: bool,
        k: int = 0,
    ) -> Planes:
        """Run the oracle kernel for the listed examples, or with k > 0 that for the k best."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        key = (rescaling, sqrt_loss)
        if key not in self._terms:
            self._terms[key] = pair_terms(self.costs, Formulation(rescaling, sqrt_loss=sqrt_loss))
        offsets, scales = self._terms[key]
        n_each = max(k, 1)
        bounds = self._longest_parts if as_blocks else self._longest_rows
        capacity = n_each * int(bounds[examples].sum())
        out = empty_planes(n_each * len(examples), capacity)
        described_class_oracle(
            self.rows, self.labels, examples, w, self.output, offsets, scales, k, as_blocks, out
        )
        gold = np.repeat(self.labels[examples], n_each)
        losses = self.costs[gold, out.losses.astype(np.int64)]
        return trim(out._replace(losses=losses))


class ClassFeatureAccelerators(FactoredAccelerators):
    """An input under an output feature is a part."""

    def __init__(self, problem: ClassFeatureProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        inputs = float(problem.rows.indptr[-1]) / max(problem.rows.n_rows, 1)
        # Asked in small batches, whose cost is counted too.
        self.oracle_work = scoring_work(inputs, problem.output.n_columns) + 1e4


def described_class_scores(
    rows: Rows, w: Floats, features: sp.csr_matrix, n_jobs: int | None = None
) -> Floats:
    """Scores <w, psi(x, y)> of all classes of ``features`` for every row."""
    products = class_scores(rows, w, features.shape[1], n_jobs)
    return np.ascontiguousarray(features.dot(np.asarray(products, np.float64).T).T)


@kernel
def described_class_oracle(rows, labels, examples, w, output, offsets, scales, k, as_blocks, out):
    """Most violated class of each example, and its row of dpsi in features or in parts.

    Problem solved for example i of class t, over the allowed classes y:

        max  offsets[t, y] - scales[t, y] <x W, Lambda(t) - Lambda(y)>

    In: ``output`` (OutputFeatures); weights ``w[f * m + r]``. Out: ``out.indptr, out.indices,
    out.values``, and the class itself in ``out.losses``: the gold one, with an empty row, where no
    value is positive. With k > 0 there are k rows for each example instead, of the k best classes
    but the gold one whatever the sign of their values, and behind these of the gold one.
    """
    m = output.n_columns
    K = len(output.indptr) - 1
    products = np.empty(m)
    difference = np.zeros(m)
    values = np.empty(K)
    n_each = max(k, 1)
    best = np.empty(n_each, np.int64)
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        gold = labels[i]
        products[:] = 0.0
        add_scores(rows, i, w, m, products)
        own = _class_score(output, gold, products)
        found = 0
        for y in range(K):
            if y != gold and output.allowed[y]:
                gain = _class_score(output, y, products) - own
                values[y] = plane_value(offsets[gold, y], scales[gold, y], gain)
                if k > 0 or values[y] > 0.0:
                    found = keep_best(values, y, best, found, n_each)
        best[found:] = gold
        for c in range(n_each):
            row = r * n_each + c
            out.losses[row] = best[c]
            if best[c] != gold:
                filled = _write_difference(
                    rows, i, gold, best[c], output, difference, as_blocks, out, filled
                )
            out.indptr[row + 1] = filled


@kernel
def _write_difference(rows, i, gold, candidate, output, difference, as_blocks, out, filled):
    """Append the row of dpsi of a candidate; ``difference`` is zeros, and left so."""
    for e in range(output.indptr[gold], output.indptr[gold + 1]):
        difference[output.indices[e]] += output.values[e]
    for e in range(output.indptr[candidate], output.indptr[candidate + 1]):
        difference[output.indices[e]] -= output.values[e]
    m = output.n_columns
    for y in (gold, candidate):
        for e in range(output.indptr[y], output.indptr[y + 1]):
            column = output.indices[e]
            if difference[column] != 0.0:
                value = difference[column]
                filled = write_block(rows, i, m, column, value, as_blocks, out, filled)
                difference[column] = 0.0
    return filled


@kernel
def _class_score(output, y, products):
    """<x W, Lambda(y)>."""
    score = 0.0
    for e in range(output.indptr[y], output.indptr[y + 1]):
        score += output.values[e] * products[output.indices[e]]
    return score
