"""What parsers share: sentences and trees in, trees out, whatever the weights come from."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...features.containers import as_list, as_tuples
from ...formats.trees import Tree, Treebank, as_tree, clean_tree
from ...metrics import bracket_scores
from ...metrics.trees import bracket_counts
from ...problems.grammar.data import GrammarDecoder, Nodes, Sentences, encode, make_sentences
from ...problems.grammar.k_best import best_derivations
from ...problems.grammar.rules import Derivation, Grammar, GrammarState, derive
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice, is_at_least
from ...utils.warn import warn_user
from ..base import Savable, checked_k
from ..costs import score_weights
from ..examples import Outputs

logger = logging.getLogger("maxmargin")


@dataclass(kw_only=True, eq=False, repr=False)
class GrammarParameters:
    """What a grammar is made of.

    Parameters
    ----------
    terminals : {"tags", "words"}, default="tags"
        What the grammar derives: part-of-speech tags, which are then part of the input, or words.
    horizontal : int or None, default=None
        How many siblings the parts of a rule with more than two children remember. None: all, so
        that the grammar has exactly the rules of the training trees; fewer allow for new rules.
    vertical : int, default=1
        1: symbols are labels; 2: labels together with that of the parent; and so on.
    min_word_count : int, default=2
        With ``terminals="words"``, and for ``lexical_features``: words seen less often count as
        unknown; as terminals, they are told apart by their shape.
    max_sentence_length : int or None, default=100
        Longer sentences are left out of training, with a warning, and get a fallback tree.
    """

    terminals: Literal["tags", "words"] = "tags"
    horizontal: int | None = None
    vertical: int = 1
    min_word_count: int = 2
    max_sentence_length: int | None = 100


class Token(NamedTuple):
    """A word of a sentence; either may stand for the other where only one was given."""

    word: str
    tag: str


class Corpus(NamedTuple):
    """Training data: trees that are used, and where they were in what was given."""

    trees: list[Tree]
    tokens: list[list[Token]]
    kept: Ints
    n_given: int


class ParserMixin(GrammarParameters, Savable):
    """Prediction with a grammar and ``coef_``."""

    grammar_: Grammar

    # ----- prediction ---------------------------------------------------------------------------

    def predict(self, X: Sequence[Any]) -> list[Tree]:
        """Best tree of each sentence.

        Parameters
        ----------
        X : list of sentences
            A sentence is a list of tags (or words, see ``terminals``) or of pairs (word, tag), or
            a tree, whose words and tags are used.

        Returns
        -------
        list of Tree
            A sentence that the grammar cannot derive (an unknown tag or word, a sequence without a
            derivation, no words, more than ``max_sentence_length`` words) gets a flat tree whose
            ``is_fallback`` is true. Where most tags (or words) are unknown, a UserWarning says what
            was expected.
        """
        weights = self._weights
        tokens = self._tokens(X)
        self._warn_if_unknown(tokens)
        decoder = self._decoder()
        trees: list[Tree] = Outputs()
        for sentence, (nodes, base, score) in zip(
            tokens, self._parse(tokens, decoder, weights), strict=True
        ):
            if score > -np.inf:
                trees.append(decoder.tree(nodes, [token.word for token in sentence], base))
            else:
                trees.append(self._fallback(sentence))
        n_fallbacks = sum(tree.is_fallback for tree in trees)
        if n_fallbacks:
            logger.info("%d of %d sentences have no derivation", n_fallbacks, len(trees))
        return trees

    def predict_k(self, X: Sequence[Any], k: int) -> list[list[tuple[Tree, float]]]:
        """The k best trees of each sentence, with their scores.

        Parameters
        ----------
        X : list of sentences
            As for `predict`.
        k : int
            How many to return for each sentence.

        Returns
        -------
        list of list of (Tree, float)
            For each sentence its k trees of the largest score ``<w, psi(x, y)>``, best first. The
            list is shorter where there are fewer derivations; where there is none, it holds the
            fallback tree, with a score of minus infinity.
        """
        k, weights = checked_k(k), self._weights
        decoder = self._decoder()
        tokens = self._tokens(X)
        self._warn_if_unknown(tokens)
        found = []
        for sentence in tokens:
            words = [token.word for token in sentence]
            best: list[tuple[Tree, float]] = []
            if self._is_short(sentence):
                listed = best_derivations(decoder, self._encode([sentence]), weights, k)
                best = [(decoder.tree(nodes, words), score) for nodes, score in listed]
            found.append(best or [(self._fallback(sentence), -np.inf)])
        return found

    def score(
        self,
        X: Sequence[Any],
        y: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """F1 of the labelled constituents of the predictions; see `maxmargin.metrics`.

        Parameters
        ----------
        X : list of sentences
            As for `predict`.
        y : list of trees, optional
            True trees; by default X holds them.
        sample_weight : array of shape (n_sentences,), optional
            What the constituents of each sentence count.

        Returns
        -------
        float
        """
        trees = self._trees(X if y is None else y, may_be_empty=True)
        found = self.predict(trees if y is None else X)
        if sample_weight is None:
            return bracket_scores(trees, found).f1
        counts, _ = bracket_counts(trees, found)
        n_true, n_predicted, n_right = score_weights(sample_weight, len(counts)) @ counts
        return float(2.0 * n_right / (n_true + n_predicted)) if n_right else 0.0

    def score_outputs(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """Scores ``<w, psi(x, y)>`` of given trees; `predict` gives those of the largest.

        Parameters
        ----------
        X : list of sentences
            As for `predict`.
        y : list of trees
            Trees of these sentences.

        Returns
        -------
        ndarray of shape (n_sentences,)
            Minus infinity for a tree that the grammar does not have.
        """
        weights, decoder = self._weights, self._decoder()
        X = as_list(X)
        scores = np.full(len(X), -np.inf)
        for i, (sentence, tree) in enumerate(zip(self._tokens(X), self._trees(y), strict=True)):
            steps = derive(tree, self.horizontal, self.vertical)
            try:
                nodes = encode(self.grammar_, [steps], [self._terminals(sentence)])
            except KeyError:
                continue
            sentences = self._encode([sentence])
            scores[i] = weights[decoder.psi(sentences, 0, nodes, 0)].sum()
        return scores

    def _warn_if_unknown(self, tokens: list[list[Token]]) -> None:
        """Warn if most of what is given is not in the grammar, such as words in place of tags."""
        known = self.grammar_.terminal_number
        given = [terminal for sentence in tokens for terminal in self._terminals(sentence)]
        unknown = [terminal for terminal in given if terminal not in known]
        if 2 * len(unknown) > len(given):
            pairs = " or pairs (word, tag)" if self.terminals == "tags" else ""
            warn_user(
                f"{len(unknown)} of {len(given)} {self.terminals} are unknown to the grammar, such "
                f"as {unknown[0]!r:.40}; this parser was trained on {self.terminals} "
                f"(terminals={self.terminals!r}) and expects sentences of {self.terminals} like "
                f"{self.grammar_.terminals[-1]!r:.40}{pairs}"
            )

    def _decoder(self) -> GrammarDecoder:
        """What parses with the grammar."""
        return GrammarDecoder(self.grammar_, self._encode([]).n_span_features)

    def _is_short(self, sentence: Sequence[Token]) -> bool:
        """Whether a sentence is parsed at all."""
        return len(sentence) > 0 and (
            self.max_sentence_length is None or len(sentence) <= self.max_sentence_length
        )

    def _parse(
        self, tokens: list[list[Token]], decoder: GrammarDecoder, weights: Floats
    ) -> Iterator[tuple[Nodes, int, float]]:
        """Best derivation of each sentence; a score of -inf says that there is none."""
        short = [sentence for sentence in tokens if self._is_short(sentence)]
        found = decoder.parse(self._encode(short), weights, getattr(self, "n_jobs", None))
        none = Nodes(*[np.empty(0, np.int32)] * len(Nodes._fields))
        for sentence in tokens:
            yield next(found) if self._is_short(sentence) else (none, 0, -np.inf)

    def _fallback(self, sentence: list[Token]) -> Tree:
        """A flat tree, for a sentence without a derivation."""
        root, tag = self._fallback_labels
        tags = tuple(Tree(token.tag or tag, (token.word,)) for token in sentence)
        return Tree(root, tags, is_fallback=True)

    # ----- data ---------------------------------------------------------------------------------

    def _trees(self, y: Sequence[Any], *, may_be_empty: bool = False) -> list[Tree]:
        """Trees of any kind, cleaned; errors name the example."""
        if isinstance(y, (str, bytes, Tree)):
            raise ValueError(f"expected a list of trees, got {y!r:.60}")
        trees = []
        for i, value in enumerate(y.trees if isinstance(y, Treebank) else as_list(y, "y")):
            try:
                tree = as_tree(value)
                trees.append(tree if may_be_empty and not tree.words() else clean_tree(tree))
            except ValueError as error:
                raise ValueError(f"tree {i}: {error}") from None
        return trees

    def _tokens(self, X: Sequence[Any]) -> list[list[Token]]:
        """Sentences of any kind; errors name the example."""
        if isinstance(X, (str, bytes, Tree)):
            raise ValueError(f"X must be a list of sentences, got {X!r:.60}")
        return [self._sentence(i, as_tuples(sentence)) for i, sentence in enumerate(as_list(X))]

    def _sentence(self, i: int, sentence: Any) -> list[Token]:
        """One sentence."""
        if callable(getattr(sentence, "label", None)):
            sentence = as_tree(sentence)
        if isinstance(sentence, Tree):
            return [Token(*leaf) for leaf in sentence.leaves()]
        is_iterable = hasattr(sentence, "__iter__") and getattr(sentence, "ndim", 1) > 0
        if isinstance(sentence, (str, bytes)) or not is_iterable:
            raise ValueError(f"sentence {i} is {sentence!r:.40}, expected a list of words or tags")
        tokens = []
        needs_tags = self.terminals == "tags"
        for value in sentence:
            if isinstance(value, str):
                tokens.append(Token(value, value if needs_tags else ""))
            elif _is_pair(value):
                tokens.append(Token(*value))
            else:
                raise ValueError(
                    f"sentence {i} has {value!r:.40}, expected strings or pairs (word, tag)"
                )
        return tokens

    def _corpus(self, X: Sequence[Any], y: Sequence[Any] | None) -> Corpus:
        """Check parameters and training data; leave out what is too long."""
        check_choice(self.terminals, ("tags", "words"), "terminals")
        if self.horizontal is not None and not is_at_least(self.horizontal, 0):
            raise ValueError(f"horizontal must be None or at least 0, got {self.horizontal!r}")
        if not is_at_least(self.vertical, 1):
            raise ValueError(f"vertical must be at least 1, got {self.vertical!r}")
        if self.max_sentence_length is not None and not is_at_least(self.max_sentence_length, 0):
            raise ValueError(
                f"max_sentence_length must be None or at least 0, got {self.max_sentence_length!r}"
            )
        if not is_at_least(self.min_word_count, 0):
            raise ValueError(f"min_word_count must be at least 0, got {self.min_word_count!r}")
        trees = self._trees(X if y is None else y)
        if not trees:
            raise ValueError("expected at least one tree, found none")
        tokens = [[Token(*leaf) for leaf in tree.leaves()] for tree in trees]
        if y is not None:
            self._check_sentences(self._tokens(X), tokens)
        kept = np.array([i for i, sentence in enumerate(tokens) if self._is_short(sentence)])
        if len(kept) < len(trees):
            logger.warning(
                "%d of %d sentences have more than max_sentence_length=%s words and are left out",
                len(trees) - len(kept),
                len(trees),
                self.max_sentence_length,
            )
        if not len(kept):
            raise ValueError(
                f"no sentence has at most max_sentence_length={self.max_sentence_length} words"
            )
        return Corpus([trees[i] for i in kept], [tokens[i] for i in kept], kept, len(trees))

    def _check_sentences(self, given: list[list[Token]], tokens: list[list[Token]]) -> None:
        """Raise unless the sentences are those of the trees."""
        if len(given) != len(tokens):
            raise ValueError(
                f"X has {len(given)} sentences but y has {len(tokens)} trees; first without a "
                f"partner: {min(len(given), len(tokens))}"
            )
        field = "tag" if self.terminals == "tags" else "word"
        for i, (mine, leaves) in enumerate(zip(given, tokens, strict=True)):
            expected = [getattr(token, field) for token in leaves]
            found = [getattr(token, field) for token in mine]
            if not found:
                raise ValueError(f"sentence {i} is empty, expected at least one {field}")
            if found != expected:
                raise ValueError(
                    f"sentence {i} is {' '.join(found):.60}, but its tree, without null "
                    f"elements, has the {field}s {' '.join(expected):.60}"
                )

    def _fit_grammar(self, corpus: Corpus) -> list[Derivation]:
        """Read the grammar and vocabularies off the training data."""
        counts = Counter(token.word for sentence in corpus.tokens for token in sentence)
        tags = Counter(token.tag for sentence in corpus.tokens for token in sentence)
        roots = Counter(tree.label for tree in corpus.trees)
        known = sorted(word for word, count in counts.items() if count >= self.min_word_count)
        self._known_words = {word: code for code, word in enumerate(known)}
        self._known_tags = {tag: code for code, tag in enumerate(sorted(tags))}
        self._fallback_labels = (roots.most_common(1)[0][0], tags.most_common(1)[0][0])
        derivations = [derive(tree, self.horizontal, self.vertical) for tree in corpus.trees]
        self.grammar_ = Grammar.induce(derivations, map(self._terminals, corpus.tokens))
        return derivations

    def _terminals(self, sentence: Sequence[Token]) -> list[str]:
        """What the grammar derives."""
        if self.terminals == "tags":
            return [token.tag for token in sentence]
        known = self._known_words
        return [t.word if t.word in known else _shape(t.word) for t in sentence]

    def _view_names(self) -> tuple[str, ...]:
        """What span features look at: "tag", "word" or both."""
        return ()

    def _encode(self, tokens: Sequence[Sequence[Token]]) -> Sentences:
        """Numbers for sentences."""
        names = self._view_names()
        vocabularies = {"tag": self._known_tags, "word": self._known_words}
        return make_sentences(
            self.grammar_,
            [self._terminals(sentence) for sentence in tokens],
            [[[getattr(token, name) for token in s] for s in tokens] for name in names],
            [vocabularies[name] for name in names],
        )

    # ----- what persistence asks for ------------------------------------------------------------

    def _get_state(self) -> ParserState:
        """See `Savable`."""
        return ParserState(
            self.grammar_.to_state(),
            list(self._known_words),
            list(self._known_tags),
            self._fallback_labels,
        )

    def _set_state(self, state: ParserState) -> None:
        """See `Savable`."""
        self.grammar_ = Grammar.from_state(state.grammar)
        self._known_words = {word: code for code, word in enumerate(state.words)}
        self._known_tags = {tag: code for code, tag in enumerate(state.tags)}
        self._fallback_labels = state.fallback

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._decoder().n_features


class ParserState(NamedTuple):
    """What a file keeps of a parser."""

    grammar: GrammarState
    words: list[str]
    tags: list[str]
    fallback: tuple[str, str]


def _is_pair(value: Any) -> bool:
    """Whether a token is a word with its tag."""
    is_sequence = isinstance(value, (tuple, list)) and len(value) == 2
    return is_sequence and all(isinstance(part, str) for part in value)


def _shape(word: str) -> str:
    """The terminal that stands for unknown words like this one."""
    if any(letter.isdigit() for letter in word):
        kind = "number"
    elif word[:1].isupper():
        kind = "capital"
    elif "-" in word:
        kind = "hyphen"
    else:
        endings = ("ing", "ed", "ly", "s")
        kind = next((f"-{ending}" for ending in endings if word.endswith(ending)), "other")
    return f"<unknown {kind}>"
