"""Calls of partial_fit that are kept: the same calls again go on from where they ended."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import maxmargin as mm
from every_estimator import KINDS, ONLINE
from maxmargin import checkpoints
from resuming import as_parameters, outcome
from solving import ONLINE as ONLINE_SOLVERS


def chunks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 40, 4))
    return [(x, (x @ rng.normal(size=(4, 3))).argmax(axis=1)) for x in X]


def stream(n_calls, model=None, **options):
    """So many calls, with chunks that come again; the model after each."""
    options = {"solver": "sgd", "random_state": 0, **options}
    model = mm.MulticlassSVM(**as_parameters(**options)) if model is None else model
    found = []
    for k in range(n_calls):
        X, y = chunks()[k % 5]
        model.partial_fit(X, y, classes=[0, 1, 2])
        found.append((model.coef_.tobytes(), outcome(model.result_)))
    return found


def kept(folder, **options):
    return {"checkpoint": folder / "c", "checkpoint_every": 0.0, "resume": True, **options}


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("solver", ONLINE_SOLVERS)
def test_calls_go_on_to_the_same_bits(solver, average, tmp_path):
    from maxmargin.solvers import SOLVERS

    options = {"solver": SOLVERS[solver](average=average, random_state=2)}
    expected = stream(12, **options)
    assert len({weights for weights, _ in expected}) > 6
    seen = []
    for n in (1, 4, 5, 12):
        before = len(seen)
        found = stream(n, **options, **kept(tmp_path), callbacks=[seen.append])
        assert found[-1] == expected[n - 1]
        done = {1: 0, 4: 1, 5: 4, 12: 5}[n]
        assert found[done:] == expected[done:n]
        assert found[:done] == [expected[done - 1]] * done  # with what the last of them has left
        assert len(seen) - before == n - done


@pytest.mark.parametrize("kind", ONLINE)
def test_every_estimator_goes_on(kind, tmp_path):
    def fit(n, **options):
        model, (X, Y) = (
            KINDS[kind].make(**as_parameters(solver="sgd", random_state=0, **options)),
            KINDS[kind].first,
        )
        for k in range(n):
            model.partial_fit(X[: 4 + k], Y[: 4 + k], **ONLINE[kind])
        return model.result_.w.tobytes(), outcome(model.result_)

    expected = fit(5)
    fit(3, **kept(tmp_path))
    assert fit(5, **kept(tmp_path)) == expected


def test_seeds_are_drawn_as_before(tmp_path):
    def state():
        return np.random.RandomState(3)

    expected = stream(6, random_state=state())
    stream(3, random_state=state(), **kept(tmp_path))
    assert stream(6, random_state=state(), **kept(tmp_path))[-1] == expected[-1]
    # What was drawn for the first call is of no effect on one that goes on.
    assert stream(6, random_state=17, **kept(tmp_path))[-1] == expected[-1]


def test_the_clock_says_when(tmp_path, monkeypatch):
    now, written, write = [0.0], [], checkpoints._write
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])

    def noted(file, content):
        written.append(now[0])
        write(file, content)

    monkeypatch.setattr(checkpoints, "_write", noted)
    expected = stream(12)

    def tick(progress):
        now[0] += 1.0

    options = kept(tmp_path, checkpoint_every=5.0)
    stream(12, **options, callbacks=[tick])
    assert written == [5.0, 10.0]
    seen = []
    assert stream(12, **options, callbacks=[seen.append])[-1] == expected[-1]
    assert len(seen) == 2


def test_what_came_before_the_first_call_is_part_of_it(tmp_path):
    def fitted(**options):
        options = {"solver": "sgd", "random_state": 0, **options}
        return mm.MulticlassSVM(**options, max_passes=1).fit(*chunks()[0])

    expected = stream(6, fitted())
    stream(3, fitted().set_params(training=kept(tmp_path)))
    assert stream(6, fitted().set_params(training=kept(tmp_path)))[-1] == expected[-1]
    with pytest.raises(ValueError, match="another weights before the first call"):
        stream(1, **kept(tmp_path))
    going_on = mm.MulticlassSVM(solver="sgd", random_state=0)
    stream(1, going_on)
    with pytest.raises(ValueError, match="another weights before the first call"):
        stream(1, going_on.set_params(training=kept(tmp_path)))


def test_other_calls_are_refused(tmp_path):
    stream(4, **kept(tmp_path))
    before = (tmp_path / "c").read_bytes()
    model = mm.MulticlassSVM(solver="sgd", random_state=0, training=kept(tmp_path))
    model.partial_fit(*chunks()[0], classes=[0, 1, 2])
    for change in ({"X": chunks()[2][0]}, {"sample_weight": np.arange(40.0)}):
        given = {"X": chunks()[1][0], "y": chunks()[1][1], **change}
        with pytest.raises(ValueError, match="has 4 calls of partial_fit, and number 2 is not thi"):
            model.partial_fit(**given)
    with pytest.raises(ValueError, match="has 4 calls of partial_fit, and number 2 is not this"):
        model.set_params(C=3.0).partial_fit(*chunks()[1])
    model.set_params(C=1.0).partial_fit(*chunks()[1])  # nothing was lost by that
    with pytest.raises(ValueError, match="of another training, with another C "):
        stream(1, C=3.0, **kept(tmp_path))
    with pytest.raises(ValueError, match=r"of another training, .* method .partial_fit there"):
        mm.MulticlassSVM(solver="sgd", training=kept(tmp_path)).fit(*chunks()[0])
    assert (tmp_path / "c").read_bytes() == before
    stream(1, **kept(tmp_path, resume=False))
    assert (tmp_path / "c").read_bytes() != before


def test_an_interrupt_leaves_what_was_before(tmp_path, monkeypatch):
    expected = stream(8)
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == 6:
            raise KeyboardInterrupt

    options = kept(tmp_path, checkpoint_every=1e9)
    model = mm.MulticlassSVM(
        solver="sgd", random_state=0, training={**options, "callbacks": [interrupt]}
    )
    with pytest.raises(KeyboardInterrupt):
        stream(8, model)
    written = (tmp_path / "c").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.time, "monotonic", lambda: np.inf)  # it is always due
        stream(3, model.set_params(training__callbacks=()))
    assert (tmp_path / "c").read_bytes() == written  # it is another training from there on
    again = []
    assert stream(8, **options, callbacks=[again.append])[-1] == expected[-1]
    assert len(again) == 3


SCRIPT = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_partial_fit_log import kept, stream
def slowly(progress):
    print("pass", flush=True)
    time.sleep(0.02)
found = stream(30, callbacks=[slowly], **kept(Path({folder!r})))
print("end", found[-1][0].hex(), flush=True)
"""


def test_processes_that_are_killed(tmp_path):
    """At any moment, until one of them comes to the end."""
    rng = np.random.default_rng(1)
    script = SCRIPT.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    n_trained, n_killed = 0, 0
    while True:
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        lines = [child.stdout.readline()]
        if n_killed < 2:
            time.sleep(float(rng.random()) * 0.2)
            child.send_signal(signal.SIGKILL)
            n_killed += 1
        lines += child.stdout.read().splitlines()
        child.wait()
        n_trained += sum(line.startswith("pass") for line in lines)
        if lines[-1].startswith("end"):
            break
    assert lines[-1].split()[1] == stream(30)[-1][0].hex()
    assert n_trained <= 30 + n_killed
