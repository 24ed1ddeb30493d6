"""How chains are trained faster than by their oracle alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.accelerators import FactoredAccelerators
from ...engine.cost_model import scoring_work
from ...engine.online_steps import OnlineRule, OnlineState
from ...engine.oracle import Oracle
from ...formulation import Formulation
from ...types import Floats, Ints
from .store import ChainStore

if TYPE_CHECKING:
    from .problem import ChainProblem

__all__ = ["ChainAccelerators"]


class ChainAccelerators(FactoredAccelerators):
    """Tokens under labels as parts; searches inside stores and online passes."""

    def __init__(self, problem: ChainProblem, formulation: Formulation) -> None:
        super().__init__(problem, formulation)
        rows, K = problem.data.rows, problem.layout.n_labels
        entries, tokens = float(rows.indptr[-1]), float(rows.n_rows)
        total = scoring_work(entries, K) + 0.5 * tokens * K * K
        self.oracle_work = total / max(problem.n_examples, 1)
        #: Whether the planes' offsets are plain losses, so that those of tokens may add up.
        self.offsets_are_losses = (
            formulation.rescaling == "margin" and not formulation.uses_sqrt_loss
        )

    def store(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> ChainStore | None:
        """A store with the oracle inside, where the loss adds up over tokens."""
        adds_up = self.offsets_are_losses and not self.problem.data.zero_one
        if not adds_up or self.feature_blocks is None:
            return None
        return ChainStore(oracle, self.problem, upper_bounds, cache_bytes)

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> bool:
        """See `Accelerators`; predictions need no loss that adds up."""
        if not self.offsets_are_losses or (self.problem.data.zero_one and not rule.plain):
            return False
        self.problem.online_pass(examples, weights, rule, state)
        return True
