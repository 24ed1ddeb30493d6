"""Shards as examples: a problem whose oracle is asked of all parts at once, on their workers.

With S_k the sum of part k's sample weights, the part is one example of that weight, whose slack is
the weighted mean of those of its own (for squared slacks, of their squares). A cutting plane of
this mean is its candidate, so that solvers of linear slacks solve the problem of all examples
without knowing it: one-slack cutting planes as they are, by one pass over all data for each plane.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..core.cutting_planes import BoundedPlanes, Planes, stack
from ..core.formulation import Formulation, Rescaling
from ..engine.packed_problem import PackedProblem
from ..utils.types import Floats, Ints, Ints32
from .executor import Executor, ShardInfo
from .shard import Packed, ShardPlane

__all__ = ["ShardedProblem"]


class ShardedProblem(PackedProblem):
    """All parts of a team, as examples.

    Parameters
    ----------
    team : Executor
        Who answers for the parts.
    formulation : Formulation
        That of the examples.
    """

    def __init__(self, executor: Executor, formulation: Formulation) -> None:
        self.executor = executor
        #: What solvers are to be given: the planes are made already.
        self.formulation = Formulation(constraints=formulation.constraints)
        self.n_features = executor.info[0].n_features
        self.exact = all(info.exact for info in executor.info)
        #: Sums of the sample weights of the parts.
        self.weights: Floats = np.array([info.weight for info in executor.info])
        self.size = sum(info.n_examples for info in executor.info)

    @property
    def n_examples(self) -> int:
        """Number of parts."""
        return len(self.executor.info)

    def input_of(self, i: int) -> ShardInfo:
        """What is known of a part; its examples are elsewhere."""
        return self.executor.info[i]

    def output_of(self, i: int) -> None:
        """None: it is with the examples."""

    def subset(self, indices: Ints) -> NoReturn:
        """Shards are not cut again."""
        raise TypeError("parts on workers are not cut into others")

    def __getstate__(self) -> dict[str, object]:
        """What tells it from others: the examples, not who answers for them."""
        return {"info": self.executor.info}

    def _most_violated(  # type: ignore[override]
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes | BoundedPlanes:
        """See `PackedProblem`."""
        shards = examples.tolist()
        answers = self.executor.call("plane", w, dict.fromkeys(shards, ()))
        found: list[ShardPlane] = [answers[k].answer for k in shards]
        scales = 1.0 / np.maximum(self.weights[shards], 1e-300)
        rows = [_row(plane.vector, scale) for plane, scale in zip(found, scales, strict=True)]
        planes = stack(rows, scales * np.array([plane.offset for plane in found]))
        bounds = [plane.sums.bound for plane in found]
        if all(bound is None for bound in bounds):
            return planes
        known = [b if b is not None else p.sums.slacks for b, p in zip(bounds, found, strict=True)]
        return planes.with_bounds(scales * np.array(known))


def _row(vector: Packed, scale: float) -> tuple[Ints32, Floats]:
    """A vector times a factor as a sparse row."""
    if vector.ids is not None:
        return vector.ids, scale * vector.values
    ids = np.flatnonzero(vector.values).astype(np.int32)
    return ids, scale * vector.values[ids]
