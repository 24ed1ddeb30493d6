"""Forged checkpoints: real ones, with one array changed and a checksum that is right.

A training that is resumed from such a file has to refuse it by a ValueError that names the file, or
end with a certificate that is true: its primal value is that of its weights, its dual value is no
more than the optimum. Nothing else may happen, least of all a crash: so this runs in a process of
its own, which prints each forgery before it tries it.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from brute_dependency import tree_case
from brute_grammar import grammar_case
from maxmargin import checkpoints
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import primal_value
from maxmargin.engine.accelerators import AdaptiveFeatures
from maxmargin.engine.store import sharded_passes, sharding
from maxmargin.engine.training.verifying import hinge_values
from resuming import CONSTRAINTS, TRAININGS, Training

C = 2.0  # of `Training`
ROUNDING = 1e-6


LENGTHS = (4, 2, 3, 4, 3, 4)


def dependencies():
    return tree_case(np.random.default_rng(0), lengths=LENGTHS).problem


def grammar():
    return grammar_case(np.random.default_rng(0), lengths=LENGTHS).problem


def cut_small():
    """Shares of a few examples, as in the tests of shares."""
    sharding.FEWEST = 1
    sharding.LEAST_SEARCH = 0.0
    for name in ("ASKED", "VISITS", "MANY"):
        setattr(sharded_passes, name, 1)
    for name in ("LEAST_WORK", "ADDING", "HANDED_OVER"):
        setattr(sharded_passes, name, 0.0)


FORGED = {
    **TRAININGS,
    "auto on trees": Training("auto", dependencies, {"joint": False}),
    "sda on trees": Training("sda", dependencies),
    "n-slack on trees": Training("n_slack", dependencies),
    "auto, shares of trees": Training("auto", dependencies, {"joint": False, "n_jobs": 2}),
    "auto, shares of grammar": Training("auto", grammar, {"joint": False, "n_jobs": 2}),
}

# ----- forgeries ----------------------------------------------------------------------------------

LARGE = (-1, -(2**31), 2**31 - 1, 2**40, 10**6, 7)


def _one(array, rng, value):
    """Another value in one place, or in some."""
    if not array.size:
        return np.full(3, value).astype(array.dtype)
    array = array.copy()
    places = rng.integers(array.size, size=int(rng.choice([1, 1, 3])))
    with np.errstate(all="ignore"):
        array.reshape(-1)[places] = np.array(value).astype(array.dtype)
    return array


def changed_value(array, rng):
    if array.dtype.kind == "f":
        x = float(array.reshape(-1)[rng.integers(array.size)]) if array.size else 1.0
        choices = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300, x + 1.0, 2 * x, -x, 1.01 * x)
        return _one(array, rng, rng.choice(choices))
    return _one(array, rng, rng.choice(LARGE))


def near_value(array, rng):
    """One more or less: still in range, as a rule."""
    if not array.size:
        return changed_value(array, rng)
    x = array.reshape(-1)[rng.integers(array.size)]
    return _one(array, rng, float(x) + rng.choice([-1, 1, 0.1]))


def all_changed(array, rng):
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            return array * rng.choice([0.0, 0.5, 1.5, -1.0, 1e200])
        return (array + rng.choice(LARGE)).astype(array.dtype)


def permuted(array, rng):
    flat = array.reshape(-1).copy()
    return rng.permutation(flat).reshape(array.shape)


def falling(array, rng):
    return np.sort(array.reshape(-1))[::-1].reshape(array.shape).copy()


def shorter(array, rng):
    return array[: len(array) // 2].copy() if array.ndim else array.reshape(1)


def longer(array, rng):
    return np.concatenate([array, array]) if array.ndim else np.zeros(5, array.dtype)


def other_type(array, rng):
    kinds = [np.int32, np.int64, np.float32, np.float64, np.uint8, np.bool_, np.dtype(">f8")]
    kind = kinds[rng.integers(len(kinds))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array.astype(kind)


def other_shape(array, rng):
    return array.reshape((*array.shape, 1)) if rng.random() < 0.5 else np.empty(0, array.dtype)


WAYS = (changed_value, near_value, all_changed, permuted, falling, shorter, longer)
WAYS += (other_type, other_shape)
VALUES = (
    None,
    -1,
    0,
    1,
    3,
    2**40,
    2**70,
    -1.5,
    1e300,
    float("nan"),
    float("inf"),
    "x",
    [],
    {},
    True,
)


def forged_text(array, rng):
    """Another value in a place of the JSON, or no JSON."""
    if rng.random() < 0.1:
        return permuted(array, rng)
    values = json.loads(array.tobytes().decode())
    at = values
    while isinstance(at, (dict, list)) and at:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = keys[rng.integers(len(keys))]
        if not isinstance(at[key], (dict, list)) or not at[key] or rng.random() < 0.2:
            old = at[key]
            is_number = isinstance(old, (int, float)) and rng.random() < 0.5
            at[key] = old * 1.5 + 1 if is_number else VALUES[rng.integers(len(VALUES))]
            break
        at = at[key]
    return np.frombuffer(json.dumps(values).encode(), np.uint8)


def is_text(array):
    return array.dtype == np.uint8 and array.tobytes()[:1] == b"{"


def forgeries(arrays, rng, ways):
    """One array after the other, in some ways each: its name, the way, and all arrays."""
    for name, array in arrays.items():
        if is_text(array):
            for _ in range(ways):
                yield name, "text", {**arrays, name: forged_text(array, rng)}
            continue
        for way in rng.permutation(len(WAYS))[:ways]:
            forged = WAYS[way](array, rng)
            if forged.dtype != array.dtype or not np.array_equal(forged, array, equal_nan=True):
                yield name, WAYS[way].__name__, {**arrays, name: forged}
    for name in arrays:
        if rng.random() < ways / len(WAYS):
            yield name, "missing", {key: arrays[key] for key in arrays if key != name}


# ----- certificates -------------------------------------------------------------------------------


def optimum_of(training):
    """A bound on the optimum that no file had a part in."""
    result = training._replace(
        solver="auto" if training.slack != "none" else "n_slack",
        options={"tol": 1e-8, "max_passes": 1000},
    ).solve()
    return result.primal


def is_true(training, result, optimum):
    """Whether what a result says of itself is so."""
    if not np.isfinite(result.w).all():
        return "weights that are no numbers"
    if result.primal is None or result.dual is None:
        return ""
    problem = training.make()
    if isinstance(problem, AdaptiveFeatures):  # weights belong to features found in training
        problem = result.state.oracle.problem
    constraints = None
    if training.constraints is not None:
        rng = np.random.default_rng(3)
        constraints = CONSTRAINTS[training.constraints](rng, problem.n_features)
    formulation = Formulation("margin", training.slack, None, constraints)
    change = result.w
    if constraints is not None:
        change = constraints.feasible_set(problem.n_features).change(result.w)
    hinges = hinge_values(problem, Formulation("margin", training.slack), result.w)
    primal = primal_value(change, hinges, formulation, C)
    scale = ROUNDING * max(1.0, abs(optimum))
    if (
        not result.relative_to_oracle
        and abs(primal - result.primal) > scale
        and (primal > result.primal)
    ):
        return f"primal {result.primal} of weights that have {primal}"
    if result.status != "inexact oracle" and result.dual > optimum + scale:
        return f"dual {result.dual} above the optimum {optimum}"
    return ""


def stop_after(n):
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) >= n

    return stop


def forge(name, seed, ways, echo):
    """Forge the checkpoints of a training, from the middle of it and from its end."""
    training, rng = FORGED[name], np.random.default_rng(seed)
    optimum = optimum_of(training)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c")
        for n in (3, 10**6):
            path.unlink(missing_ok=True)
            Path(f"{path}.1").unlink(missing_ok=True)
            training.solve([stop_after(n)], checkpoint=path, checkpoint_every=0.0)
            if path.exists():
                content = checkpoints._read(str(path))
                _try_all(training, path, content, optimum, rng, ways, echo)


def _try_all(training, path, content, optimum, rng, ways, echo):
    for array, way, arrays in forgeries(content.arrays, rng, ways):
        echo({"array": array, "way": way, "finished": content.finished})
        Path(f"{path}.1").unlink(missing_ok=True)
        with path.open("wb") as stream:
            checkpoints._write(stream, content._replace(arrays=arrays))
        try:
            result = training.solve(checkpoint=path, resume=True)
        except ValueError as error:
            wrong = "" if str(path) in str(error) else f"an error that names no file: {error}"
            echo({"end": "refused", "wrong": wrong, "error": str(error)[-160:]})
        except Exception as error:
            echo({"end": "raised", "wrong": f"{type(error).__name__}: {error}"})
        else:
            echo({"end": result.status, "wrong": is_true(training, result, optimum)})


def main(seed, ways, *names):
    def echo(said):
        print(json.dumps(said), flush=True)

    warnings.simplefilter("ignore")
    cut_small()
    for name in names:
        echo({"training": name})
        forge(name, int(seed), int(ways), echo)
    echo({"training": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
