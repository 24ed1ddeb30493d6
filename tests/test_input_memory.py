"""Dense inputs are copied once at most, and not at all where kernels can read them as they are."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.engine.packed_problem import sparse_rows
from maxmargin.engine.rows import make_rows
from maxmargin.problems.tree.labels import pack_columns

N, WIDTH, LENGTH = 3000, 300, 20
RNG = np.random.default_rng(0)
X = RNG.random((N, WIDTH)) + 0.1
CLASSES = RNG.integers(0, 3, N)
TOKENS = [CLASSES[i : i + LENGTH].tolist() for i in range(0, N, LENGTH)]
SMALL = 0.35  # what is no copy, such as planes, as a share of the data in double precision


def in_sequences(inputs):
    return [inputs[i : i + LENGTH] for i in range(0, N, LENGTH)]


def in_trees(inputs):
    return inputs.reshape(N // 3, 3, WIDTH)


def as_images(inputs):
    return inputs.reshape(N // 3, 3 * WIDTH // 30, 30)


OPTIONS = {"C": 1e-4, "tol": 0.9, "max_passes": 1, "random_state": 0}
PLACES = RNG.integers(0, 30, (N // 3, 2, 2))
ESTIMATORS = {
    "classes": (mm.MulticlassSVM, {}, np.asarray, CLASSES),
    "ranks": (mm.RankSVM, {}, np.asarray, CLASSES),
    "pairs of grades": (mm.OrdinalSVM, {"loss": "pairs"}, np.asarray, CLASSES),
    "measure": (mm.PerformanceSVM, {"measure": "f1"}, np.asarray, CLASSES > 0),
    "grades": (mm.OrdinalSVM, {}, np.asarray, CLASSES),
    "sets": (mm.MultilabelSVM, {}, np.asarray, CLASSES[:, None] > [0, 1]),
    "tagger": (mm.SequenceTagger, {}, in_sequences, TOKENS),
    "segmenter": (mm.SequenceSegmenter, {}, in_sequences, [[(0, 3, "a")] for _ in TOKENS]),
    "labels": (mm.TreeLabeler, {}, in_trees, CLASSES.reshape(-1, 3)),
    "positions": (mm.PartLocator, {"patch": 2}, as_images, PLACES),
}
#: Bytes in training and in predictions, in units of the data in double precision. What has sparse
#: kernels alone needs numbers of columns, of half that; sequences in a list are put into one array.
#: (Planes of trees, which are no copies, are many times as large.)
COPIES = {  # C and Fortran's order of doubles, then of singles
    "classes": [(0, 0), (1, 1), (0, 1), (0.5, 1)],
    "ranks": [(0, 0), (1, 1), (0, 1), (0.5, 1)],
    "pairs of grades": [(0, 0), (1, 1), (1, 1), (1.5, 1)],
    "measure": [(0, 0), (1, 1), (0, 1), (0.5, 1)],
    "grades": [(0.5, 0), (1.5, 1), (1.5, 1), (1.5, 1)],
    "sets": [(0.5, 0), (1.5, 1), (1.5, 1), (1.5, 1)],
    "tagger": [(1.5, 1), (1.5, 1), (2, 0.5), (2, 0.5)],
    "segmenter": [(1.5, 1.5), (1.5, 1.5), (2, 2), (2, 2)],
    "labels": [(None, 1.5)] * 4,
    "positions": [(1.5, 1.2)] * 4,
}
LAYOUTS = [(np.float64, "C"), (np.float64, "F"), (np.float32, "C"), (np.float32, "F")]


def peak(call, *given):
    """Bytes that a call allocates at most at a time, in units of the data in double precision."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call(*given)
        return (tracemalloc.get_traced_memory()[1] - before) / X.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore:training reached max_passes")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_copies_of_dense_inputs(kind):
    make, options, shape, y = ESTIMATORS[kind]
    for (dtype, order), (in_fit, in_predict) in zip(LAYOUTS, COPIES[kind], strict=True):
        inputs = shape(np.asarray(X, dtype, order=order))
        make(**OPTIONS, **options).fit(inputs[:30], y[:30]).predict(inputs[:30])  # compiled
        model = make(**OPTIONS, **options)
        used = peak(model.fit, inputs, y)
        assert in_fit is None or used < in_fit + SMALL, (dtype, order, used)
        used = peak(model.predict, inputs)
        assert used < in_predict + SMALL, (dtype, order, used)


@pytest.mark.nojit
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7, 5), (700, 500), (1, 3), (0, 3), (4, 0)])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_rows_of_any_layout_are_those_of_scipy(dtype, order, shape, zeros):
    values = np.where(RNG.random(shape) < zeros, 0.0, RNG.random(shape) + 1.0)
    dense = np.asarray(values.astype(dtype), order=order)
    expected = sp.csr_matrix(dense.astype(np.float64))
    for rows in (sparse_rows(dense), pack_columns([dense[:, :2], dense[:, 2:]])):
        assert rows.n_columns == shape[1] and rows.values.dtype == np.float64
        assert np.array_equal(rows.indptr, expected.indptr)
        assert np.array_equal(rows.indices, expected.indices)
        assert np.array_equal(rows.values, expected.data)


def test_what_kernels_can_read_is_not_copied():
    dense = RNG.random((50, 4)) + 0.1
    assert np.shares_memory(make_rows(dense).dense, dense)
    assert np.shares_memory(make_rows(dense.astype(np.float32)).dense, dense) is False
    assert np.shares_memory(sparse_rows(dense).values, dense)
    dense.flags.writeable = False  # kernels would be compiled again for it
    assert not np.shares_memory(sparse_rows(dense).values, dense)
