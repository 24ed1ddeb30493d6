"""What becomes of parameters: they are documented, checked, and made a solver.

Parameters are fields of dataclasses: each is written once, with its type and default, and Python
composes the constructors of the estimators from those of their base classes.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from ..registry import import_name
from ..solvers import make_solver
from ..solvers.base import SolverParameters, check_numbers
from ..utils.defaults import KEEPING
from ..utils.schema import annotated_types
from ..utils.validation import check_choice, is_list
from .training_options import TrainingOptions, training_options

__all__ = [
    "check_parameters",
    "seed_of",
    "solver_of",
    "with_inherited_parameters",
]

Class = TypeVar("Class")


def with_inherited_parameters(cls: type[Class]) -> type[Class]:
    """Document inherited parameters where the docstring has a line ``{parameters of Base}``.

    But for those that the class documents itself, as it has another default.
    """
    for base in cls.__mro__[1:]:
        line = f"    {{parameters of {base.__name__}}}\n"
        if cls.__doc__ is not None and line in cls.__doc__:  # None with python -OO
            _, listed = inspect.cleandoc(base.__doc__ or "").split("----------\n")
            own = re.findall(r"^    (\w+) : ", cls.__doc__, re.MULTILINE)
            entries = re.split(r"^(?=\w+ : )", listed, flags=re.MULTILINE)
            inherited = "".join(e for e in entries if e.partition(" :")[0] not in own)
            indented = (f"    {text}" if text else "" for text in inherited.splitlines())
            cls.__doc__ = cls.__doc__.replace(line, "\n".join(indented) + "\n")
    return cls


def solver_of(estimator: Any) -> Any:
    """The solver that the parameters of an estimator ask for; they are checked."""
    options = check_parameters(estimator)
    check_numbers(estimator, estimator.C, options)
    keeping = {name: getattr(options, name) for name in KEEPING}
    shared = ("tol", "epsilon", "max_passes", "max_time", "n_jobs")
    solver = make_solver(
        estimator.solver,
        random_state=seed_of(estimator.random_state),
        **{name: getattr(estimator, name) for name in shared},
        cache_mb=options.cache_mb,
        **keeping,
    )
    if not isinstance(estimator.solver, str) and (options.checkpoint or options.resume):
        if not isinstance(solver, SolverParameters):
            raise ValueError(f"checkpoint needs a solver of maxmargin, got {solver!r}")
        solver = dataclasses.replace(solver, **keeping)
    if options.cluster is None:
        return solver
    return import_name("cluster", "ClusterSolver").like(solver, options.cluster)


def seed_of(random_state: Any) -> Any:
    """A seed for numpy's generators out of anything scikit-learn accepts, and out of those."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return random_state
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ValueError(
            "random_state must be None, an integer >= 0, a RandomState or a Generator, got "
            f"{random_state!r}"
        ) from None


def check_parameters(estimator: Any) -> TrainingOptions:
    """Raise ValueError for what is no switch, no callback, no file, ...; the training's options."""
    _check_switches(estimator)
    if not isinstance(estimator.verbose, (bool, np.bool_, Integral)):
        raise ValueError(f"verbose must be a whole number, got {estimator.verbose!r:.60}")
    options = training_options(estimator.training)
    _check_switches(options)
    check_choice(options.on_interrupt, ("raise", "return"), "on_interrupt")
    is_name = isinstance(options.checkpoint, (str, os.PathLike))
    if options.checkpoint is not None and not (is_name and "\0" not in str(options.checkpoint)):
        raise ValueError(f"checkpoint must be the name of a file, got {options.checkpoint!r:.60}")
    if not is_list(options.callbacks) or not all(map(callable, options.callbacks)):
        raise ValueError(
            f"callbacks must be a sequence of functions, got {options.callbacks!r:.60}"
        )
    return options


def _check_switches(given: Any) -> None:
    """Raise ValueError for fields that are to be True or False, and are not."""
    kinds: dict[str, Any] = annotated_types(cast("Any", type(given)))
    for name in (name for name, kind in kinds.items() if kind is bool):
        value = getattr(given, name, True)
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise ValueError(f"{name} must be True or False, got {value!r:.60}")
