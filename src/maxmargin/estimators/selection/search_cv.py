"""Search for the best parameters by cross-validation: C along paths, all others by grid."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

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

from ...checkpoints import check_location, identity_at
from ...progress import Loop, running_clock
from ...utils.sklearn_bases import doc_link_template
from ...utils.sparse_format import check_sparse
from ...utils.warn import warn_user
from ..examples import materialize, n_examples_of
from ..parameters import training_options
from .path import check_estimator, checked_Cs
from .trials import (
    Evaluator,
    Fold,
    Trial,
    by_name,
    described,
    groups_of,
    in_order,
    make_fold,
    path_to,
    refit,
    results_of,
    was_interrupted,
)

__all__ = ["SearchCV"]


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
            make_fold(self.estimator, k, X, y, train, test, fit_params, score_params)
            for k, (train, test) in enumerate(splits)
        )
        groups = groups_of(candidates)
        with (
            running_clock("features", int(self.verbose)) as clock,
            clock.loop(len(splits) * len(groups) + bool(self.refit)) as loop,
        ):
            trials, is_interrupted = self._search(folds, len(splits), candidates, groups, loop)
            self._choose(candidates, trials)
            if self.refit and is_interrupted:
                self.best_estimator_ = trials[-1][self.best_index_].model
            elif self.refit:
                loop.begin(f"best {described(self.best_params_)}, all data")
                began = time.perf_counter()
                self.best_estimator_ = refit(
                    self.estimator, self.best_params_, candidates, X, y, fit_params
                )
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
        kept |= {repr(path_to(params, candidates)) for params in candidates if "C" in params}
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

    # ----- the search -----------------------------------------------------------------------------

    def _search(
        self,
        folds: Iterator[Fold],
        n_folds: int,
        candidates: list[dict[str, Any]],
        groups: list[list[int]],
        loop: Loop,
    ) -> tuple[list[list[Trial]], bool]:
        """Trials of all candidates in each fold, and whether an interrupt ended them."""
        self.scorer_ = check_scoring(self.estimator, self.scoring)
        keeps = training_options(self.estimator.training).on_interrupt == "return"
        evaluate = Evaluator(
            self.estimator,
            candidates,
            len(groups) > 1,
            self.scorer_,
            self.scoring is not None,
            self.refit if isinstance(self.refit, str) else "score",
            self.error_score,
        )
        if joblib.effective_n_jobs(self.n_jobs) > 1:
            loop.begin(f"{n_folds} folds")
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(evaluate)(group, fold) for fold in folds for group in groups
            )
            per_fold = [found[k : k + len(groups)] for k in range(0, len(found), len(groups))]
            return [in_order(groups, some) for some in per_fold], False
        done: list[list[Trial]] = []
        for fold in folds:
            some: list[list[Trial]] = []
            is_interrupted = False
            for group in groups:
                where = f"fold {fold.number + 1} of {n_folds}"
                rest = {name: v for name, v in candidates[group[0]].items() if name != "C"}
                loop.begin(f"{where}, {described(rest)}" if len(groups) > 1 else where)
                try:
                    some.append(evaluate(group, fold, keeps))
                    is_interrupted = any(was_interrupted(trial.model) for trial in some[-1])
                except KeyboardInterrupt:
                    if not keeps or not (done or some):
                        raise
                    is_interrupted = True
                if is_interrupted:
                    break
            # Of a later fold, a part would favour some of the candidates.
            if not is_interrupted or not done:
                done = [[trial._replace(model=None) for trial in row] for row in done]
                done.append(in_order(groups, some))
            if is_interrupted:
                warn_user(
                    f"the search was interrupted; the best candidate so far, by {len(done)} folds, "
                    "keeps the model that was trained in the last of them"
                )
                return done, True
        return done, False

    # ----- the best candidate ---------------------------------------------------------------------

    def _choose(self, candidates: list[dict[str, Any]], trials: list[list[Trial]]) -> None:
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
        self.cv_results_ = results_of(candidates, trials, names, self.error_score)
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
        scores = by_name(self.scorer_(self.best_estimator_, X, y, **params))
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


def _n_rows(values: Any) -> int | None:
    """How many rows a splitter sees; None of what has no length."""
    if hasattr(values, "shape"):
        return int(values.shape[0]) if values.shape else None
    return len(values) if hasattr(values, "__len__") else None
