"""Which blocks a pass visits."""

import numpy as np

from maxmargin.solvers.ascent.passes import NEARLY_OPTIMAL, Schedule, largest_first, runs_in_order

FIRST, SECOND = np.array([0]), np.array([1])


def passes_until_due(schedule, share=0.5):
    """Passes until the second of two blocks is due, the first having a gap of 1 each time."""
    for k in range(1, 100):
        due = schedule.due(share)
        schedule.record_gaps(FIRST, np.array([1.0]))
        assert due[0]
        if due[1]:
            return k
    raise AssertionError("never due")


def test_all_blocks_are_due_at_first():
    np.testing.assert_array_equal(Schedule(3, 2).due(0.5), True)


def test_a_small_gap_waits_as_long_as_patience_says():
    schedule = Schedule(2, 3)
    for _ in range(3):
        schedule.record_gaps(np.arange(2), np.array([1.0, 0.0]))
        assert passes_until_due(schedule) == 4


def test_a_calm_block_waits_longer_and_longer():
    schedule = Schedule(2, 2, longest=5)
    schedule.due(0.5)
    schedule.record_gaps(np.arange(2), np.array([1.0, 0.0]))
    waits = []
    for _ in range(4):
        waits.append(passes_until_due(schedule))
        schedule.record_gaps(SECOND, np.array([0.0]))
    assert waits == [3, 5, 6, 6]
    schedule.record_gaps(
        SECOND, np.array([0.4])
    )  # less than half of the mean: small, but not nearly optimal
    assert 0.4 > NEARLY_OPTIMAL * 0.5
    assert passes_until_due(schedule, share=1.0) == 3


def test_blocks_below_the_floor_wait():
    schedule = Schedule(2, 2)
    schedule.record_gaps(np.arange(2), np.array([1.0, 0.8]))
    np.testing.assert_array_equal(schedule.due(0.5), [True, True])
    np.testing.assert_array_equal(schedule.due(0.5, floor=0.9), [True, False])


def test_runs_keep_their_order_and_leave_out_what_is_not_chosen():
    order = np.array([4, 2, 0, 1, 3])
    chosen = np.array([True, True, False, True, True])
    found = np.empty(6, np.int64)
    n = runs_in_order(order, np.array([2, 4, 0]), 2, chosen, found)
    assert found[:n].tolist() == [0, 1, 3, 4]


def test_large_gaps_come_first_and_others_in_order():
    gaps = np.array([0.0, 5.0, 3.0, np.inf, 1e-9, 2.5, -1e-20])
    order = np.array([6, 5, 4, 3, 2, 1, 0])
    assert largest_first(gaps, order).tolist() == [3, 1, 5, 2, 4, 6, 0]
