"""How constants of SVM-struct become those of this package.

SVM-struct minimises ``1/2 |w|^2 + C/n sum_i xi_i^p`` with ``p`` 1 or 2. Its losses may be ``L``
times, its features ``F`` times those of the problem here: per cent, for example. With margin
rescaling a slack is then

    L^(1/p) Delta^(1/p) - F <w, dpsi>  =  L^(1/p) (Delta^(1/p) - <v, dpsi>),   w = s v,

with ``s = L^(1/p) / F``; with slack rescaling the same holds with ``s = 1 / F``. So the objective
is ``s^2 (1/2 |v|^2 + C L / (n s^2) sum_i xi_i(v)^p)``: ours, but for the constants.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from ...formulation import C_from_paper, Rescaling, Slack

__all__ = ["Convention", "convention_of", "shared_parameters"]

RESCALINGS: dict[int, Rescaling] = {1: "slack", 2: "margin"}
SLACKS: dict[int, Slack] = {1: "l1", 2: "l2"}
SOLVERS = {0: "n-slack", 1: "n-slack", 2: "one-slack", 3: "one-slack", 4: "one-slack"}


class Convention(NamedTuple):
    """Our constants; their weights are ``weights``, their objective ``objective`` times ours."""

    C: float
    epsilon: float
    weights: float
    objective: float


def convention_of(
    arguments: argparse.Namespace,
    n_examples: int,
    loss_scale: float = 1.0,
    feature_scale: float = 1.0,
) -> Convention:
    """Convert -c and -e, which depend on -o and -p.

    SVM-struct ends where constraints are violated by at most epsilon, which leaves a gap of at most
    ``C epsilon``; here that is the gap that is certified.
    """
    slack, power = SLACKS[arguments.p], arguments.p
    is_margin = RESCALINGS[arguments.o] == "margin"
    scale = (loss_scale ** (1.0 / power) if is_margin else 1.0) / feature_scale
    C = arguments.c * loss_scale / scale**2
    return Convention(
        C_from_paper(C, n_examples, "joachims", slack),
        arguments.e / loss_scale,
        scale,
        scale**2,
    )


def shared_parameters(arguments: argparse.Namespace, convention: Convention) -> dict[str, Any]:
    """Parameters that all estimators have."""
    return {
        "C": convention.C,
        "epsilon": convention.epsilon,
        "tol": None,
        "rescaling": RESCALINGS[arguments.o],
        "slack": SLACKS[arguments.p],
        "solver": SOLVERS.get(arguments.w, "auto"),
        "random_state": 0,
        "verbose": 1 if arguments.v > 0 else 0,
    }
