"""The joint QP over pairs of an example and a class: products of planes from products of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...engine.cost_model import PLANE_ENTRY
from ...engine.rows import Rows, add_row, add_scores
from ...engine.steps.joint_qp import JointPlanes, joint_work, solve_jointly
from ...engine.store.joint_planes import MOST_BLOCKS, MOST_PLANES, taken_if_better
from ...jit.decorator import kernel
from ...utils.types import Floats

if TYPE_CHECKING:
    from .class_store import ClassStore

__all__ = ["input_products", "solve_classes_jointly"]

ALL_PAIRS = 300  # so many pairs are solved for even if their classes were never met


def solve_classes_jointly(
    store: ClassStore, stop_gap: float, most_work: float, recombine: bool
) -> float | None:
    """Solve for the multipliers of many classes of all examples.

    None, and nothing is changed, where that takes too much work, or where products of inputs are
    rounded too much.
    """
    n, K = len(store.upper_bounds), store.problem.n_classes
    everything = recombine and n * (K - 1) <= ALL_PAIRS
    # What is refused is refused by its number alone, where no example has weight 0.
    if n > MOST_BLOCKS or joint_work(n * (K - 1) if everything else store.n_planes) > most_work:
        return None
    examples, classes = np.nonzero(_usable(store, everything))
    m = len(examples)
    work = joint_work(m) + PLANE_ENTRY * m * m
    if store.products is None:
        work += len(store.upper_bounds) * store.visit_work
    if m == 0 or m > MOST_PLANES or work > most_work:
        return None
    if store.products is None:
        store.products = input_products(store.problem.rows)
    truths, rows = store.problem.labels[examples], store.terms.rows[examples]
    gram = np.empty((m, m))
    scales = store.terms.scales[rows, classes]
    pair_products(store.products, examples, truths, classes, scales, gram)
    number, block = np.unique(examples, return_inverse=True)
    alpha = store.alpha
    upper_bound, before = store.upper_bounds[number], alpha[examples, classes]
    if store.formulation.slack != "l1":
        upper_bound = np.full(len(upper_bound), np.inf)
    offset = store.terms.offsets[rows, classes]
    planes = JointPlanes(gram, offset, before, block, upper_bound, store.ridges[number])
    solution = solve_jointly(planes, stop_gap, most_work)
    store.work += work - joint_work(m) + solution.work
    after = alpha.copy()
    after[examples, classes] = solution.alpha
    better = solution.gain <= 0.0 or taken_if_better(store.take, alpha, after, store.dual())
    return solution.gap if better else None


def _usable(store: ClassStore, everything: bool) -> np.ndarray:
    """Pairs that may get weight: those that were met, or all."""
    n, K = len(store.upper_bounds), store.problem.n_classes
    if not everything:
        return store.listed & (store.upper_bounds > 0.0)[:, None]
    usable = np.repeat((store.upper_bounds > 0.0)[:, None], K, axis=1)
    usable[np.arange(n), store.problem.labels] = False
    return usable


def input_products(rows: Rows) -> Floats:
    """Products of all pairs of inputs."""
    products = np.empty((rows.n_rows, rows.n_rows))
    _multiply_inputs(rows, np.zeros(rows.n_inputs), products)
    return products


@kernel
def _multiply_inputs(rows, expanded, products):
    """Each input is written out as a vector, and those before it are scored."""
    one, score = np.ones(1), np.empty(1)
    for i in range(len(products)):
        expanded[:] = 0.0
        add_row(rows, i, one, expanded, 1)
        for j in range(i + 1):
            score[0] = 0.0
            add_scores(rows, j, expanded, 1, score)
            products[i, j] = score[0]
            products[j, i] = score[0]


@kernel
def pair_products(products, examples, truths, classes, scales, gram):
    """Products of the planes ``scale (x at the truth minus x at the class)``."""
    for a in range(len(examples)):
        for b in range(a + 1):
            shared = 0.0
            if truths[a] == truths[b]:
                shared += 1.0
            if classes[a] == classes[b]:
                shared += 1.0
            if truths[a] == classes[b]:
                shared -= 1.0
            if classes[a] == truths[b]:
                shared -= 1.0
            product = shared * scales[a] * scales[b] * products[examples[a], examples[b]]
            gram[a, b] = product
            gram[b, a] = product
