"""The progress display, in a terminal and in a log, and its estimate of the time left."""

import io
import logging
import math

import pytest
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.progress import ProgressDisplay, seconds_left
from maxmargin.result import Progress


def record(seconds, gap=None, estimate=None, target=1.0):
    return Progress(seconds, int(10 * seconds), None, 5.0, gap, 3, estimate, target)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_time_left_follows_the_slope_of_the_log_gap():
    history = [record(t, estimate=100.0 * 10 ** (-t)) for t in (0.0, 0.5, 1.0)]
    assert seconds_left(history) == pytest.approx(1.0)
    assert seconds_left([record(1.0, estimate=0.5), record(2.0, estimate=0.4)]) == 0.0
    assert seconds_left([record(1.0, estimate=5.0), record(2.0, estimate=6.0)]) is None
    assert seconds_left([record(1.0, estimate=5.0)]) is None
    assert seconds_left([]) is None
    assert seconds_left([record(1.0, estimate=math.inf), record(2.0, estimate=3.0)]) is None


def test_log_lines_come_once_a_second():
    stream = io.StringIO()
    with ProgressDisplay(10, stream=stream) as display:
        for k in range(25):
            display(record(k / 10, estimate=100.0 / (k + 1)))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4  # at 0, 1 and 2 seconds, and the last
    assert "gap ~" in lines[0] and "target 1" in lines[0]
    assert "2.4 s" in lines[-1] and " left" in lines[-1]


def test_certified_gaps_are_not_marked():
    stream = io.StringIO()
    with ProgressDisplay(10, verbose=2, stream=stream) as display:
        display(record(0.1, estimate=3.0))
        display(record(0.2, gap=2.0, estimate=3.0))
    first, second = stream.getvalue().splitlines()
    assert "gap ~3" in first and "gap  2" in second


def test_terminal_has_one_line_that_is_redrawn():
    pytest.importorskip("rich")
    stream = Terminal()
    with ProgressDisplay(10, stream=stream) as display:
        for k in range(5):
            display(record(k, estimate=100.0 / (k + 1)))
    assert "\x1b[2K" in stream.getvalue() and "4.0 s" in stream.getvalue()


def test_logger_is_left_as_it_was():
    logger = logging.getLogger("maxmargin.progress")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with pytest.raises(RuntimeError), ProgressDisplay(10, stream=io.StringIO()):
        raise RuntimeError
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_verbose_of_estimators(capsys):
    X, y = load_iris(return_X_y=True)
    mm.MulticlassSVM(random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    mm.MulticlassSVM(verbose=1, random_state=0).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == "" and "passes" in shown.err and "gap" in shown.err
