"""What training on a file is made of, whatever the task."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, cast

from ..registry import Task
from .codes import UsageError
from .console import echo

__all__ = ["Examples", "Plan", "Training", "check_values", "say", "shared_parameters"]


class Examples(NamedTuple):
    """What estimators are trained and judged on.

    ``params`` are further arguments of ``fit`` with an entry for each row of X, such as queries.
    Rows of the same group stay together where the examples are split; by default each is alone.
    ``by_node``: X is a list of matrices, one for each node of a tree, with the examples in rows.
    """

    X: Any
    y: Any = None
    params: Mapping[str, Any] = MappingProxyType({})
    groups: Any = None
    by_node: bool = False


class Training(NamedTuple):
    """An estimator, the call that trains it, and what else belongs into its file.

    ``examples`` is what it is trained on, for commands that train on parts of it.
    """

    fit: Callable[[], object]
    estimator: Any
    extra: dict[str, Any]
    examples: Examples | None = None


class Plan(NamedTuple):
    """How to get there: the files that were read for it, and what reads the data."""

    inputs: list[str]
    make: Callable[[], Training]


def shared_parameters(arguments: argparse.Namespace, task: Task) -> dict[str, Any]:
    """Parameters that all estimators have."""
    loss = {"loss": arguments.loss or task.losses[0]} if task.losses else {}
    return loss | {
        "C": arguments.C,
        "rescaling": arguments.rescaling,
        "slack": arguments.slack,
        "solver": arguments.solver,
        "tol": task.tol if arguments.tol is None else arguments.tol,
        "epsilon": arguments.epsilon,
        "max_passes": arguments.max_passes,
        "max_time": arguments.max_time,
        "cache_mb": arguments.cache_mb,
        "n_jobs": arguments.n_jobs,
        "random_state": arguments.seed,
        "verbose": 0 if arguments.quiet else 1,
    }


def check_values(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError, before any file is read, for values that no training could do with."""
    from ..formulation import Formulation
    from ..problem import Problem
    from ..solvers import make_solver

    given = shared_parameters(arguments, task)
    limits = ("tol", "epsilon", "max_passes", "max_time", "cache_mb", "random_state")
    try:
        solver = make_solver(given["solver"], **{name: given[name] for name in limits})
        formulation = Formulation(given["rescaling"], given["slack"])
        any_problem = cast(Problem, SimpleNamespace(n_examples=1))
        solver.check(any_problem, formulation, given["C"])
    except ValueError as error:
        raise UsageError(str(error)) from None


def say(arguments: argparse.Namespace, text: str) -> None:
    """Tell the user, unless told to be quiet."""
    if not arguments.quiet:
        echo(text)
