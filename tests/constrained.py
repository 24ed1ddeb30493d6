"""Small structural SVMs with constraints on weights, solved exactly from all of their planes.

Spelled out apart from the package: planes of the change ``u = w - w0`` are written down from those
of w, fixed weights lose their columns, and each bound is one more example, ``<e_j, u> >= l_j``,
whose slack is so dear that it is none. What comes out is certified by the duality gap of
`exact_qp`, and has to be within the bounds.
"""

from typing import NamedTuple

import numpy as np

from brute import all_planes, slacks
from exact_qp import solve_exactly
from maxmargin import WeightConstraints

DEAR = {"l1": 1e3, "l2": 1e8}


class Box(NamedTuple):
    """Lower and upper bounds of w, equal where it is fixed, and its mean."""

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray

    @property
    def fixed(self):
        return self.low == self.high


def box_of(constraints, d):
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    mean = np.zeros(d) if constraints.mean is None else np.array(constraints.mean, float)
    for j in range(d) if constraints.nonnegative is True else constraints.nonnegative or ():
        low[j] = 0.0
    for j in constraints.nonpositive or ():
        high[j] = 0.0
    for j, value in (constraints.fixed or {}).items():
        low[j] = high[j] = mean[j] = value
    return Box(low, high, mean)


def solve_constrained(twin, formulation, C, sample_weight=None):
    """The optimal w, and bounds on the optimum."""
    box = box_of(formulation.constraints, twin.n_features)
    weights = list(np.ones(twin.n_examples) if sample_weight is None else sample_weight)
    blocks = []
    for offsets, planes in all_planes(twin, formulation):
        planes = np.asarray(planes, float).reshape(-1, twin.n_features)
        blocks.append((offsets - planes @ box.mean, np.where(box.fixed, 0.0, planes)))
    for j, row in enumerate(np.eye(twin.n_features)):
        for bound, sign in ((box.low[j], 1.0), (-box.high[j], -1.0)):
            if np.isfinite(bound) and not box.fixed[j]:
                blocks.append((np.array([bound - sign * box.mean[j]]), sign * row[None]))
                weights.append(DEAR[formulation.slack])
    found = solve_exactly(blocks, C, weights, precision=1e-7, slack=formulation.slack)
    w = box.mean + found.w
    assert (w >= box.low - 1e-6).all() and (w <= box.high + 1e-6).all()
    return found._replace(w=w)


def objective(twin, formulation, C, w, sample_weight=None):
    """The primal value by definition; infinite where w breaks a constraint."""
    box = box_of(formulation.constraints, twin.n_features)
    if (w < box.low).any() or (w > box.high).any():
        return np.inf
    power = 2 if formulation.slack == "l2" else 1
    found = slacks(all_planes(twin, formulation), w) ** power
    weights = np.ones(twin.n_examples) if sample_weight is None else np.asarray(sample_weight)
    return 0.5 * np.sum((w - box.mean) ** 2) + C * float(weights @ found)


#: Kinds of constraints, each a function of a generator and the number of weights.
KINDS = {
    "mean": lambda rng, d: WeightConstraints(mean=0.3 * rng.normal(size=d)),
    "fixed": lambda rng, d: WeightConstraints(
        fixed={int(j): 0.3 * float(rng.normal()) for j in rng.permutation(d)[: d // 3 + 1]}
    ),
    "nonnegative": lambda rng, d: WeightConstraints(nonnegative=True),
    "signs": lambda rng, d: _signs(rng.permutation(d).tolist(), d // 3 + 1),
    "all": lambda rng, d: _all(rng, rng.permutation(d).tolist(), d // 4 + 1),
}


def _signs(order, k):
    return WeightConstraints(nonnegative=order[:k], nonpositive=order[k : 2 * k])


def _all(rng, order, k):
    """Every kind at once; the mean is outside the bounds here and there."""
    fixed = {j: float(rng.normal()) for j in order[2 * k : 3 * k]}
    mean = 0.5 * rng.normal(size=len(order))
    return WeightConstraints(order[:k], order[k : 2 * k], fixed, mean)
