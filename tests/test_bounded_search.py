"""The branch and bound for rescaled violations, on outputs that are listed."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.search.bounded_search import Candidate, Violation, most_violated

VIOLATIONS = [Violation(True, False), Violation(True, True), Violation(False, True)]
NAMES = ["slack", "slack-sqrt", "margin-sqrt"]


class Listed:
    """Slots of any losses and a gain for every combination of their labels; the first is true."""

    def __init__(self, rng, n_labels, unit, spread):
        losses = [rng.choice([0.0, 0.4, 1.0, 2.5, 3.0]) * rng.random(K) for K in n_labels]
        for slot in losses:
            slot[:] = unit * (slot > 0.0) if unit else slot
            slot[0] = 0.0
        outputs = list(itertools.product(*(range(K) for K in n_labels)))
        self.losses = np.array(
            [[loss[k] for loss, k in zip(losses, y, strict=True)] for y in outputs]
        )
        self.gains = spread * rng.normal(size=len(outputs)) - rng.choice([0.0, spread])
        self.gains[self.losses.sum(axis=1) == 0.0] = 0.0  # the truth
        self.largest = np.array([slot.max() for slot in losses])
        self.calls = 0

    def decode(self, lower, upper, multiplier):
        inside = ((lower < self.losses) & (self.losses <= upper)).all(axis=1)
        assert inside.any(), "no region is ever empty"
        self.calls += 1
        assert self.calls < 1000, "the search does not end"
        totals = np.where(inside, self.gains + multiplier * self.losses.sum(axis=1), -np.inf)
        y = int(np.argmax(totals))
        losses = self.losses[y]
        return Candidate(y, losses, float(losses.sum()), float(self.gains[y]))


@pytest.mark.parametrize("violation", VIOLATIONS, ids=NAMES)
@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labels=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    unit=st.sampled_from([0.0, 0.25, 1.0]),
    spread=st.sampled_from([0.0, 0.1, 1.0, 20.0]),
)
def test_the_largest_violation_of_all(violation, seed, n_labels, unit, spread):
    listed = Listed(np.random.default_rng(seed), n_labels, unit, spread)
    totals = listed.losses.sum(axis=1)
    values = [violation.value(*pair) for pair in zip(totals, listed.gains, strict=True)]
    best = max([value for value, loss in zip(values, totals, strict=True) if loss > 0], default=0.0)
    found = most_violated(listed.decode, listed.largest, violation, unit)
    if found is None:
        assert best <= 1e-9
    else:
        assert found.loss > 0
        assert violation.value(found.loss, found.gain) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("violation", VIOLATIONS[:2], ids=NAMES[:2])
@pytest.mark.parametrize("excess", [1e-6, 1e-8, 1e-10])
def test_violations_of_which_rounding_is_a_part(violation, excess):
    """As where training is nearly done: gains of many outputs are just above -1."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        listed = Listed(rng, [4, 4, 4], 0.0, 1.0)
        totals = listed.losses.sum(axis=1)
        wrong = totals > 0.0
        listed.gains[wrong] = -1.0 + excess * rng.normal(size=np.count_nonzero(wrong))
        values = [violation.value(*pair) for pair in zip(totals, listed.gains, strict=True)]
        found = most_violated(listed.decode, listed.largest, violation)
        value = 0.0 if found is None else violation.value(found.loss, found.gain)
        assert value == pytest.approx(max(values), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("violation", VIOLATIONS, ids=NAMES)
@given(loss=st.floats(0.01, 100.0), gain=st.floats(-0.99, 100.0), multiplier=st.floats(1e-3, 1e3))
def test_bounds(violation, loss, gain, multiplier):
    """No point of a line is above the bound, and the point where the line touches reaches it."""
    value = violation.value(loss, gain)
    assert value <= violation.bound(multiplier, gain + multiplier * loss) * (1 + 1e-12) + 1e-12
    slope = violation.slope(loss, gain)
    assert violation.bound(slope, gain + slope * loss) == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_counted_losses_need_few_searches():
    """Between neighbouring numbers of errors there is nothing, so short edges are not split."""
    calls = {1.0: 0, 0.0: 0}
    for unit in calls:
        for seed in range(10):
            listed = Listed(np.random.default_rng(seed), [2] * 7, 1.0, 1.0)
            most_violated(listed.decode, listed.largest, VIOLATIONS[0], unit)
            calls[unit] += listed.calls
    assert calls[1.0] < calls[0.0]


def test_scores_that_are_not_numbers():
    def decode(lower, upper, multiplier):
        return Candidate(None, lower, 1.0, np.nan)

    with pytest.raises(ValueError, match="not finite"):
        most_violated(decode, np.ones(2), VIOLATIONS[0])


def test_sums_are_for_decoders():
    with pytest.raises(ValueError, match="sum of loss and gain"):
        Violation(False, False)
