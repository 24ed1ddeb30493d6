"""Incomplete Cholesky factors of kernel matrices, a block of pivots at a time.

Given n rows with kernel matrix K, find pivots B and features Z with Z Z' near K:

    Z = K[:, B] L^-T,   L L' = K[B, B],   trace(K - Z Z') small,

where K - Z Z' is positive semidefinite, so its trace bounds all of its entries. Columns of K are
asked for as they are needed: candidates for pivots come in blocks, what Z has of their columns
already is subtracted by one product of matrices, and a small factor of what is left of the
candidates themselves tells which of them become pivots, in which order (Fine & Scheinberg 2001
take one pivot at a time, in products of a matrix and a vector).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...core.formulation import Formulation
from ...problems.classes.multiclass import MulticlassProblem
from ...solvers.ascent.auto import Auto
from ...utils.types import Floats, Ints

__all__ = ["BASES", "Basis", "Factor", "least_margins", "pivoted_cholesky"]

Basis = Literal["pivots", "random", "kmeans++"]
BASES = ("pivots", "random", "kmeans++")

BLOCK = 128  # candidates at a time
#: A greedy pivot's residual is at least this share of the largest one.
GREEDY = 0.5
#: Features of so many columns are made room for at first, where the rank is not known.
FIRST_WIDTH = 1024


class Factor(NamedTuple):
    """Pivots, features of all rows (C-contiguous), and the diagonal of K - Z Z'."""

    pivots: Ints
    features: NDArray[Any]
    residuals: Floats


class _Candidates(NamedTuple):
    """Rows to choose pivots from, and the residual below which none is chosen but the first."""

    rows: Ints
    least: float


def pivoted_cholesky(
    columns: Callable[[Ints], NDArray[Any]],
    diagonal: Floats,
    *,
    max_rank: int,
    basis: Basis,
    tol: float,
    random_state: Any,
    preferred: Ints | None = None,
) -> Factor:
    """Factor of at most this rank, or of the least that leaves no more than tol of the trace.

    "kmeans++" draws from the preferred rows as long as something is left of one of them. Raises
    ValueError where the matrix is found not to be positive semidefinite.
    """
    n, residuals = len(diagonal), diagonal.copy()
    largest = float(diagonal.max(initial=0.0))
    chooser = _Chooser(basis, diagonal, random_state, preferred)
    features: NDArray[Any] = np.empty((n, 0))  # those of the pivots first, in their order
    places = _Places(n)
    known, floor, negative = 0, 0.0, 0.0
    while known < max_rank and residuals.sum() > tol * diagonal.sum():
        rows, least = chooser.candidates(residuals, floor, max_rank - known)
        if not len(rows):
            break
        values = columns(rows)
        if not known:
            features = np.empty((n, min(max_rank, FIRST_WIDTH)), values.dtype)
            epsilon = float(np.finfo(values.dtype).eps)
            # Below the first, what is left of a row is rounding; -negative, more than that.
            floor, negative = max(tol, 1e3 * epsilon) * largest, np.sqrt(epsilon) * largest
        chooser.has_seen(rows, values)
        rest, places_of_rows = places.rows[known:], places.of[rows]
        block = values[rest]
        block -= features[known:, :known] @ features[places_of_rows, :known].T
        own = block[places_of_rows - known]
        order, factor = _factor(own, floor, max(least, floor), max_rank - known)
        residuals[rows] = np.minimum(residuals[rows], np.maximum(own.diagonal(), 0))
        if not len(order):
            continue
        chosen, width = rows[order], known + len(order)
        features = _widened(features, known, width, max_rank)
        new = solve_triangular(factor, block[:, order].T, lower=True, check_finite=False).T
        residuals[rest] -= np.einsum("ij,ij->i", new, new)
        residuals[chosen] = 0.0
        worst = int(np.argmin(residuals))
        if residuals[worst] < -negative:
            raise _indefinite(worst, residuals[worst])
        np.maximum(residuals, 0.0, out=residuals)
        features[known:, known:width] = new
        places.exchange(features[:, :width], chosen, known)
        # Without what rounding leaves:
        features[:known, known:width], features[known:width, known:width] = 0.0, factor
        known = width
    features = _cut(features, known)
    pivots = places.rows[:known].copy()
    places.restore(features)
    return Factor(pivots, features, residuals)


class _Places:
    """Where rows lie while pivots are moved to the front, so that only the rest is worked on."""

    def __init__(self, n: int) -> None:
        self.rows: Ints = np.arange(n)  # in the order in which they lie
        self.of: Ints = np.arange(n)  # each row's place

    def exchange(self, array: NDArray[Any], rows: Ints, first: int) -> None:
        """Put rows at the places from the first on, and those that lie there where they were."""
        for place, row in enumerate(rows.tolist(), first):
            left, other = int(self.of[row]), int(self.rows[place])
            array[[place, left]] = array[[left, place]]
            self.rows[place], self.rows[left] = row, other
            self.of[row], self.of[other] = place, left

    def restore(self, array: NDArray[Any]) -> None:
        """Put all rows where they were at first: cycle by cycle, for two may not fit in memory."""
        for start in range(len(array)):
            place, row = start, int(self.rows[start])
            if row == start:
                continue
            moved = array[start].copy()
            while row != start:  # what lies here belongs elsewhere
                moved, array[row] = array[row].copy(), moved
                self.rows[place], place = place, row
                row = int(self.rows[place])
            array[start], self.rows[place] = moved, place


def _factor(S: NDArray[Any], floor: float, least: float, most: int) -> tuple[Ints, NDArray[Any]]:
    """Pivoted Cholesky factor of a small matrix: its rows in their order, and L for those."""
    left = S.diagonal().astype(np.float64)
    L = np.zeros((len(S), min(len(S), most)), S.dtype)
    order: list[int] = []
    for m in range(L.shape[1]):
        p = int(np.argmax(left))
        if left[p] <= (least if order else floor):
            break
        L[:, m] = (S[:, p] - L[:, :m] @ L[p, :m]) / np.sqrt(left[p])
        left -= np.square(L[:, m], dtype=np.float64)
        order.append(p)
        left[order] = -np.inf
    chosen = np.array(order, np.int64)
    return chosen, np.tril(L[chosen, : len(chosen)])


class _Chooser:
    """Where candidates come from."""

    def __init__(
        self, basis: Basis, diagonal: Floats, random_state: Any, preferred: Ints | None
    ) -> None:
        self.basis, self.diagonal = basis, diagonal
        self.preferred = np.full(len(diagonal), preferred is None)
        if preferred is not None:
            self.preferred[preferred] = True
        self.distances: Floats | None = None  # to the nearest of the rows drawn
        self.drawn = 1
        if basis != "pivots":
            self.generator = np.random.default_rng(random_state)
            order = self.generator.permutation(len(diagonal)).astype(np.int64)
            self.waiting: Ints = order[np.argsort(~self.preferred[order], kind="stable")]

    def candidates(self, residuals: Floats, floor: float, most: int) -> _Candidates:
        """The next rows; none where all residuals are as small as the floor."""
        if self.basis == "pivots":
            return self._largest(residuals, floor)
        if self.basis == "kmeans++" and self.distances is not None:
            # Those of the smallest keys are a sample without replacement, by distance.
            left = residuals > floor
            chosen = left & self.preferred
            weights = np.where(chosen if chosen.any() else left, self.distances, 0.0)
            keys = self.generator.exponential(size=len(weights))
            keys = np.divide(keys, weights, out=np.full(len(weights), np.inf), where=weights > 0)
            drawn = np.argsort(keys, kind="stable")[: min(self.drawn, BLOCK, most)]
            self.drawn += len(drawn)
            return _Candidates(drawn[np.isfinite(keys[drawn])], floor)
        self.waiting = self.waiting[residuals[self.waiting] > floor]
        first = 1 if self.basis == "kmeans++" else min(BLOCK, most)
        drawn, self.waiting = self.waiting[:first], self.waiting[first:]
        return _Candidates(drawn, floor)

    def _largest(self, residuals: Floats, floor: float) -> _Candidates:
        """The rows of the largest residuals."""
        if len(residuals) <= BLOCK:
            rows, least = np.arange(len(residuals)), floor
        else:
            order = np.argpartition(-residuals, BLOCK)
            rows, least = np.sort(order[:BLOCK]), GREEDY * float(residuals[order[BLOCK]])
        rows = rows[residuals[rows] > floor]
        return _Candidates(rows.astype(np.int64), max(least, floor))

    def has_seen(self, rows: Ints, columns: NDArray[Any]) -> None:
        """Learn the kernel's values of the candidates with all rows."""
        if self.basis != "kmeans++":
            return
        squares = (self.diagonal[rows] - 2.0 * columns).min(axis=1) + self.diagonal
        if self.distances is not None:
            squares = np.minimum(squares, self.distances)
        self.distances = np.maximum(squares, 0.0)


def _widened(features: NDArray[Any], known: int, width: int, max_rank: int) -> NDArray[Any]:
    """The same features with room for more; pages that nothing is written to take no memory."""
    if width <= features.shape[1]:
        return features
    wider = np.empty(
        (len(features), min(max(width, 2 * features.shape[1]), max_rank)), features.dtype
    )
    wider[:, :known] = features[:, :known]
    return wider


def _cut(features: NDArray[Any], width: int) -> NDArray[Any]:
    """The first columns as an array of their own, moved row by row: two may not fit in memory."""
    n = len(features)
    if width == features.shape[1]:
        return features
    flat = features.reshape(-1)
    for i in range(n):
        flat[i * width : (i + 1) * width] = features[i, :width]
    del flat
    features.resize((n, width), refcheck=False)
    return features


def _indefinite(row: int, residual: float) -> ValueError:
    """The error for a kernel that is not positive semidefinite."""
    return ValueError(
        f"the kernel is not positive semidefinite: the residual of row {row} is {residual:.3g} "
        "(by rounding errors this may also happen to one that is positive semidefinite, if "
        "features are large compared with their differences: centre them)"
    )


#: C of the first model, whose kernel is scaled to values near 1, and its relative gap.
C, TOL = 10.0, 0.05


def least_margins(
    columns: Callable[[Ints], NDArray[Any]],
    diagonal: Floats,
    classes: Ints,
    count: int,
    *,
    rank: int,
    generator: np.random.Generator,
) -> Ints:
    """So many rows of a kernel matrix, those that a model of this rank classifies worst."""
    features = pivoted_cholesky(
        columns, diagonal, max_rank=rank, basis="random", tol=0.0, random_state=generator
    ).features
    features /= np.sqrt(diagonal.mean())
    problem = MulticlassProblem(features, classes, fit_intercept=True)
    solver = Auto(tol=TOL, random_state=int(generator.integers(2**31)))
    w = solver.solve(problem, Formulation(), C).w
    weights = w.reshape(-1, problem.n_classes).astype(features.dtype)
    scores = features @ weights[:-1] + weights[-1]
    rows = np.arange(len(classes))
    own = scores[rows, classes]
    scores[rows, classes] = -np.inf
    return np.argsort(own - scores.max(axis=1), kind="stable")[:count]
