"""The master problem of the one-slack solver: a small QP over aggregated planes.

Problem solved, with planes k = 1..m of offsets b and Gram matrix G:

    max  <alpha, b> - 1/2 alpha' G alpha     s.t.  alpha >= 0,  sum alpha <= cap.

``scores`` holds the gradient ``b - G alpha`` and is kept up to date by every step, so that a
solution starts from the last one and stops at any precision. Its duality gap is
``cap max(0, max_k scores_k) - <alpha, scores>``.
"""

from __future__ import annotations

from ...jit.decorator import kernel

__all__ = [
    "best_candidates",
    "best_total",
    "blend",
    "chosen_total",
    "fsmo",
    "line_minimum",
    "line_searches",
    "master_gap",
    "printed_fsmo",
    "smo",
]


@kernel
def master_gap(scores, alpha, m, upper_bound):
    """Duality gap of the master problem at alpha."""
    top = 0.0
    held = 0.0
    for k in range(m):
        if scores[k] > top:
            top = scores[k]
        held += alpha[k] * scores[k]
    return upper_bound * top - held


@kernel
def _shift(scores, gram, m, k, step):
    """Account for a change of alpha[k] by ``step``."""
    for j in range(m):
        scores[j] -= step * gram[k, j]


@kernel
def fsmo(gram, scores, alpha, m, upper_bound, stop_gap, threshold, max_rounds):
    """Modified fixed-threshold SMO (Lee & Jang 2010, Alg. 2); returns the duality gap reached.

    While the sum of the multipliers is below cap, they are changed one at a time, in turn (eq. 9
    and 10). At the bound, weight moves between two: to the plane of largest score, from the one
    that promises the largest ascent (WSS2, eq. 11 and 12). A round of the bounded case takes m
    such steps, so that rounds of both kinds cost about the same. This stops at a duality gap, or,
    as the paper's rule, when all scores are off by no more than ``threshold``: no multiplier moves.

    Two things are not in the paper. The partner is the one of the largest ascent as far as it can
    give weight (the paper: as if it had enough). And weight may be given up at the bound, where all
    scores are negative: the paper's rule moves it only from plane to plane, and gets stuck there.
    """
    total = 0.0
    for k in range(m):
        total += alpha[k]
    gap = master_gap(scores, alpha, m, upper_bound)
    for _ in range(max_rounds):
        if gap <= stop_gap:
            break
        moved = False
        if total < upper_bound:
            for k in range(m):
                if abs(scores[k]) <= threshold:
                    continue
                step = -alpha[k]
                if gram[k, k] > 0.0:
                    step = max(step, scores[k] / gram[k, k])
                elif scores[k] >= 0.0:
                    step = upper_bound if scores[k] > 0.0 else 0.0
                if step >= upper_bound - total:
                    step = upper_bound - total
                if step != 0.0:
                    before = alpha[k]
                    alpha[k] = max(0.0, before + step)
                    step = alpha[k] - before
                    total += step
                    _shift(scores, gram, m, k, step)
                    moved = moved or step != 0.0
                if total >= upper_bound * (1.0 - 1e-14):
                    total = upper_bound
                    break
        if total >= upper_bound:
            for _ in range(m):
                step = _pair_step(gram, scores, alpha, m, threshold)
                if step < 0.0:  # scores are negative: weight is better given up than moved
                    total = upper_bound + step
                    break
                if step == 0.0:
                    break
                moved = True
            moved = moved or total < upper_bound
        gap = master_gap(scores, alpha, m, upper_bound)
        if not moved:
            break
    return gap


@kernel
def _pair_step(gram, scores, alpha, m, threshold):
    """Move weight to the plane of largest score, or give some up; returns 0 if nothing pays.

    The empty plane, score 0, is a partner like the others: where it is the best to move to, the
    negative of the weight given up is returned.
    """
    u = -1
    top = 0.0
    for k in range(m):
        if scores[k] > top:
            u, top = k, scores[k]
    v = -1
    best = 0.0
    move = 0.0
    for k in range(m):
        rise = top - scores[k]
        if alpha[k] <= 0.0 or rise <= threshold:
            continue
        curvature = gram[k, k]
        if u >= 0:
            curvature += gram[u, u] - 2.0 * gram[u, k]
        step = alpha[k]
        if curvature > 0.0 and rise < curvature * step:
            step = rise / curvature
        gain = step * (rise - 0.5 * curvature * step)
        if gain > best:
            v, best, move = k, gain, step
    if v < 0:
        return 0.0
    alpha[v] = alpha[v] - move if move < alpha[v] else 0.0
    _shift(scores, gram, m, v, -move)
    if u < 0:
        return -move
    alpha[u] += move
    _shift(scores, gram, m, u, move)
    return move


@kernel
def printed_fsmo(gram, scores, alpha, m, upper_bound, threshold, max_rounds):
    """Algorithm 2 of Lee & Jang (2010) as it is printed; returns the duality gap reached.

    At the bound one pair moves in a round, chosen as if its partner had weight enough, and no
    weight is given up: where all scores are negative there, this ends short of the optimum.
    """
    total = 0.0
    for k in range(m):
        total += alpha[k]
    for _ in range(max_rounds):
        moved = False
        if total < upper_bound * (1.0 - 1e-14):
            for k in range(m):
                rises = scores[k] > threshold and alpha[k] < upper_bound
                falls = scores[k] < -threshold and alpha[k] > 0.0
                if not rises and not falls:
                    continue
                step = upper_bound - total
                if scores[k] < step * gram[k, k]:
                    step = max(-alpha[k], scores[k] / gram[k, k])
                alpha[k] += step
                total += step
                _shift(scores, gram, m, k, step)
                moved = moved or step != 0.0
        else:
            u = 0
            for k in range(m):
                if scores[k] > scores[u]:
                    u = k
            v = -1
            best = 0.0
            for k in range(m):
                square = gram[u, u] + gram[k, k] - 2.0 * gram[u, k]
                rise = scores[u] - scores[k]
                if k != u and alpha[k] > 0.0 and rise * rise > best * square:
                    v, best = k, rise * rise / max(square, 1e-300)
            if v >= 0 and scores[u] - scores[v] > threshold:
                square = gram[u, u] + gram[v, v] - 2.0 * gram[u, v]
                step = alpha[v]
                if scores[u] - scores[v] < step * square:
                    step = (scores[u] - scores[v]) / square
                alpha[u] += step
                alpha[v] -= step
                if alpha[v] < 1e-14 * upper_bound:  # what rounding leaves is no partner
                    alpha[v] = 0.0
                _shift(scores, gram, m, u, step)
                _shift(scores, gram, m, v, -step)
                moved = step > 0.0
        if not moved:
            break
    return master_gap(scores, alpha, m, upper_bound)


@kernel
def smo(gram, scores, alpha, m, upper_bound, stop_gap, threshold, max_steps):
    """Sequential minimal optimisation as for any SVM; returns the duality gap reached.

    Each step moves weight to the plane of largest score from that of smallest score which has some
    (Keerthi's maximal violating pair, SVM-light's working set of two). What the planes leave of the
    bound is the weight of an empty plane, whose score is 0. Ends at a duality gap, or where the two
    scores differ by no more than ``threshold``: SVM-light's rule.
    """
    total = 0.0
    for k in range(m):
        total += alpha[k]
    gap = master_gap(scores, alpha, m, upper_bound)
    for _ in range(max_steps):
        if gap <= stop_gap:
            break
        u, v = -1, -1
        top = 0.0
        low = 0.0 if total < upper_bound * (1.0 - 1e-14) else 1e300
        for k in range(m):
            if scores[k] > top:
                u, top = k, scores[k]
            if alpha[k] > 0.0 and scores[k] < low:
                v, low = k, scores[k]
        rise = top - low
        if rise <= threshold or rise <= 0.0:
            break
        step = alpha[v] if v >= 0 else upper_bound - total
        curvature = 0.0
        if u >= 0:
            curvature += gram[u, u]
        if v >= 0:
            curvature += gram[v, v]
        if u >= 0 and v >= 0:
            curvature -= 2.0 * gram[u, v]
        if rise < curvature * step:
            step = rise / curvature
        if v >= 0:
            alpha[v] = alpha[v] - step if step < alpha[v] else 0.0
            _shift(scores, gram, m, v, -step)
            total -= step
        if u >= 0:
            alpha[u] += step
            _shift(scores, gram, m, u, step)
            total += step
        gap = master_gap(scores, alpha, m, upper_bound)
    return gap


@kernel
def line_searches(gram, offset, scores, alpha, m, upper_bound, stop_gap):
    """A line search for each plane: the QP of the variant without one; returns the gap reached."""
    gap = master_gap(scores, alpha, m, upper_bound)
    for _ in range(m):
        if gap <= stop_gap or not _line_search(gram, offset, scores, alpha, m, upper_bound):
            break
        gap = master_gap(scores, alpha, m, upper_bound)
    return gap


@kernel
def _line_search(gram, offset, scores, alpha, m, upper_bound):
    """An exact line search towards the plane of largest score; returns whether it gained.

    Of two directions the one that gains more: weight comes from all multipliers in proportion to
    what they are (the proof of Theorem 5 of Joachims et al. 2009, a Frank-Wolfe step), or from the
    one plane that promises the largest ascent (a pairwise step). The former alone takes of the
    order of 1 / gap steps, for it takes all weight from no plane. The empty plane, score 0, is
    among those that weight comes from and, where all scores are negative, goes to.
    """
    u = -1
    top = 0.0
    held = 0.0
    total = 0.0
    square = 0.0
    for k in range(m):
        if scores[k] > top:
            u, top = k, scores[k]
        held += alpha[k] * scores[k]
        total += alpha[k]
        square += alpha[k] * (offset[k] - scores[k])  # adds up to |w|^2
    v = -1
    best = 0.0
    move = 0.0
    for k in range(-1, m):
        rise = top - scores[k] if k >= 0 else top
        step = alpha[k] if k >= 0 else upper_bound - total
        if step <= 0.0 or rise <= 0.0:
            continue
        curvature = gram[k, k] if k >= 0 else 0.0
        if u >= 0:
            curvature += gram[u, u]
            if k >= 0:
                curvature -= 2.0 * gram[u, k]
        if curvature > 0.0 and rise < curvature * step:
            step = rise / curvature
        gain = step * (rise - 0.5 * curvature * step)
        if gain > best:
            v, best, move = k, gain, step
    slope = upper_bound * top - held
    curvature = square
    if u >= 0:
        curvature += upper_bound * upper_bound * gram[u, u] - 2.0 * upper_bound * (
            offset[u] - scores[u]
        )
    shard = slope / curvature if slope < curvature else 1.0
    if shard * (slope - 0.5 * shard * curvature) > best:
        for k in range(m):
            change = shard * ((upper_bound if k == u else 0.0) - alpha[k])
            alpha[k] += change
            _shift(scores, gram, m, k, change)
        return True
    if best <= 0.0:
        return False
    if v >= 0:
        alpha[v] = alpha[v] - move if move < alpha[v] else 0.0
        _shift(scores, gram, m, v, -move)
    if u >= 0:
        alpha[u] += move
        _shift(scores, gram, m, u, move)
    return True


@kernel
def line_minimum(start, end, weights, slope, curvature):
    """Best t in [0, 1] on the line from one table of candidate values to another.

    Minimises ``slope t + 1/2 curvature t^2 + sum_i weights_i max(0, max_j (1 - t) start_ij +
    t end_ij)`` by bisection of its derivative, which never falls.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        t = 0.5 * (low + high)
        derivative = slope + curvature * t
        for i in range(start.shape[0]):
            best = 0.0
            rise = 0.0
            for j in range(start.shape[1]):
                value = start[i, j] + t * (end[i, j] - start[i, j])
                if value > best:
                    best = value
                    rise = end[i, j] - start[i, j]
            derivative += weights[i] * rise
        if derivative > 0.0:
            high = t
        else:
            low = t
        if high - low <= 1e-3 * high:
            break
    return low


@kernel
def best_candidates(start, end, t, chosen):
    """Position of each row's largest value at t of the way, or -1 where none is positive."""
    for i in range(start.shape[0]):
        best = 0.0
        chosen[i] = -1
        for j in range(start.shape[1]):
            value = start[i, j] + t * (end[i, j] - start[i, j])
            if value > best:
                best = value
                chosen[i] = j


@kernel
def chosen_total(table, chosen, weights):
    """Weighted sum of the chosen values."""
    total = 0.0
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            total += weights[i] * table[i, chosen[i]]
    return total


@kernel
def best_total(table, weights):
    """Weighted sum of each row's largest value, or 0 where none is positive."""
    total = 0.0
    for i in range(table.shape[0]):
        best = 0.0
        for j in range(table.shape[1]):
            best = max(best, table[i, j])
        total += weights[i] * best
    return total


@kernel
def blend(w, other, t):
    """Set w to (1 - t) w + t other."""
    for k in range(len(w)):
        w[k] += t * (other[k] - w[k])
