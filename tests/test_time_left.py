"""How long training will go on, judged by histories whose end is known."""

import math

import pytest

from maxmargin.core.result import Progress
from maxmargin.solvers import make_solver
from maxmargin.time_left import Limits, seconds_left, seconds_to_limit

# Runs as they were, thinned out: target, seconds they took, and times with gaps met until then.
RUNS = {
    "20 newsgroups, C = 1": (
        1.89,
        6.21,
        """
        0.0874 7270, 0.358 1360, 0.632 609, 0.884 369, 1.12 242, 1.46 148, 1.7 105, 1.94 75.8,
        2.19 55.9, 2.47 39.4, 2.7 29, 3.07 19, 3.32 15.3, 3.58 12.1, 3.79 9.2, 4.13 6.61,
        4.38 5.26, 4.66 3.89, 4.96 2.9, 5.15 3.05, 5.45 1.89, 5.72 1.62, 6.01 1.39""",
    ),
    "20 newsgroups, not normalised, C = 0.01": (
        0.0016,
        18.3,
        """
        0.0983 51.6, 0.815 0.754, 1.62 0.552, 2.4 0.267, 3.17 0.0473, 3.98 0.0372, 4.78 0.0256,
        5.56 0.0269, 6.36 0.0166, 7.29 0.0134, 7.94 0.0184, 8.79 0.00859, 9.56 0.0118,
        10.4 0.00252, 11.1 0.00452, 12 0.0104, 12.7 0.00167, 13.5 0.00437, 14.3 0.007,
        15.1 0.00182, 15.9 0.00151, 16.7 0.00176, 17.5 0.0018""",
    ),
    "CoNLL-2000 chunks, C = 1": (
        1.64,
        34.2,
        """
        1.19 31700, 1.82 17400, 3.18 10300, 6.33 6210, 8.13 2960, 9.31 1390, 11 782, 12.8 330,
        15.3 149, 18.5 68.7, 21.5 33.9, 26.6 14, 28.2 5.65, 33.5 1.71""",
    ),
    "OCR letters, one-slack, C = 1": (
        137.0,
        18.0,
        """
        0.142 47500, 0.799 86300, 1.61 46500, 2.4 35200, 3.13 32600, 3.94 25800, 4.69 22600,
        5.49 16900, 6.32 11800, 7.04 8470, 7.81 6340, 8.59 3290, 9.38 2260, 10.2 1910,
        10.9 1530, 11.7 838, 12.5 749, 13.3 649, 14.1 417, 14.8 278, 15.6 279, 16.4 285,
        17.2 162""",
    ),
    "MNIST, C = 1": (
        9.83,
        24.3,
        """
        0.134 21600, 1.12 11000, 2.23 8600, 3.17 6300, 4.25 5620, 5.3 2930, 6.35 1790, 7.43 1100,
        8.49 582, 9.51 663, 10.6 241, 11.6 186, 12.7 118, 13.7 78.7, 14.8 122, 15.8 47.2,
        17 49.4, 17.9 28.6, 19 45.8, 20 13.3, 21.1 11.8, 22.2 30.4, 23.2 10.4""",
    ),
}


def record(seconds, gap=None, estimate=None, target=1.0, calls=None):
    calls = int(10 * seconds) if calls is None else calls
    return Progress(seconds, calls, None, 5.0, gap, 3, estimate, target)


def falling(times, rate, start=100.0):
    return [record(t, estimate=start * math.exp(-rate * t)) for t in times]


@pytest.mark.parametrize("name", RUNS)
def test_real_runs(name):
    target, end, text = RUNS[name]
    points = [tuple(map(float, pair.split())) for pair in text.split(",")]
    history = [record(t, estimate=gap, target=target) for t, gap in points]
    for share in (0.35, 0.5, 0.75, 0.9):
        known = [one for one in history if one.seconds <= share * end]
        assert 0.5 <= seconds_left(known) / (end - known[-1].seconds) <= 2.0, share


def test_time_left_follows_the_slope_of_the_log_gap():
    # From 1e6 to 1 takes log 1e6 seconds; estimates have to fall a little further.
    history = falling([0.1 * k for k in range(60)], rate=1.0, start=1e6)
    left = math.log(1e6) - history[-1].seconds
    assert left <= seconds_left(history) <= 1.5 * left


def test_a_fast_beginning_is_forgotten():
    fast = falling([0.01 * k for k in range(100)], rate=5.0, start=1e6)
    slow = [
        record(1.0 + 0.1 * k, estimate=fast[-1].gap_estimate * math.exp(-0.1 * k / 10))
        for k in range(1, 100)
    ]
    history = fast + slow
    expected = math.log(history[-1].gap_estimate) / 0.1
    assert expected <= seconds_left(history) <= 1.5 * expected


def test_many_records_count_by_the_time_they_cover():
    """A hundred records of a millisecond each must not outweigh the minutes before."""
    slow = falling(range(100), rate=0.05, start=1e5)
    burst = [record(99.0 + 0.001 * k, estimate=slow[-1].gap_estimate) for k in range(1, 100)]
    assert seconds_left(slow + burst) == pytest.approx(seconds_left(slow), rel=0.5)


def test_single_outliers_hardly_matter():
    history = falling(range(20), rate=0.2, start=1e4)
    spoilt = [*history[:-1], record(19.0, estimate=100 * history[-1].gap_estimate)]
    assert 0.5 < seconds_left(spoilt) / seconds_left(history) < 2.5


def test_estimates_below_the_target_are_not_the_end():
    history = falling(range(26), rate=0.2, start=100.0)
    assert history[-1].gap_estimate < 1.0
    assert seconds_left(history) > 0


def test_certified_gaps_and_estimates_are_not_mixed():
    """Estimates say little where they are far from the certified gaps."""
    history = [record(float(t), estimate=1e-3, gap=1e3 * 0.9**t) for t in range(1, 30)]
    certified = [record(float(t), gap=1e3 * 0.9**t) for t in range(1, 30)]
    assert seconds_left(history) == seconds_left(certified)
    few = falling(range(1, 30), rate=0.1, start=1e3)
    mixed = [*few[:25], record(25.5, gap=1e6), *few[25:]]
    assert seconds_left(mixed) == pytest.approx(seconds_left(few))


@pytest.mark.parametrize(
    "history",
    [
        [],
        falling([1.0, 2.0, 3.0], 1.0),
        [record(float(t), estimate=5.0 + t) for t in range(9)],
        [record(float(t), estimate=5.0) for t in range(9)],
        [record(1.0, estimate=5.0 - t) for t in range(4)],
        [record(float(t), estimate=math.inf) for t in range(9)],
        [record(float(t)) for t in range(9)],
        [record(float(t), estimate=9.0 - t, target=None) for t in range(9)],
        [record(float(t), estimate=9.0 - t, target=0.0) for t in range(9)],
        falling(range(100), rate=0.2, start=100.0),
        falling(range(20), rate=0.001, start=100.0),
    ],
    ids=[
        "nothing",
        "too little",
        "rising",
        "standing",
        "no time",
        "infinite",
        "no gaps",
        "no target",
        "target 0",
        "far below the target",
        "hardly falling",
    ],
)
def test_nothing_is_said_where_nothing_is_known(history):
    assert seconds_left(history) is None


def test_limits():
    history = [record(float(t), calls=100 * t) for t in range(1, 11)]
    assert seconds_to_limit(history, Limits()) is None
    assert seconds_to_limit([], Limits(seconds=3.0)) is None
    assert seconds_to_limit(history, Limits(seconds=25.0)) == pytest.approx(15.0)
    assert seconds_to_limit(history, Limits(oracle_calls=1500)) == pytest.approx(5.0)
    assert seconds_to_limit(history, Limits(records=12)) == pytest.approx(2.0)
    assert seconds_to_limit(history, Limits(1500, 12, 25.0)) == pytest.approx(2.0)
    assert seconds_to_limit(history, Limits(seconds=1.0)) == 0.0


def test_calls_are_extrapolated_from_the_recent_ones():
    slow_down = [record(float(t), calls=100 * t if t < 10 else 1000 + t) for t in range(1, 101)]
    assert seconds_to_limit(slow_down, Limits(oracle_calls=1200)) == pytest.approx(100.0)


def test_limits_of_solvers():
    assert make_solver("auto").limits(50) == Limits()
    assert make_solver("auto", max_passes=3, max_time=9.0).limits(50) == Limits(150, None, 9.0)
    assert make_solver("perceptron").limits(50) == Limits(records=10)
    assert make_solver("sgd", max_passes=2.5).limits(50) == Limits(records=3)
