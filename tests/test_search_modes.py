"""How losses become planes: the kernels' form and numpy's, and the search that each asks for."""

import itertools

import numpy as np
import pytest

from maxmargin.core.formulation import Formulation
from maxmargin.search.bounded_search import Violation
from maxmargin.search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS, search_mode
from maxmargin.search.violation import plane_terms, violation

FORMULATIONS = list(itertools.product(("margin", "slack", "none"), (False, True)))
LOSSES = np.array([0.1, 0.25, 1.0, 2.0, 17.0])


@pytest.mark.nojit
@pytest.mark.parametrize(("rescaling", "sqrt_loss"), FORMULATIONS)
def test_kernels_and_formulations_make_the_same_planes(rescaling, sqrt_loss):
    mode = search_mode(rescaling, sqrt_loss)
    offsets, scales = Formulation(rescaling, sqrt_loss=sqrt_loss).plane_terms(LOSSES)
    for loss, offset, scale in zip(LOSSES.tolist(), offsets, scales, strict=True):
        counted = 1.0 if mode.kind == BEST_NON_GOLD else loss
        assert plane_terms(counted, mode) == (offset, scale)
        assert violation(counted, -0.7, mode) == pytest.approx(offset - scale * 0.7, abs=1e-14)


@pytest.mark.nojit
@pytest.mark.parametrize(("rescaling", "sqrt_loss"), FORMULATIONS)
def test_with_zero_one_loss_all_formulations_are_one(rescaling, sqrt_loss):
    mode = search_mode(rescaling, sqrt_loss, zero_one=True)
    offsets, scales = Formulation(rescaling, sqrt_loss=sqrt_loss).plane_terms(np.ones(1))
    assert plane_terms(1.0, mode) == (offsets[0], scales[0]) == (1.0, 1.0)
    assert mode.kind == BEST_NON_GOLD


@pytest.mark.parametrize(("slack", "sqrt_loss"), [(True, False), (True, True), (False, True)])
def test_the_bounded_search_maximises_the_same_violation(slack, sqrt_loss):
    mode = search_mode("slack" if slack else "margin", sqrt_loss)
    for loss in LOSSES.tolist():
        value = Violation(slack, sqrt_loss).value(loss, 0.3)
        assert value == pytest.approx(violation(loss, 0.3, mode), rel=1e-14)


def test_the_loss_decides_the_search():
    assert search_mode("margin", False).kind == ADDITIVE
    assert search_mode("none", True) == search_mode("none", False)
    for rescaling, sqrt_loss in (("slack", False), ("slack", True), ("margin", True)):
        assert search_mode(rescaling, sqrt_loss) == (ERROR_COUNTS, rescaling == "slack", sqrt_loss)


def test_an_unknown_rescaling_is_refused():
    with pytest.raises(ValueError, match=r"rescaling must be .* got 'slak'"):
        search_mode("slak", False)
