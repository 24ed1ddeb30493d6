"""A test of problems: what is wrong with an oracle, a loss or features, and for which example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .formulation import Formulation, Rescaling
from .plane_rows import Planes, entries, split_bounds, validate_bounds, validate_planes
from .problem import Problem
from .search.margin_search import search_of
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
    random candidates, and, where all outputs can be listed, equals the best of them; no candidate
    found at other weights is better; a candidate asked for alone is the same; the prediction has
    the best score. A problem without ``X``, ``Y`` and ``joint_feature``, as native ones may be, or
    whose losses depend on more than outputs, is tested by its answers alone. Where an oracle gives
    bounds, nothing may be above those; of one that is not ``exact`` and gives none, only the form
    of its answers is tested.

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
        If a check fails; the message names the method, the example and the numbers.
    """
    if isinstance(problem, type):
        raise ValueError(f"check_problem needs a problem, not the class {problem.__name__}")
    if not hasattr(problem, "oracle"):
        raise ValueError(f"check_problem needs a problem, got {problem!r:.60}")
    for name, function in (("outputs", outputs), ("candidates", candidates)):
        if function is not None and not callable(function):
            raise ValueError(f"{name} must be a function of an input, got {function!r:.60}")
    if isinstance(rescalings, str):
        rescalings = cast(Sequence[Rescaling], (rescalings,))
    rng = np.random.default_rng(random_state)
    n = min(problem.n_examples, max_examples)
    if n == 0:
        raise ValueError("the problem has no examples; bind them with problem.bind(X, Y)")
    if problem.n_features is None:
        raise ValueError("the problem has no n_features")
    in_python = min(len(problem.X), len(problem.Y)) >= n and _has_losses(problem)
    if not in_python and (outputs is not None or candidates is not None):
        raise ValueError(
            f"{type(problem).__name__} holds its examples in a form of its own; to compare outputs "
            "check_problem needs X, Y, joint_feature, loss and predict"
        )
    for i in range(n if in_python else 0):
        _check_answers(problem, i)
    indices = np.arange(n)
    weights = [problem.draw_weights(rng) * (k > 0) for k in range(n_weights)]
    for rescaling in rescalings:
        formulation = Formulation(rescaling)
        search = search_of(problem, rescaling, False)
        answers = []
        for w in weights:
            given = w.copy()
            planes, bounds = split_bounds(search(indices, given))
            validate_planes(planes, indices, problem.n_features)
            if bounds is not None:
                validate_bounds(bounds, indices)
            answers.append(_Answer(problem, formulation, planes, bounds, w))
            if not np.array_equal(given, w):
                raise ValueError(
                    f"{answers[-1].method} has changed the weights that it was given: weight "
                    f"{np.argmax(given != w)}, for one, to {given[np.argmax(given != w)]:.6g}"
                )
            for i in range(n):
                answers[-1].check_against_truth(i)
                if in_python:
                    _check_example(problem, answers[-1], i, outputs, candidates, rng)
        if n_weights:
            alone, _ = split_bounds(search(indices[-1:], weights[-1]))
            answers[-1].check_alone(alone, n - 1)
        rivals = [("the candidate found at other weights", a.planes) for a in answers]
        predicted = [("the prediction", problem.predictions(indices, w)) for w in weights]
        for answer in answers:
            for name, planes in rivals + predicted:
                answer.check_against(name, planes)


def _has_losses(problem: Problem) -> bool:
    """Whether the loss is one of outputs; those of native problems may depend on the example."""
    if not problem.trusted:
        return True
    try:
        problem.loss(problem.Y[0], problem.Y[0])
    except ValueError:
        return False
    return True


class _Answer(NamedTuple):
    """What the oracle has found for the first examples at some weights."""

    problem: Problem
    formulation: Formulation
    planes: Planes
    bounds: Floats | None
    w: Floats

    @property
    def name(self) -> str:
        """Whose answer it is."""
        return f"the {self.formulation.rescaling} oracle's"

    @property
    def method(self) -> str:
        """The method that the answer comes from, as the user wrote it."""
        inherited = getattr(type(self.problem), "oracle", None) is Problem.oracle
        return "most_violated" if inherited else getattr(self.problem, "search_method", "oracle")

    def value(self, loss: float, margin: float) -> float:
        """What the oracle maximises, for a candidate."""
        offset, scale = self.formulation.plane_terms(np.array([loss]))
        return float(offset[0] - scale[0] * margin)

    def values_of(self, planes: Planes) -> Floats:
        """The same for all rows of an answer."""
        offsets, scales = self.formulation.plane_terms(planes.losses)
        row_of = np.repeat(np.arange(len(planes.losses)), np.diff(planes.indptr))
        margins = np.bincount(row_of, planes.values * self.w[planes.indices], len(planes.losses))
        values: Floats = offsets - scales * margins
        return values

    def check_against_truth(self, i: int) -> None:
        """No candidate is worse than the truth, and none is above its bound."""
        found = float(self.values_of(self.planes)[i])
        if self.bounds is not None:
            if self.bounds[i] < found - _tolerance(found):
                raise ValueError(
                    f"{self.name} bound for example {i} is {self.bounds[i]:.6g}, but its own "
                    f"candidate has value {found:.6g}"
                )
        elif self.problem_is_exact and self.formulation.rescaling != "none":
            if found < -_tolerance(found):
                raise ValueError(
                    f"{self.name} candidate for example {i} has value {found:.6g}, worse than the "
                    f"truth, whose value is 0: {self.method} does not find the best"
                )

    @property
    def problem_is_exact(self) -> bool:
        """Whether the problem says that it finds the most violated outputs."""
        return bool(getattr(self.problem, "exact", True))

    def refuse_better(self, i: int, name: str, rival: float) -> None:
        """Raise ValueError if another candidate of the example is better than this answer allows.

        What else ``name`` says of the candidate is for people.
        """
        found = float(self.values_of(self.planes)[i])
        if self.bounds is not None:
            if rival > self.bounds[i] + _tolerance(rival):
                raise ValueError(
                    f"{self.name} bound for example {i} is {self.bounds[i]:.6g}, but {name} has "
                    f"value {rival:.6g}"
                )
        elif self.problem_is_exact and rival > found + _tolerance(found):
            raise ValueError(
                f"{self.name} candidate for example {i} has value {found:.6g}, but {name} has "
                f"{rival:.6g}: {self.method} does not find the best"
            )

    def check_against(self, name: str, planes: Planes) -> None:
        """No row of another answer, for the same examples, is better."""
        for i, rival in enumerate(self.values_of(planes)):
            if planes.losses[i] > 0.0 or self.formulation.rescaling == "margin":
                self.refuse_better(i, name, float(rival))

    def check_alone(self, alone: Planes, i: int) -> None:
        """An example has the same value alone as in a batch."""
        first, second = self.values_of(self.planes)[i], self.values_of(alone)[0]
        if abs(first - second) > _tolerance(float(first)):
            raise ValueError(
                f"{self.name} candidate for example {i} has value {first:.6g} in a batch, but "
                f"{second:.6g} when it is asked for alone"
            )


def _tolerance(value: float) -> float:
    """What rounding may do to a value."""
    return 1e-8 * (1.0 + abs(value))


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
    _dense(features, n_features, i)
    loss = problem.loss(y, y)
    if loss is None:
        raise ValueError(f"loss(y, y) returned None for example {i}; is a return missing?")
    if np.ndim(loss) != 0:
        raise ValueError(f"loss(y, y) is {loss!r} for example {i}; it must be a number")
    if loss != 0:
        raise ValueError(f"loss(y, y) is {loss} for example {i}; it must be 0")


def _check_example(
    problem: Problem,
    answer: _Answer,
    i: int,
    outputs: Callable[[Any], Iterable[Any]] | None,
    candidates: Callable[[Any, np.random.Generator], Any] | None,
    rng: np.random.Generator,
) -> None:
    """Check the oracle's answer for one example against what the problem's methods say."""
    x, y, w = problem.X[i], problem.Y[i], answer.w
    psi_truth = _dense(problem.joint_feature(x, y), problem.n_features, i)

    def candidate_value(y_hat: Any) -> float:
        loss = problem.loss(y, y_hat)
        if not loss >= 0:
            raise ValueError(f"loss(y, y_hat) is {loss} for example {i}; it must be >= 0")
        unit = problem.loss_unit
        if unit > 0 and abs(loss - unit * round(loss / unit)) > 1e-9 * loss:
            raise ValueError(
                f"loss(y, y_hat) is {loss} for example {i}, which is no multiple of the problem's "
                f"loss_unit {unit:g}"
            )
        psi = _dense(problem.joint_feature(x, y_hat), len(w), i)
        return answer.value(loss, float(w @ (psi_truth - psi)))

    rescaling = answer.formulation.rescaling
    own_oracle = not problem.trusted and type(problem).oracle is not Problem.oracle
    if own_oracle and rescaling in problem.rescalings:
        _check_row(problem, answer.planes, i, psi_truth, w, rescaling)
    predicted = problem.predict(x, w)
    if predicted is None and y is not None:
        raise ValueError(f"predict returned None for example {i}; is a return missing?")
    rivals: list[tuple[str, Any]] = [("the prediction", predicted)]
    rivals += [("another candidate", candidates(x, rng)) for _ in range(5)] if candidates else []
    listed = list(outputs(x)) if outputs else []
    if outputs and not listed:
        raise ValueError(f"outputs(x) lists nothing for example {i}; it must list every output")
    rivals += [("a listed output", y_hat) for y_hat in listed]
    for name, y_hat in rivals:
        answer.refuse_better(i, f"{name} ({y_hat!r})", candidate_value(y_hat))
    if listed and answer.problem_is_exact:
        scores = [float(w @ _dense(problem.joint_feature(x, y_hat), len(w), i)) for y_hat in listed]
        score = float(w @ _dense(problem.joint_feature(x, problem.predict(x, w)), len(w), i))
        if score < max(scores) - _tolerance(score):
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
    expected = psi_truth - _dense(problem.joint_feature(x, candidate), len(w), i)
    same_loss = np.isclose(planes.losses[i], problem.loss(y, candidate))
    if same_loss and not np.allclose(dpsi @ w, expected @ w):
        raise ValueError(
            f"the oracle's row for example {i} is not psi(x, y_i) - psi(x, y) of most_violated's "
            f"candidate: times the weights, it is {dpsi @ w:.6g} and not {expected @ w:.6g}"
        )


def _dense(features: Any, n_features: int | None, i: int) -> Floats:
    """Turn any joint feature vector of example i into a dense one, checking its size."""
    indices, values = entries(features)
    if len(indices) and (indices.min() < 0 or (n_features and indices.max() >= n_features)):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(
            f"joint_feature returned index {wrong} for example {i}, but n_features is {n_features}"
        )
    return np.bincount(indices, values, minlength=n_features or 0).astype(np.float64)
