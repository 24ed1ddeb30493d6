"""Answers of a problem against its twin, which lists all outputs."""

import numpy as np
import pytest

from brute import plane_terms
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle

ROUNDING = 1e-9
RESCALINGS = ("margin", "slack", "none")
#: Everything that an oracle may be asked for: rescaling, and whether the root of the loss is taken.
SEARCHES = [(rescaling, sqrt_loss) for sqrt_loss in (False, True) for rescaling in RESCALINGS]


def dense_rows(planes, n_features):
    """The rows of planes as a dense matrix."""
    dense = np.zeros((len(planes.indptr) - 1, n_features))
    rows = np.repeat(np.arange(len(dense)), np.diff(planes.indptr))
    np.add.at(dense, (rows, planes.indices), planes.values)
    return dense


def values_of(losses, dpsi, w, rescaling, sqrt_loss=False):
    offsets, scales = plane_terms(losses, rescaling, sqrt_loss)
    return offsets - scales * (dpsi @ w)


def is_row_of(loss, row, candidates):
    """Which candidates have this loss and these features."""
    same = np.abs(candidates.dpsi - row).max(axis=1, initial=0.0) < ROUNDING
    return same & (np.abs(candidates.losses - loss) < ROUNDING)


def check_row(problem, planes, rows, i, candidates):
    """A row is that of a candidate or of the truth, for which native problems store no entries."""
    if planes.losses[i] > 0.0 or rows[i].any():
        assert is_row_of(planes.losses[i], rows[i], candidates).any(), "the row is of no output"
    elif problem.trusted:
        assert planes.indptr[i] == planes.indptr[i + 1]


def check_oracle(case, w, rescaling, sqrt_loss=False):
    """Each row is that of an output, and none has a larger value."""
    problem, twin = case
    assert (problem.n_examples, problem.n_features) == (twin.n_examples, twin.n_features)
    planes = problem.oracle(np.arange(problem.n_examples), w, rescaling, sqrt_loss)
    assert len(planes.indptr) == problem.n_examples + 1 and planes.indptr[0] == 0
    assert len(planes.indices) == len(planes.values) == planes.indptr[-1]
    rows = dense_rows(planes, len(w))
    values = values_of(planes.losses, rows, w, rescaling, sqrt_loss)
    tolerance = ROUNDING * (1.0 + abs(w).sum())
    for i, candidates in enumerate(twin.listed):
        best = values_of(*candidates, w, rescaling, sqrt_loss).max(initial=-np.inf)
        assert values[i] == pytest.approx(max(0.0, best), abs=tolerance)
        if best < -tolerance:
            assert planes.losses[i] == 0.0 and not rows[i].any()
        check_row(problem, planes, rows, i, candidates)


def check_predictions(case, w):
    """Predictions have the best score of all outputs, the truth included."""
    planes = case.problem.predictions(np.arange(case.problem.n_examples), w)
    rows = dense_rows(planes, len(w))
    for i, candidates in enumerate(case.twin.listed):
        gain = max(0.0, (-candidates.dpsi @ w).max(initial=0.0))
        assert -rows[i] @ w == pytest.approx(gain, rel=1e-8, abs=1e-8 * (1.0 + abs(w).sum()))
        check_row(case.problem, planes, rows, i, candidates)


def check_k_best(case, w, k, rescaling, sqrt_loss=False):
    """Values are the largest, rows are those of outputs, and no output comes twice."""
    problem, twin = case
    indices = np.arange(problem.n_examples)[::-1]
    planes = problem.k_best(indices, w, k, rescaling, sqrt_loss)
    assert len(planes.losses) == len(planes.indptr) - 1 == k * len(indices)
    rows = dense_rows(planes, len(w))
    values = values_of(planes.losses, rows, w, rescaling, sqrt_loss)
    for position, i in enumerate(indices):
        # Where the loss is a factor, or all that counts, outputs without one are as the truth.
        left = twin.listed[i].losses > (-1.0 if rescaling == "margin" else 0.0)
        expected = values_of(*twin.listed[i], w, rescaling, sqrt_loss)[left]
        expected = np.sort(expected)[::-1][:k]
        first = position * k
        end = first + len(expected)
        assert values[first:end] == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
        for row in range(first, end):
            match = left & is_row_of(planes.losses[row], rows[row], twin.listed[i])
            assert match.any(), "a row that is no output's, or one that was listed before"
            left[np.argmax(match)] = False
        assert not planes.losses[end : first + k].any()
        assert planes.indptr[end] == planes.indptr[first + k]


def check_batches(problem, w, asked, rescaling):
    """A batch, in any order and with repetitions, has the rows of its examples one by one."""
    before = w.copy(), asked.copy()
    batch = problem.oracle(asked, w, rescaling)
    assert np.array_equal(w, before[0]) and np.array_equal(asked, before[1])
    assert len(batch.losses) == len(asked) and len(batch.indptr) == len(asked) + 1
    for r, i in enumerate(asked):
        alone = problem.oracle(np.array([i]), w, rescaling)
        row = slice(batch.indptr[r], batch.indptr[r + 1])
        assert np.array_equal(batch.indices[row], alone.indices)
        assert np.array_equal(batch.values[row], alone.values)
        assert batch.losses[r] == alone.losses[0]


# ----- parts -------------------------------------------------------------------------------------


def call_for_blocks(problem, indices, w, rescaling="margin", sqrt_loss=False):
    """``(layout, rows)`` of a problem that gives its rows in parts; None if it does not."""
    asked = Oracle(problem, Formulation(rescaling, sqrt_loss=sqrt_loss))
    return (asked.feature_blocks, asked.call(indices, w).planes) if asked.in_blocks else None


def expand_blocks(parts, indices, values, n_features):
    """Dense vector of entries given in parts: ``row * K + label`` first, then single weights."""
    dense = np.zeros(n_features)
    for part, value in zip(indices, values, strict=True):
        if part >= parts.n_row_blocks:
            dense[parts.first_single + part - parts.n_row_blocks] += value
            continue
        row, label = divmod(int(part), parts.n_labels)
        for e in range(parts.indptr[row], parts.indptr[row + 1]):
            dense[parts.indices[e] * parts.n_labels + label] += value * parts.values[e]
        if parts.bias:
            dense[parts.bias_column * parts.n_labels + label] += value * parts.bias
    return dense


def check_blocks(problem, w, rescaling, sqrt_loss=False):
    """Rows in parts are the rows in features."""
    every = np.arange(problem.n_examples)
    plain = problem.oracle(every, w, rescaling, sqrt_loss)
    parts, planes = call_for_blocks(problem, every, w, rescaling, sqrt_loss)
    assert np.array_equal(plain.losses, planes.losses)
    for r, expected in enumerate(dense_rows(plain, len(w))):
        row = slice(planes.indptr[r], planes.indptr[r + 1])
        found = expand_blocks(parts, planes.indices[row], planes.values[row], len(w))
        assert np.allclose(found, expected)


# ----- outputs -----------------------------------------------------------------------------------


def check_decoding(twin, w, found):
    """``found`` has an output of each example with the best score."""
    for i, y in enumerate(found):
        assert y in twin.outputs(i)
        score = float(w @ twin.psi(i, y))
        assert score == pytest.approx(twin.best_score(i, w), abs=ROUNDING * (1 + abs(w).sum()))


def check_ranking(twin, w, ranked, k):
    """``ranked`` has the k best outputs of each example with their scores, none of them twice."""
    for i, answers in enumerate(ranked):
        score_of = {y: float(w @ twin.psi(i, y)) for y in twin.outputs(i)}
        expected = sorted(score_of.values(), reverse=True)[:k]
        assert len({y for y, _ in answers}) == len(answers)
        tolerance = ROUNDING * (1.0 + abs(w).sum())
        assert [score for _, score in answers] == pytest.approx(expected, rel=1e-9, abs=tolerance)
        assert [score_of[y] for y, _ in answers] == pytest.approx(expected, rel=1e-9, abs=tolerance)
