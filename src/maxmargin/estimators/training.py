"""Training, as all estimators do it: the solver, warm starts, paths of C, one more pass, rounding.

An estimator says how inputs and outputs become a problem (`_training_set`; `_training_batch` for
``partial_fit``), and how weights become predictions (`_set_weights`, `_kept_weights`). The rest is
done by a `Trainer`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.result import Callback, Result
from ..core.weight_constraints import WeightConstraints
from ..progress import running_clock
from ..solvers import Solver
from ..solvers.ascent.dual_ascent import DualAscentState
from ..solvers.base import check_numbers, checked_weights
from ..solvers.cccp import PartialProblem, alternate
from ..solvers.checkpoint_group import CheckpointGroup
from ..solvers.path import PathPoint, solve_path
from ..solvers.sparsification import check_tolerance, sparsify
from ..utils.defaults import TOL
from ..utils.types import Floats
from ..utils.warn import warn_user
from .parameters import check_parameters, solver_of, training_options
from .selection.early_stopping import EarlyStopping
from .transaction import transaction
from .warm_start import Kept, beginning, fingerprint, one_pass, open_log

__all__ = ["NoPathError", "Trainer", "TrainingSet"]

Estimator = TypeVar("Estimator", bound=Any)


class NoPathError(ValueError):
    """Training for one C cannot start from another: there is no path."""


@dataclasses.dataclass(frozen=True)
class TrainingSet:
    """What an estimator has made of X and y.

    Parameters
    ----------
    make_problem : callable
        Makes the problem; it is not called where a warm start has it already.
    data : tuple
        All that the problem is made of; a warm start needs it to be the same again.
    sample_weight : array of shape (n_examples,), optional
        Multiplies each example's slack.
    constraints : WeightConstraints, optional
        Constraints on weights.
    following : callable, optional
        ``following(problem, weights)`` gives attributes that follow from weights and data, for each
        of several weight vectors.
    finish : callable, optional
        Called with the problem when the model has its weights.
    calibrate : callable, optional
        Called after ``fit`` only.
    is_partial : bool
        Whether labels are partially known: the problem is a `PartialProblem` then.
    """

    make_problem: Callable[[], Any]
    data: tuple[Any, ...] = ()
    sample_weight: Floats | None = None
    constraints: WeightConstraints | None = None
    following: Callable[[Problem, list[Floats]], list[dict[str, Any]]] | None = None
    finish: Callable[[Any], None] | None = None
    calibrate: Callable[[], None] | None = None
    is_partial: bool = False


class Trainer(Generic[Estimator]):
    """Trains an estimator; all of it, or in case of an error nothing (see `transaction`).

    Parameters
    ----------
    estimator : estimator
        What is trained.
    """

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None, **given: Any) -> Estimator:
        """Train on examples; ``given`` is what else ``fit`` was given."""

        def work(model: Any, heard: tuple[Callback, ...]) -> None:
            self._begin(model, solver_of(model), heard)
            examples = model._training_set(X, y, **given)
            if examples.is_partial:
                self._train_partial(examples)
                return
            vars(model).pop("rounds_", None)
            self._train(examples)
            if examples.calibrate is not None:
                examples.calibrate()

        return self._commit(work, {"X": X, "y": y, **given})

    def path(
        self, X: Any, y: Any, Cs: Sequence[float], cover: bool, **given: Any
    ) -> tuple[list[PathPoint], list[dict[str, Any]]]:
        """Train for many C; the models' results, and the attributes that follow from each."""
        found: list[Any] = []

        def work(model: Any, heard: tuple[Callback, ...]) -> None:
            options = training_options(model.training)
            if options.checkpoint is not None and options.cluster is not None:
                raise ValueError("checkpoint: a path of C is not kept on a cluster")
            self._begin(model, solver_of(model), heard)
            examples = model._training_set(X, y, **given)
            if examples.is_partial:
                raise NoPathError("a path of C needs data whose labels are all known")
            vars(model).pop("rounds_", None)
            found.extend(self._train(examples, (sorted(set(Cs)), cover)))

        self._commit(work, {"X": X, "y": y, **given})
        return found[0], found[1]

    def partial_fit(self, X: Any, y: Any, **given: Any) -> Estimator:
        """Make one more pass over examples, with an online solver.

        Training goes on from what the last call has left in ``_online``; without it, from the
        weights there are, if they are as many. Examples of the same content again add nothing to
        the examples seen, whose weights are what C multiplies. A call that the checkpoint has is
        over already.
        """

        def work(model: Any, heard: tuple[Callback, ...]) -> None:
            solver = dataclasses.replace(
                solver_of(model), max_passes=1, checkpoint=None, resume=False
            )
            examples = model._training_batch(X, y, **given)
            problem, formulation = examples.make_problem(), _formulation(model, examples)
            content = fingerprint(*examples.data, examples.sample_weight)
            log, settings = open_log(model, solver, problem, formulation)
            call = fingerprint(content, settings)
            if log is not None and log.has(call):
                result = log.result(solver, problem, formulation)
            else:
                earlier = beginning(getattr(model, "_online", None))
                weights = examples.sample_weight
                result = one_pass(model, solver, problem, formulation, content, weights, earlier)
            model._set_weights(result.w)
            if log is not None:
                model._stream = log.followed_by(call, result, getattr(model, "_online", None))
            model._online = result
            model.result_ = dataclasses.replace(result, state=None)

        return self._commit(work, is_shown=False)

    def compact(self, X: Any, y: Any, tol: float, **given: Any) -> Estimator:
        """Round the weights, and drop small ones, as far as a certified gap allows."""
        fitted: Any = self.estimator
        fitted._check_fitted()
        if hasattr(fitted, "support_"):
            raise ValueError("compact needs kernel='linear': others have coefficients of inputs")
        if hasattr(fitted, "rounds_"):
            raise ValueError("compact needs labels that are all known")
        trained = dataclasses.replace(fitted.result_, w=fitted._get_weights())
        check_tolerance(trained, tol)

        def work(model: Any, heard: tuple[Callback, ...]) -> None:
            check_numbers(model, model.C, training_options(model.training))
            examples = model._training_set(X, y, **given)
            if examples.is_partial:
                raise ValueError("compact needs labels that are all known")
            problem, formulation = examples.make_problem(), _formulation(model, examples)
            _show_size(model, problem)
            with running_clock("training"):
                weights, C = examples.sample_weight, float(model.C)
                result = sparsify(trained, tol, problem, formulation, C, sample_weight=weights)
            calibration = vars(model).get("calibration_")  # stays as it is
            _set_model(model, examples, problem, [result])
            _forget(model, "_kept")
            if calibration is not None:
                model.calibration_ = calibration

        return self._commit(work)

    def _begin(self, model: Any, solver: Any, heard: tuple[Callback, ...]) -> None:
        """Get ready to train a draft of the estimator."""
        self.model, self.solver, self.heard = model, solver, heard
        self.choice: EarlyStopping | None = getattr(model, "_choice", None)

    def _commit(
        self,
        work: Callable[[Any, tuple[Callback, ...]], None],
        heard: dict[str, Any] | None = None,
        is_shown: bool = True,
    ) -> Estimator:
        """Do the work on a draft of the estimator; an interrupted model is there, and usable."""
        estimator: Any = self.estimator
        options = check_parameters(estimator)
        verbose = int(estimator.verbose) if is_shown else 0
        transaction(estimator, work, verbose=verbose, heard=heard)
        result = estimator.result_
        if result.status == "interrupted":
            known = result.relative_gap is not None
            gap = f" (relative gap {result.relative_gap:.3g})" if known else ""
            message = f"training was interrupted; the estimator keeps the best model so far{gap}"
            if options.on_interrupt == "raise":
                raise KeyboardInterrupt(message)
            warn_user(message)
        return self.estimator

    # ----- fits -----------------------------------------------------------------------------------

    def _train(
        self, examples: TrainingSet, path: tuple[list[float], bool] | None = None
    ) -> tuple[list[PathPoint], list[dict[str, Any]]]:
        """Solve the problem for the C of the estimator, or for those of a path."""
        model: Any = self.model
        formulation = _formulation(model, examples)
        kept: Kept | None = getattr(model, "_kept", None) if model.warm_start else None
        if kept is not None and not kept.is_untouched:
            kept = None
        earlier: Result | None = getattr(model, "result_", None)
        content = fingerprint(*examples.data) if model.warm_start else ""
        if kept is not None and kept.fingerprint == content:
            problem = kept.problem
        else:
            # A solver whose planes are of the first of these examples goes on from them.
            problem = examples.make_problem()
            if kept is None or not isinstance(getattr(earlier, "state", None), DualAscentState):
                earlier = None
        start = beginning(earlier) if model.warm_start else None
        if self.choice is not None:
            self.choice.begin(model, problem, examples.following)
        _show_size(model, problem)

        def solve(solver: Solver, C: float, start: Result | None) -> Result:
            return self._solve(problem, solver, formulation, C, examples.sample_weight, start)

        points: list[PathPoint] = []
        try:
            if path is None:
                results = [solve(self.solver, float(model.C), start)]
            else:
                weights = checked_weights(examples.sample_weight, problem.n_examples)
                points = self._solve_path(solve, problem, formulation, weights, *path)
                results = [point.result for point in points]
        except BaseException:
            if start is not None and start is earlier:
                start.state = None  # half-changed: the next fit starts afresh
            raise
        results, following = _set_model(model, examples, problem, results)
        if model.warm_start:
            model.result_ = results[-1]
            model._kept = Kept.of(content, problem)
        else:
            _forget(model, "_kept")
        if path is None:
            if results[0].status != "early_stopping" or self.choice is None:  # as was asked for
                _warn_unless_converged(results[0], self.solver)
        else:
            pairs = zip(points, results, strict=True)
            points = [point._replace(result=result) for point, result in pairs]
            for point in points:
                if not point.covers(point.C):
                    _warn_unless_converged(point.result, self.solver, f"C={point.C:g}: ")
        if examples.finish is not None:
            examples.finish(problem)
        return points, following

    def _solve(
        self,
        problem: Problem,
        solver: Solver,
        formulation: Formulation,
        C: float,
        sample_weight: Floats | None,
        start: Result | None,
    ) -> Result:
        """Solve the problem for one C, showing progress if that is wanted."""
        choice = self.choice
        with self._shown(solver, problem.n_examples, C, sample_weight) as callbacks:
            result = solver.solve(
                problem,
                formulation,
                C,
                sample_weight=sample_weight,
                warm_start=start,
                callbacks=callbacks if choice is None else (*callbacks, choice),
            )
        if choice is None:
            return result
        weights = checked_weights(sample_weight, problem.n_examples)
        return choice.chosen(result, solver, formulation, C, weights)

    def _solve_path(
        self,
        solve: Callable[[Solver, float, Result | None], Result],
        problem: Problem,
        formulation: Formulation,
        weights: Floats,
        Cs: list[float],
        cover: bool,
    ) -> list[PathPoint]:
        """The points of a path, kept in one file if that is wanted."""
        solver = self.solver

        def solve_shown(solver: Solver, C: float, start: Result | None) -> Result:
            if cover:
                loop.begin(f"C {C:g}")
            else:
                k = 1 + Cs.index(C)  # those that a checkpoint has are not solved again
                loop.begin(f"C {C:g} ({k} of {len(Cs)})", k)
            return solve(solver, C, start)

        def identity() -> dict[str, str]:
            asked = {"C": Cs, "cover": cover}
            limits = {name: getattr(solver, name) for name in ("max_passes", "max_time")}
            told = {name: repr(value) for name, value in {**asked, **limits}.items()}
            return solver.identity(problem, formulation, 1.0, weights) | told

        group = CheckpointGroup(solver, identity, ("interrupted",), problem)
        with (
            running_clock("training") as clock,
            clock.loop(None if cover else len(Cs)) as loop,
        ):
            points = solve_path(
                lambda own, C, start: group.train(own, lambda kept: solve_shown(kept, C, start)),
                solver,
                Cs,
                float(weights.sum()),
                cover=cover,
                formulation=formulation,
            )
        group.finish()
        return points

    def _train_partial(self, examples: TrainingSet) -> None:
        """Complete and train in turn, where labels are partially known."""
        model: Any = self.model
        if model.slack == "none":
            raise ValueError("partially labelled data need slacks: set slack='l1' or 'l2'")
        if self.choice is not None:
            raise ValueError("weights are chosen by held-out data where all labels are known")
        options = training_options(model.training)
        if options.checkpoint is not None and options.cluster is not None:
            raise ValueError(
                "checkpoint: training on partially labelled data cannot be checkpointed on a "
                "cluster"
            )
        problem: PartialProblem = examples.make_problem()
        C, weights = float(model.C), examples.sample_weight
        _show_size(model, problem)
        with self._shown(self.solver, problem.n_examples, C, weights) as callbacks:
            found = alternate(
                problem,
                self.solver,
                _formulation(model, examples),
                C,
                sample_weight=weights,
                max_rounds=1 if model.partial_labels == "convex" else int(model.max_rounds),
                tol=TOL if model.tol is None else float(model.tol),
                callbacks=callbacks,
            )
        _set_model(model, examples, problem, [found.result])
        _forget(model, "_kept")
        model.rounds_ = found.rounds
        _warn_unless_converged(found.result, self.solver)
        is_told = not found.result.converged or found.result.status == "interrupted"
        if model.partial_labels == "cccp" and not found.settled and not is_told:
            from sklearn.exceptions import ConvergenceWarning

            n_rounds = len(found.rounds)
            limit = "max_rounds" if n_rounds >= model.max_rounds else "max_time"
            warn_user(
                f"completions still changed the objective after {n_rounds} rounds; raise "
                f"{limit}={getattr(model, limit)}",
                ConvergenceWarning,
            )

    @contextlib.contextmanager
    def _shown(
        self, solver: Solver, n: int, C: float, sample_weight: Floats | None
    ) -> Iterator[tuple[Callback, ...]]:
        """The callbacks, with one that shows the progress if that is wanted."""
        model: Any = self.model
        callbacks: tuple[Callback, ...] = (
            *training_options(model.training).callbacks,
            *self.heard,
        )
        with running_clock("training") as clock:
            if clock.display is None:
                yield callbacks
                return
            # Solvers may be duck-typed.
            limits = solver.limits(n) if hasattr(solver, "limits") else None
            scale = None
            if model.tol is None and model.epsilon is not None:
                scale = C * float(checked_weights(sample_weight, n).sum())
            with clock.display.training(n, limits, scale):
                yield (*callbacks, clock.display)


def _set_model(
    model: Any, examples: TrainingSet, problem: Any, results: list[Result]
) -> tuple[list[Result], list[dict[str, Any]]]:
    """Set the model of the last result; all results, with the weights for predictions.

    And for each of them the attributes that follow from its weights.
    """
    weights = model._kept_weights([result.w for result in results])
    results = [
        result if w is result.w else dataclasses.replace(result, w=w)
        for result, w in zip(results, weights, strict=True)
    ]
    following: list[dict[str, Any]] = [{}] * len(results)
    if examples.following is not None:
        following = examples.following(problem, weights)
    model._set_weights(weights[-1])
    model.__dict__.update(following[-1])
    model.result_ = dataclasses.replace(results[-1], state=None)
    _forget(model, "_online", "_stream")
    return results, following


def _forget(model: Any, *names: str) -> None:
    """Remove attributes that an earlier fit may have left."""
    for name in names:
        vars(model).pop(name, None)


def _formulation(model: Any, examples: TrainingSet) -> Formulation:
    """The kind of structural SVM that the parameters ask for."""
    return Formulation(model.rescaling, model.slack, model.sqrt_loss, examples.constraints)


def _show_size(model: Any, problem: Any) -> None:
    """Say how large the model is, and that training begins, if progress is shown."""
    with running_clock("features") as clock:
        if clock.display is not None:
            clock.say(model._size(problem))


def _warn_unless_converged(result: Result, solver: Solver, where: str = "") -> None:
    """Warn where training ended before the precision asked for, and say what to raise."""
    if result.converged or result.status in ("interrupted", "inexact oracle"):  # told elsewhere
        return
    if result.gap is None and not getattr(solver, "certified", True):
        return  # a solver that promises no precision
    tol, epsilon = getattr(solver, "tol", None), getattr(solver, "epsilon", None)
    if tol is None and epsilon is None:
        return  # no precision was asked for
    asked = " or ".join(
        f"{name}={value:g}"
        for name, value in (("tol", tol), ("epsilon", epsilon))
        if value is not None
    )
    limit = getattr(solver, result.status, None)
    if result.status == "callback":
        ended, advice = "a callback ended training", "let it run on"
    elif result.status == "rounding":
        ended, advice = "training ended where rounding allows no smaller gap,", ""
    elif result.status == "stalled":
        ended = "training ended since neither the objective nor its bound moved any more,"
        advice = "scale the features, lower C, use another solver"
    elif result.status == "loose bounds":
        ended = "training ended since the oracle's bounds are too loose for a smaller gap,"
        advice = "make the problem's inference tighter"
    elif result.status == "cluster lost":
        ended, advice = "training ended since the cluster was lost,", "train again"
    elif limit is not None:
        ended, advice = f"training reached {result.status}={limit:g}", f"raise {result.status}"
    else:
        ended, advice = f"training ended ({result.status})", "use another solver"
    reached = (
        f"a certified relative gap of {result.relative_gap:.3g} (gap {result.gap:.4g})"
        if result.gap is not None and result.relative_gap is not None
        else "a gap that is known relative to the oracle only"
        if result.relative_to_oracle
        else "no certified gap"
    )
    if result.bound_gap is not None:
        reached += f", {result.bound_gap:.4g} of it due to inference,"
    # The checkpoint would refuse another precision.
    resumes = getattr(solver, "checkpoint", None) is not None and limit is not None and not where
    remedies = [f"{advice} and resume"] if resumes else [advice, "allow a larger gap"]
    from sklearn.exceptions import ConvergenceWarning

    warn_user(
        f"{where}{ended} with {reached} before {asked} was met; "
        + ", or ".join(filter(None, remedies)),
        ConvergenceWarning,
    )
