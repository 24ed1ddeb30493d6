"""Dependency parsing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engine.threads import parallel_chunks
from ..features.containers import as_list, as_tuples
from ..formats import ConlluTreebank
from ..problems.dependency.decoder import DependencyDecoder, decoding_work
from ..problems.dependency.features import DEFAULT_TEMPLATES, ArcTemplates, TokenFields
from ..problems.dependency.kernels import FoundTrees
from ..problems.dependency.marginals import TreeDistribution
from ..problems.dependency.partial import PartialDependencies
from ..problems.dependency.problem import DependencyProblem, check_trees
from ..schema import Count, Labels
from ..solvers.base import checked_weights
from ..types import Bools, Floats, Ints, Ints32
from ..validation import as_sample_weights, is_list
from .arc_explanation import Sentence, arc_evidence
from .base import checked_k
from .confidence import CalibratedMethod, TokenConfidences
from .example_weights import score_weights
from .examples import answers_empty, examples_at, is_empty, materialize, passes_empty
from .explanation import Explanation, alone, decision, decisions_by_place, no_decisions
from .known_arcs import (
    allowed_arcs,
    arc_choices,
    check_on_crossing,
    labels_of_arcs,
    projective_heads,
    some_trees,
)
from .known_labels import flatten_fixed
from .labels import (
    FlatLabels,
    LabelEncoder,
    Outputs,
    Wording,
    flatten_labels,
    warn_of_unknown,
)
from .parameters import with_inherited_parameters
from .partial_labels import PartialLabels, check_something_known, has_unknown

__all__ = ["DependencyParser"]


WORDING = Wording("sentence", "word", "head")
MOST_HEAD = 2**31 - 1  # that a number of 32 bits can be


class _FlatTrees(NamedTuple):
    """Heads, and labels if there are any, of all tokens of all sentences."""

    heads: Ints32
    labels: FlatLabels | None


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class DependencyParser(TokenConfidences, PartialLabels):
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
    loss : {"hamming", "normalized-hamming", "zero-one"}, default="hamming"
        Number of tokens with a wrong head (or label), their share, or 1 if there is any. All go
        with every rescaling. With slack rescaling and square roots the first two take more time:
        for projective trees a search by number of errors, for others several searches.
    single_root : bool, default=True
        Whether exactly one token of a sentence hangs on the root.
    hash_bits : int, default=22
        Features of arcs are hashed into ``2 ** hash_bits`` weights.
    templates : ArcTemplates, optional
        Features of the arcs; by default words and tags of head and modifier, of their neighbours
        and of what is between them, with direction and distance (McDonald et al. 2005).
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of SharedParameters}

    Attributes
    ----------
    labels_ : ndarray of shape (n_labels,) or None
        The labels of arcs, sorted.
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
    loss: Literal["hamming", "normalized-hamming", "zero-one"] = "hamming"
    single_root: bool = True
    hash_bits: int = 22
    templates: ArcTemplates | None = None

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
            ``partial``. The search is then one sentence at a time, and slower.
        sample_weight : array of shape (n_sentences,), optional
            Multiplies each sentence's slack.

        Returns
        -------
        self
        """
        X, y = materialize(X), materialize(y)
        self._make_solver()  # parameters are checked before the features are built
        self._check_partial()
        check_on_crossing(self.on_violation)
        fields = _fields(X)
        arcs = _flat_arcs(_trees(X, y, self.labeled), fields.bounds)
        if _is_partial(arcs, self.labeled):
            if self.probability:
                raise ValueError("probability=True needs trees that are all known")
            return self._fit_partial(fields, arcs, sample_weight)
        self._forget_rounds()
        trees = _flat_trees(arcs, self.labeled)
        if self.projective:
            heads, kept = projective_heads(trees.heads, fields.bounds, self.on_violation)
            trees = trees._replace(heads=heads)
            if not kept.all():
                chosen = np.flatnonzero(kept)
                X, y = examples_at(X, chosen), examples_at(y, chosen)
                if sample_weight is not None:
                    given = as_sample_weights(sample_weight)
                    sample_weight = checked_weights(given, len(kept))[kept]
                fields = _fields(X)
                arcs = _flat_arcs(_trees(X, y, self.labeled), fields.bounds)
                trees = _flat_trees(arcs, self.labeled)
        self.labels_: NDArray[Any] | None = None
        codes: Ints32 | None = None
        if trees.labels is not None:
            encoder = LabelEncoder.of(trees.labels)
            self.labels_, codes = encoder.classes, encoder.encode(trees.labels)
        templates = _as_templates(self.templates)
        n_labels = 0 if self.labels_ is None else len(self.labels_)
        weights = as_sample_weights(sample_weight)

        def make_problem() -> DependencyProblem:
            return DependencyProblem(
                fields,
                trees.heads,
                codes,
                n_labels,
                loss=self.loss,
                projective=bool(self.projective),
                single_root=bool(self.single_root),
                templates=templates,
                hash_bits=self.hash_bits,
            )

        options = (self.loss, bool(self.projective), bool(self.single_root), self.hash_bits)
        data = (
            *fields.values.values(),
            fields.bounds,
            trees.heads,
            np.empty(0) if codes is None else codes,
            options,
            tuple(templates),
        )
        self._set_decoder(templates, n_labels)
        self._train(make_problem, data, weights)
        self._fit_calibration(X, y, sample_weight=sample_weight)
        return self

    def _set_decoder(self, templates: ArcTemplates, n_labels: int) -> None:
        """What finds trees of new sentences."""
        self._decoder = DependencyDecoder(
            templates,
            self.hash_bits,
            n_labels,
            projective=bool(self.projective),
            single_root=bool(self.single_root),
        )

    def _fit_partial(
        self, fields: TokenFields, known: FlatLabels, sample_weight: ArrayLike | None
    ) -> DependencyParser:
        """Train where heads or labels are known in part."""
        encoder = LabelEncoder.of(labels_of_arcs(known)) if self.labeled else None
        self.labels_ = None if encoder is None else encoder.classes
        numbers = None if encoder is None else encoder.numbers
        choices = arc_choices(known, numbers)
        weights = checked_weights(
            as_sample_weights(sample_weight),
            len(choices),
        )
        says_something = np.array([len(own) > 0 for own in choices])
        check_something_known(says_something, known.wording)
        templates = _as_templates(self.templates)
        n_labels = 0 if self.labels_ is None else len(self.labels_)
        heads, labels, is_known = some_trees(known.offsets, choices)
        options = {"projective": bool(self.projective), "single_root": bool(self.single_root)}
        problem = DependencyProblem(
            fields,
            heads,
            labels if self.labeled else None,
            n_labels,
            loss=self.loss,
            templates=templates,
            hash_bits=self.hash_bits,
            **options,
        )
        partial = PartialDependencies(problem, choices, is_known)
        self._train_partial(partial, weights * says_something)
        self._set_decoder(templates, n_labels)
        return self

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
            fields = _fields(X)
            ranked = self._decoder.decode_k_best(
                fields, weights, 1, self._allowed(fixed, fields), self.n_jobs
            )
            return Outputs(self._output(tree.heads[1:], tree.labels[1:]) for (tree,) in ranked)
        sentences = _sentences(X)
        known: dict[str, int] = {}

        def decode(first: int, end: int) -> tuple[FoundTrees, Ints]:
            fields = _fields_of(sentences, first, end, known)
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
        fields = _fields(X)
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
        fields = _fields(X)
        trees = _flat_trees(_flat_arcs(_trees(X, y, self.labeled), fields.bounds), self.labeled)
        found = self._decoder.decode(fields, weights, self.n_jobs)
        is_token = np.ones(int(fields.bounds[-1]), dtype=bool)
        is_token[fields.bounds[:-1]] = False
        right = found.heads[is_token] == trees.heads
        if trees.labels is not None and self.labels_ is not None:
            codes = LabelEncoder(self.labels_).encode(trees.labels)
            warn_of_unknown(codes, trees.labels)
            right &= found.labels[is_token] == codes
        if sample_weight is None:
            return float(np.mean(right))
        weights = score_weights(sample_weight, len(fields.bounds) - 1)
        return float(np.average(right, weights=np.repeat(weights, np.diff(fields.bounds) - 1)))

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
        fields = _fields(X)
        trees = _flat_trees(_flat_arcs(_trees(X, y, self.labeled), fields.bounds), self.labeled)
        check_trees(trees.heads, fields.bounds, single_root=False)
        codes: Ints32 | None = None
        if trees.labels is not None and self.labels_ is not None:
            codes = LabelEncoder(self.labels_).encode(trees.labels)
            if (codes < 0).any():
                first = int(np.argmax(codes < 0))
                raise ValueError(
                    f"{trees.labels.place(first)}: label {trees.labels.values[first]!r} is not "
                    "known to the model"
                )
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
        return super().predict_margins(X, fixed)

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
        return self._probabilities(self._distribution(X, fixed))

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
        weights, n = self._weights, checked_k(n, "n")
        X = x if isinstance(x, ConlluTreebank) else [as_tuples(x)]
        sentences = X.rows if isinstance(X, ConlluTreebank) else X
        if len(sentences) == 1 and is_empty(sentences[0]):
            return no_decisions(y_hat, n)
        fields = _fields(X)
        if len(fields.bounds) != 2:
            raise ValueError(f"x must be one sentence, got {len(fields.bounds) - 1}")
        (tokens,) = X.tokens() if isinstance(X, ConlluTreebank) else X
        labels = [] if self.labels_ is None else self.labels_.tolist()
        keys = self._decoder.keys(fields)
        sentence = Sentence(tokens, keys, self._decoder.templates, labels)
        (own,) = self.predict(X)

        def name_of(t: int) -> str:
            return f"word {t + 1} {tokens[t][0]!r:.40}"

        if y_hat is not None:
            flat = _flat_trees(_flat_arcs([y_hat], fields.bounds), self.labeled)
            self.score_outputs(X, [y_hat])  # refuses what is no tree, or has unknown labels
            heads = flat.heads.tolist()
            values = None if flat.labels is None else flat.labels.values
            rival = heads if values is None else list(zip(heads, values, strict=True))
            evidence = arc_evidence(sentence, own, rival, weights)
            found = decisions_by_place(evidence, name_of, own, rival)
            return Explanation(own, rival, found, n)
        decisions = []
        (margins,) = self._distribution(X).margins()
        for t, arc in enumerate(own):
            head, code = (arc[0], labels.index(arc[1])) if labels else (arc, 0)
            margin = margins[t].reshape(len(tokens) + 1, -1)
            margin[head, code] = -np.inf
            best = np.unravel_index(int(np.argmax(margin)), margin.shape)
            if margin[best] == -np.inf:
                decisions.append(alone(t, name_of(t), arc))
                continue
            other = (int(best[0]), labels[best[1]]) if labels else int(best[0])
            fixed = [other if u == t else None for u in range(len(own))]
            (rival,) = self.predict(X, fixed=[fixed])
            evidence = arc_evidence(sentence, own, rival, weights)
            decisions.append(decision(t, name_of(t), arc, other, evidence))
        return Explanation(own, None, tuple(decisions), n)

    def _no_arcs(self) -> Floats:
        """Values of the arcs of a sentence without words, where there is only the root."""
        return np.zeros((0, 1) if self.labels_ is None else (0, 1, len(self.labels_)))

    def _distribution(self, X: Any, fixed: Any = None) -> TreeDistribution:
        """See `Confidences`."""
        weights, fields = self._weights, _fields(X)
        allowed = None if fixed is None else self._allowed(fixed, fields)
        return TreeDistribution(self._decoder, fields, weights, allowed)

    def _with_gold(self, X: Any, y: Any) -> tuple[TreeDistribution, Ints]:
        """See `Confidences`."""
        fields = _fields(X)
        trees = _flat_trees(_flat_arcs(_trees(X, y, self.labeled), fields.bounds), self.labeled)
        check_trees(trees.heads, fields.bounds, single_root=False)
        gold = trees.heads.astype(np.int64)
        if trees.labels is not None and self.labels_ is not None:
            codes = LabelEncoder(self.labels_).encode(trees.labels)
            gold = np.where(codes < 0, -1, gold * len(self.labels_) + codes)
        return TreeDistribution(self._decoder, fields, self._weights), gold

    def _allowed(self, fixed: Any, fields: TokenFields) -> list[tuple[Bools, Bools] | None]:
        """Which arcs and labels each sentence may have."""
        offsets = fields.bounds - np.arange(len(fields.bounds))
        numbers = None if self.labels_ is None else LabelEncoder(self.labels_).numbers
        return allowed_arcs(flatten_fixed(fixed, offsets, WORDING), numbers)

    def _output(self, heads: Ints32, labels: Ints32) -> list[Any]:
        """A tree as the user sees it."""
        if self.labels_ is None:
            return heads.tolist()
        return list(zip(heads.tolist(), self.labels_[labels].tolist(), strict=True))

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> DependencyState:
        """See `Savable`."""
        decoder = self._decoder
        return DependencyState(
            self.labels_,
            decoder.hash_bits,
            decoder.templates,
            decoder.options.projective,
            decoder.options.single_root,
            decoder.sides_apart,
        )

    def _set_state(self, state: DependencyState) -> None:
        """See `Savable`."""
        self.labels_ = state.labels
        self._decoder = DependencyDecoder(
            state.templates,
            state.hash_bits,
            0 if self.labels_ is None else len(self.labels_),
            projective=state.projective,
            single_root=state.single_root,
            sides_apart=state.sides_apart,
        )

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._decoder.size


class DependencyState(NamedTuple):
    """What a file keeps of a parser."""

    labels: Labels | None
    hash_bits: Count
    templates: ArcTemplates
    projective: bool
    single_root: bool
    sides_apart: bool = False  # the first files did not say


def _as_templates(given: Any) -> ArcTemplates:
    """Templates of arcs by the parameter."""
    if given is None:
        return ArcTemplates(*DEFAULT_TEMPLATES)
    if not is_list(given) or len(given) != len(ArcTemplates._fields):
        raise ValueError(
            f"templates must be lists of {', '.join(ArcTemplates._fields)}, got {given!r:.60}"
        )
    return ArcTemplates(*given)


def _fields(X: Any) -> TokenFields:
    """Check sentences and hash their tokens."""
    sentences = _sentences(X)
    return _fields_of(sentences, 0, len(sentences), {})


def _fields_of(sentences: list[Any], first: int, end: int, known: dict[str, int]) -> TokenFields:
    """Check the tokens of some sentences and hash them; see `TokenFields.of`."""
    own = sentences[first:end]
    if not _are_tokens(list(chain.from_iterable(own))):
        for i, sentence in enumerate(own, first):
            for t, token in enumerate(sentence):
                _check_token(i, t, token)
    return TokenFields.of(own, known)


def _are_tokens(tokens: list[Any]) -> bool:
    """Whether these are plain tokens, by looks at all of them in a row."""
    return (
        set(map(type, tokens)) <= {tuple, list}
        and set(map(len, tokens)) <= {2, 3}
        and set(map(type, chain.from_iterable(tokens))) <= {str}
    )


def _sentences(X: Any) -> list[Any]:
    """The sentences, whose tokens are still to be checked."""
    sentences = X.tokens() if isinstance(X, ConlluTreebank) else as_list(X)
    if isinstance(sentences, (str, bytes)) or not hasattr(sentences, "__len__"):
        raise ValueError(f"X must be a list of sentences, got {type(X).__name__}")
    if len(sentences) == 0:
        raise ValueError("expected at least one sentence, found none")
    sentences = [as_tuples(sentence) for sentence in sentences]
    for i, sentence in enumerate(sentences):
        if not is_list(sentence):
            raise ValueError(f"sentence {i} is {sentence!r:.40}, expected a list of tokens")
        if len(sentence) == 0:
            raise ValueError(f"sentence {i} is empty, expected at least one token")
    return sentences


def _check_token(i: int, t: int, token: Any) -> None:
    """Refuse what is no (word, tag) or (word, tag, fine tag)."""
    if not (
        isinstance(token, (tuple, list))
        and len(token) in (2, 3)
        and all(isinstance(field, str) for field in token)
    ):
        raise ValueError(
            f"sentence {i}, word {t}: {token!r:.60}, expected (word, tag) or "
            "(word, tag, fine tag), all strings"
        )


def _flat_arcs(y: Any, bounds: Ints) -> FlatLabels:
    """What is given for all tokens, checked against the lengths of the sentences."""
    return flatten_labels(y, bounds - np.arange(len(bounds)), WORDING)


def _is_partial(arcs: FlatLabels, labeled: bool) -> bool:
    """Whether some heads or labels are not known."""
    pairs = (arc for arc in arcs.values if labeled and isinstance(arc, (tuple, list)))
    return has_unknown(arcs) or any(part is None for pair in pairs for part in pair)


def _trees(X: Any, y: Any, labeled: bool) -> Any:
    """The trees given, or those of the treebank."""
    if y is not None:
        return y
    if not isinstance(X, ConlluTreebank):
        raise ValueError(
            "y is missing: give the heads of each sentence's tokens, or a ConlluTreebank"
        )
    return X.labeled_heads() if labeled else X.heads()


def _flat_trees(flat: FlatLabels, labeled: bool) -> _FlatTrees:
    """Heads and labels of trees that are known."""
    labels: list[Any] = []
    heads = np.empty(len(flat.values), dtype=np.int32)
    expected = "a pair (head, label)" if labeled else "the number of its head"
    for token, arc in enumerate(flat.values):
        head = arc
        if labeled:
            is_pair = isinstance(arc, Sequence) and not isinstance(arc, str) and len(arc) == 2
            head = arc[0] if is_pair else None
            labels.append(arc[1] if is_pair else None)
        if not isinstance(head, Integral) or abs(int(head)) > MOST_HEAD:
            raise ValueError(f"{flat.place(token)}: {arc!r:.60}, expected {expected}")
        heads[token] = int(head)
    return _FlatTrees(heads, FlatLabels(labels, flat.offsets, WORDING) if labeled else None)
