"""Kernels are compiled ahead by ``maxmargin warm-up``."""

import os
import subprocess
import sys

import numba
import pytest

from maxmargin.cli import main
from maxmargin.cli.commands import warm_up
from maxmargin.cli.tasks import TASKS
from maxmargin.registry import ESTIMATORS


def test_there_are_data_for_every_estimator():
    needed = {entry.name for entry in ESTIMATORS if entry.is_saved}
    assert set(warm_up.MADE_UP) == needed
    names = warm_up._names()
    assert set(TASKS) <= set(names)
    assert {entry.name for entries in names.values() for entry in entries} == needed  # all of them


@pytest.mark.parametrize("name", warm_up.MADE_UP)
def test_every_estimator_is_trained(name, monkeypatch):
    monkeypatch.setattr(warm_up, "MANY", 40)
    (entry,) = (entry for entry in ESTIMATORS if entry.name == name)
    warm_up.warm_up(entry)


def test_tasks_that_stream_are_trained_on_files_too(monkeypatch):
    """Their arrays are read-only, for which Numba compiles kernels of their own."""
    from maxmargin import SequenceTagger
    from maxmargin.features import StoredSequences

    kinds, fit = [], SequenceTagger.fit

    def noted(tagger, X, *arguments):
        kinds.append((isinstance(X, StoredSequences), len(X.offsets) - 1 if not arguments else 0))
        return fit(tagger, X, *arguments)

    monkeypatch.setattr(warm_up, "MANY", 40)
    monkeypatch.setattr(SequenceTagger, "fit", noted)
    (entry,) = (entry for entry in ESTIMATORS if entry.name == "SequenceTagger")
    warm_up.warm_up(entry)
    assert [n for is_stored, n in kinds if is_stored] == [warm_up.FEW, 40]


def test_taggers_have_many_weights_and_are_hard_to_train():
    """Those of fewer weights or examples leave kernels out; see the solver and the store."""
    from maxmargin import SequenceTagger
    from maxmargin.problems.chain.store import MANY_WEIGHTS
    from maxmargin.solvers.ascent import auto

    parameters, X, y = warm_up.MADE_UP["SequenceTagger"]()
    tagger = SequenceTagger(**parameters).fit(X, y)
    assert len(tagger.coef_) >= MANY_WEIGHTS
    assert len(X) == warm_up.MANY > auto.FEW > warm_up.FEW
    assert tagger.result_.n_passes > 3


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="needs a compiler")
def test_the_command_tells_seconds_and_place(capsys):
    assert main(["warm-up", "multiclass", "multiclass"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert out.startswith("multiclass ") and "s of it for kernels" in out
    assert "the compiled kernels are stored in" in err


def test_unknown_tasks_are_refused(capsys):
    assert main(["warm-up", "fly"]) == 2
    assert "there is no task or estimator 'fly', expected tag, " in capsys.readouterr().err


def test_kernels_that_cannot_be_kept_are_an_error(monkeypatch, capsys):
    from types import SimpleNamespace

    from maxmargin.engine import rows

    nowhere = SimpleNamespace(stats=SimpleNamespace(cache_path=None))
    monkeypatch.setattr(rows, "add_scores", nowhere)
    assert main(["warm-up", "multiclass"]) == 1
    assert (
        "compile them again, for some 10 to 30 seconds: set NUMBA_CACHE_DIR"
        in capsys.readouterr().err
    )
    monkeypatch.setattr(rows, "add_scores", lambda: None)
    assert main(["warm-up", "multiclass"]) == 1
    assert "NUMBA_DISABLE_JIT" in capsys.readouterr().err


STREAM = """
import sys
from pathlib import Path
from maxmargin.jit.compiling import _Clock
from maxmargin.cli import main
folder, R = Path(sys.argv[1]), range(400)
lines = ["\\n".join(f"w{(7 * k + t) % 50} L{(k + t * t) % 3}" for t in range(6)) for k in R]
(folder / "train.txt").write_text("\\n\\n".join(lines) + "\\n")
for more in (["--stream"], []):
    command = ["train", "tag", str(folder / "train.txt"), "-o", str(folder / "m"), "--force", "-q"]
    assert main([*command, *more]) == 0
print(_Clock.kernels)
"""

FIT = """
import numpy as np
import maxmargin as mm
from maxmargin.jit.compiling import _Clock
rng = np.random.default_rng(1)
y = rng.integers(4, size=400)
mm.MulticlassSVM().fit(rng.normal(size=(400, 7)) + y[:, None], y).predict(np.zeros((1, 7)))
print(_Clock.kernels)
"""


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="needs a compiler")
@pytest.mark.parametrize("task, script", [("multiclass", FIT), ("tag", STREAM)])
def test_a_fit_after_it_compiles_nothing(tmp_path, task, script):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )

    first = run("-m", "maxmargin", "warm-up", task)
    assert first.stderr.count(f"compiling kernels of {task}, ") == 1
    assert str(tmp_path) in first.stderr
    fit = run("-c", script, str(tmp_path))
    assert fit.stdout == "0\n" and fit.stderr == ""
