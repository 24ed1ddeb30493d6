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
    check_numbers(estimator, estimator.C)
    keeping = {name: getattr(estimator, name) for name in KEEPING}
    shared = ("tol", "epsilon", "max_passes", "max_time", "n_jobs", "cache_mb")
    solver = make_solver(
        estimator.solver,
        random_state=seed_of(estimator.random_state),
        **{name: getattr(estimator, name) for name in shared},
        **keeping,
    )
    if not isinstance(estimator.solver, str) and (estimator.checkpoint or estimator.resume):
        if not isinstance(solver, SolverParameters):
            raise ValueError(f"checkpoint needs a solver of maxmargin, got {solver!r}")
        solver = dataclasses.replace(solver, **keeping)
    if estimator.cluster is None:
        return solver
    return import_name("cluster", "ClusterSolver").like(solver, estimator.cluster)


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


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for what is no switch, no callback, no file, ..."""
    kinds: dict[str, Any] = annotated_types(cast("Any", type(estimator)))
    for name in (name for name, kind in kinds.items() if kind is bool):
        value = getattr(estimator, name, True)
        if not isinstance(value, (bool, np.bool_, Integral)):
            raise ValueError(f"{name} must be True or False, got {value!r:.60}")
    check_choice(estimator.on_interrupt, ("raise", "return"), "on_interrupt")
    if not isinstance(estimator.verbose, (bool, np.bool_, Integral)):
        raise ValueError(f"verbose must be a whole number, got {estimator.verbose!r:.60}")
    is_name = isinstance(estimator.checkpoint, (str, os.PathLike))
    if estimator.checkpoint is not None and not (is_name and "\0" not in str(estimator.checkpoint)):
        raise ValueError(f"checkpoint must be the name of a file, got {estimator.checkpoint!r:.60}")
    if not is_list(estimator.callbacks) or not all(map(callable, estimator.callbacks)):
        raise ValueError(
            f"callbacks must be a sequence of functions, got {estimator.callbacks!r:.60}"
        )
