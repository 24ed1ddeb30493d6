"""A warning for oracles that are not exact."""

from __future__ import annotations

import numpy as np

from .._warn import warn_user
from ..formulation import Formulation
from ..problem import Problem
from ..types import Floats, Ints

__all__ = ["TruthCheck"]


class TruthCheck:
    """Warns, once, of an oracle whose candidate is worse than the truth, which has value 0.

    Parameters
    ----------
    problem : Problem
        Where candidates come from; those of the package itself are trusted.
    formulation : Formulation
        Without rescaling the truth is no candidate, and negative values are right.
    """

    def __init__(self, problem: Problem, formulation: Formulation) -> None:
        trusted = bool(getattr(problem, "trusted", False))
        self.active = not trusted and formulation.rescaling != "none"

    def __call__(self, examples: Ints, values: Floats) -> None:
        """Look at the values of the oracle's candidates, at the weights it was asked at."""
        if not self.active or len(values) == 0:
            return
        worst = int(np.argmin(values))
        if values[worst] < -1e-6:
            self.active = False
            warn_user(
                f"the oracle's candidate for example {examples[worst]} has value "
                f"{values[worst]:.4g}, worse than the truth (0): the oracle is not exact and "
                "gaps are not certificates; check_problem() may say why"
            )
