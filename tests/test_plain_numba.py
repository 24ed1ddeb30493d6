"""Kernels as Numba compiles them by itself; CI runs this file with MAXMARGIN_PLAIN_NUMBA=1 too.

Each estimator is trained on few data: what counts is that its kernels compile and find the optimum.
"""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.jit import numba_patches

pytestmark = pytest.mark.plain


def test_the_switch_is_heard(monkeypatch):
    numba_patches.patches.cache_clear()
    try:
        monkeypatch.setenv(numba_patches.SWITCH, "1")
        assert not numba_patches.patches()
        numba_patches.patches.cache_clear()
        monkeypatch.setenv(numba_patches.SWITCH, "0")
        assert numba_patches.patches()
    finally:
        numba_patches.patches.cache_clear()


def test_a_classifier():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = 0.1 * rng.normal(size=(60, 4)) + np.eye(3, 4)[y]
    model = mm.MulticlassSVM(C=10.0, tol=1e-3).fit(X, y)
    assert model.result_.converged and model.score(X, y) == 1.0


def test_a_tagger():
    X = [["the", "dog", "barks"], ["dogs", "bark"], ["the", "cat", "sleeps", "here"]] * 4
    y = [["D", "N", "V"], ["N", "V"], ["D", "N", "V", "R"]] * 4
    model = mm.SequenceTagger(features=mm.features.WindowFeatures(), tol=1e-3).fit(X, y)
    assert model.result_.converged and model.predict(X) == y
