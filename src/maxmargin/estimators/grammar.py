"""Parsers: a weighted grammar trained as a structural SVM, and the relative-frequency baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ..doc_links import DocLinks
from ..problems.grammar.data import count_rules, encode
from ..problems.grammar.problem import GrammarProblem
from ..problems.grammar.rules import relative_frequencies
from ..solvers.base import checked_weights
from .base import MaxMarginEstimator
from .parameters import with_inherited_parameters
from .parsing import ParserMixin
from .top_weights import strongest

__all__ = ["GrammarParser", "PCFGParser"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class GrammarParser(ParserMixin, MaxMarginEstimator):
    """Parse trees for sentences: a weighted context-free grammar, trained as a structural SVM.

    The grammar has all rules of the training trees; see `maxmargin.problems.grammar.rules` for how
    unary chains and rules with more than two children are treated. Joint features are counts of
    rules, and of span features if there are any.

    Parameters
    ----------
    loss : {"f1", "zero-one"}, default="f1"
        1 - F1 of labelled spans, counted over the 2n - 1 nodes of the binarised tree of n words
        (see `maxmargin.problems.grammar.GrammarProblem`), or 1 if the tree is not the true one.
    {parameters of GrammarParameters}
    span_features : bool, default=False
        For each constituent, also learn weights for its symbol together with the first and the
        last tag (or word, see ``terminals``), those before and after it, and its length.
    lexical_features : bool, default=False
        The same with words; sentences are then pairs (word, tag).
    {parameters of SharedParameters}

    Attributes
    ----------
    grammar_ : Grammar
        The rules; ``grammar_.describe(r)`` is the rule of weight ``coef_[r]``.
    coef_ : ndarray
        Weights of binary, unary, start and lexical rules, and of span features.
    result_ : Result
        Certificate and history of the training.

    Examples
    --------
    >>> trees = ["(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))", "(S (NP (NN we)) (VP (VBZ go)))"]
    >>> parser = GrammarParser(random_state=0).fit(trees)
    >>> print(parser.predict([[("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]])[0])
    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))
    """

    loss: Literal["f1", "zero-one"] = "f1"
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
        self._make_solver()  # parameters are checked before the grammar is built
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
        self._train(make_problem, (*arrays, self.loss), weights)
        return self

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


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class PCFGParser(DocLinks, ParserMixin, BaseEstimator):
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
        corpus = self._corpus(X, y)
        derivations = self._fit_grammar(corpus)
        terminals = [self._terminals(sentence) for sentence in corpus.tokens]
        gold = encode(self.grammar_, derivations, terminals)
        counts = count_rules(self.grammar_, gold, [len(sentence) for sentence in terminals])
        self._set_weights(relative_frequencies(self.grammar_, counts))
        return self
