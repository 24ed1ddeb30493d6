"""Steps of the online solvers: a candidate of an example changes the weights, sparsely.

The weights are kept as ``w = scale * v``, so that shrinking all of them is one multiplication, and
a step touches only the features of its candidate. Visit t leaves w_t = scale_t v_t; with the sum of
scales S_t = scale_1 + ... + scale_t, and with d_j what visit j added to v,

    sum_t w_t = sum_j (S_T - S_(j-1)) d_j = S_T v_T - sum_j S_(j-1) d_j,

so the average of all weights costs one more sparse sum, ``lagged``. Without shrinking, S_t = t.

Steps for a candidate with the plane (b, a), hinge h = b - <a, w> and example weight s
(lambda = 1 / (C sum_i s_i), and s / mean(s) in place of s for the last two):

* PERCEPTRON   w += s a                            if the prediction is wrong (Collins 2002)
* MIRA         w += min(C s, h / |a|^2) a          if h > 0 (Crammer et al. 2005, with slack;
               without, C is NO_CAP, and planes that no weights can satisfy are left out)
* SUBGRADIENT  w = (1 - eta lambda) w + eta s a,   without a unless h > 0, where
               eta = eta0 / (1 + eta0 r t)^0.75 with a rate r (Chang & Yih 2013), or, with eta0 = 0,
               eta = 1 / (lambda t), a share of 1/k for each of k candidates found at the same w,
               and a projection on a ball (Lee & Jang 2010, Alg. 3)

All keep ``w = sum_i alpha_i a_i`` with alpha >= 0. The sums of each example's multipliers and the
linear part of the dual, ``sum alpha b``, are carried along in units of v: a dual bound is made of
them on request.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.weight_constraints import FeasibleSet
from ...jit.decorator import kernel
from ...utils.types import Floats
from .block_steps import WSS2, improve_block

__all__ = [
    "OnlineRule",
    "OnlineState",
    "fold_scale",
    "keep_within",
    "make_state",
    "mira_steps",
    "online_steps",
    "single_step",
]


PERCEPTRON, MIRA, SUBGRADIENT = 0, 1, 2
NO_CAP = 1e100  # the C of MIRA's hard constraints: beyond any step, and far from overflow
# Places in OnlineState.numbers.
# STEPS counts what is averaged, TIME is the t of the step sizes, LOSS and CHANGES are of a pass.
SCALE, SCALES, STEPS, TIME, SQUARE, LINEAR, LINEAR_LAGGED, LOSS, CHANGES = range(9)
ROUNDING = 1e-15  # relative change that is no change: weights are at bounds up to the scale
SMALLEST_SCALE = 1e-6  # folded into v below, which keeps the differences of sums exact enough


class OnlineRule(NamedTuple):
    """What a solver does with a candidate."""

    kind: int
    plain: bool  # whether candidates are predictions, not the formulation's most violated outputs
    C: float
    decay: float  # lambda
    eta0: float
    radius: float  # of the ball that w is projected on
    average: bool
    rate: float = 0.0  # of the fall of step sizes that begin with eta0


class OnlineState(NamedTuple):
    """Weights, what averages need, and sums of multipliers; see the module's formulas."""

    v: Floats
    lagged: Floats  # empty where nothing is averaged
    alpha: Floats  # sum of each example's multipliers
    alpha_lagged: Floats
    numbers: Floats
    scratch: Floats  # zeros, as long as v, for solvers that need products of planes


def make_state(n_features: int, n_examples: int, average: bool, products: bool) -> OnlineState:
    """Zero weights."""
    numbers = np.zeros(9)
    numbers[SCALE] = 1.0
    return OnlineState(
        np.zeros(n_features),
        np.zeros(n_features if average else 0),
        np.zeros(n_examples),
        np.zeros(n_examples if average else 0),
        numbers,
        np.zeros(n_features if products else 0),
    )


def keep_within(feasible_set: FeasibleSet, state: OnlineState) -> None:
    """Move weights that a step has taken out of their bounds back to these, as a part of the step.

    The changes are multipliers of the bounds, whose planes are single weights.
    """
    v, numbers, which = state.v, state.numbers, feasible_set.bounded
    before = v[which]
    now = np.clip(numbers[SCALE] * before, feasible_set.low, feasible_set.high) / numbers[SCALE]
    now = np.where(np.abs(now - before) > ROUNDING * np.abs(before), now, before)
    changes = now - before
    moved = changes != 0.0
    if not moved.any():
        return
    v[which] = now
    bounds = np.where(changes > 0.0, feasible_set.low, feasible_set.high)
    linear = float(changes[moved] @ bounds[moved])
    numbers[LINEAR] += linear
    numbers[SQUARE] = max(0.0, numbers[SQUARE] + float((now - before) @ (now + before)))
    if len(state.lagged) > 0:
        lag = max(numbers[SCALES] - numbers[SCALE], 0.0)  # the sum before the step's own
        state.lagged[which] += lag * changes
        numbers[LINEAR_LAGGED] += lag * linear


@kernel
def fold_scale(state):
    """Multiply v and all that is in its units by the scale, which becomes 1; w stays the same.

    The sum of the weights so far is put into ``lagged``, and the sum of scales starts again at 0:
    it would grow with every fold, and differences of large sums have few digits.
    """
    numbers = state.numbers
    scale, scales = numbers[SCALE], numbers[SCALES]
    if len(state.lagged) > 0:
        for f in range(len(state.v)):
            state.lagged[f] -= scales * state.v[f]
        for i in range(len(state.alpha)):
            state.alpha_lagged[i] -= scales * state.alpha[i]
        numbers[LINEAR_LAGGED] -= scales * numbers[LINEAR]
    for f in range(len(state.v)):
        state.v[f] *= scale
    for i in range(len(state.alpha)):
        state.alpha[i] *= scale
    numbers[SQUARE] *= scale * scale
    numbers[LINEAR] *= scale
    numbers[SCALES] = 0.0
    numbers[SCALE] = 1.0


@kernel
def _product(planes, row, v):
    """<dpsi, v> of a row."""
    product = 0.0
    for e in range(planes.indptr[row], planes.indptr[row + 1]):
        product += planes.values[e] * v[planes.indices[e]]
    return product


@kernel
def _expand(planes, row, dense, sign):
    """Add a row to a dense vector, or with sign -1 clear the vector where the row has entries."""
    for e in range(planes.indptr[row], planes.indptr[row + 1]):
        if sign > 0:
            dense[planes.indices[e]] += planes.values[e]
        else:
            dense[planes.indices[e]] = 0.0


@kernel
def _add(planes, row, example, step, b, c, state):
    """Add step * dpsi to w, with all that is carried along; the multiplier grows by step / c."""
    v, lagged, numbers = state.v, state.lagged, state.numbers
    lag = numbers[SCALES]
    change = step / numbers[SCALE]
    square = 0.0
    for e in range(planes.indptr[row], planes.indptr[row + 1]):
        f = planes.indices[e]
        before = v[f]
        v[f] = before + change * planes.values[e]
        square += v[f] * v[f] - before * before
        if len(lagged) > 0:
            lagged[f] += lag * (change * planes.values[e])
    multiplier = change / c
    state.alpha[example] += multiplier
    numbers[LINEAR] += multiplier * b
    if len(lagged) > 0:
        state.alpha_lagged[example] += lag * multiplier
        numbers[LINEAR_LAGGED] += lag * multiplier * b
    numbers[SQUARE] = max(0.0, numbers[SQUARE] + square)
    numbers[CHANGES] += 1.0


@kernel
def _shrink(rule, state):
    """Begin a step of SUBGRADIENT: shrink w and return eta."""
    numbers = state.numbers
    t = numbers[TIME] + 1.0
    if rule.eta0 > 0.0:
        eta = rule.eta0 / (1.0 + rule.eta0 * rule.rate * t) ** 0.75
        eta = min(eta, 0.5 / rule.decay)  # never past zero
    else:
        eta = 1.0 / (rule.decay * t)
        if t == 1.0:
            return eta  # w is zero already
    numbers[SCALE] *= 1.0 - eta * rule.decay
    if numbers[SCALE] < SMALLEST_SCALE:
        fold_scale(state)
    return eta


@kernel
def _end_step(rule, state):
    """Project, and count what w is now into the average."""
    numbers = state.numbers
    norm = numbers[SCALE] * np.sqrt(numbers[SQUARE])
    if norm > rule.radius:
        numbers[SCALE] *= rule.radius / norm
    numbers[STEPS] += 1.0
    numbers[TIME] += 1.0
    numbers[SCALES] += numbers[SCALE]


@kernel
def single_step(planes, row, example, loss, b, c, weight, rule, state):
    """One visit of ``example``, whose candidate is a row of dpsi with the plane (b, c dpsi)."""
    state.numbers[LOSS] += loss
    changed = planes.indptr[row + 1] > planes.indptr[row] and c > 0.0
    if rule.kind == PERCEPTRON:
        if changed:
            _add(planes, row, example, weight, b, c, state)
    else:
        hinge = 0.0
        if changed:
            hinge = b - c * state.numbers[SCALE] * _product(planes, row, state.v)
        if rule.kind == MIRA:
            if hinge > 0.0:
                _expand(planes, row, state.scratch, 1.0)
                square = c * c * _product(planes, row, state.scratch)
                _expand(planes, row, state.scratch, -1.0)
                step = rule.C * weight
                if hinge < step * square:
                    step = hinge / square
                if square > 0.0 or rule.C < NO_CAP:
                    _add(planes, row, example, step * c, b, c, state)
        else:
            eta = _shrink(rule, state)
            if hinge > 0.0:
                _add(planes, row, example, eta * weight * c, b, c, state)
    _end_step(rule, state)


@kernel
def online_steps(planes, examples, b, c, weights, group, rule, state):
    """Steps for the rows of an oracle's answer, ``group`` of them at a time in one step.

    ``b`` and ``c`` belong to rows, ``weights`` to examples.
    """
    for start in range(0, len(examples), group):
        end = min(start + group, len(examples))
        if end - start == 1:
            i, loss = examples[start], planes.losses[start]
            single_step(planes, start, i, loss, b[start], c[start], weights[i], rule, state)
            continue
        hinges = np.zeros(end - start)
        for r in range(start, end):
            state.numbers[LOSS] += planes.losses[r]
            if planes.indptr[r + 1] > planes.indptr[r]:
                product = state.numbers[SCALE] * _product(planes, r, state.v)
                hinges[r - start] = b[r] - c[r] * product
        eta = _shrink(rule, state) / (end - start)
        for r in range(start, end):
            if hinges[r - start] > 0.0:
                step = eta * weights[examples[r]] * c[r]
                _add(planes, r, examples[r], step, b[r], c[r], state)
        _end_step(rule, state)


@kernel
def mira_steps(planes, examples, b, c, weights, k, rule, state):
    """Steps of k-best MIRA; rows come k to an example.

    Solves, for each example,

        min  1/2 |w' - w|^2 + C s xi   s.t.  b_j - <a_j, w'> <= xi,  xi >= 0,   j = 1..k,

    by dual ascent on the block of its k planes (see `block_steps`), to the limits of rounding.
    """
    hinges = np.empty(k + 1)
    alpha = np.empty(k + 1)
    gram = np.empty((k + 1, k + 1))
    for r in range(len(examples)):
        first = r * k - 1  # row of plane j = 1..k is first + j; plane 0 is the truth's
        upper_bound = rule.C * weights[examples[r]]
        state.numbers[LOSS] += planes.losses[first + 1]
        largest = 0.0
        for j in range(k + 1):
            gram[0, j] = gram[j, 0] = hinges[j] = alpha[j] = 0.0
        alpha[0] = upper_bound
        for j in range(1, k + 1):
            row = first + j
            # Other outputs may have the features of the truth; only rows that pad have b = 0.
            product = state.numbers[SCALE] * _product(planes, row, state.v)
            hinges[j] = b[row] - c[row] * product
            largest = max(largest, hinges[j])
            _expand(planes, row, state.scratch, 1.0)
            for other in range(1, j + 1):
                product = _product(planes, first + other, state.scratch)
                gram[j, other] = gram[other, j] = c[row] * c[first + other] * product
            _expand(planes, row, state.scratch, -1.0)
            if gram[j, j] <= 0.0 and rule.C >= NO_CAP:
                hinges[j] = 0.0
        if largest > 0.0:
            small = 1e-12 * upper_bound * largest
            improve_block(WSS2, 100 * (k + 1), small, hinges, alpha, gram, k + 1, upper_bound, 0.0)
            for j in range(1, k + 1):
                row = first + j
                if alpha[j] > 0.0 and c[row] > 0.0:
                    _add(planes, row, examples[r], alpha[j] * c[row], b[row], c[row], state)
        _end_step(rule, state)
