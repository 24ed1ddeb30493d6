"""A test of problems: what is wrong with an oracle, a loss or features, and for which example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .formulation import Formulation, Rescaling
from .plane_rows import Planes, entries, validate_planes
from .problem import Problem
from .types import Floats

__all__ = ["check_problem"]


def check_problem(
    problem: Problem,
    *,
    outputs: Callable[[Any], Iterable[Any]] | None = None,
    candidates: Callable[[Any, np.random.Generator], Any] | None = None,
    rescalings: Sequence[Rescaling] = ("margin",),
    n_weights: int = 3,
    max_examples: int = 20,
    random_state: int = 0,
) -> None:
    """Test a problem and raise an error that names the first thing that is wrong with it.

    Checked, on random weights and the first examples: losses are non-negative and zero at the
    truth; the rows of an overridden oracle agree with ``joint_feature`` of ``most_violated``'s
    candidate; the oracle's value is no worse than that of the truth, of the prediction and of
    random candidates, and, where all outputs can be listed, equals the best of them; the
    prediction has the best score.

    Parameters
    ----------
    problem : Problem
        A problem with examples bound to it.
    outputs : callable, optional
        ``outputs(x)`` lists every output of ``x``; enables the exhaustive checks.
    candidates : callable, optional
        ``candidates(x, rng)`` draws a random output of ``x``.
    rescalings : sequence of str
        Rescalings to test.
    n_weights : int
        Number of weight vectors, the zero vector included.
    max_examples : int
        Number of examples to test.
    random_state : int
        Seed of the weights and candidates.

    Raises
    ------
    ValueError
        If a check fails; the message names the example.
    """
    if isinstance(problem, type):
        raise ValueError(f"check_problem needs a problem, not the class {problem.__name__}")
    rng = np.random.default_rng(random_state)
    n = min(problem.n_examples, max_examples)
    if n == 0:
        raise ValueError("the problem has no examples; bind them with problem.bind(X, Y)")
    if problem.n_features is None:
        raise ValueError("the problem has no n_features")
    if len(problem.X) < n or len(problem.Y) < n:
        raise ValueError(
            f"{type(problem).__name__} holds its examples in a form of its own; check_problem "
            "needs X, Y, joint_feature, loss and predict"
        )
    for i in range(n):
        _check_answers(problem, i)
    indices = np.arange(n)
    for k in range(n_weights):
        w = rng.normal(size=problem.n_features) * (k > 0)
        for rescaling in rescalings:
            planes = problem.oracle(indices, w, rescaling)
            validate_planes(planes, indices, problem.n_features)
            for i in range(n):
                _check_example(
                    problem, planes, i, w, Formulation(rescaling), outputs, candidates, rng
                )


def _check_answers(problem: Problem, i: int) -> None:
    """Check what the problem's methods return for one example, before its search uses them."""
    x, y = problem.X[i], problem.Y[i]
    features = problem.joint_feature(x, y)
    if features is None:
        raise ValueError(f"joint_feature returned None for example {i}; is a return missing?")
    n_features = problem.n_features or 0
    if not isinstance(features, Mapping):
        size = int(features.shape[-1] if hasattr(features, "shape") else len(features))
        if size != n_features:
            raise ValueError(
                f"joint_feature returned {size} features for example {i}, but n_features is "
                f"{n_features}"
            )
    _dense(features, n_features)
    loss = problem.loss(y, y)
    if loss is None:
        raise ValueError(f"loss(y, y) returned None for example {i}; is a return missing?")
    if np.ndim(loss) != 0:
        raise ValueError(f"loss(y, y) is {loss!r} for example {i}; it must be a number")
    if loss != 0:
        raise ValueError(f"loss(y, y) is {loss} for example {i}; it must be 0")


def _check_example(
    problem: Problem,
    planes: Planes,
    i: int,
    w: Floats,
    formulation: Formulation,
    outputs: Callable[[Any], Iterable[Any]] | None,
    candidates: Callable[[Any, np.random.Generator], Any] | None,
    rng: np.random.Generator,
) -> None:
    """Check the oracle's answer for one example at one weight vector."""
    x, y = problem.X[i], problem.Y[i]
    rescaling = formulation.rescaling
    psi_truth = _dense(problem.joint_feature(x, y), problem.n_features)

    def value(loss: float, margin: float) -> float:
        offset, scale = formulation.plane_terms(np.array([loss]))
        return float(offset[0] - scale[0] * margin)

    def candidate_value(y_hat: Any) -> float:
        loss = problem.loss(y, y_hat)
        if not loss >= 0:
            raise ValueError(f"loss(y, y_hat) is {loss} for example {i}; it must be >= 0")
        return value(loss, float(w @ (psi_truth - _dense(problem.joint_feature(x, y_hat), len(w)))))

    row = slice(planes.indptr[i], planes.indptr[i + 1])
    margin = float(planes.values[row] @ w[planes.indices[row]])
    found = value(float(planes.losses[i]), margin)
    if not problem.trusted and type(problem).oracle is not Problem.oracle:
        _check_row(problem, planes, i, psi_truth, w, rescaling)
    rivals: list[tuple[str, Any]] = [("the prediction", problem.predict(x, w))]
    rivals += [("another candidate", candidates(x, rng)) for _ in range(5)] if candidates else []
    listed = list(outputs(x)) if outputs else []
    if outputs and not listed:
        raise ValueError(f"outputs(x) lists nothing for example {i}; it must list every output")
    rivals += [("a listed output", y_hat) for y_hat in listed]
    tolerance = 1e-8 * (1.0 + abs(found))
    if rescaling != "none" and found < -tolerance:
        raise ValueError(
            f"the {rescaling} oracle's candidate for example {i} has value {found:.6g}, worse than "
            "the truth, whose value is 0"
        )
    for name, y_hat in rivals:
        rival = candidate_value(y_hat)
        if rival > found + tolerance:
            raise ValueError(
                f"the {rescaling} oracle's candidate for example {i} has value {found:.6g}, but "
                f"{name} ({y_hat!r}) has {rival:.6g}"
            )
    if listed:
        scores = [float(w @ _dense(problem.joint_feature(x, y_hat), len(w))) for y_hat in listed]
        score = float(w @ _dense(problem.joint_feature(x, problem.predict(x, w)), len(w)))
        if score < max(scores) - tolerance:
            raise ValueError(
                f"predict gives example {i} an output of score {score:.6g}, but the best has "
                f"{max(scores):.6g}"
            )


def _check_row(
    problem: Problem, planes: Planes, i: int, psi_truth: Floats, w: Floats, rescaling: Rescaling
) -> None:
    """Check that an overridden oracle's row agrees with joint_feature and loss, where defined."""
    if type(problem).most_violated is Problem.most_violated:
        return
    x, y = problem.X[i], problem.Y[i]
    row = slice(planes.indptr[i], planes.indptr[i + 1])
    dpsi = np.bincount(planes.indices[row], planes.values[row], minlength=len(w))
    candidate = problem.most_violated(x, y, w, rescaling)
    expected = psi_truth - _dense(problem.joint_feature(x, candidate), len(w))
    same_loss = np.isclose(planes.losses[i], problem.loss(y, candidate))
    if same_loss and not np.allclose(dpsi @ w, expected @ w):
        raise ValueError(
            f"the oracle's row for example {i} is not psi(x, y_i) - psi(x, y) of most_violated's "
            "candidate"
        )


def _dense(features: Any, n_features: int | None) -> Floats:
    """Turn any joint feature vector into a dense one, checking its size."""
    indices, values = entries(features)
    if len(indices) and (indices.min() < 0 or (n_features and indices.max() >= n_features)):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"joint_feature returned index {wrong}, but n_features is {n_features}")
    return np.bincount(indices, values, minlength=n_features or 0).astype(np.float64)
