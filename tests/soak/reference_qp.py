"""Optimum of a small structural SVM from all of its planes, with bounds on both sides.

    min  1/2 |w|^2 + sum_i c_i xi_i (or xi_i^2)   s.t.  A w + E xi >= b,  xi >= 0,

where E says which example a plane belongs to: Mehrotra's predictor-corrector, from a point that is
strictly feasible. Hard margins are a least-distance problem, which Lawson and Hanson reduce to
non-negative least squares. Whatever happens on the way, the bounds are true: the lower one is the
dual value of feasible multipliers, the upper one a primal value by definition.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import nnls

PRECISION = 1e-9  # of the bounds, relative


class Optimum(NamedTuple):
    lower: float
    upper: float


class Infeasible(Exception):
    """No weights meet the hard margin."""


class NotSolved(Exception):
    """The bounds do not meet; nothing is known about the problem."""


def solve(objective):
    """Bounds on the optimal value of an `Objective`."""
    blocks = [
        (c, b[used], A[used])
        for c, (b, A) in zip(objective.upper_bounds, objective.blocks, strict=True)
        if c > 0 and (used := (b > 0) | A.any(axis=1)).any()
    ]
    if not blocks:
        return Optimum(0.0, 0.0)
    b = np.concatenate([b for _, b, _ in blocks])
    A = np.concatenate([A for _, _, A in blocks])
    columns = np.flatnonzero(A.any(axis=0))
    A = A[:, columns if len(columns) else [0]]
    if objective.slack == "none":
        return _least_distance(A, b)
    owner = np.repeat(np.arange(len(blocks)), [len(b) for _, b, _ in blocks])
    qp = _QP(A, b, owner, np.array([c for c, _, _ in blocks]), objective.slack == "l2")
    return _checked(*_interior_point(qp))


def _checked(lower, upper):
    if not upper - lower <= PRECISION * max(upper, 1e-3):
        raise NotSolved(f"reference QP: between {lower} and {upper}")
    return Optimum(lower, upper)


class _QP(NamedTuple):
    A: np.ndarray
    b: np.ndarray
    owner: np.ndarray
    c: np.ndarray
    squared: bool

    def sums(self, values):
        """Sum over the planes of each example."""
        return np.bincount(self.owner, values, len(self.c))

    def dual(self, z):
        """Dual value of positive multipliers, cut to the caps of linear slacks."""
        if not self.squared:
            z = z * np.minimum(1.0, self.c / self.sums(z))[self.owner]
        v = self.A.T @ z
        penalty = np.sum(self.sums(z) ** 2 / (4.0 * self.c)) if self.squared else 0.0
        return self.b @ z - 0.5 * v @ v - penalty

    def primal(self, w):
        hinges = np.zeros(len(self.c))
        np.maximum.at(hinges, self.owner, self.b - self.A @ w)
        return 0.5 * w @ w + self.c @ (hinges**2 if self.squared else hinges)


def _interior_point(qp, max_iterations=100):
    """The best dual and primal values met."""
    A, b, owner, c = qp.A, qp.b, qp.owner, qp.c
    linear, curved = (np.zeros(len(c)), 2.0 * c) if qp.squared else (c, np.zeros(len(c)))
    # Slacks t of the planes have multipliers z, and xi >= 0 has y; products z t and y xi go to 0.
    z = (0.5 * c / qp.sums(np.ones(len(b))))[owner]
    w = A.T @ z
    xi = np.full(len(c), 1e-3)
    np.maximum.at(xi, owner, b - A @ w)
    xi = 2.0 * xi + (0.5 * qp.sums(z) / c if qp.squared else 0.0)
    t = A @ w + xi[owner] - b
    y = linear + curved * xi - qp.sums(z)
    lower, upper = -np.inf, np.inf
    for _ in range(max_iterations):
        lower, upper = max(lower, qp.dual(z)), min(upper, qp.primal(w))
        if upper - lower <= 1e-13 * upper:
            break
        # What is left of the conditions for w, xi and t, and the reduced system for w.
        of_w, of_xi = A.T @ z - w, qp.sums(z) + y - linear - curved * xi
        of_t = b + t - A @ w - xi[owner]
        D = z / t
        R = np.zeros((len(c), A.shape[1]))
        np.add.at(R, owner, D[:, None] * A)
        M = curved + y / xi + qp.sums(D)
        try:
            factor = cho_factor(np.eye(len(w)) + (A.T * D) @ A - (R.T / M) @ R)
        except LinAlgError:  # rounding ends progress at last
            break
        size = len(z) + len(y)
        mu = (z @ t + y @ xi) / size
        aim_z, aim_y = -z * t, -y * xi
        for corrects in (False, True):
            g = of_t + aim_z / z
            q = of_xi + aim_y / xi + qp.sums(D * g)
            dw = cho_solve(factor, of_w + A.T @ (D * g) - R.T @ (q / M))
            dxi = (q - R @ dw) / M
            dz = D * (g - A @ dw - dxi[owner])
            dt, dy = (aim_z - t * dz) / z, (aim_y - y * dxi) / xi
            step = min(map(_longest, (z, t, xi, y), (dz, dt, dxi, dy)))
            if not corrects:
                left = (z + step * dz) @ (t + step * dt) + (y + step * dy) @ (xi + step * dxi)
                aim = mu * (left / size / mu) ** 3
                aim_z, aim_y = aim - z * t - dz * dt, aim - y * xi - dy * dxi
        step *= 0.995
        w, xi, z, t, y = w + step * dw, xi + step * dxi, z + step * dz, t + step * dt, y + step * dy
    return lower, upper


def _longest(x, dx):
    """Longest step up to 1 that keeps x positive."""
    falling = dx < 0
    return min(1.0, float((-x[falling] / dx[falling]).min(initial=np.inf)))


def _least_distance(A, b):
    """Bounds for a hard margin, min 1/2 |w|^2 s.t. A w >= b."""
    needed = b > 0
    if not needed.any():
        return Optimum(0.0, 0.0)
    size = float(np.linalg.norm(A.T @ _nearest(A, b, b.max())))
    if size > 1e2 * b.max():
        raise NotSolved("reference QP: the hard margin can hardly be met")
    z = _nearest(A, b, size)
    w = A.T @ z
    lower = b @ z - 0.5 * w @ w
    # Scaled until no plane is violated at all, rounding apart.
    w = w * (b[needed] / np.maximum(A[needed] @ w, 1e-300)).max()
    if (A @ w < b - 1e-9 * (np.abs(A) @ np.abs(w))).any():
        raise NotSolved("reference QP: the hard margin is not met")
    return _checked(lower, 0.5 * w @ w)


def _nearest(A, b, size):
    """Multipliers z of a hard margin whose weights A'z have a norm of about ``size``."""
    E = np.vstack([A.T, b / size])
    target = np.append(np.zeros(A.shape[1]), 1.0)
    u, _ = nnls(E, target, maxiter=100 * len(b))
    left = 1.0 - E[-1] @ u
    if left < 1e-12:
        raise Infeasible
    return u * (size / left)
