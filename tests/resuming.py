"""Trainings that are stopped and go on, and the process of its own in which they do.

python tests/resuming.py FOLDER    # goes on with every checkpoint there, prints what comes out
"""

import dataclasses
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import maxmargin as mm
from brute_classes import python_case
from brute_general import KernelLabels
from brute_measures import measure_case
from cases import chain_case, multiclass_case
from constrained import KINDS as CONSTRAINTS
from joint_kernels import Climbing, LabellingObjects, kernel, kernel_examples
from maxmargin.core.cutting_planes import BoundedPlanes
from maxmargin.core.formulation import Formulation
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS, make_solver


class LooseClasses(MulticlassProblem):
    """Classes whose search gives bounds that are twice as large as they might be."""

    trusted = False

    def accelerators(self, formulation):
        from maxmargin.engine.accelerators import Accelerators

        return Accelerators()

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        planes = super().oracle(indices, w, rescaling, sqrt_loss)
        return BoundedPlanes(planes, np.full(len(indices), 1.0 + 10.0 * np.abs(w).sum()))


def classes(**options):
    return multiclass_case(np.random.default_rng(7), **options).problem


def chains(**options):
    return chain_case(np.random.default_rng(7), **options).problem


def loose_classes():
    rng = np.random.default_rng(7)
    return LooseClasses(rng.normal(size=(8, 3)), rng.integers(0, 3, 8))


def sample():
    return measure_case(np.random.default_rng(7), loss="f1", n=30, n_positive=9).problem


class Training(NamedTuple):
    """What is trained, and how."""

    solver: str
    make: Callable
    options: dict = MappingProxyType({})
    slack: str = "l1"
    constraints: str | None = None

    def solve(self, callbacks=(), **options):
        problem = self.make()
        constraints = None
        if self.constraints is not None:
            rng = np.random.default_rng(3)
            constraints = CONSTRAINTS[self.constraints](rng, problem.n_features)
        formulation = Formulation("margin", self.slack, None, constraints)
        given = {"tol": 1e-4, "max_passes": 40, "random_state": 5, **self.options, **options}
        return make_solver(self.solver, **given).solve(
            problem, formulation, 2.0, callbacks=callbacks
        )


def many_classes():
    return classes(K=20, n=12)


def wide_chains():
    return chains(n_inputs=30_000)


def separable():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 4))
    return MulticlassProblem(X, (X @ rng.normal(size=(4, 3))).argmax(axis=1), 3)


def plain_python():
    return python_case(np.random.default_rng(7)).problem


KERNELS = {
    "auto": Training("auto", kernel),
    "one_slack": Training("one_slack", kernel),
    "mira, three best": Training("mira", kernel, {"k": 3}),
    "no room for values": Training("auto", lambda: kernel(cache_mb=0.006)),
    "few points": Training("auto", lambda: kernel(max_points=9)),
    "objects": Training("auto", lambda: kernel(LabellingObjects)),
    "climbing": Training("auto", lambda: kernel(Climbing)),
    "climbing, sgd": Training("sgd", lambda: kernel(Climbing)),
}

TRAININGS = {
    **{f"{name} on chains": Training(name, chains) for name in SOLVERS},
    **{f"{name} on classes": Training(name, classes) for name in SOLVERS},
    "auto alone": Training("auto", chains, {"joint": False}),
    "auto with many classes": Training("auto", many_classes),
    "auto with many classes alone": Training("auto", many_classes, {"joint": False}),
    "auto with many weights": Training("auto", wide_chains, {"joint": False}),
    "auto in plain Python": Training("auto", plain_python),
    "auto without room": Training("auto", plain_python, {"cache_mb": 1e-3, "joint": False}),
    "auto with loose bounds": Training("auto", loose_classes),
    "auto on a sample": Training("auto", sample, {"tol": 1e-6}),
    "auto, squared slacks": Training("auto", chains, slack="l2"),
    "auto, constraints": Training("auto", classes, constraints="all"),
    "auto, prior": Training("auto", chains, {"joint": False}, constraints="mean"),
    "bcfw, constraints": Training("bcfw", classes, constraints="all"),
    "fasole, joint": Training("fasole", chains, {"joint": True}),
    "fasole as printed": Training("fasole", chains, {"reduced": "paper"}),
    "dcd, squared slacks": Training("dcd", chains, slack="l2"),
    "n-slack, hard margin": Training("n_slack", separable, {"tol": 1e-6}, slack="none"),
    "n-slack, changed sets": Training("n_slack", chains, {"variant": "subspace", "batch": 2}),
    "n-slack, constraints": Training("n_slack", classes, constraints="all"),
    "one-slack, many weights": Training("one_slack", wide_chains),
    "one-slack, line searches": Training("one_slack", chains, {"qp": "line_search"}),
    "one-slack as printed": Training("one_slack", chains, {"reach": 1.0}),
    "one-slack, constraints": Training("one_slack", classes, constraints="all"),
    "sgd, held out": Training("sgd", chains, {"held_out": 0.5, "patience": 9}),
    "mira, three best": Training("mira", chains, {"k": 3}),
    "sgd, certified": Training("sgd", chains, {"certificate": True}),
    "sgd, constraints": Training("sgd", classes, constraints="all"),
    "pegasos, ratio": Training("pegasos", chains, {"ratio": 1e-3}),
    **{f"joint kernel, {name}": training for name, training in KERNELS.items()},
}


def outcome(result):
    """All that a result tells but times; bits of the weights as a hash."""
    history = [dataclasses.astuple(progress)[1:] for progress in result.history]
    told = (result.primal, result.dual, result.status, result.n_oracle_calls, result.n_cache_hits)
    weights = hashlib.sha256(result.w.tobytes()).hexdigest()
    return json.loads(json.dumps([weights, told, result.n_planes, history]))


# ----- several trainings in one file -------------------------------------------------------------


def words():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 4)) for n in (3, 5, 2, 4, 6)]
    return X, [rng.integers(0, 3, len(x)) for x in X]


def as_parameters(**options):
    """Parameters of an estimator; those that are options of a training go into ``training``."""
    names = [field.name for field in dataclasses.fields(mm.TrainingOptions)]
    training = {name: options.pop(name) for name in names if name in options}
    return {**options, "training": training}


def _path(make, X, y, options, cover=False):
    models = make(**as_parameters(**{"random_state": 0, **options})).fit_path(
        X, y, [0.1, 1.0, 5.0], cover=cover
    )
    return [models.intervals.tolist(), *map(outcome, models.results)]


def path_of_chains(**options):
    return _path(mm.SequenceTagger, *words(), {"tol": 1e-4, **options})


def cover_of_classes(**options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    return _path(mm.MulticlassSVM, X, y, {"tol": 0.02, **options}, cover=True)


def path_by_cutting_planes(**options):
    options = {"solver": "one_slack", "tol": 1e-3, "max_passes": 12, **options}
    return _path(mm.SequenceTagger, *words(), options)


def known_in_part(**options):
    rng = np.random.default_rng(4)
    X = [rng.normal(size=(n, 3)) for n in rng.integers(2, 7, 10)]
    known = [None, {0, 1}, {0, 1}, 0, 1, 2]
    y = [[known[k] for k in rng.integers(0, len(known), len(x))] for x in X]
    model = mm.SequenceTagger(**as_parameters(**{"tol": 1e-3, "random_state": 0, **options})).fit(
        X, y
    )
    return [outcome(model.result_), *map(list, model.rounds_)]


def path_of_a_joint_kernel(**options):
    model = mm.StructuralSVM(
        KernelLabels(), **as_parameters(**{"tol": 1e-4, "random_state": 0, **options})
    )
    models = model.fit_path(*kernel_examples(), [0.1, 1.0, 5.0])
    coefficients = [models.at(C).coef_.tolist() for C in models.Cs]
    return [coefficients, *map(outcome, models.results)]


SERIES = {f.__name__.replace("_", " "): f for f in (path_of_chains, cover_of_classes)}
SERIES |= {f.__name__.replace("_", " "): f for f in (path_by_cutting_planes, known_in_part)}
SERIES["path of a joint kernel"] = path_of_a_joint_kernel


# ----- another process ---------------------------------------------------------------------------


def go_on_elsewhere(folder):
    """What comes out of all checkpoints of a folder, in another process."""
    child = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, folder],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(child.stdout)


def _go_on(path):
    if path.name in SERIES:
        return SERIES[path.name](checkpoint=path, resume=True)
    return outcome(TRAININGS[path.name].solve(checkpoint=path, resume=True))


if __name__ == "__main__":
    known = [path for path in Path(sys.argv[1]).iterdir() if path.name in {**TRAININGS, **SERIES}]
    print(json.dumps({str(path): _go_on(path) for path in known}))
