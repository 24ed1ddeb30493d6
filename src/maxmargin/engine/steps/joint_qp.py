"""The dual over a few planes of all examples at once, by an active-set method with Newton steps.

Problem solved, with planes j = 1..m of offsets b and Gram matrix G, each in the block of one
example, and A_i the sum of the multipliers of block i:

    max  b'alpha - 1/2 alpha' G alpha - 1/2 sum_i ridge_i A_i^2   s.t.  alpha >= 0,  A_i <= cap_i

with cap ``C s_i`` and no ridge (linear slacks), ridge ``1 / (2 C s_i)`` and no cap (squared ones),
or neither (hard margins). Steps inside one block after the other take very long where C is large
and blocks share features; here all multipliers move together.

The method. A capped block has one more multiplier, that of the true output, whose plane is zero:
all of them sum to the cap. The *face* is the multipliers that are not zero, but for one of each
capped block, the pivot, which gives what the others take. A Newton step on the face is found by a
Cholesky factor, which is mended where multipliers join and leave. It is taken as far as the first
multiplier falls to zero, or further with all that would fall below clipped, whichever gains more:
so no step lowers the dual. At the best point of a face the zero multiplier of largest slope of each
block joins it, unless the step would lower it. Planes may depend on each other: a tiny ridge,
relative to the planes' own squares, makes the matrix definite, and lets directions without
curvature be taken to their end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.objective import NEGLIGIBLE
from ...jit.decorator import kernel
from ...utils.types import Floats, Ints

__all__ = ["JointPlanes", "JointSolution", "joint_work", "solve_jointly"]

RIDGE = 1e-12  # of the Newton step's matrix, relative to its diagonal
FLOOR = 1e-14  # the same, relative to the largest entry of the diagonal
DUST = 1e-15  # share of its block's largest multiplier below which one counts as zero
TRIES = 6  # lengths of a clipped step, each half the one before
MOST_STEPS = 20  # for each multiplier: more would be a circle
REFRESH = 20  # steps after which slopes are computed afresh
PRODUCT = 0.2  # work of a multiplication and an addition, see `work`
LOOPS = 40  # products that take as long as a step's work on a multiplier
GRACE = 4.0  # solutions take longer than guessed, and are worth little before they are done
USUAL_STEPS = 10  # for a guess of the work


class JointPlanes(NamedTuple):
    """Planes to solve for: their products, offsets, multipliers and blocks."""

    gram: Floats
    offset: Floats
    alpha: Floats
    block: Ints  # 0..len(cap) - 1
    upper_bound: Floats  # per block, infinite where there is none
    ridge: Floats


class JointSolution(NamedTuple):
    """Multipliers, the dual's increase, the gap that is left among these planes, work done."""

    alpha: Floats
    gain: float
    gap: float
    work: float


def joint_work(n_planes: int) -> float:
    """Work of a solution, roughly; without that of the planes' products."""
    return USUAL_STEPS * PRODUCT * (n_planes / 2.0) ** 3 / 6.0 + 20.0 * n_planes**2


def solve_jointly(planes: JointPlanes, stop_gap: float, most_work: float = np.inf) -> JointSolution:
    """Solve for the multipliers of all planes, until their duality gap is at most ``stop_gap``.

    Multipliers are feasible and the dual is never below where it started. For hard margins, where
    there is no gap, ``stop_gap`` is the largest violation of the optimality conditions. It ends
    before where it takes several times ``most_work``.
    """
    m, n_blocks = len(planes.offset), len(planes.upper_bound)
    capped = np.flatnonzero(np.isfinite(planes.upper_bound))
    gram = planes.gram
    shared = planes.ridge[planes.block]
    if shared.any():
        gram = gram + np.where(planes.block[:, None] == planes.block, shared, 0.0)
    # Behind the planes the true outputs of capped blocks, which take what is left of the caps.
    offset = np.concatenate([planes.offset, np.zeros(len(capped))])
    sums = np.bincount(planes.block, planes.alpha, n_blocks)
    rest = np.maximum(planes.upper_bound[capped] - sums[capped], 0.0)
    truth = np.full(n_blocks, -1)
    truth[capped] = np.arange(m, m + len(capped))
    largest = float(gram.diagonal().max(initial=0.0)) or 1.0
    of = np.concatenate([planes.block, capped])
    blocks = JointBlocks(of, truth, planes.upper_bound, planes.ridge, largest)
    alpha = np.concatenate([planes.alpha, rest])
    most = GRACE * most_work / PRODUCT
    gap, products = newton_steps(gram, offset, alpha, blocks, stop_gap, most)
    gain = float(dual_gain(gram, offset, planes.alpha, alpha))
    solution = alpha[:m] if gain > 0.0 else planes.alpha
    return JointSolution(solution, max(gain, 0.0), float(gap), PRODUCT * float(products))


class JointBlocks(NamedTuple):
    """Block of each multiplier. Per block: the place of its truth or -1, its cap and ridge.

    ``largest`` is the largest square of a plane.
    """

    of: Ints
    truth: Ints
    upper_bound: Floats
    ridge: Floats
    largest: float


class Face(NamedTuple):
    """Multipliers that move by themselves, in the order of the rows of the Cholesky factor.

    ``count[0]`` is how many they are. ``pivots`` are the multipliers that give what the others of
    their capped block take, -1 in blocks without a cap.
    """

    count: Ints  # type: ignore[assignment]
    members: Ints
    pivots: Ints
    factor: Floats
    turns: Floats


@kernel
def newton_steps(gram, offset, alpha, blocks, stop_gap, most_products):
    """Improve alpha in place; returns the gap reached and how many products that took.

    ``gram``, with the ridges, is of the planes alone; the other arrays have the truths behind them.
    """
    size, n_blocks = len(alpha), len(blocks.upper_bound)
    slopes, curved = np.empty(size), np.zeros(size)
    steps, goal = np.empty(size), np.empty(size)
    totals, tops = np.empty(n_blocks), np.empty(n_blocks)
    entering = np.empty(n_blocks, np.int64)
    face = Face(
        np.zeros(1, np.int64),
        np.empty(size, np.int64),
        np.empty(n_blocks, np.int64),
        np.empty((size, size)),
        np.empty((2, size)),
    )
    products = _open_face(gram, alpha, blocks, face)
    best, taken = True, 0
    for _ in range(MOST_STEPS * (size + 1)):
        if products > most_products:
            break
        if taken % REFRESH == 0:
            products += _find_slopes(gram, offset, alpha, slopes, curved)
        taken += 1
        products += LOOPS * size
        value = 0.0
        for j in range(size):
            value += 0.5 * alpha[j] * (offset[j] + slopes[j])
        if _gap(slopes, alpha, blocks, totals, tops) <= stop_gap:
            break
        if best:
            _choose_entering(slopes, alpha, blocks, face.pivots, entering)
            for i in range(n_blocks):
                if entering[i] >= 0:
                    products += _join(gram, blocks, face, entering[i])
        # Zero multipliers that the step would lower do not join, and it is found again.
        falling = True
        while falling:
            falling = False
            products += _newton_step(slopes, blocks, face, goal)
            for k in range(face.count[0] - 1, -1, -1):
                if alpha[face.members[k]] <= 0.0 and goal[k] <= 0.0:
                    products += _leave(face, k)
                    falling = True
        steps[:] = 0.0
        for k in range(face.count[0]):
            j = face.members[k]
            steps[j] += goal[k]
            pivot = face.pivots[blocks.of[j]]
            if pivot >= 0:
                steps[pivot] -= goal[k]
        gain, blocked, cost = _move(gram, slopes, alpha, blocks, steps, goal, curved, totals)
        products += cost + _follow(gram, alpha, blocks, face)
        if blocked or gain > NEGLIGIBLE * abs(value):
            best = not blocked
        elif best and taken % REFRESH == 1:
            break
        else:  # perhaps only the slopes are not what they should be
            best, taken = True, 0
    products += _find_slopes(gram, offset, alpha, slopes, curved)
    return _gap(slopes, alpha, blocks, totals, tops), products


# ----- the face and its factor -------------------------------------------------------------------


@kernel(allocates=False)
def _open_face(gram, alpha, blocks, face):
    """All multipliers that are not zero, but for the largest of capped blocks; returns the cost."""
    face.count[0] = 0
    for i in range(len(blocks.upper_bound)):
        face.pivots[i] = blocks.truth[i]
    for j in range(len(alpha)):
        pivot = face.pivots[blocks.of[j]]
        if pivot >= 0 and alpha[j] > alpha[pivot]:
            face.pivots[blocks.of[j]] = j
    cost = 0.0
    for j in range(len(alpha)):
        if alpha[j] > 0.0 and face.pivots[blocks.of[j]] != j:
            cost += _join(gram, blocks, face, j)
    return cost


@kernel(inline=True)
def _product(gram, j, p, k, q):
    """Product of the planes j minus p and k minus q; the truths, behind the planes, are zero."""
    m = len(gram)
    product = 0.0
    if j < m:
        if k < m:
            product += gram[j, k]
        if 0 <= q < m:
            product -= gram[j, q]
    if 0 <= p < m:
        if k < m:
            product -= gram[p, k]
        if 0 <= q < m:
            product += gram[p, q]
    return product


@kernel(allocates=False)
def _join(gram, blocks, face, j):
    """Multiplier j joins the face: one more row of the factor; returns the cost."""
    n = face.count[0]
    p = face.pivots[blocks.of[j]]
    row = face.factor[n]
    for b in range(n):
        k = face.members[b]
        other = face.factor[b]
        rest = _product(gram, j, p, k, face.pivots[blocks.of[k]])
        for c in range(b):
            rest -= row[c] * other[c]
        row[b] = rest / other[b]
    square = max(_product(gram, j, p, j, p), 0.0)
    floor = RIDGE * square + FLOOR * blocks.largest
    rest = square + floor
    for c in range(n):
        rest -= row[c] * row[c]
    # Of a plane that depends on the others rounding may leave less than the ridge.
    row[n] = np.sqrt(max(rest, 0.1 * floor))
    face.members[n] = j
    face.count[0] = n + 1
    return 0.5 * n * n + 8.0 * n


@kernel(allocates=False)
def _leave(face, r):
    """The multiplier of row r leaves the face: rotations mend the factor; returns the cost."""
    factor, cosines, sines = face.factor, face.turns[0], face.turns[1]
    n = face.count[0]
    for i in range(r, n - 1):
        face.members[i] = face.members[i + 1]
        row, old = factor[i], factor[i + 1]
        for k in range(i + 2):
            row[k] = old[k]
        for k in range(r, i):
            left, right = row[k], row[k + 1]
            row[k] = cosines[k] * left + sines[k] * right
            row[k + 1] = cosines[k] * right - sines[k] * left
        length = np.sqrt(row[i] * row[i] + row[i + 1] * row[i + 1])
        cosines[i] = row[i] / length
        sines[i] = row[i + 1] / length
        row[i] = length
    face.count[0] = n - 1
    return 3.0 * (n - r) * (n - r)


@kernel(allocates=False)
def _follow(gram, alpha, blocks, face):
    """Multipliers that became zero leave the face; where a pivot did, the largest takes its place.

    Returns the cost.
    """
    cost = 0.0
    for k in range(face.count[0] - 1, -1, -1):
        j = face.members[k]
        pivot = face.pivots[blocks.of[j]]
        if pivot >= 0 and alpha[j] <= DUST * alpha[pivot]:
            alpha[j] = 0.0
        if alpha[j] <= 0.0:
            cost += _leave(face, k)
    for i in range(len(blocks.upper_bound)):
        pivot = face.pivots[i]
        if pivot < 0 or alpha[pivot] > 0.0:
            continue
        for k in range(face.count[0] - 1, -1, -1):
            if blocks.of[face.members[k]] == i:
                cost += _leave(face, k)
        for j in range(len(alpha)):
            if blocks.of[j] == i and alpha[j] > alpha[face.pivots[i]]:
                face.pivots[i] = j
        for j in range(len(alpha)):
            if blocks.of[j] == i and alpha[j] > 0.0 and face.pivots[i] != j:
                cost += _join(gram, blocks, face, j)
    return cost


@kernel(allocates=False)
def _newton_step(slopes, blocks, face, solution):
    """Best changes of the multipliers on the face, were their signs free; returns the cost."""
    n = face.count[0]
    for a in range(n):
        j = face.members[a]
        p = face.pivots[blocks.of[j]]
        row = face.factor[a]
        rest = slopes[j] - (slopes[p] if p >= 0 else 0.0)
        for k in range(a):
            rest -= row[k] * solution[k]
        solution[a] = rest / row[a]
    for a in range(n - 1, -1, -1):
        row = face.factor[a]
        solution[a] /= row[a]
        for k in range(a):
            solution[k] -= row[k] * solution[a]
    return 1.0 * n * n


# ----- steps -------------------------------------------------------------------------------------


@kernel(allocates=False)
def dual_gain(gram, offset, start, end):
    """Increase of the dual from one point to another."""
    gain = 0.0
    for j in range(len(start)):
        if start[j] == 0.0 and end[j] == 0.0:
            continue
        product = 0.0
        for k in range(len(start)):
            product += gram[j, k] * (start[k] + end[k])
        gain += (end[j] - start[j]) * (offset[j] - 0.5 * product)
    return gain


@kernel(allocates=False)
def _find_slopes(gram, offset, alpha, slopes, curved):
    """Slopes of the dual in all multipliers, afresh; returns the cost."""
    cost = _add_products(gram, alpha, curved)
    for j in range(len(alpha)):
        slopes[j] = offset[j] - curved[j]
    return cost


@kernel(allocates=False)
def _add_products(gram, steps, curved):
    """``curved = gram steps``, where behind the planes both are zero; returns the cost."""
    n = len(gram)
    cost = 0
    curved[:] = 0.0
    for j in range(n):
        step = steps[j]
        if step != 0.0:
            cost += n
            for k in range(n):
                curved[k] += step * gram[j, k]
    return cost


@kernel(allocates=False)
def _gap(slopes, alpha, blocks, totals, tops):
    """Duality gap of the planes; for hard margins the largest violation of optimality."""
    upper_bound, ridge = blocks.upper_bound, blocks.ridge
    totals[:] = 0.0
    for j in range(len(alpha)):
        totals[blocks.of[j]] += alpha[j]
    for i in range(len(upper_bound)):
        tops[i] = -ridge[i] * totals[i]  # slacks are not negative
    gap = 0.0
    worst = 0.0
    for j in range(len(alpha)):
        i = blocks.of[j]
        tops[i] = max(tops[i], slopes[j])
        gap -= alpha[j] * slopes[j]
        if upper_bound[i] == np.inf and ridge[i] == 0.0:
            worst = max(worst, abs(slopes[j]) if alpha[j] > 0.0 else slopes[j])
    if worst > 0.0:
        return worst
    for i in range(len(upper_bound)):
        if ridge[i] > 0.0:
            gap += totals[i] * tops[i] + 0.5 * tops[i] * tops[i] / ridge[i]
        elif upper_bound[i] < np.inf:
            gap += upper_bound[i] * tops[i]
    return gap


@kernel(allocates=False)
def _choose_entering(slopes, alpha, blocks, pivots, entering):
    """The zero multiplier of each block that promises most, or -1."""
    entering[:] = -1
    for j in range(len(alpha)):
        if alpha[j] > 0.0:
            continue
        i = blocks.of[j]
        if pivots[i] >= 0 and alpha[pivots[i]] <= 0.0:
            continue  # a cap of 0
        level = slopes[pivots[i]] if pivots[i] >= 0 else 0.0
        if slopes[j] > level and (entering[i] < 0 or slopes[j] > slopes[entering[i]]):
            entering[i] = j


@kernel(allocates=False)
def _move(gram, slopes, alpha, blocks, steps, goal, curved, totals):
    """Go along the steps to the best point before the first zero, or clipped to a better one.

    Returns the gain, whether a zero stopped the step, and the cost.
    """
    size = len(alpha)
    cost = _add_products(gram, steps, curved)
    slope, curvature = _along(slopes, steps, curved)
    if not slope > 0.0:
        return 0.0, False, cost
    first = np.inf
    last = -1
    for j in range(size):
        if steps[j] < 0.0 and alpha[j] < -steps[j] * first:
            first = alpha[j] / -steps[j]
            last = j
    best = slope / curvature if curvature > 0.0 else np.inf
    length = min(best, first)
    if length == np.inf:
        return 0.0, False, cost  # a hard margin that cannot be met
    gain = length * (slope - 0.5 * length * curvature)
    reach = min(best, 1e6 * first)
    for _ in range(TRIES):
        if reach <= first:
            break
        _clip(alpha, blocks, steps, reach, goal, totals)
        for j in range(size):
            goal[j] -= alpha[j]
        cost += _add_products(gram, goal, curved)
        slope, curvature = _along(slopes, goal, curved)
        if slope - 0.5 * curvature > gain:
            for j in range(size):
                alpha[j] = max(alpha[j] + goal[j], 0.0)
                slopes[j] -= curved[j]
            return slope - 0.5 * curvature, True, cost
        reach *= 0.5
    if first < best:
        cost += _add_products(gram, steps, curved)
    for j in range(size):
        alpha[j] = max(alpha[j] + length * steps[j], 0.0)
        slopes[j] -= length * curved[j]
    if first <= best:
        alpha[last] = 0.0
    return gain, first < best, cost


@kernel(allocates=False)
def _along(slopes, steps, curved):
    """Slope and curvature of the dual along the steps."""
    slope = 0.0
    curvature = 0.0
    for j in range(len(steps)):
        slope += steps[j] * slopes[j]
        curvature += steps[j] * curved[j]
    return slope, curvature


@kernel(allocates=False)
def _clip(alpha, blocks, steps, reach, goal, totals):
    """The multipliers after the steps, none below zero, with each capped block's sum its cap."""
    totals[:] = 0.0
    for j in range(len(alpha)):
        goal[j] = max(alpha[j] + reach * steps[j], 0.0)
        totals[blocks.of[j]] += goal[j]
    for j in range(len(alpha)):
        i = blocks.of[j]
        if blocks.upper_bound[i] < np.inf and totals[i] > 0.0:
            goal[j] *= blocks.upper_bound[i] / totals[i]
