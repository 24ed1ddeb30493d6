"""Trainings that are kept on disk: they go on to the same bits, whatever happens to the files."""

import errno
import hashlib
import logging
import os
import random
import shutil
import time
import warnings

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import checkpoints
from maxmargin.core.formulation import Formulation
from maxmargin.engine.training import run
from maxmargin.engine.training.state import from_text
from maxmargin.estimators.selection.early_stopping import EarlyStopping, choosing
from maxmargin.solvers import make_solver
from resuming import TRAININGS, Training, chains, classes, go_on_elsewhere, outcome, words

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{start}")
    for start in ("the oracle", "planes are made of", "the problem.s search is not exact")
]


def stop_after(n):
    """A callback that ends training at the n-th iteration it sees; it tells whether it did."""
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) >= n

    stop.has_stopped = lambda: len(seen) >= n
    return stop


# ----- the same bits -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAININGS)
def test_training_goes_on_to_the_same_bits(name, tmp_path):
    """Stopped again and again, so that there is a checkpoint of every iteration."""
    training = TRAININGS[name]
    expected = training.solve()
    assert len(expected.history) >= 3
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0, "resume": True}
    for _ in range(100):
        stop = stop_after(3)
        found = training.solve([stop], **options)
        if not stop.has_stopped():
            break
    assert outcome(found) == outcome(expected)
    for progress, later in zip(found.history, found.history[1:], strict=False):
        assert progress.seconds <= later.seconds


@pytest.mark.parametrize("name", TRAININGS)
def test_copies_change_nothing(name, tmp_path, monkeypatch):
    """They are taken when a clock says so: here at every save point."""
    copied, copies = run.copied, []
    monkeypatch.setattr(run, "COPYING", np.inf)
    monkeypatch.setattr(run, "copied", lambda arrays: copies.append(1) or copied(arrays))
    found = TRAININGS[name].solve(checkpoint=tmp_path / "c", checkpoint_every=1e9)
    assert copies and outcome(found) == outcome(TRAININGS[name].solve())


def test_training_goes_on_in_another_process(tmp_path):
    clock, expected = random.Random(1), {}
    for name, training in TRAININGS.items():
        whole = training.solve()
        expected[str(tmp_path / name)] = outcome(whole)
        n = clock.randint(3, max(3, len(whole.history) - 1))
        training.solve([stop_after(n)], checkpoint=tmp_path / name, checkpoint_every=0.0)
    assert go_on_elsewhere(tmp_path) == expected


@pytest.mark.parametrize("name", ["auto on chains", "auto with many weights", "sgd on chains"])
def test_checkpoints_change_nothing(name, tmp_path):
    found = TRAININGS[name].solve(checkpoint=tmp_path / "c", checkpoint_every=0.0)
    assert outcome(found) == outcome(TRAININGS[name].solve())


def test_the_clock_says_when(tmp_path, monkeypatch):
    """And the limit on passes, which leaves the copy in memory, if there is one."""
    monkeypatch.setattr(run, "COPYING", np.inf)
    written, now = [], [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoints, "_write", lambda stream, content: written.append(now[0]))

    def tick(progress):
        now[0] += 1.0

    training = TRAININGS["bcfw on chains"]
    training.solve([tick], checkpoint=tmp_path / "c", checkpoint_every=10.0, max_passes=35)
    assert written == [10.0, 20.0, 30.0, 35.0]


# ----- the end -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "perceptron"])
def test_a_training_that_is_over_is_not_trained_again(solver, tmp_path):
    training = Training(solver, chains)
    first = training.solve(checkpoint=tmp_path / "c")
    stop = stop_after(1)
    again = training.solve([stop], checkpoint=tmp_path / "c", resume=True)
    assert not stop.has_stopped()
    assert outcome(again) == outcome(first)
    if solver == "auto":
        warm = make_solver("auto", tol=1e-3).solve(chains(), Formulation(), 2.0, warm_start=again)
        assert warm.converged and warm.state is again.state


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_limits_may_be_raised(solver, tmp_path):
    training = Training(solver, chains, {"tol": 1e-6})
    expected = training.solve(max_passes=30)
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    assert training.solve(max_passes=3, **kept).status == "max_passes"
    assert outcome(training.solve(max_passes=30, resume=True, **kept)) == outcome(expected)
    assert outcome(training.solve(max_time=1e9, max_passes=30, resume=True, **kept)) == (
        outcome(expected)
    )


def interrupt_after(n):
    """A callback with which a Ctrl-C comes at the n-th iteration that it sees."""
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == n:
            raise KeyboardInterrupt

    return interrupt


#: What ends a training before its end.
ENDS = {
    "max_passes": lambda: ({"max_passes": 3}, ()),
    "max_time": lambda: ({"max_time": 0.2}, (lambda progress: time.sleep(0.06),)),
    "interrupted": lambda: ({}, (interrupt_after(4),)),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "fasole", "bcfw", "sgd"])
def test_every_orderly_end_leaves_a_checkpoint(solver, end, tmp_path, monkeypatch):
    """Though none was due; of the iteration's start where it was not over."""
    monkeypatch.setattr(run, "COPYING", np.inf)
    training = TRAININGS[f"{solver} on chains"]
    expected = outcome(training.solve())
    limits, callbacks = ENDS[end]()
    first = training.solve(callbacks, checkpoint=tmp_path / "c", **limits)
    assert first.status == end and os.listdir(tmp_path) == ["c"]
    kept = from_text(checkpoints._read(tmp_path / "c").arrays["run"])["history"]
    repeated = 0 if end == "max_passes" and solver != "bcfw" else 1
    assert len(first.history) - len(kept) <= repeated + 1  # the last record is of the certificate
    assert outcome(training.solve(checkpoint=tmp_path / "c", resume=True)) == expected


def test_nothing_is_written_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "COPYING", np.inf)
    write, written = checkpoints._write, []

    def write_and_tell(stream, content):
        write(stream, content)
        written.append(len(from_text(content.arrays["run"])["history"]))

    monkeypatch.setattr(checkpoints, "_write", write_and_tell)
    training, kept = TRAININGS["auto on chains"], {"checkpoint": tmp_path / "c"}
    training.solve(max_passes=3, checkpoint_every=0.0, **kept)
    training.solve(max_passes=3, resume=True, **kept)
    assert len(written) > 1 and len(set(written)) == len(written)


def test_time_counts_what_was_before(tmp_path):
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0, "tol": 0.0}
    training = TRAININGS["bcfw on chains"]
    first = training.solve([stop_after(5)], **kept)
    again = training.solve(**kept, resume=True, max_time=first.history[3].seconds)
    assert again.status == "max_time" and len(again.history) <= len(first.history)


# ----- damage ------------------------------------------------------------------------------------


@pytest.fixture
def two_generations(tmp_path):
    """A training with both of its files, and what it should come to."""
    training = TRAININGS["auto on chains"]
    path = tmp_path / "c"
    training.solve([stop_after(4)], checkpoint=path, checkpoint_every=0.0)
    assert sorted(os.listdir(tmp_path)) == ["c", "c.1"]
    return training, path, outcome(training.solve())


def damages(data):
    """Content that is not what was written: cut at every kind of place, and changed."""
    begun = len(checkpoints.MAGIC) + checkpoints.LENGTH
    header = begun + int.from_bytes(data[len(checkpoints.MAGIC) : begun], "little")
    places = (0, 1, len(checkpoints.MAGIC), begun - 1, begun, header - 1, header, header + 9)
    for length in (*places, len(data) // 2, len(data) - 33, len(data) - 32, len(data) - 1):
        yield data[:length]
    for place in (*places[1:], len(data) // 2, len(data) - 1):
        yield data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
    yield data + b"\0"
    yield data + data


def test_damage_is_noticed_and_the_file_before_is_good(two_generations):
    training, path, expected = two_generations
    data, older = path.read_bytes(), path.with_name("c.1").read_bytes()
    for damaged in damages(data):
        path.write_bytes(damaged)
        path.with_name("c.1").write_bytes(older)
        with pytest.warns(UserWarning, match="damaged checkpoint; training resumes from"):
            found = training.solve(checkpoint=path, resume=True)
        assert outcome(found) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"identity"', b'"identitY"'),
        (b'"<f8"', b'"<Z8"'),
        (b'"<f8"', b'"|O8"'),
        (b'"finished": null', b'"finished": [1,2'),
    ],
)
def test_wrong_content_with_the_right_checksum(two_generations, old, new):
    training, path, expected = two_generations
    assert len(old) == len(new) and old in path.read_bytes()
    body = path.read_bytes()[: -checkpoints.DIGEST].replace(old, new)
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.warns(UserWarning, match=r"c: damaged checkpoint \(.*training resumes from"):
        assert outcome(training.solve(checkpoint=path, resume=True)) == expected


def test_two_damaged_files_are_refused(two_generations):
    training, path, _ = two_generations
    for name in (path, path.with_name("c.1")):
        name.write_bytes(name.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"c: truncated.*c\.1: truncated.*remove it to start"):
        training.solve(checkpoint=path, resume=True)


def test_what_is_damaged_does_not_take_the_place_of_what_is_good(two_generations, monkeypatch):
    """Killed between the two steps of the first write after that."""
    training, path, expected = two_generations
    path.write_bytes(path.read_bytes()[:-1])

    class Killed(BaseException):
        pass

    def replace(source, target):
        if os.fspath(target) == os.fspath(path):
            raise Killed
        moved.append(target)

    moved = []
    with monkeypatch.context() as patched, pytest.warns(UserWarning), pytest.raises(Killed):
        patched.setattr(os, "replace", replace)
        training.solve(checkpoint=path, checkpoint_every=0.0, resume=True)
    assert not moved
    with pytest.warns(UserWarning, match="resumes from the previous checkpoint"):
        assert outcome(training.solve(checkpoint=path, resume=True)) == expected


def test_killed_between_two_names(two_generations):
    training, path, expected = two_generations
    path.unlink()
    leftover = path.with_name(".c.0123456789abcdef")
    leftover.write_bytes(b"half of a file")
    assert outcome(training.solve(checkpoint=path, resume=True)) == expected
    assert not leftover.exists() and path.exists()


# ----- whose it is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (Training("auto", classes), "problem"),
        (Training("auto", lambda: chains(loss="zero_one")), r"data \("),
        (Training("fasole", chains), r"solver \(Auto there, FASOLE here\)"),
        (Training("auto", chains, {"patience": 3}), r"patience \(2 there, 3 here\)"),
        (Training("auto", chains, {"tol": 1e-5}), "tol"),
        (Training("auto", chains, slack="l2"), r"slack \(l1 there, l2 here\)"),
        (Training("auto", chains, constraints="mean"), "constraints on weights"),
    ],
)
def test_other_trainings_are_refused(two_generations, other, told):
    _, path, _ = two_generations
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"of another training, with another.*{told}"):
        other.solve(checkpoint=path, resume=True)
    assert path.read_bytes() == before


def test_weights_of_examples_and_C_belong_to_a_training(two_generations):
    _, path, _ = two_generations
    solver = make_solver("auto", tol=1e-4, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match=r"another C \(2\.0 there, 1\.0 here\)"):
        solver.solve(chains(), Formulation(), 1.0)
    with pytest.raises(ValueError, match="sample weights"):
        solver.solve(chains(), Formulation(), 2.0, sample_weight=[1, 2, 1, 1])


def test_without_a_file_training_starts_afresh(tmp_path, caplog):
    training = TRAININGS["auto on chains"]
    with caplog.at_level(logging.INFO, "maxmargin"):
        found = training.solve(checkpoint=tmp_path / "c", resume=True)
    assert "training starts afresh" in caplog.text
    assert outcome(found) == outcome(training.solve())


def test_other_files_are_left_alone(tmp_path):
    training = TRAININGS["auto on chains"]
    for name in ("c", "c.1"):
        (tmp_path / name).write_text("my thesis")
        with pytest.raises(ValueError, match=f"{name}: a file of this name exists and is not"):
            training.solve(checkpoint=tmp_path / "c")
        assert (tmp_path / name).read_text() == "my thesis"
        (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        training.solve(checkpoint=tmp_path / "no" / "c")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        training.solve(checkpoint=os.devnull)


def test_bad_values(tmp_path):
    training = TRAININGS["auto on chains"]
    with pytest.raises(ValueError, match="resume needs checkpoint"):
        training.solve(resume=True)
    with pytest.raises(ValueError, match="checkpoint_every must be a number >= 0, got -1"):
        training.solve(checkpoint_every=-1)


# ----- disks that fail ---------------------------------------------------------------------------


def failing(error, tmp_path, monkeypatch):
    """Let writing fail from the third time on."""
    write, n = checkpoints._write, []

    def write_some(stream, content):
        n.append(1)
        write(stream, content)
        if len(n) > 2:
            raise error

    monkeypatch.setattr(checkpoints, "_write", write_some)
    return {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}


def test_a_full_disk_is_told_once_and_the_old_files_stay(tmp_path, monkeypatch):
    training = TRAININGS["auto on chains"]
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = training.solve(**failing(full, tmp_path, patched))
    assert outcome(found) == outcome(training.solve())
    (message,) = [str(w.message) for w in told if "checkpoint" in str(w.message)]
    assert "could not be written (No space left on device); training continues" in message
    assert sorted(os.listdir(tmp_path)) == ["c", "c.1"]
    again = training.solve(checkpoint=tmp_path / "c", resume=True)
    assert outcome(again) == outcome(found)


def test_a_folder_that_vanishes(tmp_path):
    training, folder = TRAININGS["auto on chains"], tmp_path / "folder"
    folder.mkdir()

    def remove(progress):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(UserWarning, match="could not be written .there is no folder"):
        found = training.solve([remove], checkpoint=folder / "c", checkpoint_every=0.0)
    assert outcome(found) == outcome(training.solve())


def test_a_file_that_becomes_protected(tmp_path, monkeypatch):
    training, access = TRAININGS["auto on chains"], os.access
    path = tmp_path / "c"
    seen = stop_after(3)

    def may(name, mode):
        return access(name, mode) and not (seen.has_stopped() and os.fspath(name) == str(path))

    monkeypatch.setattr(os, "access", may)
    with pytest.warns(UserWarning, match="could not be written .Permission denied"):
        found = training.solve(
            [lambda progress: seen(progress) and None], checkpoint=path, checkpoint_every=0.0
        )
    assert outcome(found) == outcome(training.solve()) and path.exists()


def test_an_interrupt_while_writing(tmp_path, monkeypatch):
    training = TRAININGS["auto on chains"]
    with monkeypatch.context() as patched:
        found = training.solve(**failing(KeyboardInterrupt(), tmp_path, patched))
    assert found.status == "interrupted"
    assert sorted(os.listdir(tmp_path)) == ["c", "c.1"]
    again = training.solve(checkpoint=tmp_path / "c", resume=True)
    assert outcome(again) == outcome(training.solve())


@pytest.mark.parametrize("solver", ["auto", "one_slack", "sgd"])
@pytest.mark.parametrize("end", ["is due", *ENDS])
def test_an_interrupt_while_a_checkpoint_is_written_leaves_it(solver, end, tmp_path, monkeypatch):
    """Though it is the first one: the file is written again before the interrupt is heard."""
    monkeypatch.setattr(run, "COPYING", np.inf)
    sync, interrupts = os.fsync, iter([KeyboardInterrupt])

    def interrupted_sync(number):
        for interrupt in interrupts:
            raise interrupt
        sync(number)

    monkeypatch.setattr(checkpoints.os, "fsync", interrupted_sync)
    training = TRAININGS[f"{solver} on chains"]
    limits, callbacks = ({"checkpoint_every": 0.0}, ()) if end == "is due" else ENDS[end]()
    kept = {"checkpoint": tmp_path / "c"}
    if end == "interrupted":  # the second one, which is not waited for
        with pytest.raises(KeyboardInterrupt):
            training.solve(callbacks, **kept, **limits)
    else:
        assert training.solve(callbacks, **kept, **limits).status == "interrupted"
    assert os.listdir(tmp_path) == ["c"]
    seen = []
    found = training.solve([seen.append], **kept, resume=True)
    assert outcome(found) == outcome(training.solve())
    assert len(seen) < len(found.history)


def test_an_interrupt_while_the_end_is_written(tmp_path, monkeypatch):
    write = checkpoints._write

    def write_all_but_the_end(stream, content):
        if content.finished:
            raise KeyboardInterrupt
        write(stream, content)

    monkeypatch.setattr(checkpoints, "_write", write_all_but_the_end)
    training = TRAININGS["auto on chains"]
    found = training.solve(checkpoint=tmp_path / "c")
    assert found.status == "interrupted" and found.converged
    assert found.w.tobytes() == training.solve().w.tobytes()


# ----- estimators --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", make_solver("fasole", tol=1e-5)], ids=["name", "own"])
def test_estimators_go_on(solver, tmp_path):
    X, y = words()
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    options = {"C": 3.0, "tol": 1e-5, "solver": solver}
    expected = mm.SequenceTagger(**options, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training = {**kept, "callbacks": [stop_after(3)]}
        mm.SequenceTagger(**options, training=training, random_state=0).fit(X, y)
    # Without a seed of its own another one is drawn, which is of no effect.
    found = mm.SequenceTagger(**options, training={**kept, "resume": True}).fit(X, y)
    assert outcome(found.result_) == outcome(expected.result_)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.set_params(solver="auto").save(tmp_path / "model.mm")
    assert "checkpoint" not in mm.load(tmp_path / "model.mm").training
    with pytest.raises(ValueError, match="another C"):
        found.set_params(C=4.0, solver=solver).fit(X, y)


def test_the_choice_of_weights_goes_on(tmp_path):
    """By merits that follow from the weights; the best of them are found early."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)

    def fit(**options):
        choice = EarlyStopping(lambda model: -abs(np.abs(model.coef_).sum() - 4.0), content="a")
        model = mm.MulticlassSVM(
            C=10.0, tol=1e-6, random_state=0, solver="dcd_light", training=options
        )
        with choosing(model, choice), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return model, choice

    whole, expected = fit()
    assert len(expected.evaluations) > 4 and expected.kept is expected.best
    assert expected.best is not expected.evaluations[-1]
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    for _ in range(100):
        stop = stop_after(60)
        found, choice = fit(**kept, resume=True, callbacks=[stop])
        if not stop.has_stopped():
            break
    assert outcome(found.result_) == outcome(whole.result_)
    assert choice.evaluations == expected.evaluations and choice.kept == expected.kept


def test_what_is_no_training_is_refused():
    X, y = words()
    with pytest.raises(ValueError, match="resume needs checkpoint"):
        mm.SequenceTagger(training={"resume": True}).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint_every must be a number >= 0, got None"):
        mm.SequenceTagger(training={"checkpoint_every": None}).fit(X, y)
