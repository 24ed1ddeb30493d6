"""Sequence tagging with a first-order chain."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..features import FeatureDictionary, PackedSequences, holds_named_features, pack_sequences
from ..formats import TokenColumns
from ..formulation import Rescaling, Slack
from ..problems.chain.problem import ChainConstraints, ChainDecoder, ChainLayout, ChainProblem
from ..problems.classes.multiclass import class_scores
from ..problems.rows import Rows, make_rows
from ..result import Callback
from ..solvers import Solver
from .base import MaxMarginEstimator, OnlineMethod, checked_k, with_shared_parameters
from .constraints import make_constraints
from .labels import FlatLabels, LabelEncoder, flatten_labels

__all__ = ["SequenceTagger"]


@with_shared_parameters
class SequenceTagger(MaxMarginEstimator):
    """Labels for the tokens of sequences: a structural SVM over first-order chains.

    Parameters
    ----------
    loss : {"hamming", "normalized-hamming", "zero-one"}, default="hamming"
        Number of wrong labels in a sequence, their share, or 1 if any is wrong.
    fit_intercept : bool, default=False
        Append a constant feature to every token, regularised like the rest.
    boundary_weights : bool, default=False
        Learn weights for the first and for the last label of a sequence.
    order : int, default=1
        Order of the chain; 1 is the only one there is.
    features : WindowFeatures or other extractor, optional
        Makes token features from sequences of words or of tuples of strings; cloned and fitted by
        ``fit``. Without it, tokens are feature vectors, or dicts or lists of feature strings,
        which a `FeatureDictionary` numbers.
    constraints : "bio", array, mapping or list of pairs, optional
        Forbidden transitions; they hold in training and in prediction. "bio": ``I-X`` only after
        ``B-X`` or ``I-X``. A boolean array of shape (n_labels, n_labels) says where the second of
        two labels, in sorted order, may follow the first. A list of pairs (from, to), or a
        mapping from a label to a list of labels, names what is forbidden.
    {shared parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted; an array of objects if they are of several types.
    coef_ : ndarray
        All weights, flat: those of feature f for all labels, then those of feature f + 1, ..., the
        constant feature, the transitions (from-label first), then start and stop weights.
    transition_weights_ : ndarray of shape (n_labels, n_labels)
        Weights of the transitions, from-label in rows.
    features_ : FeatureDictionary, WindowFeatures or None
        What turns tokens into feature vectors.
    n_features_in_ : int
        Number of features of a token, once they are vectors.
    result_ : Result
        Certificate and history of the training.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> Y = [["D", "N"], ["D", "N"]]
    >>> tagger = SequenceTagger(random_state=0).fit(X, Y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])[0].tolist()
    ['D', 'N']
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Literal["hamming", "normalized-hamming", "zero-one"] = "hamming",
        fit_intercept: bool = False,
        boundary_weights: bool = False,
        order: int = 1,
        features: Any = None,
        constraints: Any = None,
        rescaling: Rescaling = "margin",
        slack: Slack = "l1",
        sqrt_loss: bool | None = None,
        solver: str | Solver = "auto",
        tol: float | None = 1e-3,
        epsilon: float | None = None,
        max_passes: float | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        super().__init__(
            C=C,
            rescaling=rescaling,
            slack=slack,
            sqrt_loss=sqrt_loss,
            solver=solver,
            tol=tol,
            epsilon=epsilon,
            max_passes=max_passes,
            max_time=max_time,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.boundary_weights = boundary_weights
        self.order = order
        self.features = features
        self.constraints = constraints

    def fit(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> SequenceTagger:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, 3-D array, or PackedSequences
            A sequence is a 2-D array (tokens in rows), a scipy sparse matrix, a list of lists of
            numbers, of dicts ``{name: value}`` or of lists of feature strings; with ``features``,
            what the extractor takes.
        Y : list of sequences of labels
            One label for each token, of any hashable type.
        sample_weight : array of shape (n_sequences,), optional
            Multiplies each sequence's slack.

        Returns
        -------
        self
        """
        if self.order != 1:
            raise ValueError(f"order must be 1, got {self.order!r}")
        self._make_solver()  # parameters are checked before the features are built
        tokens, offsets = self._fit_features(X)
        labels = flatten_labels(Y, offsets)
        encoder = LabelEncoder.of(labels)
        if len(encoder.classes) < 2:
            raise ValueError(
                f"Y has only one label ({encoder.classes.tolist()[0]!r}); at least 2 are needed"
            )
        constraints = self._set_model(encoder.classes, int(tokens.shape[1]))
        codes = encoder.encode(labels)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        options = (self.loss, bool(self.fit_intercept), bool(self.boundary_weights))
        masks = () if constraints is None else tuple(constraints)
        data = (tokens, offsets, codes, len(self.classes_), options, *masks)
        self._train(lambda: self._problem(tokens, offsets, codes), data, weights)
        return self

    @OnlineMethod
    def partial_fit(
        self,
        X: Any,
        Y: Any,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> SequenceTagger:
        """Make one pass over more sequences, with an online solver.

        As many calls with the same data as `fit` makes passes give what `fit` gives. After `fit`,
        or with a model that was loaded, training goes on from the weights there are. Features are
        those of the first call: what is new in later ones has no weights and is ignored.

        C multiplies the sum of the slacks of all examples seen so far: `sgd` and `pegasos`
        minimise the objective that `fit` would have on the examples of all calls together.
        Examples of a call that is repeated count once. Of a model that was fitted or loaded, the
        examples of its last training count, with weight 1.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        Y : list of sequences of labels
            One label for each token.
        classes : list, optional
            All labels there will ever be; by default those of the first call.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences.

        Returns
        -------
        self
        """
        if self.order != 1:
            raise ValueError(f"order must be 1, got {self.order!r}")
        self._make_solver()
        if not hasattr(self, "classes_"):
            tokens, offsets = self._fit_features(X)
            labels = flatten_labels(Y, offsets)
            listed = labels if classes is None else flatten_labels([list(classes)])
            encoder = LabelEncoder.of(listed)
            if len(encoder.classes) < 2:
                raise ValueError(f"at least 2 labels are needed, got {encoder.classes.tolist()}")
            self._set_model(encoder.classes, int(tokens.shape[1]))
        else:
            tokens, offsets = pack_sequences(X, self.features_, n_features=self.n_features_in_)
            labels = flatten_labels(Y, offsets)
            encoder = LabelEncoder(self.classes_)
        codes = encoder.encode(labels)
        _refuse_unknown(codes, labels)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        problem = self._problem(tokens, offsets, codes)
        self._train_online(problem, (tokens, offsets, codes), weights)
        return self

    def _set_model(self, classes: NDArray[Any], n_features: int) -> ChainConstraints | None:
        """Fix labels and the layout of the weights."""
        self.classes_ = classes
        self.n_features_in_ = n_features
        constraints = make_constraints(self.constraints, classes)
        n_inputs = n_features + bool(self.fit_intercept)
        layout = ChainLayout(n_inputs, len(classes), bool(self.boundary_weights))
        self._decoder = ChainDecoder(layout, constraints)
        return constraints

    def _problem(
        self, tokens: Any, offsets: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> ChainProblem:
        """The problem of these sequences."""
        layout = self._decoder.layout
        return ChainProblem(
            tokens,
            offsets,
            codes,
            len(self.classes_),
            loss=self.loss,
            fit_intercept=layout.n_inputs > self.n_features_in_,
            boundary_weights=layout.boundary,
            constraints=self._decoder.constraints,
        )

    def predict(self, X: Any) -> list[NDArray[Any]]:
        """Best labels of each sequence.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.

        Returns
        -------
        list of ndarray
            Labels of the tokens of each sequence, of the type of ``classes_``.
        """
        rows, offsets = self._rows(X)
        labels = self.classes_[self._decoder.decode(rows, offsets, self.coef_)]
        return np.split(labels, offsets[1:-1])

    def predict_k(self, X: Any, k: int) -> list[list[tuple[NDArray[Any], float]]]:
        """The k best labellings of each sequence, with their scores.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        k : int
            How many to return for each sequence.

        Returns
        -------
        list of list of (labels, score)
            For each sequence its k labellings of the largest score ``<w, psi(x, y)>``, best first,
            as arrays of labels with their scores. Constraints hold. The list is shorter where there
            are fewer labellings.
        """
        k = checked_k(k)
        rows, offsets = self._rows(X)
        answers = self._decoder.decode_k_best(rows, offsets, self.coef_, k)
        return [
            [(self.classes_[codes], float(score)) for codes, score in zip(*answer, strict=True)]
            for answer in answers
        ]

    def score(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Share of tokens with the right label.

        A label that is not known to the model counts as wrong, with a warning. For the share of
        sequences that are right as a whole, and for chunks, see `maxmargin.metrics`.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        Y : list of sequences of labels
            True labels.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences' tokens.

        Returns
        -------
        float
        """
        rows, offsets = self._rows(X)
        labels = flatten_labels(Y, offsets)
        truth = LabelEncoder(self.classes_).encode(labels)
        unknown = np.flatnonzero(truth < 0)
        if len(unknown):
            first = int(unknown[0])
            warnings.warn(
                f"{len(unknown)} labels are unknown to the model and count as wrong; the first is "
                f"{labels.values[first]!r} at {labels.place(first)}",
                UserWarning,
                stacklevel=2,
            )
        right = self._decoder.decode(rows, offsets, self.coef_) == truth
        if sample_weight is None:
            return float(np.mean(right))
        weights = np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(right, weights=np.repeat(weights, np.diff(offsets))))

    def score_outputs(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Scores ``<w, psi(x, y)>`` of given labels; `predict` gives those of the largest.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        Y : list of sequences of labels
            Labels to score, all of them known to the model. Constraints are not applied.

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        rows, offsets = self._rows(X)
        labels = flatten_labels(Y, offsets)
        codes = LabelEncoder(self.classes_).encode(labels)
        _refuse_unknown(codes, labels)
        layout = self._decoder.layout
        emissions = class_scores(rows, np.ravel(layout.emissions(self.coef_)), len(self.classes_))
        scores = np.asarray(emissions)[np.arange(len(codes)), codes]
        follows = np.ones(len(codes), dtype=bool)
        follows[offsets[:-1]] = False
        after = np.flatnonzero(follows)
        scores[after] += self.transition_weights_[codes[after - 1], codes[after]]
        start, stop = layout.boundaries(self.coef_)
        scores[offsets[:-1]] += start[codes[offsets[:-1]]]
        scores[offsets[1:] - 1] += stop[codes[offsets[1:] - 1]]
        return np.add.reduceat(scores, offsets[:-1])

    @property
    def transition_weights_(self) -> NDArray[np.float64]:
        """Weights of the transitions, from-label in rows."""
        return self._decoder.layout.transitions(self.coef_).copy()

    @property
    def start_weights_(self) -> NDArray[np.float64]:
        """Weights of the first label; zeros without ``boundary_weights``."""
        return self._decoder.layout.boundaries(self.coef_)[0]

    @property
    def stop_weights_(self) -> NDArray[np.float64]:
        """Weights of the last label; zeros without ``boundary_weights``."""
        return self._decoder.layout.boundaries(self.coef_)[1]

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """Features that speak most for each label.

        Parameters
        ----------
        n : int, default=10
            How many to list.

        Returns
        -------
        dict of label to list of (name, weight)
            Largest weight first. Features without names are called x0, x1, ...; the constant
            feature is called "intercept".
        """
        self._check_fitted()
        weights = self._decoder.layout.emissions(self.coef_)
        n = min(n, len(weights))
        best = np.argsort(-weights, axis=0, kind="stable")[:n]
        names = self._feature_names(np.unique(best))
        return {
            label: [(names[f], float(weights[f, k])) for f in best[:, k].tolist()]
            for k, label in enumerate(self.classes_.tolist())
        }

    # ----- features -----------------------------------------------------------------------------

    def _fit_features(self, X: Any) -> PackedSequences:
        """Choose and fit what turns tokens into vectors, and pack the training data."""
        self.features_: Any = None
        if self.features is not None:
            self.features_ = clone(self.features)
        elif isinstance(X, TokenColumns):
            raise ValueError(
                "X holds columns of strings: set features, for example to WindowFeatures()"
            )
        elif not isinstance(X, PackedSequences) and _is_iterable(X) and holds_named_features(X):
            self.features_ = FeatureDictionary()
        if self.features_ is None:
            return pack_sequences(X)
        packed = self.features_.fit_transform(X)
        return pack_sequences(packed)  # checks what an extractor of the user's gave

    def _rows(self, X: Any) -> tuple[Rows, NDArray[np.int64]]:
        """Features of new sequences."""
        self._check_fitted()
        tokens, offsets = pack_sequences(X, self.features_, n_features=self.n_features_in_)
        has_intercept = self._decoder.layout.n_inputs > self.n_features_in_
        return make_rows(tokens, fit_intercept=has_intercept), offsets

    def _feature_names(self, numbers: NDArray[np.int64]) -> dict[int, str]:
        """Names of the features with these numbers."""
        known: Any = {}
        if self.features_ is not None:
            known = dict(enumerate(self.features_.get_feature_names_out()))
        names = {int(f): str(known.get(int(f), f"x{f}")) for f in numbers}
        if self._decoder.layout.n_inputs > self.n_features_in_:
            names[self.n_features_in_] = "intercept"
        return names

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> dict[str, Any]:
        """See `MaxMarginEstimator`."""
        return {
            "classes": self.classes_,
            "n_features": self.n_features_in_,
            "n_inputs": self._decoder.layout.n_inputs,
            "boundary": self._decoder.layout.boundary,
            "constraints": self._decoder.constraints,
            "features": self.features_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        """See `MaxMarginEstimator`."""
        self.classes_ = state["classes"]
        self.n_features_in_ = int(state["n_features"])
        self.features_ = state["features"]
        layout = ChainLayout(int(state["n_inputs"]), len(self.classes_), bool(state["boundary"]))
        if len(self.coef_) != layout.size:
            raise ValueError(f"expected {layout.size} weights, found {len(self.coef_)}")
        self._decoder = ChainDecoder(layout, state["constraints"])


def _is_iterable(X: Any) -> bool:
    """Whether X can be looped over."""
    return hasattr(X, "__iter__")


def _refuse_unknown(codes: NDArray[np.int32], labels: FlatLabels) -> None:
    """Raise ValueError for the first label that is not known."""
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        first = int(unknown[0])
        raise ValueError(
            f"{labels.place(first)}: label {labels.values[first]!r} is not known to the model"
        )
