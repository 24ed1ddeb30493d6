"""Grammar oracles, parsing and k-best lists against all derivations, listed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_grammar import grammar_case
from cases import Case
from test_k_best import check_k_best
from test_oracles import check_oracle

RESCALINGS = ("margin", "slack", "none")


@st.composite
def grammar_options(draw):
    return {
        "lengths": draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)),
        "horizontal": draw(st.sampled_from([None, 0, 1, 2])),
        "vertical": draw(st.integers(1, 3)),
        "words": draw(st.booleans()),
        "n_views": draw(st.integers(0, 2)),
    }


@pytest.mark.parametrize("loss", ["f1", "zero-one"])
@given(grammar_options(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 3.0]))
def test_oracle_is_exact(loss, options, seed, scale):
    rng = np.random.default_rng(seed)
    case = Case(*grammar_case(rng, loss=loss, **options))
    w = scale * rng.normal(size=case.twin.n_features)
    for rescaling in RESCALINGS:
        for sqrt_loss in (False, True):
            check_oracle(case, w, rescaling, sqrt_loss)


@pytest.mark.parametrize("loss", ["f1", "zero-one"])
@given(
    grammar_options(),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.3, 3.0]),
)
def test_k_best_wrong_derivations(loss, options, seed, k, scale):
    rng = np.random.default_rng(seed)
    case = Case(*grammar_case(rng, loss=loss, **options))
    w = scale * rng.normal(size=case.twin.n_features)
    for rescaling in RESCALINGS:
        for sqrt_loss in (False, True):
            check_k_best(case, w, k, rescaling, sqrt_loss)


def test_predictions_of_the_problem_are_those_of_the_parser():
    problem, twin = grammar_case(np.random.default_rng(5), lengths=(5, 4, 3), horizontal=0)
    w = np.random.default_rng(6).normal(size=twin.n_features)
    rows = problem.predictions(np.arange(3), w)
    for i in range(3):
        row = slice(rows.indptr[i], rows.indptr[i + 1])
        margin = rows.values[row] @ w[rows.indices[row]]
        best = max(float(-(w @ twin.dpsi(i, y))) for y in twin.outputs(i))
        assert -margin == pytest.approx(best, abs=1e-9)
