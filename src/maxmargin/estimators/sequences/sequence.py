"""Sequence tagging with chains of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...problems.chain.costs import PartialChains
from ...utils.types import Floats
from ..abilities.confidence import TokenConfidences, fit_calibration
from ..abilities.explanation import Explanation, no_decisions
from ..abilities.kernels import FittedKernel, Kernelized, check_no_kernel
from ..abilities.partial_labels import PartialLabels
from ..base import MaxMarginEstimator, OnlineMethod, checked_k
from ..costs import CostTable, share_of_right
from ..examples import (
    LabelEncoder,
    answers_empty,
    flatten_labels,
    is_empty,
    materialize,
    passes_empty,
    warn_of_unknown,
)
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from ..warm_start import prior_mean
from .sequence_data import TaggerState, labels_of, more_data, training_data
from .sequence_model import SequenceDecoder, SequenceModel

__all__ = ["SequenceTagger"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceTagger(TokenConfidences, Kernelized, PartialLabels, MaxMarginEstimator):
    """Labels for the tokens of sequences: a structural SVM over chains, of first order by default.

    Parameters
    ----------
    loss : {"hamming", "normalized_hamming", "zero_one"} or table of costs, default="hamming"
        Number of wrong labels in a sequence, their share, or 1 if any is wrong. A table has the
        costs that a sequence's labels add up: an array of shape (n_labels, n_labels) with that of
        predicting ``classes_[k]`` where ``classes_[j]`` is right in row j and column k, or a
        mapping ``{(right, predicted): cost}`` or ``{right: {predicted: cost}}``, in which what is
        not named costs 1. Costs are not negative; right labels cost nothing. Margins grow with the
        costs, and where these are large ``rescaling="slack"``, which takes some tens of searches
        for each sequence, may learn better.
    class_weight : mapping of label to weight, or "balanced", optional
        Multiplies the costs of the tokens with this right label, 1 for labels that are not listed.
        "balanced": ``n_tokens / (n_labels * n_tokens of the label)``. "zero_one" ignores it, with a
        warning.
    fit_intercept : bool, default=False
        Append a constant feature to every token, regularised like the rest.
    boundary_weights : bool, default=False
        Learn weights for the first and for the last label of a sequence.
    order : {1, 2, 3} or dict, default=1
        How many labels before a token's own transitions see. Order 2 has weights of triples of
        labels beside those of pairs, order 3 of quadruples as well. A dict has further options:

        * ``transitions``: the same, 1 by default;
        * ``emissions``: 0 (default) or 1. With 1 token features have weights for pairs of labels
          (that of the token before and its own) beside those for labels: as many times more as
          there are pairs;
        * ``label_tuples``: which triples and quadruples of labels have weights, and which pairs
          for features of the input. "seen" (default): those of the training data, of neighbours
          whose labels are known. "allowed": all that ``constraints`` allow, which takes more memory
          and time, most of all without constraints. Labellings with others are possible as well;
          they have the weights of the shorter tuples in them, and of plain pairs all have one;
        * ``eta``: what transitions and transition features are multiplied by, against emissions,
          1.0 by default: with larger values their weights cost less (Tsochantaridis et al. 2005,
          eq. 13).
    transition_features : extractor, str, pattern, int, or list of the last four, optional
        Features of a token on the pair of its label and the one before, like templates marked B
        of CRF++: an extractor, which sees what ``features`` sees; or token features, by name, by
        what is before the "=" of their names, by template of ``features``, by a compiled regular
        expression or by column. A few for each token are meant; for all of them there is
        ``order={"emissions": 1}``.
    features : WindowFeatures or other extractor, optional
        Makes token features from sequences of words or of tuples of strings; cloned and fitted by
        ``fit``. Without it, tokens are feature vectors, or dicts or lists of feature strings,
        which a `FeatureDictionary` numbers.
    constraints : "bio", array, mapping or list of pairs, optional
        Forbidden transitions; they hold in training and in prediction. "bio": ``I-X`` only after
        ``B-X`` or ``I-X``. A boolean array of shape (n_labels, n_labels) says where the second of
        two labels, in sorted order, may follow the first. A list of pairs (from, to), or a
        mapping from a label to a list of labels, names what is forbidden.
    on_violation : {"raise", "drop", "repair"}, default="raise"
        What to do with training sequences that break the constraints: raise ValueError, which says
        where; leave them out; or, for "bio", change an ``I-X`` that continues nothing to ``B-X``.
        The last two warn, with a count.
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of Kernelized}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted; an array of objects if they are of several types.
    coef_ : ndarray
        All weights, flat: those of feature f for all labels, then those of feature f + 1, ..., the
        constant feature, the transitions (from-label first), then start and stop weights. With
        emissions of order 1 those of feature f are for all labels, then for all pairs; those of
        triples, quadruples and transition features are behind the transitions. With a kernel,
        support vectors stand in place of features.
    support_, support_vectors_ : ndarray of shape (n_support,) and tokens in rows
        With kernels other than "linear": which tokens of the training data, counted through all
        sequences, have coefficients, and their features.
    kernel_report_ : KernelReport
        With other kernels: rank of the kernel matrix that was trained with, what it lacks of the
        trace (absolute and share), and memory in bytes, in training and of the model.
    transition_weights_ : ndarray of shape (n_labels, n_labels)
        Weights of the transitions, from-label in rows; they count ``eta`` times.
    longer_transition_weights_ : dict of tuple to float
        Weights of triples and quadruples of labels, which also count ``eta`` times.
    features_ : FeatureDictionary, WindowFeatures or None
        What turns tokens into feature vectors.
    n_features_in_ : int
        Number of features of a token, once they are vectors.
    feature_names_in_ : ndarray of str
        Their names, if the training sequences were DataFrames of numbers.
    result_ : Result
        Certificate and history of the training.
    rounds_ : list of Round
        Objectives and gaps of the rounds, if the data was partially labelled.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["D", "N"], ["D", "N"]]
    >>> tagger = SequenceTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    [['D', 'N']]
    """

    loss: Literal["hamming", "normalized_hamming", "zero_one"] | CostTable = "hamming"
    class_weight: Any = None
    fit_intercept: bool = False
    boundary_weights: bool = False
    order: int | dict[str, Any] = 1
    transition_features: Any = None
    features: Any = None
    constraints: Any = None
    on_violation: Literal["raise", "drop", "repair"] = "raise"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        prior: SequenceTagger | None = None,
    ) -> SequenceTagger:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, 3-D array, or PackedSequences
            A sequence is a 2-D array (tokens in rows), a scipy sparse matrix, a list of lists of
            numbers, of dicts ``{name: value}`` or of lists of feature strings, or a DataFrame: its
            numbers are features, and where a column has strings, its rows are dicts. With
            ``features``, what the extractor takes; or sequences that it has packed, if it is
            fitted. For data larger than memory there is `PackedSequences.open`.
        y : list of sequences of labels
            One label for each token, of any hashable type. None says that a token's label is not
            known, a set or frozenset that it is one of several; see ``partial_labels``. Sequences
            that are stored with their labels need none.
        sample_weight : array of shape (n_sequences,), optional
            Multiplies each sequence's slack.
        prior : SequenceTagger, optional
            A tagger fitted to much other data, say. Instead of small weights those near to its own
            are learned, ``1/2 |w - w_prior|^2``. Its features, labels and label tuples are those of
            the new one: features that it has not seen are ignored. For kernel "linear", and the
            same ``order``.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight, prior=prior)

    def _training_set(
        self, X: Any, y: Any = None, sample_weight: Any = None, prior: Any = None
    ) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = materialize(X), labels_of(X, materialize(y))
        self._check_partial()
        model, self._kernel, data = training_data(self, X, y, sample_weight, prior)
        self._set_model(model)
        costs = data.costs(self, self.classes_)
        problem = partial(data.problem, self.loss, model, costs)
        if data.allowed is not None:
            chains = PartialChains(problem(), data.allowed)
            return TrainingSet(lambda: chains, sample_weight=data.weights, is_partial=True)
        shared = {} if prior is None else {"prior": prior}
        return TrainingSet(
            problem,
            data.content(self, model, costs),
            data.weights,
            constraints=None if prior is None else prior_mean(prior._weights),
            calibrate=lambda: fit_calibration(self, X, y, shared, sample_weight=sample_weight),
        )

    @OnlineMethod
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> SequenceTagger:
        """Make one pass over more sequences, with an online solver.

        {passes}

        Features are those of the first call: what is new in later ones has no weights and is
        ignored.

        {C of all examples}

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels
            One label for each token.
        classes : list, optional
            All labels there will ever be; by default those of the first call.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _training_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        known = getattr(self, "_model", None)
        model, data = more_data(self, known, X, y, classes, sample_weight)
        if known is None:
            self._set_model(model)
        costs = data.costs(self, self.classes_)
        problem = partial(data.problem, self.loss, model, costs)
        return TrainingSet(problem, tuple(data[:4]), data.weights)

    def _set_model(self, model: SequenceModel) -> None:
        """Take up what was learned but the weights."""
        self._model, self.classes_ = model, model.classes
        model.inputs.set_attributes(self)

    def _decoder(self) -> SequenceDecoder:
        """What answers for new sequences; NotFittedError before the first fit."""
        weights = self._weights
        return SequenceDecoder(self._model, weights, self._kernel.basis, self.n_jobs)

    @answers_empty(lambda _: [])
    def predict(self, X: Any, fixed: Any = None) -> list[list[Any]]:
        """Best labels of each sequence.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        fixed : list of sequences, optional
            What is known already: for each token None (nothing), its label, or a set of labels it
            may have. None in place of a sequence says that nothing is known of any of its tokens.
            The labels found are the best of those that agree with it, and with the constraints.

        Returns
        -------
        list of list
            Labels of the tokens of each sequence, none of an empty one. As an array, it is one of
            lists.
        """
        return self._decoder().predict(X, fixed)

    @answers_empty(lambda _: [([], 0.0)])
    def predict_k(self, X: Any, k: int, fixed: Any = None) -> list[list[tuple[list[Any], float]]]:
        """The k best labellings of each sequence, with their scores.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        k : int
            How many to return for each sequence.
        fixed : list of sequences, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (labels, score)
            For each sequence its k labellings of the largest score ``<w, psi(x, y)>``, best first,
            as lists of labels with their scores. Constraints hold. The list is shorter where there
            are fewer labellings.
        """
        k = checked_k(k)
        return self._decoder().predict_k(X, k, fixed)

    @answers_empty(lambda tagger: np.zeros((0, len(tagger.classes_))))
    def _tables(self, X: Any, fixed: Any, read: Callable[[Any], list[Floats]]) -> list[Floats]:
        """See `TokenConfidences`: of some sequences at a time, by the thread that scores them."""
        return self._decoder().tables(X, fixed, read)

    def _distribution(self, X: Any, fixed: Any = None) -> Any:
        """See `Confidences`."""
        decoder, packed = self._decoder(), self._model.inputs.packed(X)
        return decoder.distribution(X, packed, decoder.allowed(fixed, packed.offsets))

    def _with_gold(self, X: Any, y: Any) -> tuple[Any, Any]:
        """See `Confidences`."""
        decoder, packed = self._decoder(), self._model.inputs.packed(X)
        codes = LabelEncoder(self.classes_).encode(flatten_labels(y, packed.offsets))
        return decoder.distribution(X, packed), codes

    @passes_empty
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Share of tokens with the right label.

        A label that is not known to the model counts as wrong, with a warning. For the share of
        sequences that are right as a whole, and for chunks, see `maxmargin.metrics`.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels, optional
            True labels; by default those stored with X, if it is an opened file that has them.
        sample_weight : array of shape (n_sequences,), optional
            Weights of the sequences' tokens.

        Returns
        -------
        float
        """
        decoder, packed = self._decoder(), self._model.inputs.packed(X)
        labels = flatten_labels(labels_of(X, y), packed.offsets)
        gold = LabelEncoder(self.classes_).encode(labels)
        warn_of_unknown(gold, labels)
        right = decoder.codes(X, packed) == gold
        return share_of_right(right, np.diff(packed.offsets), sample_weight)

    @answers_empty(lambda _: 0.0)
    def score_outputs(self, X: Any, y: Any) -> Floats:
        """Scores ``<w, psi(x, y)>`` of given labels; `predict` gives those of the largest.

        Parameters
        ----------
        X : list of sequences
            As for `fit`.
        y : list of sequences of labels
            Labels to score, all of them known to the model. Constraints are not applied.

        Returns
        -------
        ndarray of shape (n_sequences,)
        """
        return self._decoder().scores(X, y)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted labels, and not others: the features that decided, token by token.

        Parameters
        ----------
        x : sequence
            One sequence, as in the X of `predict`.
        y_hat : sequence of labels, optional
            Other labels of all tokens, to be compared with those predicted. By default there is a
            rival for each token: the best labelling with another label there.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions token by token; it prints as tables, and shows as such in notebooks. With
            ``y_hat`` tokens at which nothing differs are left out.
        """
        decoder, n = self._decoder(), checked_k(n, "n")
        check_no_kernel(self, "explain")
        return no_decisions(y_hat, n) if is_empty(x) else decoder.explain(x, y_hat, n)

    def top_features(
        self, n: int = 10, *, against: bool = False
    ) -> dict[Any, list[tuple[str, float]]]:
        """Features that speak most for each label, or against it; for ``kernel="linear"``.

        Parameters
        ----------
        n : int, default=10
            How many to list for a label, at most.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        dict of label to list of (name, weight)
            Strongest first. Features without names are called x0, x1, ...; the constant feature is
            called "intercept".
        """
        check_no_kernel(self, "top_features")
        return self._decoder().top_features(n, against)

    def top_transitions(
        self, n: int = 10, *, against: bool = False
    ) -> list[tuple[Any, Any, float]]:
        """Pairs of labels that the model likes most to see one after the other, or least.

        Parameters
        ----------
        n : int, default=10
            How many to list, at most.
        against : bool, default=False
            List transitions of negative weights, not of positive ones.

        Returns
        -------
        list of (label, next label, weight)
            Strongest first, without forbidden transitions. With ``boundary_weights`` there are also
            the first and the last labels of sequences: None stands for what is before and after.
        """
        return self._decoder().top_transitions(n, against)

    def top_transition_features(
        self, n: int = 10, *, against: bool = False
    ) -> list[tuple[str, Any, Any, float]]:
        """Transition features that speak most for a pair of labels, or against it.

        Parameters
        ----------
        n : int, default=10
            How many to list, at most.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        list of (name, label, next label, weight)
            Strongest first; empty without ``transition_features``.
        """
        return self._decoder().top_transition_features(n, against)

    @property
    def transition_weights_(self) -> Floats:
        """Weights of the transitions, from-label in rows."""
        weights = self._weights
        return self._model.chain.layout.transitions(weights).copy()

    @property
    def longer_transition_weights_(self) -> dict[tuple[Any, ...], float]:
        """Weights of triples and quadruples of labels; none with ``order`` 1."""
        weights, labels = self._weights, self.classes_.tolist()
        longer = self._model.chain.layout.longer_transitions(weights)
        return {tuple(labels[k] for k in codes): weight for codes, weight in longer.items()}

    @property
    def start_weights_(self) -> Floats:
        """Weights of the first label; zeros without ``boundary_weights``."""
        weights = self._weights
        return self._model.chain.layout.boundaries(weights)[0]

    @property
    def stop_weights_(self) -> Floats:
        """Weights of the last label; zeros without ``boundary_weights``."""
        weights = self._weights
        return self._model.chain.layout.boundaries(weights)[1]

    # ----- kernels and persistence --------------------------------------------------------------

    def _weights_per_input(self) -> int:
        """See `KernelParameters`."""
        return self._model.chain.layout.n_columns

    def _kept_weights(self, learned: Sequence[Floats]) -> list[Floats]:
        """See `KernelParameters`: fewer inputs have weights."""
        weights = super()._kept_weights(learned)
        if self._kernel.basis is not None:
            self._model = self._model.of_inputs(len(self._kernel.basis) + bool(self.fit_intercept))
        return weights

    def _get_state(self) -> TaggerState:
        """See `Savable`."""
        return TaggerState.of(self._model, self._kernel)

    def _set_state(self, state: TaggerState) -> None:
        """See `Savable`."""
        self._kernel = FittedKernel.of_state(state.kernel, state.n_features)
        self._set_model(state.model(self._kernel.n_inputs(state.n_features)))

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._model.chain.layout.size
