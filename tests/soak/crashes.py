"""Part `crashes`: processes that train are killed at any time, also while they write checkpoints.

Training goes on from the files until it is over: to the weights, bit by bit, and the certificate of
one that nobody has killed. No more than the iteration since the last checkpoint is repeated. So do
paths of C, the rounds of labels known in part, joint kernels, whose points are found in training,
and calls of `partial_fit`, which are made again.
"""

import dataclasses
import hashlib
import json
import os
import signal
import tempfile
import time
import warnings
from itertools import count
from pathlib import Path

import numpy as np
from sklearn.base import clone

from maxmargin.solvers import SOLVERS

from . import trainee
from .kernel_tasks import joint_kernels
from .label_tasks import chains
from .tasks import TASKS

LINEAR = [name for name, solver in SOLVERS.items() if "l1" in solver.slacks]
#: Solvers that tell of a pass and of the certificate after it, both in one iteration.
TWO_RECORDS = ("sda", "bcfw", "dcd", "dcd_light")
MOST_KILLS = 8
# What happened so far, for whoever asks.
KILLS = {"all": 0, "while writing": 0}
REPEATED = []


def one_training(task, model):
    """An ordinary fit."""
    return [task.fit(model).result_]


def path(task, model):
    """Three values of C."""
    return model.fit_path(task.X, task.Y, [0.1, 1.0, 3.0]).results


def known_in_part(task, model):
    """Every third label is not known, but for the first of its kind."""
    numbers, kinds = count(), set()

    def shown(label):
        is_first = label not in kinds
        kinds.add(label)
        return None if next(numbers) % 3 == 1 and not is_first else label

    hidden = [[shown(label) for label in own] for own in task.Y]
    return [model.fit(task.X, hidden).result_]


def joint_kernel(task, model):
    """An ordinary fit, or a path, with points that are found on the way."""
    if model.solver in CERTIFIED and task.n_examples % 2:
        return path(task, model)
    return one_training(task, model)


def stream(task, model):
    """Twelve calls, some of which have the same examples."""
    model = clone(model)
    for k in range(12):
        weights = np.linspace(1.0, 1.0 + k % 4, task.n_examples)
        model.partial_fit(task.X, task.Y, sample_weight=weights)
    return [model.result_]


FITS = (one_training, path, known_in_part, joint_kernel, stream)
CERTIFIED = [name for name in LINEAR if SOLVERS[name].certified]
CHAINS = TASKS.index(chains)


def prepare(rng, number):
    """A training, and when it is killed."""
    seed, solver = int(rng.integers(10**6)), LINEAR[number % len(LINEAR)]
    n_jobs = int(rng.integers(1, 4))
    every = float(rng.choice([0.0, 0.0, 0.0, 0.01]))
    moments = rng.random(MOST_KILLS)
    fit = FITS[int(rng.integers(len(FITS)))]
    if fit is (path if solver not in CERTIFIED else stream):
        fit = one_training
    number = CHAINS if fit in (known_in_part, stream) else number % len(TASKS)
    described = f"task {number}, seed {seed}, {solver}, {n_jobs} threads, {every} s, {fit.__name__}"
    return described, lambda: run(fit, seed, number, solver, n_jobs, every, moments)


def run(fit, seed, number, solver, n_jobs, every, moments):
    """Kill, go on, kill, go on, ..., and compare."""
    if fit is joint_kernel:
        task = joint_kernels(np.random.default_rng(seed))
        model = task.make(solver=solver, random_state=0)
    else:
        task, model = trainee.make(seed, number, solver, "raise")
    most = 10 if fit is joint_kernel else 100  # kernels in plain Python take a while
    model.set_params(C=1.0, tol=1e-5, max_passes=most, max_time=None, n_jobs=n_jobs)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        expected = []
        model.set_params(training__callbacks=[lambda progress: expected.append(record(progress))])
        whole = fit(task, model)  # kernels are compiled here
        expected.append(outcome(whole))
        model.set_params(training={"checkpoint": Path(folder, "c"), "checkpoint_every": every})
        began = time.monotonic()
        fit(task, model)
        duration = time.monotonic() - began
        for name in os.listdir(folder):
            os.unlink(Path(folder, name))
        model.set_params(training__resume=True)
        seen = 0  # iterations that were told of so far
        for moment in [*moments, None]:
            told = Path(folder, "told")
            told.write_bytes(b"")
            child = os.fork()
            if child == 0:
                train(fit, task, model, told)
            if moment is not None:
                time.sleep(float(moment) * duration)
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code in (0, -signal.SIGKILL), f"the process ended with {code}"
            lines = told.read_text().split("\n")[:-1]
            if lines:
                n = len(lines)
                starts = [k for k in range(seen + 1) if expected[k : k + n] == lines]
                assert starts, "another training"
                start = max(starts)
                most = 1 + (solver in TWO_RECORDS) if every == 0.0 else len(expected)
                if fit is not one_training:  # the end of one, and what the next begins with
                    most += 3
                assert seen - start <= most, f"{seen - start} iterations were repeated"
                REPEATED.append(seen - start)
                seen = max(seen, start + len(lines))
            if code == 0:
                assert lines[-1] == expected[-1], "not all of the training"
                return
            KILLS["all"] += 1
            KILLS["while writing"] += any(name.startswith(".c.") for name in os.listdir(folder))


def train(fit, task, model, told):
    """What a process does: it tells of every iteration, and of the end."""
    code = 1
    try:
        with told.open("ab", buffering=0) as stream:

            def echo(line):
                stream.write(f"{line}\n".encode())

            model.set_params(training__callbacks=[lambda progress: echo(record(progress))])
            echo(outcome(fit(task, model)))
        code = 0
    finally:
        os._exit(code)


def record(progress):
    """What was told of an iteration, but for the time."""
    return json.dumps(dataclasses.astuple(progress)[1:], default=float)


def outcome(results):
    """Weights and certificates, bit by bit."""
    told = []
    for result in results:
        weights = hashlib.sha256(np.ascontiguousarray(result.w).tobytes()).hexdigest()
        told.append([weights, result.status, result.primal, result.dual, result.n_oracle_calls])
    return json.dumps(told, default=float)
