"""What native problems have in common: examples that are kept packed and unpacked one at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..core.cutting_planes import Planes
from ..core.formulation import RESCALINGS, Rescaling
from ..core.problem import Problem
from ..search.limits import as_examples, as_weights
from ..search.modes import SearchMode
from ..utils.types import Bools, Floats, Ints
from .feature_blocks import FeatureBlocks, rows_under_labels
from .parallel.threads import each_range
from .rows import Rows, make_rows, row_scores

__all__ = [
    "FactoredProblem",
    "PackedProblem",
    "chunks_of",
    "counted_loss",
    "entries_of",
    "entries_per_row",
    "feature_blocks_of",
    "matrix_of",
    "rows_at",
    "rows_between",
    "rows_of",
    "same_columns",
    "scores_of_rows",
    "sparse_row",
    "sparse_rows",
]


def entries_per_row(rows: Rows) -> float:
    """Entries of a row, on average, for counted work."""
    if rows.dense.shape[0] > 0:
        return float(rows.n_inputs)
    return float(rows.indptr[-1] - rows.indptr[0]) / max(rows.n_rows, 1)


def scores_of_rows(rows: Rows, weights: Floats, n_jobs: int | None = None) -> Floats:
    """`row_scores` by so many threads; of dense rows one, for there they would change last bits."""
    if rows.dense.shape[0] > 0:
        return row_scores(rows, weights)

    def score(first: int, end: int) -> Floats:
        starts = rows.indptr[first : end + 1]
        entries = slice(starts[0], starts[-1])
        own = (starts - starts[0], rows.indices[entries], rows.values[entries])
        return row_scores(Rows(*own, rows.dense, rows.bias, rows.n_columns), weights)

    width = 1 if weights.ndim == 1 else weights.shape[1]
    found = each_range(n_jobs, rows.indptr, 2.0 * width + 2.0, score)
    return found[0] if len(found) == 1 else np.concatenate(found)


class PackedExamples(Sequence[Any]):
    """Inputs or outputs of all examples, made when they are asked for."""

    def __init__(self, n_examples: int, unpack: Callable[[int], Any]) -> None:
        self._numbers, self._unpack = range(n_examples), unpack

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self._unpack(number) for number in self._numbers[i]]
        return self._unpack(self._numbers[i])


class PackedProblem(Problem):
    """A problem with its own oracle, which keeps its examples packed.

    ``X``, ``Y``, ``joint_feature``, ``loss`` and ``predict`` say what the oracle computes, one
    example at a time, for `check_problem` and for a reader; no solver asks for them.
    """

    trusted = True
    rescalings = RESCALINGS
    n_features: int

    @property
    def X(self) -> PackedExamples:  # type: ignore[override]
        """Inputs of the examples."""
        return PackedExamples(self.n_examples, self.input_of)

    @property
    def Y(self) -> PackedExamples:  # type: ignore[override]
        """Gold outputs of the examples."""
        return PackedExamples(self.n_examples, self.output_of)

    @abstractmethod
    def input_of(self, i: int) -> Any:
        """The input of example i."""

    @abstractmethod
    def output_of(self, i: int) -> Any:
        """The gold output of example i."""

    def bind(self, X: Sequence[Any], Y: Sequence[Any]) -> Problem:
        """A native problem is made from its examples, and holds no others."""
        raise TypeError(f"{type(self).__name__} takes its examples when it is made")

    def is_renumbered(self, other: Problem) -> bool:
        """Whether the examples are those of another problem, but for the numbers of input features.

        Planes that name whole rows of them are then planes of both. False where that is not known.
        """
        return False

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated output of each listed example; see `Problem.oracle`."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        return self._most_violated(examples, w, rescaling, sqrt_loss)

    @abstractmethod
    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """The search of `oracle`, for examples and weights that were checked."""

    @abstractmethod
    def subset(self, indices: Ints) -> Problem:
        """See `Problem.subset`; arrays that hold the examples are copied, others are shared."""


class FactoredProblem(PackedProblem):
    """A native problem whose one search writes what it finds in features, or else in parts.

    ``parts`` tells what these are, None that there are too many; see `engine.feature_blocks`.
    """

    feature_blocks: FeatureBlocks | None

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """See `PackedProblem`."""
        return self._search(examples, w, self._mode(rescaling, sqrt_loss), as_blocks=False)

    def factored_oracle(
        self, indices: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """The same in parts, for solvers, which may ask for single examples: nothing is checked."""
        return self._search(indices, w, self._mode(rescaling, sqrt_loss), as_blocks=True)

    def _checked_search(self, indices: Ints, w: Floats, mode: SearchMode) -> Planes:
        """Search for features, at what anybody may have asked for."""
        examples = as_examples(indices, self.n_examples)
        return self._search(examples, as_weights(w, self.n_features), mode, as_blocks=False)

    @abstractmethod
    def _mode(self, rescaling: Rescaling, sqrt_loss: bool) -> SearchMode:
        """How the most violated outputs are searched for."""

    @abstractmethod
    def _search(self, examples: Ints, w: Floats, mode: SearchMode, as_blocks: bool) -> Planes:
        """An output of each listed example, in features or in parts."""


def chunks_of(offsets: Ints, indices: ArrayLike) -> tuple[Ints, Ints]:
    """Positions of all entries of the listed pieces, and the offsets of these by themselves.

    Chunk i has the entries ``offsets[i]`` to ``offsets[i + 1] - 1``.
    """
    chosen = np.asarray(indices, dtype=np.int64)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1]), ends


def rows_between(rows: Rows, first: int, end: int) -> Rows:
    """The rows ``first`` to ``end - 1``, at least one, without a copy; for kernels alone."""
    if rows.dense.shape[0]:
        return rows._replace(dense=rows.dense[first:end])
    return rows._replace(indptr=rows.indptr[first : end + 1])


def rows_at(rows: Rows, indices: Ints) -> Rows:
    """The listed rows alone."""
    if rows.dense.shape[0]:
        return rows._replace(dense=np.ascontiguousarray(rows.dense[indices]))
    entries, indptr = chunks_of(rows.indptr, indices)
    return rows._replace(indptr=indptr, indices=rows.indices[entries], values=rows.values[entries])


def same_columns(rows: Rows, others: Rows) -> bool:
    """Whether two matrices have the same columns, in whatever order, but for empty ones.

    By sums of hashes of the entries, modulo 2^64: columns that differ have the same sum once in
    10^19 times.
    """
    if rows.dense.shape[0] or others.dense.shape[0] or rows.bias != others.bias:
        return False
    if not np.array_equal(rows.indptr, others.indptr):
        return False
    n = len(rows.indptr) - 1
    by_row = np.random.default_rng(0).integers(0, 2**64, n, dtype=np.uint64)
    by_entry = np.repeat(by_row, np.diff(rows.indptr))
    return np.array_equal(_column_sums(rows, by_entry), _column_sums(others, by_entry))


def _column_sums(rows: Rows, by_entry: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of the hashes of entries, of their numbers and values, in all columns in use; sorted."""
    hashes = rows.values.astype(np.float64).view(np.uint64) + by_entry
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        # Values differ in their high bits only, or in the sign: all bits have to depend on these.
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    sums = np.zeros(rows.n_columns, np.uint64)
    np.add.at(sums, rows.indices, hashes ^ (hashes >> np.uint64(31)))
    return np.sort(sums[np.bincount(rows.indices, minlength=rows.n_columns) > 0])


def counted_loss(wrong: Bools, normalized: bool, zero_one: bool) -> float:
    """Number of errors, their share, or 1 if there are any."""
    if zero_one:
        return float(wrong.any())
    return float(wrong.mean() if normalized else wrong.sum())


def matrix_of(rows: Rows, first: int, end: int) -> Any:
    """Rows first..end - 1 as a matrix, dense or CSR as they are kept, without the constant."""
    if rows.dense.shape[0]:
        return rows.dense[first:end].copy()
    own = slice(rows.indptr[first], rows.indptr[end])
    arrays = rows.values[own], rows.indices[own], rows.indptr[first : end + 1] - rows.indptr[first]
    return sp.csr_matrix(arrays, shape=(end - first, rows.n_columns), copy=True)


def sparse_rows(matrix: Any, fit_intercept: bool = False) -> Rows:
    """A matrix as CSR rows of one type: kernels for another would take as long again to compile."""
    return make_rows(matrix, fit_intercept=fit_intercept, sparse=True, dtype=np.float64)


def rows_of(matrix: Any, like: Rows) -> Rows:
    """Such a matrix as CSR rows with the constant of others, for kernels."""
    return sparse_rows(matrix, like.bias != 0.0)


def feature_blocks_of(rows: Rows, n_labels: int, n_weights: int) -> FeatureBlocks | None:
    """`rows_under_labels`, or None where they are more than planes have numbers for."""
    feature_blocks = rows_under_labels(rows, n_labels, n_weights)
    return feature_blocks if feature_blocks.n_feature_blocks < 2**31 else None


def entries_of(matrix: Any, like: Rows) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of all entries of such a matrix, with those of the constant."""
    entries = sp.coo_matrix(matrix)
    rows, columns, values = entries.row, entries.col, entries.data
    if like.bias:
        n = entries.shape[0]
        rows = np.concatenate([rows, np.arange(n)])
        columns = np.concatenate([columns, np.full(n, like.n_columns)])
        values = np.concatenate([values, np.full(n, like.bias)])
    return rows.astype(np.int64), columns.astype(np.int64), values.astype(np.float64)


def sparse_row(columns: ArrayLike, values: ArrayLike, size: int) -> sp.csr_matrix:
    """A row of joint features; values of the same column add up."""
    listed = np.asarray(columns, dtype=np.int64)
    given = np.broadcast_to(np.asarray(values, dtype=np.float64), listed.shape)
    return sp.csr_matrix((given, (np.zeros(len(listed), np.int64), listed)), shape=(1, size))
