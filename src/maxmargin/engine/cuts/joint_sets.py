"""The joint QP over the n-slack working sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...utils.types import Floats
from ..steps.joint_qp import JointPlanes
from ..store.joint_planes import PlaneRows, all_products, planes_work, taken_if_better

if TYPE_CHECKING:
    from .working_sets import WorkingSets

__all__ = ["solve_sets_jointly"]

SQUARES = 4  # matrices of all products that a joint solution has at a time


def solve_sets_jointly(store: WorkingSets, stop_gap: float, most_work: float) -> float | None:
    """Solve for the multipliers of all constraints.

    None, and nothing is changed, where that takes too much work or memory, or where products of
    constraints are rounded too much.
    """
    sets = store.sets
    slots, owners = store.owners()
    used = store.upper_bounds[owners] > 0
    slots, owners = slots[used], owners[used]
    rows = PlaneRows(sets.first[slots], sets.last[slots], sets.ids, sets.values)
    entries = int((rows.last - rows.first).sum())
    work = planes_work(len(slots), len(slots), entries, store.feature_blocks)
    free = store.cache_bytes - store.nbytes
    if len(slots) == 0 or work > most_work or SQUARES * 8 * len(slots) ** 2 > free:
        return None
    gram = all_products(rows, store.feature_blocks, len(store.w))
    number, block = np.unique(owners, return_inverse=True)
    capped = store.formulation.slack == "l1"
    upper_bound = store.upper_bounds[number] if capped else np.full(len(number), np.inf)
    before = sets.alpha[slots]
    planes = JointPlanes(gram, sets.offset[slots], before, block, upper_bound, sets.ridge[number])
    solution = store.solve_joint(planes, rows, stop_gap, most_work)
    store.work += planes_work(len(slots), len(slots), entries, store.feature_blocks, solution.work)

    def take(alpha: Floats) -> float:
        sets.alpha[slots] = alpha
        return store.dual()

    better = solution.gain <= 0.0 or taken_if_better(take, before, solution.alpha, store.dual())
    return solution.gap if better else None
