"""Parsers: a weighted grammar trained as a structural SVM, and the relative-frequency baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...problems.grammar.data import GrammarDecoder, Nodes, Sentences, count_rules, encode
from ...problems.grammar.k_best import best_derivations
from ...problems.grammar.marginals import ConstituentDistribution, Span
from ...problems.grammar.problem import GrammarProblem
from ...problems.grammar.rules import derive, relative_frequencies
from ...solvers.base import checked_weights
from ...utils.types import Floats, Ints
from ..abilities.confidence import CalibratedMethod, Confidences, fit_calibration, temperature_of
from ..abilities.explanation import (
    Evidence,
    Explanation,
    Part,
    differing_parts,
    explain_whole,
    strongest,
)
from ..base import MaxMarginEstimator, checked_k
from ..examples import materialize
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from ..transaction import transaction
from .parsing import ParserMixin

__all__ = ["GrammarParser", "PCFGParser"]

ROUNDING = 1e-12  # probabilities so near to 0 and 1 are as good as those


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class GrammarParser(Confidences, ParserMixin, MaxMarginEstimator):
    """Parse trees for sentences: a weighted context-free grammar, trained as a structural SVM.

    The grammar has all rules of the training trees; see `maxmargin.problems.grammar.rules` for how
    unary chains and rules with more than two children are treated. Joint features are counts of
    rules, and of span features if there are any.

    Parameters
    ----------
    loss : {"f1", "zero_one"}, default="f1"
        1 - F1 of labelled spans, counted over the 2n - 1 nodes of the binarised tree of n words
        (see `maxmargin.problems.grammar.GrammarProblem`), or 1 if the tree is not the true one.
    {parameters of GrammarParameters}
    span_features : bool, default=False
        For each constituent, also learn weights for its symbol together with the first and the
        last tag (or word, see ``terminals``), those before and after it, and its length.
    lexical_features : bool, default=False
        The same with words; sentences are then pairs (word, tag).
    {parameters of Confidences}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    grammar_ : Grammar
        The rules; ``grammar_.describe(r)`` is the rule of weight ``coef_[r]``.
    coef_ : ndarray
        Weights of binary, unary, start and lexical rules, and of span features.
    result_ : Result
        Certificate and history of the training.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> trees = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))", "(S (NP (NN we)) (VP (VBZ go)))"]
    >>> parser = GrammarParser(random_state=0).fit(trees)
    >>> print(parser.predict([[("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]])[0])
    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))
    """

    loss: Literal["f1", "zero_one"] = "f1"
    span_features: bool = False
    lexical_features: bool = False

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> GrammarParser:
        """Train on a treebank.

        Parameters
        ----------
        X : list of sentences, or of trees
            Sentences as for `predict`; trees, if y is not given.
        y : list of trees, optional
            `maxmargin.formats.Tree`, bracketed strings, nested tuples or objects like nltk.Tree.
            Null elements and function tags are removed from them.
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
        corpus = self._corpus(X, y)
        derivations = self._fit_grammar(corpus)
        sentences = self._encode(corpus.tokens)
        gold = encode(self.grammar_, derivations, [self._terminals(s) for s in corpus.tokens])
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, corpus.n_given)[corpus.kept]

        def make_problem() -> GrammarProblem:
            return GrammarProblem(self.grammar_, sentences, gold, loss=self.loss)

        arrays = (*sentences, *gold, *self.grammar_.arrays)
        return TrainingSet(
            make_problem,
            (*arrays, self.loss),
            weights,
            calibrate=lambda: fit_calibration(self, X, y, sample_weight=sample_weight),
        )

    def _size(self, problem: Any) -> str:
        """See `MaxMarginEstimator`."""
        return f"{self.grammar_.n_rules} rules, {problem.n_features} weights"

    def predict_margins(self, X: Sequence[Any]) -> list[dict[Span, float]]:
        """How much worse the best tree without a constituent is, for those that are predicted.

        Parameters
        ----------
        X : list of sentences
            As for `predict`.

        Returns
        -------
        list of dict of (label, start, end) to float
            For each sentence the constituents of its predicted tree, with their words ``start..end
            - 1``, as `Tree.spans` has them; infinity if every tree has it. Each takes a search. No
            constituents for a sentence that the grammar cannot derive.
        """
        outputs = self._distribution(X)
        return [outputs.margins_of(i) for i in range(len(outputs.spans))]

    @CalibratedMethod
    def predict_proba(self, X: Sequence[Any]) -> list[dict[Span, float]]:
        """Probabilities of constituents; the parser has to be calibrated.

        Parameters
        ----------
        X : list of sentences
            As for `predict`.

        Returns
        -------
        list of dict of (label, start, end) to float
            For each sentence all constituents that trees of the grammar have there, with their
            words ``start..end - 1``, as `Tree.spans` has them: the share of the trees with it. No
            constituents for a sentence that the grammar cannot derive.
        """
        outputs = self._distribution(X)
        temperature = temperature_of(self)
        return [outputs.probabilities_of(i, temperature) for i in range(len(outputs.spans))]

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted tree, and not another: the rules that decided.

        Parameters
        ----------
        x : sentence
            As in the X of `predict`.
        y_hat : tree, optional
            A tree of the sentence to compare with; by default the second best.
        n : int, default=5
            How many rules the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the scores: the rules that only one of
            the trees has, with the words below them, and the weights of spans.

        Raises
        ------
        ValueError
            If the grammar does not derive the sentence, or the tree that is given.
        """
        weights, decoder, (sentence,) = self._weights, self._decoder(), self._tokens([x])
        words, sentences = [token.word for token in sentence], self._encode([sentence])
        short = self._is_short(sentence)
        ranked = best_derivations(decoder, sentences, weights, 2) if short else []
        if not ranked:
            raise ValueError(
                "the grammar has no tree for the sentence, so there is nothing to explain"
            )
        chosen, nodes, rival = decoder.tree(ranked[0][0], words), None, None
        if y_hat is not None:
            (rival,) = self._trees([y_hat])
            steps = derive(rival, self.horizontal, self.vertical)
            try:
                if steps[0].end != len(sentence):
                    raise KeyError("of another sentence")
                nodes = encode(self.grammar_, [steps], [self._terminals(sentence)])
            except KeyError:
                raise ValueError(
                    "y_hat is not a tree that the grammar derives for the sentence"
                ) from None
        elif len(ranked) > 1:
            nodes, rival = ranked[1][0], decoder.tree(ranked[1][0], words)
        evidence: list[Evidence] = []
        if nodes is not None:
            both = (_parts(decoder, sentences, own, weights) for own in (ranked[0][0], nodes))
            evidence = differing_parts(*both)
        return explain_whole(chosen, rival, evidence, checked_k(n, "n"))

    def _distribution(self, X: Any) -> _Constituents:
        """See `Confidences`."""
        weights = self._weights
        tokens = self._tokens(X)
        self._warn_if_unknown(tokens)
        short = [sentence if self._is_short(sentence) else [] for sentence in tokens]
        trees = self.predict(tokens)
        spans = [[] if t.is_fallback else list(dict.fromkeys(t.spans())) for t in trees]
        decoder = self._decoder()
        return _Constituents(ConstituentDistribution(decoder, self._encode(short), weights), spans)

    def _with_gold(self, X: Any, y: Any) -> tuple[_Constituents, list[set[Span]]]:
        """See `Confidences`: what is told of is whether predicted constituents are right."""
        trees = self._trees(X if y is None else y)
        outputs = self._distribution(trees if y is None else X)
        if len(trees) != len(outputs.spans):
            raise ValueError(f"X has {len(outputs.spans)} sentences, but y has {len(trees)} trees")
        return outputs, [set(tree.spans()) for tree in trees]

    def top_rules(self, n: int = 10, *, against: bool = False) -> list[tuple[str, float]]:
        """Rules that the model likes most in a tree, or least.

        Parameters
        ----------
        n : int, default=10
            How many to list, at most.
        against : bool, default=False
            List rules of negative weights, not of positive ones.

        Returns
        -------
        list of (rule, weight)
            Strongest first.
        """
        weights = self._weights[: self.grammar_.n_rules]
        chosen = strongest(weights, n, against)
        return [(self.grammar_.describe(r), float(weights[r])) for r in chosen]

    def _view_names(self) -> tuple[str, ...]:
        """See `ParserMixin`."""
        named = ("tag" if self.terminals == "tags" else "word",) if self.span_features else ()
        return named + (("word",) if self.lexical_features and "word" not in named else ())


def _parts(
    decoder: GrammarDecoder, sentences: Sentences, nodes: Nodes, w: Floats
) -> Iterator[Part]:
    """All that a derivation of a single sentence is scored by: rules, and ends of spans."""
    listed, grammar = decoder.psi(sentences, 0, nodes, 0).tolist(), decoder.grammar
    n_views = len(sentences.view_sizes)
    n_span = 4 * n_views + 1 if n_views else 0  # features of a span, behind the rules of its node
    yield grammar.describe(listed[0]), 0, float(w[listed[0]])
    at = 1
    for t in range(2 * int(sentences.offsets[1]) - 1):
        start, end = int(nodes.start[t]), int(nodes.end[t])
        for _ in range(2 if nodes.unary[t] >= 0 else 1):
            name = f"{grammar.describe(listed[at])}, words {start}-{end - 1}"
            yield name, start, float(w[listed[at]])
            at += 1
        if n_span:
            symbol = grammar.symbols[nodes.symbol[t]]
            span = listed[at : at + n_span]
            yield f"span of {symbol}, words {start}-{end - 1}", start, float(w[span].sum())
            at += n_span


class _Constituents(NamedTuple):
    """All trees of sentences, and the constituents of those that are predicted."""

    trees: ConstituentDistribution
    spans: list[list[Span]]

    def margins_of(self, i: int) -> dict[Span, float]:
        """Margins of the constituents that are predicted for sentence i."""
        return self.trees.margins(i, self.spans[i]) if self.spans[i] else {}

    def probabilities_of(self, i: int, temperature: float) -> dict[Span, float]:
        """Probabilities of all constituents of sentence i."""
        return self.trees.probabilities(i, temperature) if self.spans[i] else {}

    def margins(self) -> list[Floats]:
        """Margins of a few sentences, which tell the scale of the scores."""
        return [np.array(list(self.margins_of(i).values())) for i in range(len(self.spans))[:20]]

    def lengths(self) -> Ints:
        """How many constituents are predicted for each sentence."""
        return np.array([len(spans) for spans in self.spans], np.int64)

    def log_likelihoods(self, gold: list[set[Span]], temperature: float) -> Floats:
        """Of each predicted constituent, whether it is right."""
        found = []
        for i, spans in enumerate(self.spans):
            shares = self.probabilities_of(i, temperature)
            for span in spans:
                share = min(max(shares.get(span, 0.0), ROUNDING), 1.0 - ROUNDING)
                found.append(np.log(share) if span in gold[i] else np.log1p(-share))
        return np.array(found)


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class PCFGParser(ParserMixin):
    """The baseline: a probabilistic grammar, with the rules' relative frequencies.

    Parameters
    ----------
    {parameters of GrammarParameters}

    Attributes
    ----------
    grammar_ : Grammar
        The rules; ``grammar_.describe(r)`` is the rule of weight ``coef_[r]``.
    coef_ : ndarray
        Logarithms of the rules' probabilities, so that scores are log-probabilities.
    """

    def fit(self, X: Sequence[Any], y: Sequence[Any] | None = None) -> PCFGParser:
        """Count the rules of a treebank.

        Parameters
        ----------
        X : list of sentences, or of trees
            Sentences as for `predict`; trees, if y is not given.
        y : list of trees, optional
            As for `GrammarParser`.

        Returns
        -------
        self
        """
        transaction(self, lambda draft, _: draft._count(X, y), heard={"X": X, "y": y})
        return self

    def _count(self, X: Any, y: Any) -> None:
        """Set the rules and their weights."""
        corpus = self._corpus(X, y)
        derivations = self._fit_grammar(corpus)
        terminals = [self._terminals(sentence) for sentence in corpus.tokens]
        gold = encode(self.grammar_, derivations, terminals)
        counts = count_rules(self.grammar_, gold, [len(sentence) for sentence in terminals])
        self._set_weights(relative_frequencies(self.grammar_, counts))
