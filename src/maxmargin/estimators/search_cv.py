"""Search for the best parameters by cross-validation: C along paths, all others by grid."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..checkpoints import FOLD, check_location, identity_at, part_of
from ..progress import Loop, running_clock
from ..utils.sklearn_bases import doc_link_template
from ..utils.sparse_format import check_sparse
from ..utils.types import Ints
from ..utils.warn import warn_user
from .inputs.examples import examples_at, materialize, n_examples_of
from .path import check_estimator, checked_Cs, path
from .training import NoPathError
from .training_options import training_options

__all__ = ["SearchCV"]


class _Fold(NamedTuple):
    """One split of the examples, with what else ``fit`` and ``score`` are given."""

    number: int
    train: tuple[Any, Any, dict[str, Any]]
    test: tuple[Any, Any, dict[str, Any]]


class _Trial(NamedTuple):
    """One candidate in one fold: its scores by name, or why there are none."""

    scores: dict[str, float] | None
    fit_time: float
    score_time: float
    model: Any = None
    error: str = ""


class SearchCV(MetaEstimatorMixin, BaseEstimator):
    """The parameters with the best score on held-out data, by cross-validation.

    Like GridSearchCV, but the values of C are trained along a path: in each fold, and for each
    combination of the other parameters, features are built once, and each C starts from the planes
    of the one before.

    Parameters
    ----------
    estimator : estimator
        What is trained. With a ``checkpoint``, training in fold k is kept beside it, in
        ``checkpoint + "-foldk"`` (with a number behind it if there are several in a fold).
    param_grid : dict, list of dict, int or array-like of float, default=10
        As in GridSearchCV: for each parameter the values to try; of a list of grids, all are tried.
        An array has values of C, and a number is how many of them, from 1e-3 to 1e2 in equal
        ratios.
    scoring : str, callable, list, tuple or dict, optional
        As in GridSearchCV: the estimator's ``score`` by default; with several metrics, ``refit``
        names the one that chooses.
    cv : int, splitter or iterable, optional
        As in GridSearchCV: five folds by default.
    n_jobs : int, optional
        Processes that train folds and combinations of parameters at the same time. Ctrl-C then
        always raises KeyboardInterrupt.
    refit : bool, str or callable, default=True
        Train on all data with the best parameters at the end, along a path up to the best C, as in
        the folds. A callable gets ``cv_results_`` and returns the index of the candidate to take.
    verbose : int, default=0
        1 shows which fold and C is trained, and the time left; 2 every iteration.
    error_score : "raise" or float, default=np.nan
        Score of a candidate whose ``fit`` or score fails, with a warning; "raise" raises the error.
        If all of them fail, `fit` raises ValueError.

    Notes
    -----
    If the estimator has ``on_interrupt="return"``, Ctrl-C ends the search with the best candidate
    by the folds that are complete (by the candidates reached, in the first), and with its model of
    the last one.

    Each candidate is trained by itself where there is no path of C: with an online solver, with
    ``slack="none"``, with partially labelled data, and with ``probability=True`` if there is a
    ``scoring``, which may need probabilities. With ``probability=True`` the last training, on all
    data, is a fit with the best C alone.

    Methods and fitted attributes of the best estimator are those of the search, too:
    ``search.predict_k(X, 3)``, ``search.save("model")``, ``search.classes_``.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As that of GridSearchCV: ``params``, ``param_C``, ``split0_test_score``,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``, ``mean_fit_time``, ... A
        training of several C is counted by what each of them took; features by equal parts.
    best_params_ : dict
        The parameters with the largest mean score; of several, the first.
    best_score_ : float
        Their mean score, unless ``refit`` is a callable.
    best_index_ : int
        Where they are in ``cv_results_``.
    best_estimator_ : estimator
        Trained on all data with them, unless ``refit=False``.
    n_splits_ : int
        Number of folds that scores are of.
    scorer_ : callable
        What computes the scores.
    refit_time_ : float
        Seconds that training on all data took.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X = [[{"word": "a"}, {"word": "dog"}], [{"word": "the"}, {"word": "cat"}]] * 3
    >>> y = [["D", "N"]] * 6
    >>> grid = {"C": [0.1, 1.0], "rescaling": ["margin", "slack"]}
    >>> search = mm.SearchCV(mm.SequenceTagger(random_state=0), grid, cv=3).fit(X, y)
    >>> search.best_params_
    {'C': 0.1, 'rescaling': 'margin'}
    >>> search.predict(X[:1])
    [['D', 'N']]
    """

    _doc_link_module = "maxmargin"
    _doc_link_template = doc_link_template

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = 10,
        *,
        scoring: Any = None,
        cv: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        verbose: int = 0,
        error_score: Any = np.nan,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.error_score = error_score

    def fit(self, X: Any, y: Any = None, **params: Any) -> SearchCV:
        """Search, and train with the best parameters.

        Parameters
        ----------
        X, y
            What the estimator's ``fit`` takes.
        **params
            ``groups`` for the splitter; all others for the estimator's ``fit``. Those with an entry
            for each example are split with them. Those that its ``score`` (or a callable
            ``scoring``) takes too, such as the ``qid`` of `RankSVM` and ``sample_weight``, are
            given to it. With scikit-learn's metadata routing enabled, requests decide what goes
            where.

        Returns
        -------
        self
        """
        X, y = materialize(X), materialize(y)
        check_sparse(X, "X")  # before it is split
        check_sparse(y, "y")
        check_estimator(self.estimator)
        candidates = self._candidates()
        self._check_refit()
        self._check_last_checkpoint(candidates)
        fit_params, split_params, score_params = self._routed(params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        n = n_examples_of(X)
        rows = X if _n_rows(X) == n else np.arange(n)  # containers of tokens have other lengths
        splits = list(splitter.split(rows, y if _n_rows(y) == n else None, **split_params))
        folds = (
            self._fold(k, X, y, train, test, fit_params, score_params)
            for k, (train, test) in enumerate(splits)
        )
        groups = _groups(candidates)
        with (
            running_clock("features", int(self.verbose)) as clock,
            clock.loop(len(splits) * len(groups) + bool(self.refit)) as loop,
        ):
            trials, is_interrupted = self._search(folds, len(splits), candidates, groups, loop)
            self._choose(candidates, trials)
            if self.refit and is_interrupted:
                self.best_estimator_ = trials[-1][self.best_index_].model
            elif self.refit:
                loop.begin(f"best {_described(self.best_params_)}, all data")
                began = time.perf_counter()
                self.best_estimator_ = self._refit(candidates, X, y, fit_params)
                self.refit_time_ = time.perf_counter() - began
        return self

    # ----- what is searched -----------------------------------------------------------------------

    def _candidates(self) -> list[dict[str, Any]]:
        """The parameters of each candidate; ValueError or TypeError for what is no grid."""
        grid: Any = self.param_grid
        grids = [grid] if isinstance(grid, Mapping) else grid
        is_grid = isinstance(grids, (list, tuple)) and any(isinstance(g, Mapping) for g in grids)
        if not is_grid:
            if np.ndim(grid) == 0 and isinstance(grid, (bool, Integral)):
                if isinstance(grid, bool) or int(grid) < 1:
                    raise ValueError(
                        "param_grid must be 1 or more (a number of values of C), an array of them, "
                        f"or a dict of parameters and their values, got {grid!r}"
                    )
                grid = np.logspace(-3, 2, int(grid))
            grids = [{"C": np.unique(checked_Cs(grid, "param_grid: values of C")).tolist()}]
        for one in grids:
            if isinstance(one, Mapping) and "C" in one:
                checked_Cs(one["C"], "param_grid: values of C")
        candidates = list(ParameterGrid(grids))
        for params in candidates:
            clone(self.estimator).set_params(**params)  # raises for a name that is no parameter
        return candidates

    def _check_refit(self) -> None:
        """Raise ValueError for what chooses no candidate, or is no score."""
        several = isinstance(self.scoring, (list, tuple, set, Mapping))
        if several and self.refit is not False and not callable(self.refit):
            if self.refit not in list(self.scoring):
                raise ValueError(
                    f"refit must be one of the metrics of scoring ({', '.join(self.scoring)}), a "
                    f"function of cv_results_, or False; got {self.refit!r}"
                )
        is_number = isinstance(self.error_score, Real)
        if not is_number and not (
            isinstance(self.error_score, str) and self.error_score == "raise"
        ):
            raise ValueError(f"error_score must be a number or 'raise', got {self.error_score!r}")

    def _check_last_checkpoint(self, candidates: list[dict[str, Any]]) -> None:
        """Raise for a file that the last fit, with the best parameters, could not resume from."""
        options = training_options(self.estimator.training)
        checkpoint = options.checkpoint
        if checkpoint is None or not self.refit:
            return
        check_location(checkpoint)
        found = identity_at(checkpoint) if options.resume else None
        if found is None:
            return
        kept = {repr(float(params.get("C", self.estimator.C))) for params in candidates}
        kept |= {repr(_path_to(params, candidates)) for params in candidates if "C" in params}
        if found.get("C") not in kept:
            raise ValueError(
                f"{checkpoint}: the checkpoint is of another training, with another C "
                f"({found.get('C')} there, one of {', '.join(sorted(kept))} here); a search keeps "
                "its last fit there, so choose another file name, or remove the file"
            )

    # ----- what else fit is given -----------------------------------------------------------------

    def _routed(self, params: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """What goes to the estimator's ``fit``, to the splitter, and to the scores."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed: Any = process_routing(self, "fit", **params)
            return routed.estimator.fit, routed.splitter.split, routed.scorer.score
        fit_params = {name: value for name, value in params.items() if name != "groups"}
        return fit_params, {"groups": params.get("groups")}, self._needed_for_scores(fit_params)

    def _needed_for_scores(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """What scores of held-out data take of the parameters of ``fit``: queries, weights."""
        score = self.estimator.score if self.scoring is None else self.scoring
        scorer = check_scoring(self.estimator, self.scoring)
        if self.scoring is not None and hasattr(scorer, "_accept_sample_weight"):  # scikit-learn's
            taken = {"sample_weight"} if scorer._accept_sample_weight() else set()
        else:
            taken = set(inspect.signature(score).parameters) if callable(score) else set()
        return {name: value for name, value in fit_params.items() if name in taken}

    def get_metadata_routing(self) -> MetadataRouter:
        """What scikit-learn's metadata routing should know.

        Returns
        -------
        MetadataRouter
        """
        fits, scores, splits = MethodMapping(), MethodMapping(), MethodMapping()
        # A generator of splits can be gone through once, and requests nothing.
        splitter = self.cv if hasattr(self.cv, "split") else check_cv(None)
        return (
            MetadataRouter(owner=type(self).__name__)
            .add(estimator=self.estimator, method_mapping=fits.add(caller="fit", callee="fit"))
            .add(
                scorer=check_scoring(self.estimator, self.scoring),
                method_mapping=scores.add(caller="fit", callee="score").add(
                    caller="score", callee="score"
                ),
            )
            .add(splitter=splitter, method_mapping=splits.add(caller="fit", callee="split"))
        )

    def _fold(
        self,
        number: int,
        X: Any,
        y: Any,
        train: Ints,
        test: Ints,
        fit_params: dict[str, Any],
        score_params: dict[str, Any],
    ) -> _Fold:
        """The examples of one split."""
        train, test = (
            np.flatnonzero(some) if np.asarray(some).dtype == bool else np.asarray(some)
            for some in (train, test)
        )
        # Of precomputed kernels, columns are examples too.
        is_square = get_tags(self.estimator).input_tags.pairwise
        X_train, X_test = (
            examples_at(X, some) if not is_square else X[np.ix_(some, train)]
            for some in (train, test)
        )
        return _Fold(
            number,
            (X_train, examples_at(y, train), _of_examples(fit_params, X, train)),
            (X_test, examples_at(y, test), _of_examples(score_params, X, test)),
        )

    # ----- the search -----------------------------------------------------------------------------

    def _search(
        self,
        folds: Iterator[_Fold],
        n_folds: int,
        candidates: list[dict[str, Any]],
        groups: list[list[int]],
        loop: Loop,
    ) -> tuple[list[list[_Trial]], bool]:
        """Trials of all candidates in each fold, and whether an interrupt ended them."""
        self.scorer_ = check_scoring(self.estimator, self.scoring)
        keeps = training_options(self.estimator.training).on_interrupt == "return"
        evaluate = functools.partial(self._evaluate, candidates, len(groups) > 1)
        if joblib.effective_n_jobs(self.n_jobs) > 1:
            loop.begin(f"{n_folds} folds")
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(evaluate)(group, fold) for fold in folds for group in groups
            )
            per_fold = [found[k : k + len(groups)] for k in range(0, len(found), len(groups))]
            return [_in_order(groups, some) for some in per_fold], False
        done: list[list[_Trial]] = []
        for fold in folds:
            some: list[list[_Trial]] = []
            is_interrupted = False
            for group in groups:
                where = f"fold {fold.number + 1} of {n_folds}"
                rest = {name: v for name, v in candidates[group[0]].items() if name != "C"}
                loop.begin(f"{where}, {_described(rest)}" if len(groups) > 1 else where)
                try:
                    some.append(evaluate(group, fold, keeps))
                    is_interrupted = any(_is_interrupted(trial.model) for trial in some[-1])
                except KeyboardInterrupt:
                    if not keeps or not (done or some):
                        raise
                    is_interrupted = True
                if is_interrupted:
                    break
            # Of a later fold, a part would favour some of the candidates.
            if not is_interrupted or not done:
                done = [[trial._replace(model=None) for trial in row] for row in done]
                done.append(_in_order(groups, some))
            if is_interrupted:
                warn_user(
                    f"the search was interrupted; the best candidate so far, by {len(done)} folds, "
                    "keeps the model that was trained in the last of them"
                )
                return done, True
        return done, False

    def _evaluate(
        self,
        candidates: list[dict[str, Any]],
        is_numbered: bool,
        group: list[int],
        fold: _Fold,
        keeps: bool = False,
    ) -> list[_Trial]:
        """Train candidates that differ in C alone, and score them on the held-out examples."""
        found = self._train([candidates[i] for i in group], group, is_numbered, fold)
        trials = []
        with running_clock("evaluation") as clock:
            for trial in found:
                scores, error, began = None, trial.error, time.perf_counter()
                if trial.model is not None:
                    X, y, params = fold.test
                    try:
                        scores = _by_name(self.scorer_(trial.model, X, y, **params))
                    except Exception as failure:
                        if self.error_score == "raise":
                            raise
                        error = f"{type(failure).__name__}: {failure}"
                seconds = time.perf_counter() - began
                model = trial.model if keeps else None
                trials.append(_Trial(scores, trial.fit_time, seconds, model, error))
            key = self.refit if isinstance(self.refit, str) else "score"
            known = [
                (trial.scores[key], i)
                for trial, i in zip(trials, group, strict=True)
                if trial.scores is not None and not np.isnan(trial.scores.get(key, np.nan))
            ]
            if known:
                score, i = max(known, key=lambda pair: pair[0])
                clock.say(f"best {_described(candidates[i])}, score {score:.4f}")
        return trials

    def _train(
        self, candidates: list[dict[str, Any]], numbers: list[int], is_numbered: bool, fold: _Fold
    ) -> list[_Trial]:
        """Train candidates that differ in C alone, along a path if there is one."""
        X, y, params = fold.train
        began = time.perf_counter()
        needs_confidences = self.scoring is not None and getattr(
            self._made(candidates[0]), "probability", False
        )
        if "C" in candidates[0] and not needs_confidences:
            Cs = [float(candidate["C"]) for candidate in candidates]
            number = numbers[0] if is_numbered else None
            try:
                found = path(self._made(candidates[0], fold, number), X, y, Cs, **params)
            except NoPathError:
                pass
            except Exception as failure:
                return [self._failed(failure, began)] * len(candidates)
            else:
                seconds = {C: r.seconds for C, r in zip(found.Cs, found.results, strict=True)}
                total = time.perf_counter() - began
                shared = max(total - sum(seconds.values()), 0.0) / len(seconds)
                return [
                    _Trial(None, shared + seconds[C], 0.0, found.at(C))
                    if C in seconds
                    else _Trial(None, 0.0, 0.0)  # an interrupt came before
                    for C in Cs
                ]
        trials: list[_Trial] = []
        for candidate, number in zip(candidates, numbers, strict=True):
            began = time.perf_counter()
            if trials and _is_interrupted(trials[-1].model):
                trials.append(_Trial(None, 0.0, 0.0))
                continue
            try:
                model = self._made(candidate, fold, number).fit(X, y, **params)
                trials.append(_Trial(None, time.perf_counter() - began, 0.0, model))
            except Exception as failure:
                trials.append(self._failed(failure, began))
        return trials

    def _made(
        self, params: dict[str, Any], fold: _Fold | None = None, number: int | None = None
    ) -> Any:
        """The estimator of a candidate, whose checkpoint in a fold is a file of its own."""
        made = clone(self.estimator).set_params(**clone(params, safe=False))
        checkpoint = training_options(made.training).checkpoint
        if fold is not None and checkpoint is not None:
            name = part_of(checkpoint, FOLD, fold.number)
            made.set_params(training__checkpoint=name if number is None else f"{name}-{number}")
        return made

    def _failed(self, failure: Exception, began: float) -> _Trial:
        """What became of a fit that failed."""
        if self.error_score == "raise":
            raise failure
        seconds = time.perf_counter() - began
        return _Trial(None, seconds, 0.0, error=f"{type(failure).__name__}: {failure}")

    # ----- the best candidate ---------------------------------------------------------------------

    def _choose(self, candidates: list[dict[str, Any]], trials: list[list[_Trial]]) -> None:
        """Set the results, and the best of them."""
        failed = [trial.error for row in trials for trial in row if trial.error]
        n_trials = sum(map(len, trials))
        if failed and len(failed) == n_trials:
            raise ValueError(
                f"all {n_trials} fits of the search failed; error_score='raise' shows where. The "
                f"first error is {failed[0]}"
            )
        if failed:
            warn_user(
                f"{len(failed)} of {n_trials} fits of the search failed, and have the score "
                f"{self.error_score}; the first error is {failed[0]}",
                FitFailedWarning,
            )
        scored = [trial.scores for row in trials for trial in row if trial.scores is not None]
        if not scored:  # an interrupt came before
            raise KeyboardInterrupt("the search was interrupted before any candidate had a score")
        names = list(scored[0])
        for name in ("best_estimator_", "best_score_", "refit_time_"):  # of an earlier search
            self.__dict__.pop(name, None)
        self.n_splits_ = len(trials)
        self.multimetric_ = names != ["score"]
        self.cv_results_ = _results(candidates, trials, names, self.error_score)
        metric = self.refit if isinstance(self.refit, str) and self.multimetric_ else "score"
        if callable(self.refit):
            index = self.refit(self.cv_results_)
            if not isinstance(index, Integral):
                raise TypeError(f"refit must return a whole number, got {index!r}")
            self.best_index_ = int(index)
            if not 0 <= self.best_index_ < len(candidates):
                raise IndexError(
                    f"refit returned {self.best_index_} of {len(candidates)} candidates"
                )
        elif metric in names:
            means = self.cv_results_[f"mean_test_{metric}"]
            if np.all(np.isnan(means)):
                raise ValueError(
                    "no candidate has a score in all folds: every mean is not a number"
                )
            self.best_index_ = int(np.nanargmax(means))
            self.best_score_ = float(means[self.best_index_])
        elif self.refit is not False:
            raise ValueError(
                f"scoring gives {', '.join(names)}: refit must be one of these names, a function "
                f"of cv_results_, or False; got {self.refit!r}"
            )
        else:
            return  # several metrics, and none of them chooses
        self.best_params_: dict[str, Any] = candidates[self.best_index_]

    def _refit(
        self, candidates: list[dict[str, Any]], X: Any, y: Any, fit_params: dict[str, Any]
    ) -> Any:
        """Train on all data with the best parameters, along the path of C that the folds took.

        Of all weights within the precision, a fit from scratch may find others.
        """
        chosen = self._made(self.best_params_)
        # A path is not calibrated.
        if "C" in self.best_params_ and not getattr(chosen, "probability", False):
            try:
                Cs = _path_to(self.best_params_, candidates)
                return path(chosen, X, y, Cs, **fit_params)._fitted
            except NoPathError:
                pass
        return chosen.fit(X, y, **fit_params)

    # ----- the best estimator ---------------------------------------------------------------------

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score of the best estimator, by ``scoring``.

        Parameters
        ----------
        X, y
            What the estimator's ``score`` takes.
        **params
            What else ``scoring`` takes.

        Returns
        -------
        float
        """
        from sklearn import get_config

        check_is_fitted(self, "best_estimator_")
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "score", **params).scorer.score
        scores = _by_name(self.scorer_(self.best_estimator_, X, y, **params))
        return scores[self.refit if isinstance(self.refit, str) else "score"]

    def __getattr__(self, name: str) -> Any:
        """Methods and fitted attributes of the best estimator."""
        own = vars(self)
        estimator = own.get("best_estimator_", own.get("estimator"))
        if not _is_passed(estimator, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if "best_estimator_" in own:
            return getattr(estimator, name)
        if "cv_results_" in own:
            raise AttributeError(f"refit={self.refit!r}: there is no best estimator with {name!r}")
        getattr(estimator, name)  # raises where its parameters allow no such method

        def not_fitted(*arguments: Any, **named: Any) -> NoReturn:
            check_is_fitted(self)
            raise AssertionError

        return not_fitted

    def __dir__(self) -> list[str]:
        """Names, with those of the best estimator."""
        best = vars(self).get("best_estimator_")
        return sorted({*super().__dir__(), *(name for name in dir(best) if _is_passed(best, name))})

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know: what it knows of the estimator."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags


def _is_passed(estimator: Any, name: str) -> bool:
    """Whether a name is that of a public method or a fitted attribute of an estimator."""
    is_public = not name.startswith("_")
    return is_public and (name.endswith("_") or callable(getattr(type(estimator), name, None)))


def _groups(candidates: list[dict[str, Any]]) -> list[list[int]]:
    """Numbers of the candidates that differ in C alone."""
    groups: dict[Any, list[int]] = {}
    for i, params in enumerate(candidates):
        groups.setdefault(_rest(params), []).append(i)
    return list(groups.values())


def _rest(params: dict[str, Any]) -> tuple[Any, ...]:
    """What candidates that differ in C alone have in common: all else are the same objects."""
    return "C" in params, tuple((name, id(value)) for name, value in params.items() if name != "C")


def _path_to(params: dict[str, Any], candidates: list[dict[str, Any]]) -> list[float]:
    """The values of C up to that of a candidate, of those that differ from it in C alone."""
    same = (other for other in candidates if _rest(other) == _rest(params))
    return sorted({float(other["C"]) for other in same if other["C"] <= params["C"]})


def _in_order(groups: list[list[int]], found: Sequence[list[_Trial]]) -> list[_Trial]:
    """Trials by the numbers of the candidates; of groups that an interrupt left out, empty ones."""
    by_number = {
        i: trial
        for group, trials in zip(groups, found, strict=False)
        for i, trial in zip(group, trials, strict=True)
    }
    return [by_number.get(i, _Trial(None, 0.0, 0.0)) for i in range(sum(map(len, groups)))]


def _results(
    candidates: list[dict[str, Any]],
    trials: list[list[_Trial]],
    names: list[str],
    error_score: Any,
) -> dict[str, Any]:
    """What all trials have given, in the shape of GridSearchCV's ``cv_results_``."""
    results: dict[str, Any] = {}
    for key in ("fit_time", "score_time"):
        seconds = np.array([[getattr(trial, key) for trial in row] for row in trials])
        results[f"mean_{key}"], results[f"std_{key}"] = seconds.mean(axis=0), seconds.std(axis=0)
    for name in {name: None for params in candidates for name in params}:
        results[f"param_{name}"] = _column([params.get(name, _MISSING) for params in candidates])
    results["params"] = candidates
    for name in names:
        scores = np.array([[_score(trial, name, error_score) for trial in row] for row in trials])
        for k, row in enumerate(scores):
            results[f"split{k}_test_{name}"] = row
        means = results[f"mean_test_{name}"] = scores.mean(axis=0)
        results[f"std_test_{name}"] = scores.std(axis=0)
        filled = np.where(np.isnan(means), -np.inf, means)
        ranks = 1 + np.sum(filled[None, :] > filled[:, None], axis=1)
        results[f"rank_test_{name}"] = ranks.astype(np.int32)
    return results


_MISSING = object()


def _column(values: list[Any]) -> Any:
    """The values of a parameter, masked where a candidate has none."""
    mask = [value is _MISSING for value in values]
    known = [value for value in values if value is not _MISSING]
    is_numeric = all(isinstance(value, Real) for value in known)
    column = np.ma.masked_all(len(values), np.array(known).dtype if is_numeric else object)
    for i, value in enumerate(values):
        if not mask[i]:
            column[i] = value
    return column


def _score(trial: _Trial, name: str, error_score: Any) -> float:
    """One score of a candidate in a fold."""
    if trial.scores is not None:
        return trial.scores[name]
    return float(error_score) if trial.error else np.nan


def _by_name(scores: Any) -> dict[str, float]:
    """Scores by name; a single one is "score"."""
    named = scores if isinstance(scores, Mapping) else {"score": scores}
    for name, value in named.items():
        if not isinstance(value, Real) and np.ndim(value):
            raise ValueError(f"scoring must give a number, got {value!r:.60} as {name!r}")
    return {name: float(value) for name, value in named.items()}


def _is_interrupted(model: Any) -> bool:
    """Whether an interrupt ended the training of a model."""
    return model is not None and bool(model.result_.status == "interrupted")


def _described(params: Mapping[str, Any]) -> str:
    """Parameters in a few words."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value!s:.40}"
        for name, value in params.items()
    )


def _n_rows(values: Any) -> int | None:
    """How many rows a splitter sees; None of what has no length."""
    if hasattr(values, "shape"):
        return int(values.shape[0]) if values.shape else None
    return len(values) if hasattr(values, "__len__") else None


def _of_examples(params: dict[str, Any], X: Any, indices: Ints) -> dict[str, Any]:
    """Parameters of ``fit``; of those with an entry for each example, the entries of some."""
    n = n_examples_of(X)
    return {
        name: examples_at(value, indices) if _n_entries(value) == n else value
        for name, value in params.items()
    }


def _n_entries(value: Any) -> int | None:
    """How many entries a parameter has; None of what is no list of them."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return n_examples_of(value) if hasattr(value, "shape") and value.shape else None
    return n_examples_of(value)
