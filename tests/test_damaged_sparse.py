"""Damaged sparse matrices end in an error that names them, never in a crash."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.damaged_sparse import DAMAGES, damaged
from tests.every_estimator import KINDS, sequences

import maxmargin as mm
from maxmargin.utils.sparse_format import check_sparse

ROOT = Path(__file__).parents[1]
KINDS_AT_A_TIME = 6
EVERYTHING = ["others", *KINDS]


@pytest.mark.parametrize("first", range(0, len(EVERYTHING), KINDS_AT_A_TIME))
def test_every_entry_of_every_estimator(first):
    kinds = EVERYTHING[first : first + KINDS_AT_A_TIME]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.damaged_sparse", *kinds],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, f"{ran.returncode} after {lines[-1:]}: {ran.stderr[-1000:]}"
    assert lines[-1] == "done" and len(lines) > 100 * len(kinds)
    assert [line for line in lines if line.startswith("WRONG")] == []


def test_whole_matrices_pass_and_stay_as_they_are():
    dense = np.arange(12.0).reshape(3, 4) % 5
    for form in DAMAGES:
        for container in ("matrix", "array"):
            for values in (dense, dense * 0, dense[:0], dense[:, :0], dense > 1, dense.astype(int)):
                matrix = getattr(sp, f"{form}_{container}")(values)
                check_sparse(matrix, "X")
                assert np.array_equal(matrix.toarray(), values)
    for flat in (sp.coo_array(dense[0]), sp.csr_array(dense[0]), sp.dok_array(dense[0])):
        check_sparse(flat, "X")
    check_sparse(sp.csr_array((0, 0)), "X")
    check_sparse(dense, "X")
    check_sparse(None, "X")


def test_damages_are_none_to_ignore():
    """All of them are found by the check itself, so that no entry can miss one."""
    for case, matrix in damaged(np.arange(12.0).reshape(3, 4) % 5):
        with pytest.raises(ValueError, match="X is a damaged sparse"):
            check_sparse(matrix, "X")
            pytest.fail(case)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.indptr.__setitem__(2, 99), r"indptr falls from 99 at 2 to 7 at 3"),
        (lambda m: m.indptr.__setitem__(3, 99), r"indptr\[3\] is 99, but there are 7 values"),
        (lambda m: m.indices.__setitem__(4, -2), "row 1 has the index -2, but there are 4 columns"),
        (lambda m: setattr(m, "data", m.data[:2]), "it has 7 indices, but 2 values"),
        (lambda m: setattr(m, "indptr", m.indptr / 1), "indptr has the type float64, expected wh"),
    ],
)
def test_messages_say_where(change, message):
    matrix = sp.csr_matrix([[1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 1]], dtype=float)
    change(matrix)
    with pytest.raises(ValueError, match=f"X is a damaged sparse CSR matrix: {message}"):
        mm.MulticlassSVM().fit(matrix, [0, 1, 0])


def test_matrices_of_keys_are_matrices():
    """They are mappings, too, which were taken for dicts of features."""
    X, y = sequences(3, 3)
    by_keys = mm.SequenceTagger(random_state=0).fit([sp.dok_array(x) for x in X], y)
    by_rows = mm.SequenceTagger(random_state=0).fit([sp.csr_array(x) for x in X], y)
    assert np.array_equal(by_keys.coef_, by_rows.coef_)
    features = np.eye(3) + 0.5
    inputs, classes = KINDS["classes"].first
    for model in (
        mm.MulticlassSVM(class_features=sp.dok_matrix(features), random_state=0),
        mm.MulticlassSVM(class_features=features, random_state=0),
    ):
        model.fit(inputs, classes)
        assert model.score(inputs, classes) > 0.5
