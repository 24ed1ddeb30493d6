"""The blocks of a dual problem, as solvers use them, and who makes their store.

Planes ``(b, a)`` of example i and their multipliers alpha form block i of the dual

    D(alpha) = sum alpha b - 1/2 |w|^2,   w = sum alpha a,   alpha >= 0,   sum_block alpha <= C_i

or, for squared slacks, without the bound but with ``- 1/2 sum_i ridge_i (sum_block alpha)^2`` and
``ridge_i = 1 / (2 C_i)``. ``C_i`` is ``C`` times the example's weight.

A store does for the solver what needs planes: absorb the oracle's new planes and improve their
blocks (`oracle_pass`), improve blocks from what is stored (`cached_pass`), and account for the
dual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ...core.formulation import Formulation
from ...utils.types import Floats, Ints
from ..oracle import Oracle
from ..training.state import Arrays, StoredPlanes
from ..violations import batches

__all__ = ["BlockReport", "BlockStore", "StepRule", "make_store", "visits"]


class StepRule(NamedTuple):
    """How a block is improved once its planes are scored.

    Parameters
    ----------
    kind : int
        Direction of a step, one of the constants of `block_steps`.
    max_steps : int
        Steps per visit; 0 only scores the block and stores a new plane.
    precision : float
        Stop stepping when the block's gap is at most this share of what it was.
    threshold : float
        Leave blocks alone whose gap is at most ``threshold * cap``.
    delta : float
        Store a new plane only if its score, the dual's slope in its multiplier, is at least this.
    seed : int
        Of the random order of coordinate steps.
    recombine : bool
        Whether a revisit may also look for a better recombination of the stored planes, where the
        store knows how.
    """

    kind: int
    max_steps: int
    precision: float = 0.0
    threshold: float = 0.0
    delta: float = 0.0
    seed: int = 0
    recombine: bool = False


class BlockReport(NamedTuple):
    """What a pass over blocks saw: their gaps before any step, and their hinge values."""

    gaps: Floats
    hinges: Floats


class BlockStore(Protocol):
    """The blocks of one dual problem, as solvers use them.

    ``w`` is ``sum alpha a`` at all times, and ``dual_now[0]`` the dual value up to rounding.
    """

    oracle: Oracle
    formulation: Formulation
    upper_bounds: Floats
    dual_now: Floats
    #: Whether a visit costs no more than a revisit, so that stored planes save nothing.
    oracle_is_cheap: bool
    #: Whether a visit steps between the examples of a batch, so that batches may be long.
    visits_in_order: bool

    @property
    def least_batch(self) -> int:
        """Examples that a visit should have at least, for threads to pay; 0 without any."""

    def shortens_steps(self, n_visits: int) -> bool:
        """Whether so many visits are made in threads whose steps are shorter for that reason."""

    @property
    def work(self) -> float:
        """Work done so far, see `work`; what pays is judged by it."""

    @property
    def n_shards(self) -> int:
        """Pieces that the blocks are in, which threads can improve at the same time."""

    @property
    def w(self) -> Floats:
        """The weights."""

    @property
    def problem_weights(self) -> Floats:
        """The weights as the problem has them, also where ``w`` has only some for a while."""

    @property
    def n_planes(self) -> int:
        """Planes stored."""

    @property
    def n_support_vectors(self) -> int:
        """Planes whose multiplier is positive."""

    def visit_order(self, order: Ints) -> Ints:
        """The examples in an order that is as good as this one, and may be faster."""

    def oracle_pass(self, examples: Ints, rule: StepRule) -> BlockReport:
        """Ask the oracle at the current ``w`` for each example, and improve its block."""

    def certify_pass(
        self, examples: Ints, size: int, rule: StepRule
    ) -> Iterator[tuple[Ints, BlockReport]]:
        """Visit batches of so many examples by a rule without steps, so that ``w`` stays."""

    def cached_pass(self, examples: Ints, rule: StepRule) -> Floats:
        """Improve blocks from their stored planes alone; returns their gaps before."""

    def prepare_cached_passes(self) -> None:
        """Get ready for many revisits: until the next visit ``w`` may be any short form of it."""

    def extrapolate(self, factor: float) -> float:
        """Go on in the direction of the change since the last call; returns the dual's gain."""

    def solve_jointly(
        self, stop_gap: float, most_work: float, recombine: bool = False
    ) -> float | None:
        """Solve for the multipliers of all stored planes together; returns the gap left there.

        None, and nothing is changed, where that would take more work than it may. Where it may
        ``recombine``, planes that no oracle call has returned take part, if the store knows them.
        """

    def evict(self, idle_limit: int) -> None:
        """Drop planes without weight that ``idle_limit`` visits in a row left unused."""

    def rebuild(self) -> None:
        """Compute ``w`` afresh from the multipliers."""

    def move_to(self, w: Floats) -> None:
        """Go on from other weights, in which blocks that lie elsewhere have their part.

        Steps then improve these blocks while those stay; `rebuild` returns to the own sum.
        """

    def dual_sums(self) -> tuple[float, Floats]:
        """Sum of the multipliers times their planes' offsets, and their sum in each block."""

    def dual(self) -> float:
        """The dual value, computed afresh."""

    def rescale(self, upper_bounds: Floats) -> None:
        """Change the bounds of the blocks, scaling multipliers and ``w`` to fit."""

    def take_over(self, earlier: BlockStore) -> None:
        """Begin with the planes and multipliers of a store of the first of these examples.

        Their bounds may be others; `rescale` is still to be called.
        """

    def arrays(self) -> Arrays:
        """All that `restore` needs besides the problem, as arrays by name."""

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of a store of equal data, formulation and bounds has given."""

    def proven_dual(self) -> float:
        """See `SolverState`."""

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """See `SolverState`."""


def make_store(
    oracle: Oracle, upper_bounds: Floats, cache_bytes: int, n_shards: int = 1
) -> BlockStore:
    """Return the problem's own compact store, or the general one; in shares where it can be."""
    from .planes import PlaneStore

    store = _whole_store(oracle, upper_bounds, cache_bytes)
    if (
        n_shards > 1
        and isinstance(store, PlaneStore)
        and store.divides
        and oracle.feasible_set is None
    ):
        from .sharding import ShardedStore

        return ShardedStore(store, n_shards)
    return store


def _whole_store(oracle: Oracle, upper_bounds: Floats, cache_bytes: int) -> BlockStore:
    """The blocks in one piece."""
    if oracle.feasible_set is not None:
        from .constrained_store import BoundedStore, ConstrainedStore

        kind = BoundedStore if oracle.has_bounds else ConstrainedStore
        return kind(oracle, upper_bounds, cache_bytes)
    from .planes import PlaneStore

    store = oracle.accelerators.store(oracle, upper_bounds, cache_bytes)
    return store or PlaneStore(oracle, upper_bounds, cache_bytes)


def visits(
    store: BlockStore, examples: Ints, size: int, rule: StepRule
) -> Iterator[tuple[Ints, BlockReport]]:
    """Visit batches of so many examples, one after the other."""
    return ((batch, store.oracle_pass(batch, rule)) for batch in batches(examples, size))
