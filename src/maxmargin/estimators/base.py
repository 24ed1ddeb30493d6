"""What all estimators share: the call of the solver, warm starts and warnings."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from types import MethodType
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from .._warn import warn_user
from ..defaults import KEEPING
from ..doc_links import DocLinks
from ..engine.state import fingerprint as content_of
from ..formulation import Formulation
from ..problem import Problem
from ..progress import running_clock
from ..registry import import_name
from ..result import Callback, Result
from ..schema import annotated_types
from ..search.limits import as_weights
from ..sklearn_bases import CallbackSupport, Estimator, check_fitted
from ..solvers import SOLVERS, Solver, is_online, make_solver
from ..solvers.base import check_numbers, checked_weights
from ..solvers.checkpoint_group import CheckpointGroup
from ..solvers.dual_ascent import DualAscentState
from ..solvers.online import Learner, OnlineSolver, Seen
from ..solvers.path import PathPoint, Solve, solve_path
from ..solvers.sparsification import Compaction
from ..sparse_format import check_sparse
from ..types import Floats
from ..validation import is_list, is_one_of
from ..weight_constraints import WeightConstraints
from .checked_weights import CheckedWeights
from .early_stopping import EarlyStopping
from .parameters import SharedParameters
from .partial_fit_log import Stream
from .seeds import seed_of
from .sklearn_callbacks import iteration_callback
from .transactional_fit import TransactionalFit

__all__ = [
    "ConditionalMethod",
    "MaxMarginEstimator",
    "OnlineMethod",
    "Savable",
    "checked_k",
    "fingerprint",
    "warn_unless_converged",
]


class _Kept(NamedTuple):
    """What a warm start needs of the fit before.

    The problem may refer to arrays of the user, who may have written to them since; ``held`` is
    what it had in it then.
    """

    fingerprint: str
    problem: Problem
    held: str | None

    @property
    def is_untouched(self) -> bool:
        """Whether the problem is still that of the fit before."""
        return self.held is not None and content_of(self.problem) == self.held

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, as the hash of equal objects differs where they share others."""
        return _copied, (self.fingerprint, self.problem, self.is_untouched)


def _copied(fingerprint: str, problem: Problem, is_untouched: bool) -> _Kept:
    """What was kept, out of a pickle."""
    return _Kept(fingerprint, problem, content_of(problem) if is_untouched else None)


class Savable(TransactionalFit):
    """Estimators with ``coef_`` that can be written to a file, and read by `maxmargin.load`."""

    coef_: Any
    _weights_check: CheckedWeights

    def save(self, path: Any) -> None:
        """Write the fitted estimator to one file, to be read by `maxmargin.load`.

        Parameters
        ----------
        path : str or path-like
            File to write. It appears complete or not at all. It holds arrays and JSON, no pickle.

        Raises
        ------
        NotFittedError
            If the estimator has not been fitted.
        ValueError
            If it holds something that such a file cannot keep.
        """
        from ..persistence import save_model

        save_model(self, path)

    def report(self, X: Any = None, y: Any = None, **of_examples: Any) -> Any:
        """Describe the model on one page, and how it does on examples that it was not trained on.

        Parameters
        ----------
        X, y : inputs and outputs, optional
            As for `score`; without them the page is about training and weights alone.
        **of_examples
            What else belongs to the examples, such as ``qid``; ``title``, a heading; ``worst``,
            which mistakes come first: those with the largest share of errors (``"rate"``, the
            default), those with the largest difference between the scores of the output found and
            of the true one (``"margin"``), or those with the most errors (``"count"``).

        Returns
        -------
        Report
            ``report.save("report.html")`` writes it; notebooks show it.
        """
        check_sparse(X, "X")
        check_sparse(y, "y")
        return import_name("report.report", "make_report")(self, X, y, **of_examples)

    # ----- what persistence asks for ------------------------------------------------------------

    def _get_state(self) -> Any:
        """What was learned, other than ``coef_`` and ``result_``: a NamedTuple of its values."""
        raise ValueError(
            f"{type(self).__name__} cannot be saved, for it is made of code of your own; keep "
            "coef_ with numpy.save, and predict with problem.predict(x, w)"
        )

    def _set_state(self, state: Any) -> None:
        """Take up what `_get_state` gave; ``coef_`` is set already.

        What comes out of a file is checked against the fields of the type that a subclass declares
        for ``state``; how they fit together is checked here.
        """
        raise NotImplementedError

    def _set_calibration(self, values: dict[str, Any]) -> None:
        """Take up the calibration that a file has; see `Confidences`."""
        raise ValueError(f"{type(self).__name__} has no calibration, but the file has one")

    # ----- weights ------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        """Raise NotFittedError before the first fit."""
        check_fitted(self, "coef_")

    def _get_weights(self) -> Floats:
        """All weights, flat."""
        return self.coef_

    def _set_weights(self, w: Floats) -> None:
        """Take up weights; ``result_`` has them too, but for an estimator without one."""
        self.coef_ = w
        self._weights_check = CheckedWeights()

    @property
    def _weights(self) -> Floats:
        """The weights for predictions: anybody may have put others into ``coef_``, or cut them."""
        self._check_fitted()
        weights = as_weights(self._get_weights(), self._n_weights())
        self._weights_check.check_finite(weights)
        return weights

    def _n_weights(self) -> int:
        """How many weights the model has, by all that was learned but the weights."""
        raise NotImplementedError


class PathRequest(NamedTuple):
    """What a fit is to do in place of training for one C; see `solve_path`."""

    Cs: tuple[float, ...]
    cover: bool

    def solve(
        self,
        solve: Solve,
        solver: Solver,
        problem: Problem,
        formulation: Formulation,
        weights: Floats,
    ) -> list[PathPoint]:
        """The points of the path, kept in one file if that is wanted."""
        Cs = sorted(set(self.Cs))

        def solve_shown(solver: Solver, C: float, start: Result | None) -> Result:
            if self.cover:
                loop.begin(f"C {C:g}")
            else:
                k = 1 + Cs.index(C)  # those that a checkpoint has are not solved again
                loop.begin(f"C {C:g} ({k} of {len(Cs)})", k)
            return solve(solver, C, start)

        def identity() -> dict[str, str]:
            asked = {"C": Cs, "cover": self.cover}
            limits = {name: getattr(solver, name) for name in ("max_passes", "max_time")}
            told = {name: repr(value) for name, value in {**asked, **limits}.items()}
            return solver.identity(problem, formulation, 1.0, weights) | told

        series = CheckpointGroup(solver, identity, ("interrupted",), problem)
        with (
            running_clock("training") as clock,
            clock.loop(None if self.cover else len(Cs)) as loop,
        ):
            points = solve_path(
                lambda own, C, start: series.train(own, lambda kept: solve_shown(kept, C, start)),
                solver,
                total_weight=float(weights.sum()),
                formulation=formulation,
                **self._asdict(),
            )
        series.finish()
        return points


class MaxMarginEstimator(DocLinks, CallbackSupport, Savable, SharedParameters, Estimator):
    """Base class of the estimators."""

    #: Set by `path` on an estimator of its own, and what its fit leaves there.
    _path_request: ClassVar[PathRequest | None] = None
    _path_points: list[PathPoint]
    _path_following: list[dict[str, Any]]
    #: Set by `choosing` while weights are to be chosen by held-out data.
    _choice: ClassVar[EarlyStopping | None] = None

    def __sklearn_clone__(self) -> Any:
        """An estimator of the same parameters; a client of a cluster is shared, not copied."""
        draft = copy.copy(self)
        draft.cluster = None
        cloned = super(MaxMarginEstimator, draft).__sklearn_clone__()
        cloned.cluster = self.cluster
        return cloned

    def __getstate__(self) -> Any:
        """All but a connection to a cluster, in whose place is its address."""
        state = super().__getstate__()
        if state.get("cluster") is not None:
            address_of = import_name("cluster.dask_executor", "address_of")
            state = {**state, "cluster": address_of(state["cluster"])}
        return state

    # ----- training -----------------------------------------------------------------------------

    def fit_path(self, X: Any, y: Any, Cs: Any, **options: Any) -> Any:
        """Train clones of the estimator for many C; see `maxmargin.path`."""
        from .path import path

        return path(self, X, y, Cs, **options)

    def compact(self, X: Any, y: Any = None, *, tol: float, **fit_params: Any) -> Any:
        """Round the weights, and drop small ones, as far as a certified gap allows.

        What is left takes less room in a file: single precision or less, and no zeros. Rounding and
        dropping go as far as a true pass over the training data finds the relative gap of the new
        weights to be at most ``tol``; `result_` has their certificate, with the status "compacted".
        A calibration stays as it is.

        Parameters
        ----------
        X, y
            The training data; the model itself keeps none. Others are noticed by the objective of
            the weights.
        tol : float
            Largest relative gap, ``(P - D) / P``, larger than that of the training.
        **fit_params
            What else ``fit`` was given, such as ``sample_weight``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the model has no certified gap, no weights of features (a kernel) or completed its
            labels, if ``tol`` allows nothing, or if the data are not those of the training.
        """
        self._check_fitted()
        if getattr(self, "_kernel_basis", None) is not None:
            raise ValueError("compact needs kernel='linear': others have coefficients of inputs")
        if hasattr(self, "rounds_"):
            raise ValueError("compact needs labels that are all known")
        trained = dataclasses.replace(self.result_, w=self._get_weights())
        draft = copy.copy(self)
        listening = draft.__dict__.pop("_skl_callbacks", None)  # to trainings, which this is not
        draft.solver, draft.warm_start = Compaction(trained, tol), False  # type: ignore[assignment]
        draft.cluster = None
        if hasattr(draft, "probability"):
            draft.probability = False  # by fits on other data, which this is not
        learned = vars(draft.fit(X, y, **fit_params))
        if hasattr(self, "calibration_"):
            learned["calibration_"] = self.calibration_
        self.__dict__ = {**learned, **self.get_params(deep=False)}
        if listening is not None:
            self._skl_callbacks = listening
        return self

    def _after_fit(self) -> None:
        """Handle an interrupt of the training: its model is there, and usable."""
        result = self.result_
        if result.status != "interrupted":
            return
        gap = "" if result.relative_gap is None else f" (relative gap {result.relative_gap:.3g})"
        message = f"training was interrupted; the estimator keeps the best model so far{gap}"
        if self.on_interrupt == "raise":
            raise KeyboardInterrupt(message)
        warn_user(message)

    def _train(
        self,
        make_problem: Callable[[], Problem],
        data: tuple[Any, ...],
        sample_weight: Floats | None,
        following: Callable[[Floats], dict[str, Any]] | None = None,
        constraints: WeightConstraints | None = None,
    ) -> Problem:
        """Solve the problem, and set ``coef_`` and ``result_``.

        ``data`` is all that the problem is made of; a warm start needs it to be the same again.
        ``following`` gives attributes that follow from weights and data, for the weights of every
        point of a path have their own.
        """
        solver = self._make_solver()
        formulation = self._formulation(constraints)
        kept: _Kept | None = getattr(self, "_kept", None) if self.warm_start else None
        if kept is not None and not kept.is_untouched:
            kept = None
        earlier: Result | None = getattr(self, "result_", None)
        content = fingerprint(*data) if self.warm_start else ""
        if kept is not None and kept.fingerprint == content:
            problem = kept.problem
        else:
            # A solver whose planes are of the first of these examples goes on from them.
            problem = make_problem()
            if kept is None or not isinstance(getattr(earlier, "state", None), DualAscentState):
                earlier = None
        start = _beginning(earlier) if self.warm_start else None

        def solve(solver: Solver, C: float, start: Result | None) -> Result:
            return self._solve(problem, solver, formulation, C, sample_weight, start)

        if self._choice is not None:
            self._choice.begin(self, problem, following)
        self._show_size(problem)
        try:
            if self._path_request is None:
                result = self._with_kept_weights([solve(solver, float(self.C), start)])[0]
            else:
                weights = checked_weights(sample_weight, problem.n_examples)
                points = self._path_request.solve(solve, solver, problem, formulation, weights)
                results = self._with_kept_weights([point.result for point in points])
                pairs = zip(points, results, strict=True)
                self._path_points = [point._replace(result=kept) for point, kept in pairs]
                result = results[-1]
                if following is not None:
                    self._path_following = [following(p.result.w) for p in self._path_points]
        except BaseException:
            if start is not None and start is earlier:
                start.state = None  # half-changed: the next fit starts afresh
            raise
        self._set_weights(result.w)
        if following is not None:
            self.__dict__.update(following(result.w))
        for name in ("_online", "_stream"):
            self.__dict__.pop(name, None)
        if self.warm_start:
            self.result_ = result
            self._kept = _Kept(content, problem, content_of(problem))
        else:
            self.result_ = dataclasses.replace(result, state=None)
            self.__dict__.pop("_kept", None)
        if self._choice is not None and result.status == "early_stopping":
            pass  # as was asked for
        elif self._path_request is None:
            warn_unless_converged(result, solver)
        else:
            for point in self._path_points:
                if not point.covers(point.C):
                    warn_unless_converged(point.result, solver, f"C={point.C:g}: ")
        return problem

    def _with_kept_weights(self, results: list[Result]) -> list[Result]:
        """Results with the weights that predictions are made by."""
        weights = self._kept_weights([result.w for result in results])
        pairs = zip(results, weights, strict=True)
        return [r if w is r.w else dataclasses.replace(r, w=w) for r, w in pairs]

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """Weights for predictions, made of those of the solutions for one C or for several."""
        return list(learned)

    def _formulation(self, constraints: WeightConstraints | None = None) -> Formulation:
        """The kind of structural SVM that the parameters ask for."""
        return Formulation(self.rescaling, self.slack, self.sqrt_loss, constraints)

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
        choice = self._choice
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

    @contextlib.contextmanager
    def _shown(
        self, solver: Solver, n: int, C: float, sample_weight: Floats | None
    ) -> Iterator[tuple[Callback, ...]]:
        """The callbacks, with one that shows the progress if that is wanted."""
        callbacks: tuple[Callback, ...] = (*self.callbacks, *iteration_callback(self))
        with running_clock("training") as clock:
            if clock.display is None:
                yield callbacks
                return
            # Solvers may be duck-typed.
            limits = solver.limits(n) if hasattr(solver, "limits") else None
            scale = None
            if self.tol is None and self.epsilon is not None:
                scale = C * float(checked_weights(sample_weight, n).sum())
            with clock.display.training(n, limits, scale):
                yield (*callbacks, clock.display)

    def _show_size(self, problem: Any) -> None:
        """Say how large the model is, and that training begins, if progress is shown."""
        with running_clock("features") as clock:
            clock.say(self._size(problem))

    def _size(self, problem: Any) -> str:
        """How large the model is."""
        labels = getattr(self, "classes_", None)
        sizes = {
            "features": getattr(self, "n_features_in_", None),
            "labels": len(labels) if isinstance(labels, np.ndarray) and labels.ndim == 1 else None,
            "weights": getattr(problem, "n_features", None),
        }
        return ", ".join(f"{n} {name}" for name, n in sizes.items() if isinstance(n, Integral))

    def _train_online(
        self,
        problem: Problem,
        data: tuple[Any, ...],
        sample_weight: Floats | None,
        constraints: WeightConstraints | None = None,
    ) -> None:
        """One more pass of an online solver, over ``problem``, and set ``coef_`` and ``result_``.

        Training goes on from what the last call has left in ``_online``; without it, from the
        weights there are, if they are as many. ``data`` is all that the problem is made of: the
        same again adds nothing to the examples seen, whose weights are what C multiplies. A call
        that the checkpoint has is over already.
        """
        solver = dataclasses.replace(
            self._make_solver(), max_passes=1, checkpoint=None, resume=False
        )
        assert isinstance(solver, OnlineSolver)
        formulation = self._formulation(constraints)
        content = fingerprint(*data, sample_weight)
        stream, settings = self._open_partial_fit_log(solver, problem, formulation)
        call = fingerprint(content, settings)
        if stream is not None and stream.has(call):
            result = stream.result(solver, problem, formulation)
        else:
            result = self._pass(problem, solver, formulation, content, sample_weight)
        self._set_weights(result.w)
        if stream is not None:
            self._stream = stream.followed_by(call, result, getattr(self, "_online", None))
        self._online = result
        self.result_ = dataclasses.replace(result, state=None)

    def _open_partial_fit_log(
        self, solver: OnlineSolver, problem: Problem, formulation: Formulation
    ) -> tuple[Stream | None, dict[str, str]]:
        """What keeps the calls of `partial_fit`, if they are kept, and what they depend on."""
        if self.checkpoint is None:
            return None, {}
        settings = solver.settings(problem, formulation, float(self.C))
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is None or not stream.is_at(self.checkpoint):
            earlier: Result | None = getattr(self, "_online", None)
            if earlier is not None:
                assert isinstance(earlier.state, Learner)
                before = fingerprint(*earlier.state.arrays().values())
            else:
                before = fingerprint(self._weights) if hasattr(self, "result_") else "none"
            identity = {
                "method": "partial_fit",
                **settings,
                "weights before the first call": before,
            }
            place, every = self.checkpoint, float(self.checkpoint_every)
            stream = Stream.at(place, every, identity, bool(self.resume))
        return stream, settings

    def _pass(
        self,
        problem: Problem,
        solver: OnlineSolver,
        formulation: Formulation,
        content: str,
        sample_weight: Floats | None,
    ) -> Result:
        """One more pass, from what there is; see `_train_online`."""
        earlier = _beginning(getattr(self, "_online", None))
        if earlier is not None:
            assert isinstance(earlier.state, Learner)
            if content in earlier.state.seen.contents:
                earlier.state.counted = problem
        elif hasattr(self, "result_") and self._n_weights() == problem.n_features:
            n = self.result_.n_examples
            seen = Seen(count=float(n), weight=float(n))
            earlier = dataclasses.replace(self.result_, w=self._weights, state=seen)
        result = solver.solve(
            problem,
            formulation,
            float(self.C),
            sample_weight=sample_weight,
            warm_start=earlier,
            callbacks=tuple(self.callbacks),
        )
        assert isinstance(result.state, Learner)
        result.state.seen.contents.add(content)
        result.state.forget_examples()
        return result

    def _make_solver(self) -> Solver:
        """Build the solver from the parameters, checking them."""
        check_numbers(self, self.C)
        keeping = {name: getattr(self, name) for name in KEEPING}
        solver = make_solver(
            self.solver,
            tol=self.tol,
            epsilon=self.epsilon,
            max_passes=self.max_passes,
            max_time=self.max_time,
            random_state=seed_of(self.random_state),
            **keeping,
            n_jobs=self.n_jobs,
            cache_mb=self.cache_mb,
        )
        if not isinstance(self.solver, str) and (self.checkpoint or self.resume):
            if not isinstance(solver, Solver):
                raise ValueError(f"checkpoint needs a solver of maxmargin, got {solver!r}")
            solver = dataclasses.replace(solver, **keeping)
        if self.cluster is None:
            return solver
        if self.checkpoint is not None and self._path_request is not None:
            raise ValueError("checkpoint: a path of C is not kept on a cluster")
        on_cluster: Solver = import_name("cluster", "ClusterSolver").like(solver, self.cluster)
        return on_cluster

    def _before_fit(self) -> None:
        """Raise ValueError for what is no switch, no callback, no file, ..."""
        kinds: dict[str, Any] = annotated_types(cast("Any", type(self)))
        for name in (name for name, kind in kinds.items() if kind is bool):
            value = getattr(self, name, True)
            if not isinstance(value, (bool, np.bool_, Integral)):
                raise ValueError(f"{name} must be True or False, got {value!r:.60}")
        if not is_one_of(self.on_interrupt, ("raise", "return")):
            raise ValueError(f"on_interrupt must be 'raise' or 'return', got {self.on_interrupt!r}")
        if not isinstance(self.verbose, (bool, np.bool_, Integral)):
            raise ValueError(f"verbose must be a whole number, got {self.verbose!r:.60}")
        is_name = isinstance(self.checkpoint, (str, os.PathLike))
        if self.checkpoint is not None and not (is_name and "\0" not in str(self.checkpoint)):
            raise ValueError(f"checkpoint must be the name of a file, got {self.checkpoint!r:.60}")
        if not is_list(self.callbacks) or not all(map(callable, self.callbacks)):
            raise ValueError(
                f"callbacks must be a sequence of functions, got {self.callbacks!r:.60}"
            )


class ConditionalMethod:
    """A method that an estimator has only under a condition; a decorator.

    Like scikit-learn's ``available_if``, which however says no more than that there is no such
    attribute.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)

    def check(self, estimator: Any) -> None:
        """Raise AttributeError unless the estimator has it."""
        raise NotImplementedError


class OnlineMethod(ConditionalMethod):
    """A method that an estimator has only while its solver is an online one; a decorator."""

    def check(self, estimator: Any) -> None:
        """See `ConditionalMethod`."""
        if not is_online(estimator.solver):
            names = [repr(name) for name in SOLVERS if is_online(name)]
            raise AttributeError(
                f"{self.method.__name__} needs a solver that takes examples as they come, "
                f"{', '.join(names[:-1])} or {names[-1]}; got solver={estimator.solver!r}"
            )


def _beginning(earlier: Result | None) -> Result | None:
    """Where training goes on from, which it changes: an online learner is copied, planes are not.

    Planes may be large, and can be found again.
    """
    if earlier is None or not isinstance(earlier.state, Learner):
        return earlier
    return dataclasses.replace(earlier, state=earlier.state.copy())


def checked_k(k: Any, name: str = "k") -> int:
    """The k of `predict_k`, or how many of something else are wanted."""
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {k!r}")
    return int(k)


def fingerprint(*parts: Any) -> str:
    """Hash of the content of arrays, matrices and small values."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if sp.issparse(part):
            arrays = [part.data, part.indices, part.indptr]
            digest.update(f"sparse{part.shape}".encode())
        elif isinstance(part, np.ndarray) and part.dtype != object:
            arrays = [part]
        else:
            arrays = []
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def warn_unless_converged(result: Result, solver: Solver, where: str = "") -> None:
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
    from sklearn.exceptions import ConvergenceWarning

    warn_user(
        f"{where}{ended} with {reached} before {asked} was met; "
        + (f"{advice}, or allow a larger gap" if advice else "allow a larger gap"),
        ConvergenceWarning,
    )
