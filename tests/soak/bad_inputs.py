"""Part `bad`: what users give by mistake is refused in words, or does no harm.

Data, weights of examples and parameters are changed at some place; some changes are harmless, such
as another order in memory. A call returns what is in order, or raises an error that the package
(or scikit-learn, whose checks it shares) has written: ValueError, TypeError, NotFittedError.
"""

import linecache
import re
import traceback
import warnings
from contextlib import chdir
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.solvers import SOLVERS

from .tasks import TASKS

ALLOWED = (ValueError, TypeError, OSError)  # NotFittedError is a ValueError
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 2**62, 0.5)
SCALARS = (
    *(None, True, 0, 1, -1, 2**70, 0.5, np.nan, np.inf, 1j, "", "x", "0", "\0", b"x", "é" * 500),
    *((), [], {}, set(), (1, 2), [[]], [None], {"a": 1}, range(3), object(), int, Exception("x")),
    *(np.float32(1), np.int8(1), np.str_("a"), np.datetime64("2020-01-01"), np.array(3)),
    *(np.zeros((0, 3)), np.zeros((2, 0)), np.array(["a", 1], object)),
)
KINDS = ("X", "X", "Y", "Y", "weights", "parameters", "predict", "predict", "score")
HERE = Path(__file__).parent
OWN = Path(mm.__file__).parent


# ----- what is wrong ------------------------------------------------------------------------------


def spoiled(random, value, depth=0):
    """The same with something else somewhere; what was given stays as it is."""
    if depth > 0 and random.random() < 0.15:
        return random.choice(SCALARS)
    if sp.issparse(value):
        return spoiled_matrix(random, value)
    if isinstance(value, np.ndarray) and value.dtype != object and value.ndim:
        return spoiled_array(random, value)
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        match random.randrange(4):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return {**value, random.choice(("x", 0, None)): value[key]}
        return {**value, key: spoiled(random, value[key], depth + 1)}
    if type(value) in (list, tuple) and value:
        items, k = list(value), random.randrange(len(value))
        match random.randrange(10):
            case 0:
                del items[k]
            case 1:
                items.insert(k, random.choice(items))
            case 2:
                items = [*items, *items]
            case 3:
                return random.choice((np.array, tuple, iter))(wrapped(items))
            case 4:
                items[k] = items[k][:-1] if hasattr(items[k], "__getitem__") else None
            case _:
                items[k] = spoiled(random, items[k], depth + 1)
        return tuple(items) if isinstance(value, tuple) and hasattr(value, "index") else items
    return random.choice(SCALARS)


def wrapped(items):
    """An array of objects, one for each item, whatever they are."""
    array = np.empty(len(items), object)
    for k, item in enumerate(items):
        array[k] = item
    return array


def spoiled_array(random, array):
    """Other values, types, shapes, and orders in memory."""
    array = array.copy()
    match random.randrange(14):
        case 0 | 1 | 2 if array.size and array.dtype.kind == "f":
            array.flat[random.randrange(array.size)] = random.choice(NUMBERS)
        case 3 if array.dtype.kind in "fiu":
            array = array * random.choice((1e200, 1e-200, -1, 0, 1e30))
        case 4:
            array = np.asfortranarray(array)
            array.setflags(write=False)
        case 5:
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        case 6:
            array = array[::-1] if random.random() < 0.5 else array[:0]
        case 7:
            array = array[..., None] if random.random() < 0.5 else array.ravel()
        case 8:
            array = array[..., :-1]
        case 9 if array.dtype.kind in "fiu":
            kinds = ("f4", "i4", "u1", "?", "c16", "U", "O", ">f8", "f2", "M8[s]")
            with np.errstate(all="ignore"):
                array = array.astype(float).astype(random.choice(kinds))
        case 10:
            array = array.astype(object)
            if array.size:
                array.flat[random.randrange(array.size)] = random.choice((None, "x", [], 1j))
        case 11:
            return array.tolist()
        case 12 if array.ndim < 3:
            return random.choice((np.ma.masked_array, np.asmatrix))(array)
        case _:
            array = np.concatenate([array, array])
    return array


def spoiled_matrix(random, matrix):
    """Sparse matrices of other kinds, with bad values or indices."""
    matrix = matrix.tocsr().copy()
    match random.randrange(7):
        case 0 | 1 if matrix.nnz:
            matrix.data[random.randrange(matrix.nnz)] = random.choice(NUMBERS)
        case 2 if matrix.nnz:
            matrix.indices[random.randrange(matrix.nnz)] = random.choice((-1, 10**6))
        case 3:
            matrix = matrix[:, :-1]
        case 4:
            matrix = matrix[:-1]
        case 5:
            return matrix.asformat(random.choice(("csc", "coo", "lil", "dok")))
        case _:
            return random.choice((sp.csr_array, sp.csr_matrix))(matrix.astype("f4"))
    return matrix


def bad_weights(random, n):
    """Weights of examples that are none, or odd ones."""
    good = np.ones(n)
    odd = (
        *(np.ones(n + 1), np.ones(0), np.ones((n, 1)), -good, good * np.nan, good * np.inf),
        *(good * 0, good * 1e300, good * 1e-300, good.astype(object), good.astype("U"), good + 0j),
        *([None] * n, "x" * n, 3, -1.0, [[1.0]] * n, good.astype(bool), {}, np.array(1.0)),
    )
    return random.choice(odd)


# ----- what may come of it ------------------------------------------------------------------------


def attempt(call, *arguments, **named):
    """What a call returns; None if it is refused as it should be."""
    try:
        return call(*arguments, **named)
    except ALLOWED as error:
        check_words(error)
        return None
    except Exception as error:
        if HERE in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parents:
            return None  # in a problem of the user's own
        raise


def check_words(error):
    """A refusal that the package has written, not one that it has run into."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    place = Path(last.filename)
    if HERE in place.parents:
        return  # in a problem of the user's own, or in this file
    places = [k for k, frame in enumerate(frames) if OWN in Path(frame.filename).parents]
    if not places:
        return
    own = places[-1]
    if any(HERE in Path(frame.filename).parents for frame in frames[own:]):
        return  # what a problem of the user's own has called
    if any("sklearn" in Path(frame.filename).parts for frame in frames[own:]):
        return  # scikit-learn's checks speak for themselves
    text = linecache.getline(last.filename, last.lineno).strip()
    if "scipy" in place.parts and text.startswith("raise"):
        return  # so do scipy's, of what is no sparse matrix
    told = str(error)
    is_written = OWN in place.parents and text.startswith("raise")
    assert is_written, f"an error by accident: {error!r} at {text!r}"
    assert len(re.findall(r"\w+", told)) >= 3, f"an error that says nothing: {error!r}"
    assert len(told) < 2000, f"an error of {len(told)} characters: {told[:200]}"


def check_model(model):
    """What was fitted in spite of it all has finite weights and an honest certificate."""
    result = model.result_
    assert np.isfinite(result.w).all(), "weights that are no numbers"
    if result.primal is not None and result.dual is not None and result.status != "inexact oracle":
        slop = 1e-9 * (1.0 + abs(result.primal))
        assert result.dual <= result.primal + slop, f"dual {result.dual} above {result.primal}"


# ----- cases --------------------------------------------------------------------------------------


def random_parameters(random, model):
    """Parameters, one of them with a value that is none."""
    name = random.choice(sorted(model.get_params(deep=False)))
    value = random.choice(SCALARS)
    if name in ("max_passes", "max_time", "tol", "epsilon", "C") and random.random() < 0.5:
        value = random.choice((-1, 0, np.nan, "1", None, 1e300, 1e-300))
    if name == "n_jobs" and random.random() < 0.5:
        value = random.choice((-1, 0, 1.5, "2", True, -2, 3))
    return name, value


def prepare(rng, number):
    """One estimator, one kind of mistake."""
    random = Random(int(rng.integers(2**62)))
    task = TASKS[number % len(TASKS)](rng)
    options = {"max_passes": 20, "random_state": 0, "n_jobs": random.choice((None, 2, 3))}
    options["max_time"] = 60.0  # online solvers make as many passes as a mistake asks for
    solver, slack = random.choice(sorted(SOLVERS)), random.choice(("l1", "l2"))
    if slack in SOLVERS[solver].slacks and random.random() < 0.3:
        options |= {"solver": solver, "slack": slack}
    if not task.has_sqrt_loss or task.margin_only:
        options["sqrt_loss"] = False
    model = task.make(**options)
    kind = random.choice(KINDS)
    told = [f"{task.name}: {task.make}, {options}, bad {kind}"]

    def run():
        with (
            TemporaryDirectory() as folder,
            chdir(folder),  # checkpoints under names that are none
            warnings.catch_warnings(),
            np.errstate(over="ignore", invalid="ignore"),
        ):
            warnings.simplefilter("ignore")
            fitted = run_kind(random, task, model, kind, told)
            if fitted is not None:
                check_model(fitted)

    return Told(told), run


class Told:
    """A description that is complete only once the case has run."""

    def __init__(self, parts):
        self.parts = parts

    def __str__(self):
        return "\n".join(f"{part}"[:3000] for part in self.parts)


def run_kind(random, task, model, kind, told):
    """Make the mistake; returns the model where it was fitted with it."""
    X, Y = task.X, task.Y
    if kind == "weights":
        weights = bad_weights(random, task.n_examples)
        told.append(f"{weights!r}")
        return attempt(task.fit, model, weights)
    if kind == "parameters":
        name, value = random_parameters(random, model)
        told.append(f"{name}={value!r}")
        model.set_params(**{name: value})
        return attempt(task.fit, model)
    if kind in ("X", "Y"):
        X = spoiled(random, X) if kind == "X" or Y is None else X
        Y = spoiled(random, Y) if kind == "Y" and Y is not None else Y
        told.append(f"X={X!r}\nY={Y!r}")
        return attempt(model.fit, *((X,) if Y is None else (X, Y)))
    task.fit(model.set_params(max_passes=2))
    X = spoiled(random, X)
    told.append(f"X={X!r}")
    if kind == "predict":
        attempt(model.predict, X)
        if task.has_k_best:
            attempt(model.predict_k, X, random.choice((1, 3, 0, -1, "a", 2.5, None)))
    elif Y is not None:
        Y = spoiled(random, Y) if random.random() < 0.5 else Y
        told.append(f"Y={Y!r}")
        attempt(model.score, X, Y)
    check_model(model)
    return None
