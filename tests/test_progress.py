"""The progress display, in a terminal and in a log."""

import io
import logging
import re
import time
from math import inf

import pytest
from sklearn.datasets import load_iris

import maxmargin as mm
from cli_corpus import write_hard_corpus
from maxmargin.cli import main
from maxmargin.core.objective import Stopping
from maxmargin.core.result import Progress
from maxmargin.features import FeatureDictionary
from maxmargin.progress import Clock, ProgressDisplay, running_clock
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
    assert "gap ~" in lines[0] and "target 16.7 %" in lines[0]
    assert "2.4 s" in lines[-1] and " left" in lines[-1]


def test_certified_gaps_are_not_marked():
    stream = io.StringIO()
    with ProgressDisplay(10, verbose=2, stream=stream) as display:
        display(record(0.1, estimate=3.0))
        display(record(0.2, gap=2.0, estimate=3.0))
    first, second = stream.getvalue().splitlines()
    assert "gap ~37.5 %" in first and "gap  28.6 %" in second


def test_gaps_are_relative_to_the_objective_and_their_target_is_tol():
    """The target of the solver grows with the dual value; that of the line does not."""
    lines = []
    for dual in (10.0, 50.0, 99.5):
        display = ProgressDisplay(10, stream=io.StringIO())
        target = Stopping(0.01, None, 10.0).target(dual)
        display.history = [Progress(1.0, 10, None, dual, None, 3, 100.0 - dual, target)]
        lines.append(display.line())
    assert ["target 1 %" in line for line in lines] == [True] * 3
    for line, gap in zip(lines, ("~90 %", "~50 %", "~0.5 %"), strict=True):
        assert f"gap {gap}" in line


def test_gaps_of_a_training_that_stops_by_epsilon_are_in_units_of_mean_loss():
    display = ProgressDisplay(10, stream=io.StringIO())
    with display.training(10, None, loss_scale=40.0):
        target = Stopping(None, 0.05, 40.0).target(3.0)
        display(Progress(1.0, 10, None, 3.0, None, 3, 10.0, target))
        line = display.line()
    assert "gap ~0.25 " in line and "target 0.05 " in line


def test_a_gap_of_nothing_or_of_all():
    display = ProgressDisplay(10, stream=io.StringIO())
    display.history = [Progress(1.0, 10, None, 0.0, None, 3, 8.0, 0.0)]
    assert "gap ~100 %" in display.line() and "target" not in display.line()
    display.history = [Progress(1.0, 10, 0.0, 0.0, 0.0, 3, None, 0.0)]
    assert "gap  0 %" in display.line()
    display.history = [Progress(1.0, 10, inf, 1.0, inf, 3, None, 0.0)]
    assert "gap  100 %" in display.line()


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
    first, *_, last = shown.err.splitlines()
    assert first.startswith("features  4 features, 3 labels, 15 weights")
    assert last.startswith("done in ")


# ----- one clock --------------------------------------------------------------------------------


@pytest.fixture
def skip(monkeypatch):
    """Seconds pass when they are told to."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def skip(seconds):
        now[0] += seconds

    return skip


def seconds_of(summary):
    total, *parts = (float(x) for x in re.findall(r"([\d.]+) s", summary))
    return total, parts


def test_phases_add_up_to_the_time_waited(skip):
    with running_clock("reading") as clock:
        skip(1.0)
        with running_clock("features") as inner:
            assert inner is clock
            skip(5.3)
            with clock.phase("training"):
                skip(10.0)
                with clock.phase("evaluation"):
                    skip(0.5)
        skip(1.0)
        summary = clock.summary()
    assert summary == "17.8 s (reading 2.0 s, features 5.3 s, training 10.0 s, evaluation 0.5 s)"


def test_kernels_are_a_phase_of_their_own(skip, monkeypatch):
    compiled = [0.0]
    monkeypatch.setattr("maxmargin.progress.compile_seconds", lambda: compiled[0])
    clock = Clock("training")
    skip(7.0)
    compiled[0] += 3.0
    assert clock.summary() == "7.0 s (training 4.0 s, loading kernels 3.0 s)"
    monkeypatch.setattr("maxmargin.progress.compiled_kernels", lambda: 1 << 40)
    compiled[0] += 100.0  # in several threads at the same time
    skip(50.0)
    assert clock.summary() == "57.0 s (training 4.0 s, compiling 53.0 s)"


def test_lines_count_from_the_start_of_the_fit(monkeypatch, capsys):
    """The seconds of building features are among those shown."""
    clock, skipped = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + skipped[0])

    class Slow(FeatureDictionary):
        def fit_transform(self, X):
            skipped[0] += 1000.0
            return super().fit_transform(X)

    X, y = [[{"a": 1.0}, {"b": 1.0}]] * 3, [["A", "B"]] * 3

    def wait(progress):
        skipped[0] += 10.0

    tagger = mm.SequenceTagger(features=Slow(), verbose=1, training={"callbacks": [wait]}).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert tagger.result_.seconds < 1000.0
    assert all(re.search(r"\b1\d\d\d\.\d s", line) for line in lines if "passes" in line)
    total, parts = seconds_of(lines[-1])
    assert total >= 1010.0 and "features 1" in lines[-1] and "training" in lines[-1]
    assert abs(total - sum(parts)) <= 0.05 * (1 + len(parts)) + 0.05


def test_a_fit_in_a_command_has_no_summary_of_its_own(capsys):
    X, y = load_iris(return_X_y=True)
    with running_clock("reading"):
        mm.MulticlassSVM(verbose=1, random_state=0).fit(X, y)
    assert "done in" not in capsys.readouterr().err


# ----- several trainings ------------------------------------------------------------------------


def test_time_left_of_folds_and_values_of_C(skip):
    clock = Clock("training")
    with clock.loop(2) as folds, clock.loop(3) as Cs:
        folds.begin("fold 1 of 2")
        Cs.begin("C 1 (1 of 3)")
        skip(4.0)
        assert clock.left(None) is None  # nothing is known yet
        # 1 s more of this C, two others as long, and a fold as long as all of that
        assert clock.left(1.0) == 1.0 + 2 * 5.0 + 15.0
        skip(1.0)
        Cs.begin("C 2 (2 of 3)")
        assert clock.left(None) == 5.0 + 5.0 + 15.0
        assert clock.where("features") == "fold 1 of 2, C 2 (2 of 3), features"
    assert clock.where() == ""


def test_a_path_says_which_C_is_trained(capsys):
    X, y = load_iris(return_X_y=True)
    mm.path(mm.MulticlassSVM(verbose=1, random_state=0), X, y, [0.1, 0.01, 1.0])
    lines = [line for line in capsys.readouterr().err.splitlines() if "passes" in line]
    for k, C in enumerate(("0.01", "0.1", "1"), 1):
        assert any(line.startswith(f"C {C} ({k} of 3) ") for line in lines)
    mm.path(mm.MulticlassSVM(verbose=1, random_state=0), X, y, [0.01, 1.0], cover=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if "passes" in line]
    assert all(re.match(r"C [\d.]+  ", line) for line in lines)


def test_a_search_says_which_fold_and_C_is_trained(capsys):
    X, y = load_iris(return_X_y=True)
    mm.SearchCV(mm.MulticlassSVM(random_state=0), [0.01, 1.0], cv=3).fit(X, y)
    assert capsys.readouterr() == ("", "")
    search = mm.SearchCV(mm.MulticlassSVM(random_state=0), [0.01, 1.0], cv=3, verbose=2)
    search.fit(X, y)
    assert search.best_estimator_.verbose == 0
    err = capsys.readouterr().err
    for fold in (1, 2, 3):
        for k, C in enumerate(("0.01", "1"), 1):
            assert f"fold {fold} of 3, C {C} ({k} of 2) " in err
        assert f"fold {fold} of 3, evaluation  best C " in err
    assert re.search(r"passes.* left", err)
    best = f"C {search.best_params_['C']:g}"
    assert f"best {best}, all data, {best} (" in err
    assert "done in" in err.splitlines()[-1] and err.count("done in") == 1


def test_fits_that_calibrate_are_named(capsys):
    X, y = load_iris(return_X_y=True)
    mm.MulticlassSVM(probability=True, verbose=2, random_state=0).fit(X, y)
    err = capsys.readouterr().err
    assert "calibration 1 of 3 " in err and "calibration 3 of 3 " in err


def test_lines_in_a_terminal_stay_one_for_each_C():
    pytest.importorskip("rich")
    stream = Terminal()
    clock = Clock("training")
    with ProgressDisplay(10, stream=stream, clock=clock) as display, clock.loop(2) as loop:
        for k in (1, 2):
            loop.begin(f"C {k} ({k} of 2)")
            with display.training(10, None):
                for t in range(3):
                    display(record(float(t), estimate=1.0))
    ends = [line.rpartition("\x1b[2K")[2] for line in stream.getvalue().split("\n")]
    kept = [line[:28] for line in ends if line.strip("\r")]
    assert kept[:2] == ["C 1 (1 of 2)    2.0 passes  ", "C 2 (2 of 2)    2.0 passes  "]
    assert "passes" not in "".join(kept[2:])


# ----- commands ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return str(write_hard_corpus(tmp_path_factory.mktemp("progress") / "hard.txt", 60))


def test_train_shows_the_size_before_training_and_the_time_by_phases(corpus, tmp_path, capsys):
    assert main(["train", "tag", corpus, "-o", str(tmp_path / "m"), "--tol", "0.1"]) == 0
    out, err = capsys.readouterr()
    shown = [line.split()[0] for line in err.splitlines() if re.match("features|training", line)]
    assert shown[0] == "features" and set(shown[1:]) == {"training"}
    assert re.search(r"^features  \d+ features, \d+ labels, \d+ weights", err, re.MULTILINE)
    total, parts = seconds_of(re.search(r"passes\), (.*)", out)[1])
    assert abs(total - sum(parts)) <= 0.5 or not parts  # phases of less than 0.05 s are left out
    assert "done in" not in err


@pytest.mark.parametrize(
    "command, where",
    [
        (["path", "--Cs", "0.1,1", "--dev"], r"C 0\.1 \(1 of 2\)  .*passes.* target 10 %"),
        (["path", "--Cs", "0.1,1"], r"fold 2 of 2, features "),
        (["cross-validate"], r"fold 2 of 2  .*passes"),
    ],
)
def test_commands_say_what_is_trained_and_end_with_the_time(corpus, capsys, command, where):
    name, *rest = command
    more = [corpus] if "--dev" in rest else ["--folds", "2"]
    assert main([name, "tag", corpus, *rest, *more, "--tol", "0.1"]) == 0
    err = capsys.readouterr().err
    assert re.search(f"^{where}", err, re.MULTILINE)
    assert re.match(r"done in [\d.]+ s", err.splitlines()[-1])
    assert main([name, "tag", corpus, *rest, *more, "--tol", "0.1", "-q"]) == 0
    said = capsys.readouterr().err
    assert said == "" if "--dev" not in rest else "--dev is the training file itself" in said
