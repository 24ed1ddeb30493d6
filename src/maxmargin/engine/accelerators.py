"""What a native problem may offer beyond the contract: faster ways to the oracle's own answers.

A problem works without any of this. Solvers look here before they ask the oracle, so what is
offered must find the same candidates as `Problem.oracle`, or the same optimum from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..core.cutting_planes import Planes
from ..core.problem import Problem
from ..utils.types import Floats, Ints
from .cost_model import ORACLE_CALL

if TYPE_CHECKING:
    from ..core.formulation import Formulation
    from .cuts.pool import Pool
    from .feature_blocks import FeatureBlocks
    from .oracle import Oracle
    from .steps.online_steps import OnlineRule, OnlineState
    from .store.block_store import BlockStore
    from .training.state import Arrays

__all__ = [
    "Accelerators",
    "AdaptiveFeatures",
    "FactoredAccelerators",
    "FeatureBlocksOnly",
    "accelerators_of",
]


class Accelerators:
    """Faster ways to the answers of one problem under one formulation; here there are none.

    Attributes
    ----------
    parts : FeatureBlocks or None
        Layout of the parts in which `factored_oracle` gives its rows: pieces of outputs with many
        features each, which take less memory and time than features (`engine.feature_blocks`).
    oracle_work : float
        Counted work of an oracle call, on average (see `engine.cost_model`).
    """

    feature_blocks: FeatureBlocks | None = None
    oracle_work: float = ORACLE_CALL

    def factored_oracle(self, indices: Ints, w: Floats) -> Planes:
        """The oracle's answers, with the rows in parts; asked only where there are ``parts``."""
        raise NotImplementedError(f"{type(self).__name__} has parts, but no factored_oracle")

    def oracle_at_scale(self, indices: Ints, v: Floats, scale: float) -> Planes | None:
        """The oracle's answers at ``w = scale * v``, without making w, or None.

        Online solvers that shrink all weights at every step keep them in this form. To make w costs
        time by the number of features, which a problem with very many can do without.
        """
        return None

    def store(self, oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> BlockStore | None:
        """A plane store made for this problem, or None for the general one."""
        return None

    def pool(self, oracle: Oracle) -> Pool | None:
        """A pool that knows every candidate (see `engine.cuts.pool`), or None."""
        return None

    def online_pass(
        self, examples: Ints, weights: Floats, rule: OnlineRule, state: OnlineState
    ) -> bool:
        """Let an online solver visit examples one after the other in compiled code.

        For each of ``examples``, find its candidate at the weights in ``state`` - the prediction if
        ``rule.plain``, the most violated output of the formulation otherwise - and call
        `engine.steps.online_steps.single_step` with it and with the example's entry of ``weights``.
        Returns False, having done nothing, where this is not offered: the solver then asks the
        oracle.
        """
        return False


class FactoredAccelerators(Accelerators):
    """Those of a problem with ``parts`` and a ``factored_oracle`` of its own, which may be any."""

    def __init__(self, problem: Any, formulation: Formulation) -> None:
        self.problem = problem
        self.formulation = formulation
        self.feature_blocks = problem.feature_blocks

    def factored_oracle(self, indices: Ints, w: Floats) -> Planes:
        """See `Accelerators`."""
        kind = self.formulation
        found: Planes = self.problem.factored_oracle(
            indices, w, kind.rescaling, kind.uses_sqrt_loss
        )
        return found


class FeatureBlocksOnly(Accelerators):
    """Of what a problem offers only the parts, if any: the rest knows nothing of constraints."""

    def __init__(self, offered: Accelerators, in_blocks: bool) -> None:
        self.offered = offered
        self.feature_blocks = offered.feature_blocks if in_blocks else None
        self.oracle_work = offered.oracle_work

    def factored_oracle(self, indices: Ints, w: Floats) -> Planes:
        """See `Accelerators`."""
        return self.offered.factored_oracle(indices, w)


def accelerators_of(problem: Any, formulation: Formulation) -> Accelerators:
    """What a problem offers, which may be nothing; it may be duck-typed."""
    offer = getattr(problem, "accelerators", None)
    return (offer(formulation) if offer is not None else None) or Accelerators()


@runtime_checkable
class AdaptiveFeatures(Protocol):
    """A problem that finds its features in training, and keeps them.

    Two copies of it would find different ones, so it is searched in one process, and by one thread.
    """

    def before_training(self) -> Problem:
        """The same problem without any features yet."""

    def feature_arrays(self) -> Arrays:
        """What training has found so far, as arrays by name; see `SolverState.arrays`."""

    def restore_features(self, arrays: Arrays) -> None:
        """Replace all features by the `feature_arrays` of an equal problem."""
