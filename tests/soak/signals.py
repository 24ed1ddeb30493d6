"""Part `signals`: Ctrl-C and SIGTERM at any time, in programs that train and on the command line.

The process ends soon, with the exit code that is documented; model files are absent or complete;
a finished model is never replaced by an interrupted one.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin.solvers import SOLVERS

from . import trainee

PATIENCE = 20.0  # seconds from the signal to the end, on a busy machine
LINEAR = [name for name, solver in SOLVERS.items() if "l1" in solver.slacks]


def listen_to_signals():
    """What a shell, nohup or a runner ignores stays ignored in its jobs; a child listens to all."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Child:
    """A process, and what it says; ended whatever happens."""

    def __init__(self, *arguments):
        self.lines = []
        self.spoken = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=listen_to_signals,
            cwd=Path(__file__).parents[2],
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        for line in self.process.stdout:
            self.lines.append(line)
            self.spoken.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def output(self):
        return "".join(self.lines)

    def interrupt(self, number, delay, again):
        """Send a signal some time after the first words, or after the start if delay is negative.

        Returns the exit code; a second signal follows at once if ``again``.
        """
        if delay >= 0.0:
            assert self.spoken.wait(120.0), "not a word in two minutes"
        time.sleep(abs(delay))
        self.process.send_signal(number)
        if again:
            time.sleep(0.05)
            self.process.send_signal(number)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"goes on after signal {number}: {self.output}") from None
        self.listener.join()
        return code


def ended_while_python_starts(code, told):
    """Whether Python itself was interrupted before it ran a line of the program."""
    return code == 1 and "KeyboardInterrupt" in told and "maxmargin" not in told


def prepare(rng, number):
    """One process and one or two signals."""
    kind = signal.SIGINT if rng.random() < 0.6 else signal.SIGTERM
    delay = float(rng.choice([-1.0, 1.0, 1.0])) * float(rng.uniform(0.0, 1.5))
    plan = kind, delay, bool(rng.random() < 0.2)
    seed, solver = int(rng.integers(10**6)), str(rng.choice(LINEAR))
    has_model = bool(rng.random() < 0.5)
    if number % 2:
        on_interrupt = str(rng.choice(["raise", "return"]))
        described = f"program: task {number}, {solver}, on_interrupt={on_interrupt}, {plan}"
        return described, lambda: run_program(seed, number, solver, on_interrupt, plan)
    tag = bool(rng.random() < 0.5)
    described = f"command line: {'tag' if tag else 'multiclass'}, {solver}, {plan}, {has_model=}"
    return described, lambda: run_command(rng, tag, solver, plan, has_model)


def run_program(seed, number, solver, on_interrupt, plan):
    """A program of a user that trains, and saves what it gets."""
    kind, delay, again = plan
    with warnings.catch_warnings():  # kernels that are not compiled yet would delay the signal
        warnings.simplefilter("ignore", UserWarning)
        task, model = trainee.make(seed, number, solver, "raise")
        task.fit(model.set_params(max_passes=10))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mm")
        with Child("-m", "tests.soak.trainee", seed, number, solver, on_interrupt, path) as child:
            code = child.interrupt(kind, delay, again)
        if path.exists():
            mm.load(path)
        said = child.output.split()
        if delay < 0.0 and ended_while_python_starts(code, child.output):
            return
        if code == 0 and kind == signal.SIGINT:
            outcome = said[1]
            assert outcome == "raised" or said[1:] == ["returned", "interrupted"], child.output
            assert outcome == "raised" or on_interrupt == "return", child.output
        else:  # an interrupt before training, or while saving, or a second one
            assert code == -kind, (code, child.output)
            is_told = "KeyboardInterrupt" in said
            assert is_told or kind == signal.SIGTERM or again or delay < 0.0, child.output


def run_command(rng, tag, solver, plan, has_model):
    """``maxmargin train``."""
    kind, delay, again = plan
    with tempfile.TemporaryDirectory() as folder:
        data, path = Path(folder, "data"), Path(folder, "model.mm")
        data.write_text(random_columns(rng) if tag else random_svmlight(rng))
        train = ["-m", "maxmargin", "train", "tag" if tag else "multiclass", data, "-o", path]
        limits = ["--C", 10, "--solver", solver, "--max-time"]
        with Child(*train, *limits, 0.2, "--max-passes", 1) as child:  # kernels are compiled here
            assert child.process.wait(300.0) in (0, 3), child.output
        before = path.read_bytes()
        if not has_model:
            path.unlink()
        ends = ["--tol", 0, "--max-passes", 10**9]
        with Child(*train, *limits, trainee.LIMIT, *ends) as child:
            code = child.interrupt(kind, delay, again)
        told = child.output
        # Before Python can listen, and at the second signal, the system itself ends the process.
        early = delay < 0.0 or again
        if early and ended_while_python_starts(code, told):
            return
        finished = "training ended" in told  # at rounding, on a fast machine before the signal
        codes = [128 + kind, *([-kind] if early or finished else []), *([3] if finished else [])]
        assert code in codes, (code, told)
        partial = Path(f"{path}.partial")
        if has_model:
            assert path.read_bytes() == before, "another model is in its place"
        for place in (path, partial):
            if place.exists():
                mm.load(place)
        if again:
            return
        left = set(os.listdir(folder)) - {"data", "model.mm", "model.mm.partial"}
        assert not left, f"left behind: {left}"
        if (code > 0 or finished) and f"saved {path}" in told:
            assert partial.exists() if has_model else path.exists(), told
        elif not early:
            assert "no model was saved" in told, told


def random_svmlight(rng):
    """Classes that can hardly be told apart: it takes long to find out how best to."""
    labels = rng.integers(0, 4, 1500)
    rows = rng.normal(size=(4, 12))[labels] + 2.0 * rng.normal(size=(1500, 12))
    return "".join(
        f"{label} {' '.join(f'{f}:{x:.3f}' for f, x in enumerate(row, 1))}\n"
        for label, row in zip(labels, rows, strict=True)
    )


def random_columns(rng):
    """Labels that follow from the words now and then."""
    words = rng.integers(0, 40, (500, 6))
    labels = np.where(rng.random(words.shape) < 0.5, words % 3, rng.integers(0, 3, words.shape))
    return "\n".join(
        "".join(f"w{word} {label}\n" for word, label in zip(*rows, strict=True))
        for rows in zip(words, labels, strict=True)
    )
