"""Part `files`: damaged models are refused or predict, damaged data end commands in one line.

Every tenth case forges a checkpoint or models in many ways (`forging.py`, `forging_models.py`)
in a process of its own: each forgery is refused, or what comes out is true.

What readers do with damaged bytes by themselves: `mutations`, which is a hundred times as fast.
"""

import contextlib
import functools
import importlib
import io
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

import numpy as np

import maxmargin as mm
from maxmargin.cli import main as command_line

from .damage import damaged, damaged_inside, members_of
from .mutations import TEXTS, read
from .tasks import TASKS

# What was forged so far, for whoever asks.
FORGERIES = {"all": 0, "refused": 0}

# ----- models -------------------------------------------------------------------------------------


@functools.cache
def model_file(number):
    """A small model of each structure, as bytes, with its task."""
    rng = np.random.default_rng(number)
    task = TASKS[number % len(TASKS)](rng)
    while not task.savable:
        task = TASKS[int(rng.integers(len(TASKS)))](rng)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", UserWarning)
        model = task.fit(task.make(max_passes=5))
        path = Path(folder, "model.mm")
        model.save(path)
        return path.read_bytes(), task, task.keys(model)


def run_command(*arguments):
    """The command line says in one line what is wrong; training may stop before its precision."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = command_line([str(argument) for argument in arguments])
    said = [line for line in errors.getvalue().splitlines() if "error:" in line]
    assert (code, len(said)) in ((0, 0), (3, 0), (1, 1)), (code, errors.getvalue())
    assert "defect of maxmargin" not in errors.getvalue(), errors.getvalue()


# ----- cases --------------------------------------------------------------------------------------


def prepare(rng, number):
    """One file, or one that is forged again and again."""
    if number % 10 == 9:
        return prepare_forgeries(rng)
    return prepare_model(rng) if number % 3 else prepare_command(rng)


def prepare_forgeries(rng):
    """Forgeries of the checkpoints of a training, or of the models of an estimator."""
    sys.path.append(str(Path(__file__).parents[1]))
    models = bool(rng.random() < 0.3)
    script, names = (
        ("forging_models.py", importlib.import_module("every_estimator").KINDS)
        if models
        else ("forging.py", importlib.import_module("forging").FORGED)
    )
    seed, name = int(rng.integers(10**6)), sorted(names)[int(rng.integers(len(names)))]
    # SECURITY.md: some coordinates, and the sums behind the bounds of online solvers, are trusted.
    if name.startswith("joint kernel") or name.endswith(", certified"):
        return prepare_model(rng)
    command = [sys.executable, str(Path(__file__).parents[1] / script), str(seed), "3", name]

    def run():
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        said = [json.loads(line) for line in child.stdout.splitlines()]
        tried = [line for line in said if "array" in line]
        FORGERIES["all"] += len(tried)
        FORGERIES["refused"] += sum(line.get("end") == "refused" for line in said)
        assert child.returncode == 0, (tried[-1:], child.stderr[-1000:])
        ends = [line for line in said if "end" in line]
        wrong = [(a, b) for a, b in zip(tried, ends, strict=True) if b["wrong"]]
        assert not wrong, wrong

    return f"forgeries: {' '.join(command[1:])}", run


def with_file(data, ending, use):
    """A function that writes the file and reads it."""

    def run():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"file{ending}")
            path.write_bytes(data)
            read(use, path)

    return run


def prepare_model(rng):
    """A damaged model: refused, or the same as before; or, damaged inside, another one."""
    which = int(rng.integers(2 * len(TASKS)))
    good, task, predicted = model_file(which)
    outside = rng.random() < 0.5
    random = Random(int(rng.integers(2**62)))
    data = damaged(random, good) if outside else damaged_inside(random, members_of(good))

    def use(path):
        model = mm.load(path)
        try:
            keys = task.keys(model)
        except ValueError:
            assert not outside, "it was loaded, but cannot predict"
        else:
            assert keys == predicted or not outside, "other predictions"

    return f"model {which} ({task.name}), damaged {'outside' if outside else 'inside'}", with_file(
        data, ".mm", use
    )


@functools.cache
def command_files():
    """Files of every task of the command line, as the tests have them."""
    sys.path.append(str(Path(__file__).parents[1]))
    return importlib.import_module("cli_tasks")


@functools.cache
def command_model(name):
    """A small model of a task of the command line, as bytes."""
    files = command_files().make_files(name, 12)
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "data"), Path(folder, "model.mm")
        path.write_text("".join(files.labelled))
        run_command("train", name, path, "-o", model, "-q", "--max-passes", "3", *files.options)
        return model.read_bytes()


def prepare_command(rng):
    """The command line with a damaged file of examples of some task."""
    name = str(rng.choice(sorted(command_files().MAKE)))
    files = command_files().make_files(name, 3, seed=int(rng.integers(100)))
    content = "".join(files.labelled if rng.random() < 0.7 else files.bare).encode()
    data = damaged(Random(int(rng.integers(2**62))), content, TEXTS)

    def run():
        with tempfile.TemporaryDirectory() as folder:
            path, model, other = (Path(folder, file) for file in ("data", "model.mm", "other.mm"))
            model.write_bytes(command_model(name))
            path.write_bytes(data)
            options = ("-o", other, "-q", "--max-passes", "3", *files.options)
            run_command("train", name, path, *options)
            run_command("predict", model, path)
            run_command("evaluate", model, path)

    return f"command line, {name}, with\n{data!r}", run
