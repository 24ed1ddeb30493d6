"""Grammar oracles, parsing and k-best lists against all derivations, listed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_grammar import grammar_case
from cases import Case
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
