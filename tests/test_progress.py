"""The progress display, in a terminal and in a log."""

import io
import logging

import pytest
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.progress import ProgressDisplay
from maxmargin.result import Progress
from maxmargin.time_left import Limits


def record(seconds, gap=None, estimate=None, target=1.0):
    return Progress(seconds, int(10 * seconds), None, 5.0, gap, 3, estimate, target)


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_limits_bound_the_time_left():
    history = [record(float(t), estimate=1e9 * 0.5**t) for t in range(11)]

    def line(limits, records=history):
        display = ProgressDisplay(10, stream=io.StringIO(), limits=limits)
        display.history = records
        return display.line()

    assert line(None).endswith(" left") and "at most" not in line(None)
    assert line(Limits(seconds=14.0)).endswith("~4 s left")
    assert line(Limits(oracle_calls=130)).endswith("~3 s left")
    assert line(Limits(seconds=1e9)) == line(None)
    rising = [record(float(t), estimate=10.0 + t) for t in range(11)]
    assert line(None, rising).endswith(" 10.0 s")
    assert line(Limits(seconds=14.0), rising).endswith("at most 4 s left")


def test_passes_left_of_online_solvers():
    display = ProgressDisplay(10, stream=io.StringIO(), limits=Limits(records=10))
    display.history = [Progress(2.0 * k, 10 * k, None, None, None, 0, loss=1.0) for k in (1, 2, 3)]
    assert display.line().endswith("~14 s left")


def test_nothing_is_left_once_the_target_is_certified():
    display = ProgressDisplay(10, stream=io.StringIO())
    display.history = [record(float(t), estimate=50.0 * 0.5**t) for t in range(6)]
    assert display.line().endswith(" left")
    display.history.append(record(6.0, gap=1.1, estimate=1.1))
    assert display.line().endswith(" left")
    display.history.append(record(7.0, gap=0.9))
    assert display.line().endswith(" 7.0 s")


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
