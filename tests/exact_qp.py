"""Optimum of a small structural SVM from all of its planes, by an interior-point method.

    max  b'z - 1/2 |A'z|^2   s.t.  z >= 0, and the multipliers of example i sum to cap_i,

where every example also has the truth's plane (0, 0), whose multiplier is the unused part of the
cap. For squared slacks the multipliers are free but for their sign, and every example adds a
feature of its own to its planes, of value ``1 / sqrt(2 cap_i)``. The method is Mehrotra's
predictor-corrector; none of it is shared with the package. What it returns is certified by its own
duality gap, so a mistake here cannot pass unnoticed.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve
from scipy.optimize import linprog


class Optimum(NamedTuple):
    w: np.ndarray
    primal: float
    dual: float

    @property
    def value(self):
        return 0.5 * (self.primal + self.dual)


def solve_exactly(blocks, C, sample_weight=None, precision=1e-9, slack="l1"):
    """Minimise ``1/2 |w|^2 + C sum_i s_i xi_i``, where ``blocks`` lists ``(b, A)`` per example.

    With ``slack="l2"`` the slacks are squared. With ``slack="none"`` there are none; constraints
    have to be such that they can be met.
    """
    n_features = blocks[0][1].shape[1]
    s = np.ones(len(blocks)) if sample_weight is None else np.asarray(sample_weight, float)
    caps, b, A, block = [], [], [], []
    for weight, (offsets, planes) in zip(s, blocks, strict=True):
        if weight > 0 and len(offsets):
            block += [len(caps)] * (1 + len(offsets))
            caps.append(C * weight)
            b += [0.0, *offsets]
            A += [np.zeros(n_features), *planes]
    if not any(b):  # w = 0 has no slack
        return Optimum(np.zeros(n_features), 0.0, 0.0)
    caps, b, A, block = np.array(caps), np.array(b), np.array(A), np.array(block)
    penalty = 0.0
    if slack == "none":
        real = b > 0
        z = _free_interior_point(A, b)
        w = A.T @ z
        w *= np.max(b[real] / (A[real] @ w))  # from nearly feasible to feasible
        primal, dual = 0.5 * w @ w, b @ z - 0.5 * np.sum((A.T @ z) ** 2)
        assert -1e-12 * primal <= primal - dual <= 1e-9 * primal, (primal, dual)
        return Optimum(w, float(primal), float(dual))
    if slack == "l2":
        own = np.zeros((len(b), len(caps)))
        real = np.any(A != 0, axis=1) | (b != 0)  # all but the truth's planes
        own[np.arange(len(b)), block] = real / np.sqrt(2.0 * caps[block])
        z = _free_interior_point(np.hstack([A, own]), b)
        penalty = 0.5 * np.sum((own.T @ z) ** 2)
    else:
        z = _interior_point(A, b, caps, block)
    w = A.T @ z
    hinges = np.zeros(len(caps))
    np.maximum.at(hinges, block, b - A @ w)
    primal = 0.5 * w @ w + caps @ (hinges**2 if slack == "l2" else hinges)
    dual = b @ z - 0.5 * w @ w - penalty
    gap = primal - dual
    assert -1e-12 * max(1.0, primal) <= gap <= precision * max(1.0, primal), f"gap {gap}"
    return Optimum(w, float(primal), float(dual))


def can_be_met(blocks):
    """Whether weights exist that meet all constraints without slack, by linear programming."""
    A = np.vstack([planes for _, planes in blocks])
    b = np.concatenate([offsets for offsets, _ in blocks])
    found = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-b, bounds=(None, None))
    return found.status == 0


def _interior_point(A, b, caps, block, max_iterations=100):
    """Feasible multipliers near the optimum; unknowns are kept as shares ``z / cap``."""
    cap_of = caps[block]
    N, n = len(b), len(caps)
    scale = max(1.0, np.abs(b).max())
    Q = (A @ A.T) * np.outer(cap_of, cap_of) / scale
    c = b * cap_of / scale
    E = np.zeros((n, N))
    E[block, np.arange(N)] = 1.0
    x = 1.0 / E.sum(axis=1)[block]
    y = np.zeros(n)  # Q x - c - E'y - s = 0
    s = np.maximum(1.0, np.abs(Q @ x - c))
    best, best_gap = x, np.inf
    for _ in range(max_iterations):
        # The best feasible point so far: rounding ends progress at last.
        shares = x / (E @ x)[block]
        gradient = c - Q @ shares
        top = np.full(n, -np.inf)
        np.maximum.at(top, block, gradient)
        gap = top.sum() - gradient @ shares
        if gap < best_gap:
            best, best_gap = shares, gap
        if gap <= 1e-13 * (abs(c) @ shares):
            break
        mu = x @ s / N
        residual = c + E.T @ y + s - Q @ x  # of stationarity
        missing = 1.0 - E @ x
        K = np.block([[Q + np.diag(s / x), -E.T], [E, np.zeros((n, n))]])
        with warnings.catch_warnings():  # a singular matrix ends the loop below
            warnings.simplefilter("ignore", LinAlgWarning)
            factors = lu_factor(K, check_finite=False)

        def direction(complement, residual=residual, missing=missing, factors=factors, x=x, s=s):
            right = np.concatenate([residual + complement / x, missing])
            step = lu_solve(factors, right, check_finite=False)
            dx, dy = step[:N], step[N:]
            return dx, dy, (complement - s * dx) / x

        dx, dy, ds = direction(-x * s)
        if not (np.isfinite(dx).all() and np.isfinite(ds).all()):
            break
        reach = min(_longest(x, dx), _longest(s, ds))
        mu_aim = ((x + reach * dx) @ (s + reach * ds)) / N
        sigma = (mu_aim / mu) ** 3
        dx, dy, ds = direction(sigma * mu - x * s - dx * ds)
        if not (np.isfinite(dx).all() and np.isfinite(ds).all()):
            break
        reach = 0.995 * min(_longest(x, dx), _longest(s, ds))
        if (x + reach * dx) @ (s + reach * ds) > 0.9 * N * mu:
            # The correction can go round in circles; a step towards the central path does not.
            dx, dy, ds = direction(0.5 * mu - x * s)
            reach = 0.995 * min(_longest(x, dx), _longest(s, ds))
        x, y, s = x + reach * dx, y + reach * dy, s + reach * ds
    return best * cap_of


def _free_interior_point(A, b, max_iterations=100):
    """Maximise ``b'z - 1/2 |A'z|^2`` over z >= 0."""
    used = (b != 0) | A.any(axis=1)  # all but the truth's planes
    A, b = A[used], b[used]
    Q = A @ A.T
    scale = b.max() / np.abs(Q).max()  # of the multipliers
    Q, c = Q * scale, b.copy()
    N = len(b)
    x, s = np.ones(N), np.maximum(1.0, np.abs(Q.sum(axis=1) - c))
    best, best_error = x, np.inf
    for _ in range(max_iterations):
        residual = c + s - Q @ x
        error = x @ s + np.abs(residual) @ x
        if error < best_error:
            best, best_error = x, error
        if error <= 1e-14 * (c @ x) or x.min() < 1e-150:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            factors = lu_factor(Q + np.diag(s / x), check_finite=False)
        mu, aim = x @ s / N, 0.0
        dx = ds = np.zeros(N)
        for _ in range(2):  # predictor, corrector
            complement = aim - x * s - dx * ds
            dx = lu_solve(factors, residual + complement / x, check_finite=False)
            ds = (complement - s * dx) / x
            reach = min(_longest(x, dx), _longest(s, ds))
            aim = mu * (((x + reach * dx) @ (s + reach * ds)) / N / mu) ** 3
        if not (np.isfinite(dx).all() and np.isfinite(ds).all()):
            break
        x, s = x + 0.9 * reach * dx, s + 0.9 * reach * ds  # longer steps may get stuck at a corner
    z = np.zeros(len(used))
    z[used] = scale * best
    return z


def _longest(x, dx):
    """Longest step up to 1 that keeps ``x + step * dx >= 0``."""
    shrinking = dx < 0
    return min(1.0, float((-x[shrinking] / dx[shrinking]).min(initial=np.inf)))
