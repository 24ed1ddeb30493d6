"""Dependency parsing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...engine.parallel.threads import parallel_chunks
from ...problems.dependency.decoder import DependencyDecoder, decoding_work
from ...problems.dependency.features import ArcTemplates, TokenFields
from ...problems.dependency.kernels import FoundTrees
from ...problems.dependency.marginals import TreeDistribution
from ...problems.dependency.partial import PartialDependencies
from ...problems.dependency.problem import DependencyProblem, check_trees
from ...solvers.base import checked_weights
from ...utils.types import Bools, Floats, Ints, Ints32
from ...utils.validation import as_sample_weights
from ..abilities.confidence import (
    CalibratedMethod,
    Confidences,
    fit_calibration,
    margins_of,
    probabilities_of,
)
from ..abilities.explanation import Explanation
from ..abilities.partial_labels import PartialLabels, check_something_known, flatten_fixed
from ..base import MaxMarginEstimator, checked_k
from ..costs import share_of_right
from ..examples import (
    FlatLabels,
    LabelEncoder,
    Outputs,
    answers_empty,
    check_known,
    examples_at,
    materialize,
    passes_empty,
    warn_of_unknown,
)
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .dependency_data import (
    WORDING,
    DependencyState,
    allowed_arcs,
    arc_choices,
    as_templates,
    check_on_crossing,
    explain_arcs,
    fields_between,
    flat_arcs,
    flat_trees,
    is_partial,
    labels_of_arcs,
    projective_heads,
    sentences_of,
    some_trees,
    token_fields,
    trees_of,
)

__all__ = ["DependencyParser"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class DependencyParser(Confidences, PartialLabels, MaxMarginEstimator):
    """Dependency trees of sentences: a structural SVM over first-order (arc-factored) trees.

    Parameters
    ----------
    projective : bool, default=True
        Find the best tree without crossing arcs (Eisner's algorithm), or the best of all trees
        (Chu-Liu/Edmonds).
    on_violation : {"keep", "raise", "drop", "repair"}, default="keep"
        What to do with training trees that have crossing arcs, which a projective parser never
        predicts: train on them as they are; raise ValueError, which says where; leave them out; or
        make them projective (Nivre & Nilsson 2005: the shortest arc over words that do not descend
        from its head moves to the head of its head, with its label, until there is none). All but
        "raise" warn, with a count. Without effect for ``projective=False``, and for heads known in
        part.
    labeled : bool, default=False
        Learn labels of the arcs too.
    loss : {"hamming", "normalized_hamming", "zero_one"}, default="hamming"
        Number of tokens with a wrong head (or label), their share, or 1 if there is any. All go
        with every rescaling. With slack rescaling and square roots the first two take more time:
        for projective trees a search by number of errors, for others several searches.
    single_root : bool, default=True
        Whether exactly one token of a sentence hangs on the root.
    hash_bits : int, default=22
        Features of arcs are hashed into ``2 ** hash_bits`` weights.
    features : ArcTemplates, optional
        Features of the arcs, by default ``features.arc_templates()``: words and tags of head and
        modifier, of their neighbours and of what is between them, with direction and distance
        (McDonald et al. 2005).
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,) or None
        The labels of arcs, sorted; None without ``labeled``.
    coef_ : ndarray
        All weights, hashed: those of the arcs, then those of the arcs' labels.
    result_ : Result
        Certificate and history of the training.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    >>> y = [[2, 3, 0], [2, 0]]
    >>> parser = DependencyParser(hash_bits=12, random_state=0).fit(X, y)
    >>> parser.predict([[("a", "D"), ("dog", "N"), ("barks", "V")]])
    [[2, 3, 0]]
    """

    projective: bool = True
    on_violation: Literal["keep", "raise", "drop", "repair"] = "keep"
    labeled: bool = False
    loss: Literal["hamming", "normalized_hamming", "zero_one"] = "hamming"
    single_root: bool = True
    hash_bits: int = 22
    features: ArcTemplates | None = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> DependencyParser:
        """Train on sentences with their trees.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            A sentence is a list of tokens ``(word, tag)`` or ``(word, tag, fine tag)``. Words of a
            treebank are taken with both their tags.
        y : list of trees, optional
            For each sentence the heads of its tokens: 0 for the root, else the number of a token,
            from 1. With ``labeled``, pairs (head, label). May be left out with a treebank. None in
            place of either says that it is not known, a set that it is one of several; see
            ``partial_labels``. The search is then one sentence at a time, and slower.
        sample_weight : array of shape (n_sentences,), optional
            Multiplies each sentence's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = materialize(X), materialize(y)
        self._check_partial()
        check_on_crossing(self.on_violation)
        fields = token_fields(X)
        arcs = flat_arcs(trees_of(X, y, self.labeled), fields.bounds)
        if is_partial(arcs, self.labeled):
            if self.probability:
                raise ValueError("probability=True needs trees that are all known")
            return self._partial_set(fields, arcs, sample_weight)
        trees = flat_trees(arcs, self.labeled)
        if self.projective:
            heads, kept = projective_heads(trees.heads, fields.bounds, self.on_violation)
            trees = trees._replace(heads=heads)
            if not kept.all():
                chosen = np.flatnonzero(kept)
                X, y = examples_at(X, chosen), examples_at(y, chosen)
                if sample_weight is not None:
                    given = as_sample_weights(sample_weight)
                    sample_weight = checked_weights(given, len(kept))[kept]
                fields = token_fields(X)
                arcs = flat_arcs(trees_of(X, y, self.labeled), fields.bounds)
                trees = flat_trees(arcs, self.labeled)
        self.classes_: NDArray[Any] | None = None
        codes: Ints32 | None = None
        if trees.labels is not None:
            encoder = LabelEncoder.of(trees.labels)
            self.classes_, codes = encoder.classes, encoder.encode(trees.labels)
        n_labels = 0 if self.classes_ is None else len(self.classes_)
        weights = as_sample_weights(sample_weight)

        options = (self.loss, bool(self.projective), bool(self.single_root), self.hash_bits)
        data = (
            *fields.values.values(),
            fields.bounds,
            trees.heads,
            np.empty(0) if codes is None else codes,
            options,
            tuple(as_templates(self.features)),
        )
        self._set_decoder(n_labels)
        return TrainingSet(
            lambda: self._problem(fields, trees.heads, codes, n_labels),
            data,
            weights,
            calibrate=lambda: fit_calibration(self, X, y, sample_weight=sample_weight),
        )

    def _options(self) -> dict[str, Any]:
        """Which trees there are, and what their arcs have as features."""
        return {
            "templates": as_templates(self.features),
            "hash_bits": self.hash_bits,
            "projective": bool(self.projective),
            "single_root": bool(self.single_root),
        }

    def _set_decoder(self, n_labels: int) -> None:
        """What finds trees of new sentences."""
        self._decoder = DependencyDecoder(n_labels=n_labels, **self._options())

    def _problem(
        self, fields: TokenFields, heads: Ints32, labels: Ints32 | None, n_labels: int
    ) -> DependencyProblem:
        """The problem of these sentences."""
        options = self._options()
        return DependencyProblem(fields, heads, labels, n_labels, loss=self.loss, **options)

    def _partial_set(
        self, fields: TokenFields, known: FlatLabels, sample_weight: ArrayLike | None
    ) -> TrainingSet:
        """What is trained on where heads or labels are known in part."""
        encoder = LabelEncoder.of(labels_of_arcs(known)) if self.labeled else None
        self.classes_ = None if encoder is None else encoder.classes
        numbers = None if encoder is None else encoder.numbers
        choices = arc_choices(known, numbers)
        weights = checked_weights(as_sample_weights(sample_weight), len(choices))
        says_something = np.array([len(own) > 0 for own in choices])
        check_something_known(says_something, known.wording)
        n_labels = 0 if self.classes_ is None else len(self.classes_)
        heads, labels, is_known = some_trees(known.offsets, choices)
        problem = self._problem(fields, heads, labels if self.labeled else None, n_labels)
        partial = PartialDependencies(problem, choices, is_known)
        self._set_decoder(n_labels)
        weights = weights * says_something
        return TrainingSet(lambda: partial, sample_weight=weights, is_partial=True)

    @answers_empty(lambda _: [])
    def predict(self, X: Any, fixed: Any = None) -> list[Any]:
        """Best tree of each sentence.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        fixed : list, optional
            What is known already: for each token of each sentence None (nothing), its head, or a
            set of heads it may have. With ``labeled`` pairs (head, label) say more; either of them
            may be None. None in place of a sentence says that nothing is known of it. The trees
            found are the best of those that agree with it.

        Returns
        -------
        list
            For each sentence a list of heads; with ``labeled``, a list of pairs (head, label). A
            sentence without words has an empty one.
        """
        weights = self._weights
        if fixed is not None:
            fields = token_fields(X)
            ranked = self._decoder.decode_k_best(
                fields, weights, 1, self._allowed(fixed, fields), self.n_jobs
            )
            return Outputs(self._output(tree.heads[1:], tree.labels[1:]) for (tree,) in ranked)
        sentences = sentences_of(X)
        known: dict[str, int] = {}

        def decode(first: int, end: int) -> tuple[FoundTrees, Ints]:
            fields = fields_between(sentences, first, end, known)
            return self._decoder.decode(fields, weights, 1), fields.bounds

        bounds = decoding_work(np.fromiter(map(len, sentences), np.int64, len(sentences)) + 1)
        outputs = Outputs()
        for found, nodes in parallel_chunks(self.n_jobs, bounds, 1.0, decode):
            arcs = self._output(found.heads, found.labels)
            outputs.extend(arcs[root + 1 : end] for root, end in pairwise(nodes.tolist()))
        return outputs

    @answers_empty(lambda _: [([], 0.0)])
    def predict_k(self, X: Any, k: int, fixed: Any = None) -> list[list[tuple[Any, float]]]:
        """The k best trees of each sentence, with their scores.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        k : int
            How many to return for each sentence.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (tree, score)
            For each sentence its k trees of the largest score ``<w, psi(x, y)>``, best first, each
            as `predict` gives it. The list is shorter where there are fewer trees.
        """
        k = checked_k(k)
        weights = self._weights
        fields = token_fields(X)
        allowed = None if fixed is None else self._allowed(fixed, fields)
        ranked = self._decoder.decode_k_best(fields, weights, k, allowed, self.n_jobs)
        return [
            [(self._output(tree.heads[1:], tree.labels[1:]), tree.score) for tree in trees]
            for trees in ranked
        ]

    @passes_empty
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Share of tokens with the right head; with ``labeled``, with the right head and label.

        All tokens count. For both shares at once see `maxmargin.metrics.attachment_scores`.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        y : list of trees
            True trees; may be left out with a treebank.
        sample_weight : array of shape (n_sentences,), optional
            Weights of the sentences' tokens.

        Returns
        -------
        float
        """
        weights = self._weights
        fields = token_fields(X)
        trees = flat_trees(flat_arcs(trees_of(X, y, self.labeled), fields.bounds), self.labeled)
        found = self._decoder.decode(fields, weights, self.n_jobs)
        is_token = np.ones(int(fields.bounds[-1]), dtype=bool)
        is_token[fields.bounds[:-1]] = False
        right = found.heads[is_token] == trees.heads
        if trees.labels is not None and self.classes_ is not None:
            codes = LabelEncoder(self.classes_).encode(trees.labels)
            warn_of_unknown(codes, trees.labels)
            right &= found.labels[is_token] == codes
        return share_of_right(right, np.diff(fields.bounds) - 1, sample_weight)

    @answers_empty(lambda _: 0.0)
    def score_outputs(self, X: Any, y: Any = None) -> Floats:
        """Scores ``<w, psi(x, y)>`` of given trees; `predict` gives those of the largest.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        y : list of trees
            Trees to score, with labels known to the model. Whether they have crossing arcs or
            several roots does not matter.

        Returns
        -------
        ndarray of shape (n_sentences,)
        """
        weights = self._weights
        fields = token_fields(X)
        trees = flat_trees(flat_arcs(trees_of(X, y, self.labeled), fields.bounds), self.labeled)
        check_trees(trees.heads, fields.bounds, single_root=False)
        codes: Ints32 | None = None
        if trees.labels is not None and self.classes_ is not None:
            codes = LabelEncoder(self.classes_).encode(trees.labels)
            check_known(codes, trees.labels)
        return self._decoder.score(fields, trees.heads, codes, weights)

    @answers_empty(lambda parser: parser._no_arcs())
    def predict_margins(self, X: Any, fixed: Any = None) -> list[Floats]:
        """By how much each arc beats the best other one into the same token (max-marginals).

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of ndarray of shape (n_tokens, n_tokens + 1)
            The score of the best tree with this head (the root first, then all tokens) minus that
            of the best tree without the arc: positive for what is predicted, -inf for an arc that
            no tree has. With ``labeled`` of shape (n_tokens, n_tokens + 1, n_labels), for pairs of
            a head and a label. Without ``projective`` it takes a search for every arc.
        """
        return margins_of(self, self._distribution(X, fixed))

    @CalibratedMethod
    @answers_empty(lambda parser: parser._no_arcs())
    def predict_proba(self, X: Any, fixed: Any = None) -> list[Floats]:
        """Probabilities of all heads of each token; the parser has to be calibrated.

        Parameters
        ----------
        X : list of sentences, or ConlluTreebank
            As for `fit`.
        fixed : list, optional
            What is known already, as for `predict`; probabilities are those given that.

        Returns
        -------
        list of ndarray of shape (n_tokens, n_tokens + 1)
            Marginals over all trees, of the root as head and of all tokens; rows sum to 1. With
            ``labeled`` of shape (n_tokens, n_tokens + 1, n_labels), those of heads and labels.
        """
        return probabilities_of(self, self._distribution(X, fixed))

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted arcs, and not others: the features that decided, word by word.

        Parameters
        ----------
        x : sentence, or ConlluTreebank of a single one
            As in the X of `predict`.
        y_hat : tree, optional
            Another tree, to be compared with the one predicted. By default there is a rival for
            each word: the best tree with another head (or label) there.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions word by word; it prints as tables, and shows as such in notebooks. Features
            are those of the templates, by name: weights of different ones may be shared, for they
            are hashed. With ``y_hat`` words with the same arc are left out.
        """
        weights = self._weights
        return explain_arcs(self, x, y_hat, weights, checked_k(n, "n"))

    def _no_arcs(self) -> Floats:
        """Values of the arcs of a sentence without words, where there is only the root."""
        return np.zeros((0, 1) if self.classes_ is None else (0, 1, len(self.classes_)))

    def _distribution(self, X: Any, fixed: Any = None) -> TreeDistribution:
        """See `Confidences`."""
        weights, fields = self._weights, token_fields(X)
        allowed = None if fixed is None else self._allowed(fixed, fields)
        return TreeDistribution(self._decoder, fields, weights, allowed)

    def _with_gold(self, X: Any, y: Any) -> tuple[TreeDistribution, Ints]:
        """See `Confidences`."""
        fields = token_fields(X)
        trees = flat_trees(flat_arcs(trees_of(X, y, self.labeled), fields.bounds), self.labeled)
        check_trees(trees.heads, fields.bounds, single_root=False)
        gold = trees.heads.astype(np.int64)
        if trees.labels is not None and self.classes_ is not None:
            codes = LabelEncoder(self.classes_).encode(trees.labels)
            gold = np.where(codes < 0, -1, gold * len(self.classes_) + codes)
        return TreeDistribution(self._decoder, fields, self._weights), gold

    def _allowed(self, fixed: Any, fields: TokenFields) -> list[tuple[Bools, Bools] | None]:
        """Which arcs and labels each sentence may have."""
        offsets = fields.bounds - np.arange(len(fields.bounds))
        numbers = None if self.classes_ is None else LabelEncoder(self.classes_).numbers
        return allowed_arcs(flatten_fixed(fixed, offsets, WORDING), numbers)

    def _output(self, heads: Ints32, labels: Ints32) -> list[Any]:
        """A tree as the user sees it."""
        if self.classes_ is None:
            return heads.tolist()
        return list(zip(heads.tolist(), self.classes_[labels].tolist(), strict=True))

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> DependencyState:
        """See `Savable`."""
        decoder = self._decoder
        return DependencyState(
            self.classes_,
            decoder.hash_bits,
            decoder.templates,
            decoder.options.projective,
            decoder.options.single_root,
            decoder.sides_apart,
        )

    def _set_state(self, state: DependencyState) -> None:
        """See `Savable`."""
        self.classes_ = state.labels
        self._decoder = DependencyDecoder(
            state.templates,
            state.hash_bits,
            0 if self.classes_ is None else len(self.classes_),
            projective=state.projective,
            single_root=state.single_root,
            sides_apart=state.sides_apart,
        )

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._decoder.size
