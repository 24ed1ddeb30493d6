"""A test of problems: what is wrong with an oracle, a loss or features, and for which example."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from .core.cutting_planes import Planes, entries, split_bounds, validate_bounds, validate_planes
from .core.formulation import RESCALINGS, Formulation, Rescaling
from .core.problem import Problem
from .search.margin_search import search_of
from .utils.types import Floats

__all__ = ["check_problem"]


def check_problem(
    problem: Problem,
    *,
    outputs: Callable[[Any], Iterable[Any]] | None = None,
    candidates: Callable[[Any, np.random.Generator], Any] | None = None,
    rescalings: Sequence[Rescaling] | None = None,
    n_weights: int = 3,
    max_examples: int = 20,
    random_state: int = 0,
) -> None:
    """Test a problem and raise an error that names the first thing that is wrong with it.

    Checked, on random weights and the first examples: losses are non-negative and zero at the
    gold output and its copies; no method changes x, y or the weights; features of an output are the
    same whenever they are computed; the rows of an overridden oracle agree with ``joint_feature``
    of ``most_violated``'s candidate, and have the right sign; the oracle's value is no worse than
    that of the gold output, of the prediction and of random candidates, and, where all outputs can
    be listed, equals the best of them; no candidate found at other weights is better; a candidate
    asked for alone is the same; no output that was found, drawn or listed has a better score than
    the prediction. A problem without ``X``, ``Y`` and ``joint_feature``, as native ones may be, or
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
    rescalings : sequence of str, optional
        Rescalings to test; by default those that the problem declares in ``rescalings``.
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
    if rescalings is None:
        rescalings = getattr(problem, "rescalings", RESCALINGS)
    elif isinstance(rescalings, str):
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
            f"{type(problem).__name__} stores its examples in another form; to compare outputs, "
            "check_problem needs X, Y, joint_feature, loss and predict"
        )
    indices = np.arange(n)
    weights = [problem.draw_weights(rng) * (k > 0) for k in range(n_weights)]
    outcomes = [_Example(problem, i, weights) for i in range(n if in_python else 0)]
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
            answers.append(_OracleResult(problem, formulation, planes, bounds, w))
            if not np.array_equal(given, w):
                raise ValueError(
                    f"{answers[-1].method} has changed the weights that it was called with, for "
                    f"example weight {np.argmax(given != w)} to {given[np.argmax(given != w)]:.6g}"
                )
            for outcome in outcomes:
                outcome.check_unchanged(answers[-1].method)
            # An oracle with bounds may miss the best, and so may predict.
            if outcomes and bounds is None and answers[-1].problem_is_exact:
                found = _relative_scores(planes, weights)
                best = _relative_scores(problem.predictions(indices, w.copy()), weights)
                for outcome, *rows in zip(outcomes, found, best, strict=True):
                    outcome.scores.append(("the gold output", np.zeros(n_weights)))
                    outcome.scores += [("the oracle's candidate", row) for row in rows]
                _check_signs(outcomes, best[:, len(answers) - 1], w)
            for i in range(n):
                answers[-1].check_against_truth(i)
                if in_python:
                    outcomes[i].check_answer(
                        answers[-1], len(answers) - 1, outputs, candidates, rng
                    )
        for outcome in outcomes:
            outcome.check_predictions()
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


class _OracleResult(NamedTuple):
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
                    f"gold output, whose value is 0: {self.method} does not find the best, or "
                    "disagrees with joint_feature or loss (a sign, say)"
                )

    @property
    def problem_is_exact(self) -> bool:
        """Whether the problem says that it finds the most violated outputs."""
        return bool(getattr(self.problem, "exact", True))

    def check_not_better(self, i: int, name: str, rival: float) -> None:
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
                f"{rival:.6g}: {self.method} does not find the best, or disagrees with "
                "joint_feature or loss (a sign, say)"
            )

    def refuse_above(self, i: int, best: float) -> None:
        """Raise ValueError if this answer is better than the best output that there is."""
        found = float(self.values_of(self.planes)[i])
        if found > best + _tolerance(best):
            raise ValueError(
                f"{self.name} candidate for example {i} has value {found:.6g}, above that of every "
                f"listed output, {best:.6g}: {self.method} returns a wrong loss or row, or outputs "
                "does not list every output"
            )

    def check_against(self, name: str, planes: Planes) -> None:
        """No row of another answer, for the same examples, is better."""
        for i, rival in enumerate(self.values_of(planes)):
            if planes.losses[i] > 0.0 or self.formulation.rescaling == "margin":
                self.check_not_better(i, name, float(rival))

    def check_alone(self, alone: Planes, i: int) -> None:
        """An example has the same value alone as in a batch."""
        first, second = self.values_of(self.planes)[i], self.values_of(alone)[0]
        if abs(first - second) > _tolerance(float(first)):
            raise ValueError(
                f"{self.name} candidate for example {i} has value {first:.6g} in a batch, but "
                f"{second:.6g} in a call for it alone"
            )


def _tolerance(value: float) -> float:
    """What rounding may do to a value."""
    return 1e-8 * (1.0 + abs(value))


class _Example:
    """One example: what the problem's methods say of it, and the scores of outputs that were met.

    Scores are relative to that of the gold output, one for each of the weights.
    """

    def __init__(self, problem: Problem, i: int, weights: list[Floats]) -> None:
        self.problem, self.i, self.weights = problem, i, weights
        self.x, self.y = problem.X[i], problem.Y[i]
        self.content = _content(self.x), _content(self.y)
        features = problem.joint_feature(self.x, self.y)
        if features is None:
            raise ValueError(f"joint_feature returned None for example {i}; is a return missing?")
        self.psi = _dense(features, problem.n_features, i)
        self.check_unchanged("joint_feature")
        self._check_gold_loss("loss(y, y)", self.y, "")
        if self.content[1] is not None:
            self._check_gold_loss(
                "loss(y, y_hat)", copy.deepcopy(self.y), ", where y_hat is a copy of y"
            )
        self.check_unchanged("loss")
        self.scores: list[tuple[str, Floats]] = []
        self.predicted: dict[int, tuple[str, float]] = {}

    def _check_gold_loss(self, name: str, y_hat: Any, which: str) -> None:
        """The loss of the gold output, or of one that equals it."""
        loss = self.problem.loss(self.y, y_hat)
        if loss is None:
            raise ValueError(f"{name} returned None for example {self.i}; is a return missing?")
        if np.ndim(loss) != 0:
            raise ValueError(f"{name} is {loss!r} for example {self.i}; it must be a number")
        if loss != 0:
            raise ValueError(f"{name} is {loss} for example {self.i}{which}; it must be 0")

    def check_unchanged(self, method: str) -> None:
        """No method has changed the example, nor what its features are."""
        for name, old, value in zip("xy", self.content, (self.x, self.y), strict=True):
            if old is not None and _content(value) != old:
                raise ValueError(
                    f"{method} has changed {name} of example {self.i}; it must leave it as it is "
                    "(work on a copy)"
                )
        again = _dense(self.problem.joint_feature(self.x, self.y), self.problem.n_features, self.i)
        if not np.allclose(again, self.psi, rtol=1e-9, equal_nan=True):
            k = int(np.argmax(~np.isclose(again, self.psi, rtol=1e-9, equal_nan=True)))
            raise ValueError(
                f"joint_feature returns other features for the gold output of example {self.i} "
                f"when called again: feature {k} was {self.psi[k]:.6g} and is {again[k]:.6g}; "
                "they must depend on x and y alone"
            )

    def relative_scores(self, y_hat: Any) -> Floats:
        """Scores of an output minus those of the gold one, for all weights."""
        psi = _dense(self.problem.joint_feature(self.x, y_hat), self.problem.n_features, self.i)
        return np.array([w @ (psi - self.psi) for w in self.weights])

    def loss(self, y_hat: Any) -> float:
        """The loss of an output, checked."""
        loss = self.problem.loss(self.y, y_hat)
        if not loss >= 0:
            raise ValueError(f"loss(y, y_hat) is {loss} for example {self.i}; it must be >= 0")
        unit = self.problem.loss_unit
        if unit > 0 and abs(loss - unit * round(loss / unit)) > 1e-9 * loss:
            raise ValueError(
                f"loss(y, y_hat) is {loss} for example {self.i}, which is not a multiple of the "
                f"problem's loss_unit {unit:g}"
            )
        return loss

    def predict(self, k: int) -> tuple[str, Any, Floats]:
        """The prediction at the k-th weights: its name, what it is, and its scores."""
        w = self.weights[k].copy()
        y_hat = self.problem.predict(self.x, w)
        if not np.array_equal(w, self.weights[k]):
            raise ValueError("predict has changed the weights that it was called with")
        if y_hat is None and self.y is not None:
            raise ValueError(f"predict returned None for example {self.i}; is a return missing?")
        self.check_unchanged("predict")
        scores = self.relative_scores(y_hat)
        self.predicted[k] = repr(y_hat), float(scores[k])
        return "the prediction", y_hat, scores

    def check_answer(
        self,
        answer: _OracleResult,
        k: int,
        outputs: Callable[[Any], Iterable[Any]] | None,
        candidates: Callable[[Any, np.random.Generator], Any] | None,
        rng: np.random.Generator,
    ) -> None:
        """Check the oracle's answer at the k-th weights against what the methods say."""
        problem, i, rescaling = self.problem, self.i, answer.formulation.rescaling
        if _has_own_oracle(problem) and rescaling in problem.rescalings:
            _check_row(problem, answer.planes, i, self.psi, answer.w, rescaling)
        rivals = [self.predict(k)]
        for _ in range(5 if candidates else 0):
            y_hat = candidates(self.x, rng) if candidates else None
            rivals.append(("another candidate", y_hat, self.relative_scores(y_hat)))
        listed = list(outputs(self.x)) if outputs else []
        if outputs and not listed:
            raise ValueError(f"outputs(x) lists nothing for example {i}; it must list every output")
        rivals += [("a listed output", y_hat, self.relative_scores(y_hat)) for y_hat in listed]
        best = 0.0
        for name, y_hat, scores in rivals:
            loss = self.loss(y_hat)
            value = answer.value(loss, -float(scores[k]))
            best = max(best, value)
            if loss > 0.0 or rescaling != "none":  # which is a search among wrong outputs
                answer.check_not_better(i, f"{name} ({y_hat!r})", value)
            if name == "a listed output" or answer.bounds is None:
                self.scores.append((f"{name} ({y_hat!r})", scores))
        if listed and answer.problem_is_exact and answer.bounds is None:
            answer.refuse_above(i, best)

    def check_predictions(self) -> None:
        """No output that was met has a better score than the prediction."""
        if not self.scores or not getattr(self.problem, "exact", True):
            return
        for k, (shown, score) in self.predicted.items():
            name, scores = max(self.scores, key=lambda met: met[1][k])
            gold = float(self.weights[k] @ self.psi)
            if score < scores[k] - _tolerance(gold) - _tolerance(score):
                raise ValueError(
                    f"predict gives example {self.i} an output of score {gold + score:.6g} "
                    f"({shown}), but {name} has {gold + scores[k]:.6g}: predict does not find the "
                    "best, or disagrees with joint_feature (a sign, say)"
                )


def _content(value: Any) -> Any:
    """What plain data holds, to be compared with what it holds later; None if that is unknown."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.tobytes()
    if sp.issparse(value):
        rows = value.tocsr(copy=True)
        rows.sum_duplicates()
        return rows.shape, rows.indptr.tobytes(), rows.indices.tobytes(), rows.data.tobytes()
    if isinstance(value, (str, bytes, int, float, np.generic)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        parts = [_content(part) for part in value]
    elif isinstance(value, dict):
        parts = [_content(part) for item in value.items() for part in item]
    else:
        return None
    return None if any(part is None for part in parts) else parts


def _relative_scores(planes: Planes, weights: list[Floats]) -> Floats:
    """Scores of the rows' candidates minus those of the gold outputs, for all weights."""
    shape = len(planes.losses), len(weights[0])
    rows = sp.csr_matrix((planes.values, planes.indices, planes.indptr), shape)
    return np.asarray(-(rows @ np.stack(weights, axis=1)), dtype=np.float64)


def _check_signs(outcomes: list[_Example], scores: Floats, w: Floats) -> None:
    """Refuse an oracle whose rows have the wrong sign; ``scores`` are the best that it finds."""
    problem = outcomes[0].problem
    if not _has_own_oracle(problem) or not w.any():
        return
    expected = []
    for outcome in outcomes:
        y_hat = problem.predict(outcome.x, w.copy())
        psi = _dense(problem.joint_feature(outcome.x, y_hat), len(w), outcome.i)
        expected.append(w @ (psi - outcome.psi))
    if np.any(scores) and np.allclose(scores, np.negative(expected)):
        raise ValueError(
            "the oracle's rows have the opposite sign: a row is psi(x, y_i) - psi(x, y), the "
            "features of the gold output minus those of the candidate"
        )


def _has_own_oracle(problem: Problem) -> bool:
    """Whether the user has written the oracle."""
    return not problem.trusted and type(problem).oracle is not Problem.oracle


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
    if n_features and not isinstance(features, Mapping):
        size = int(features.shape[-1] if hasattr(features, "shape") else len(features))
        if size != n_features:
            raise ValueError(
                f"joint_feature returned {size} features for example {i}, but n_features is "
                f"{n_features}"
            )
    indices, values = entries(features)
    if len(indices) and (indices.min() < 0 or (n_features and indices.max() >= n_features)):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(
            f"joint_feature returned index {wrong} for example {i}, but n_features is {n_features}"
        )
    return np.bincount(indices, values, minlength=n_features or 0).astype(np.float64)
