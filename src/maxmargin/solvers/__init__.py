"""How it is learned: one file per family of solvers.

`SOLVERS` maps the names that estimators accept to solver classes; `make_solver` builds one.
"""

from __future__ import annotations

from typing import Any

from ..core.formulation import Formulation
from ..utils.validation import check_choice
from .ascent.auto import Auto
from .ascent.dcd import CPD, DCD, DCDLight
from .ascent.dual_ascent import BCFW, SDA
from .ascent.fasole import FASOLE, SDM
from .base import Solver, SolverParameters
from .certify import certify
from .cutting_plane.n_slack import NSlack
from .cutting_plane.one_slack import OneSlack
from .online.perceptron import MIRA, Perceptron
from .online.solver import OnlineSolver
from .online.subgradient import SGD, Pegasos

__all__ = [
    "BCFW",
    "CPD",
    "DCD",
    "FASOLE",
    "MIRA",
    "SDA",
    "SDM",
    "SGD",
    "SOLVERS",
    "Auto",
    "DCDLight",
    "NSlack",
    "OneSlack",
    "OnlineSolver",
    "Pegasos",
    "Perceptron",
    "Solver",
    "SolverParameters",
    "certify",
    "is_online",
    "make_solver",
    "solvers_for",
]

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        Auto,
        SDA,
        FASOLE,
        SDM,
        BCFW,
        OneSlack,
        NSlack,
        DCDLight,
        DCD,
        CPD,
        Perceptron,
        MIRA,
        SGD,
        Pegasos,
    )
}


def make_solver(solver: str | Solver, **parameters: Any) -> Solver:
    """Return the named solver with these parameters, or the instance that was given, unchanged."""
    if isinstance(solver, str):
        name = solver.replace("-", "_")  # as papers write them
        check_choice(name, SOLVERS, "solver")
        return SOLVERS[name](**parameters)
    if callable(getattr(solver, "solve", None)):
        return solver
    raise ValueError(
        f"solver must be a name out of {sorted(SOLVERS)} or an object with a solve method, "
        f"got {solver!r}"
    )


def solvers_for(formulation: Formulation) -> list[str]:
    """Names of the solvers that can handle a formulation."""
    return [name for name, solver in SOLVERS.items() if formulation.slack in solver.slacks]


def is_online(solver: Any) -> bool:
    """Whether a solver, given by name or as an instance, learns online."""
    kind = SOLVERS.get(solver.replace("-", "_")) if isinstance(solver, str) else type(solver)
    return kind is not None and issubclass(kind, OnlineSolver)
