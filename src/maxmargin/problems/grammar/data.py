"""Sentences and derivations as arrays, and the way from weights to trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...engine.parallel.threads import cubes, parallel_chunks
from ...search.limits import as_weights
from ...utils.types import Floats, Ints, Ints32
from .kernels import N_BUCKETS, list_features, parse_sentences
from .rules import Derivation, Grammar, Tree

__all__ = [
    "GrammarDecoder",
    "GrammarScratch",
    "Nodes",
    "Sentences",
    "count_rules",
    "encode",
    "make_sentences",
]


JOINT = 16  # sentences that are parsed in a row


class Sentences(NamedTuple):
    """Terminals of all sentences (-1: not in the grammar), and codes of their words by views.

    A view is one way to look at words (tags, forms) for span features; ``view_sizes`` counts its
    codes, of which the last two stand for the boundary of a sentence and for unknown values.
    """

    offsets: Ints
    terminals: Ints32
    views: Ints32
    view_sizes: Ints

    @property
    def n_span_features(self) -> int:
        """Number of different features of spans."""
        return int(4 * self.view_sizes.sum() + N_BUCKETS) if len(self.view_sizes) else 0


class Nodes(NamedTuple):
    """Nodes of derivations in preorder; those of sentence i begin at ``2 * offsets[i] - i``."""

    start: Ints32
    split: Ints32  # -1 above a word
    end: Ints32
    symbol: Ints32  # below the unary rule
    rule: Ints32  # binary or lexical
    unary: Ints32  # number among the unary rules, or -1
    top: Ints32  # symbol above the unary rule


class GrammarScratch(NamedTuple):
    """Work arrays of the kernels, for the longest sentence."""

    low: Floats
    top: Floats
    around_low: Floats
    around_top: Floats
    live: Ints32
    n_live: Ints32
    gold_label: Ints32
    low_other: Floats
    top_other: Floats
    stack: Ints32
    features: Ints
    listed: Ints
    counts: Floats


def make_sentences(
    grammar: Grammar,
    terminals: Sequence[Sequence[str]],
    views: Sequence[Sequence[Sequence[str]]] = (),
    vocabularies: Sequence[dict[str, int]] = (),
) -> Sentences:
    """Encode sentences of terminals, and of the values of each view."""
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in terminals], dtype=np.int64)])
    number = grammar.terminal_number
    codes = [number.get(terminal, -1) for sentence in terminals for terminal in sentence]
    columns = [
        [vocabulary.get(value, len(vocabulary) + 1) for sentence in view for value in sentence]
        for view, vocabulary in zip(views, vocabularies, strict=True)
    ]
    return Sentences(
        offsets.astype(np.int64),
        np.array(codes, np.int32),
        np.array(columns, np.int32).reshape(len(vocabularies), len(codes)),
        np.array([len(vocabulary) + 2 for vocabulary in vocabularies], np.int64),
    )


def empty_nodes(size: int) -> Nodes:
    """Arrays for so many nodes."""
    return Nodes(*(np.empty(size, np.int32) for _ in Nodes._fields))


def encode(
    grammar: Grammar, derivations: Sequence[Derivation], sentences: Sequence[Sequence[str]]
) -> Nodes:
    """Numbers for derivations of these terminals; all their rules have to be in the grammar."""
    symbol_number = {symbol: k for k, symbol in enumerate(grammar.symbols)}
    rules, first_unary = grammar.rule_numbers(), grammar.arrays.first_unary
    rows = []
    for steps, terminals in zip(derivations, sentences, strict=True):
        for step in steps:
            chain = [symbol_number[symbol] for symbol in step.chain]
            if step.below is not None:
                below = [symbol_number[symbol] for symbol in step.below]
                rule = rules["binary", chain[-1], below[0], below[1]]
            else:
                terminal = grammar.terminal_number[terminals[step.start]]
                rule = rules["lexical", terminal, chain[-1]]
            unary = rules[("chain", *chain)] - first_unary if len(chain) > 1 else -1
            rows.append((step.start, step.split, step.end, chain[-1], rule, unary, chain[0]))
    table = np.array(rows, np.int32).reshape(-1, len(Nodes._fields))
    return Nodes(*(np.ascontiguousarray(column) for column in table.T))


def count_rules(grammar: Grammar, nodes: Nodes, lengths: Sequence[int]) -> Counter[int]:
    """How often derivations of sentences of these lengths use each rule, start rules included."""
    arrays = grammar.arrays
    roots = np.cumsum([0] + [2 * length - 1 for length in lengths])[:-1]
    counts = Counter(nodes.rule.tolist())
    counts.update((arrays.first_unary + nodes.unary[nodes.unary >= 0]).tolist())
    counts.update(arrays.start[nodes.top[roots]].tolist())
    return counts


class GrammarDecoder:
    """Parses sentences with given weights; holds no examples."""

    def __init__(self, grammar: Grammar, n_span_features: int = 0) -> None:
        self.grammar = grammar
        self.n_features = grammar.n_rules + n_span_features * grammar.n_symbols

    def scratch(self, longest: int, n_views: int, *, outside: bool = False) -> GrammarScratch:
        """Work arrays for sentences of at most so many words."""
        K, n_cells = self.grammar.n_symbols, longest * (longest + 1) // 2
        n_nodes = 2 * longest
        around = (n_cells, K) if outside else (0, K)
        return GrammarScratch(
            np.empty((n_cells, K)),
            np.empty((n_cells, K)),
            np.empty(around),
            np.empty(around),
            np.empty((n_cells, K), np.int32),
            np.empty(n_cells, np.int32),
            np.full(n_cells, -1, np.int32),
            np.empty(n_nodes),
            np.empty(n_nodes),
            np.empty((n_nodes + 2, 4), np.int32),
            np.empty(4 * n_views + 1, np.int64),
            np.empty(2 * longest_row(longest, n_views), np.int64),
            np.zeros(self.n_features),
        )

    def parse(
        self, sentences: Sentences, w: Floats, n_jobs: int | None = None
    ) -> Iterator[tuple[Nodes, int, float]]:
        """Best derivation of each sentence and its score, -inf if there is none.

        The nodes are those from a place on.
        """
        w = as_weights(w, self.n_features)
        if len(sentences.offsets) < 2:
            return
        lengths = np.diff(sentences.offsets)
        longest = int(lengths.max())
        spare: list[tuple[GrammarScratch, Nodes]] = []  # the same for all that a thread parses

        def new_scratch() -> tuple[GrammarScratch, Nodes]:
            return self.scratch(longest, len(sentences.view_sizes)), empty_nodes(2 * longest)

        def parse(first: int, end: int) -> list[tuple[Nodes, int, float]]:
            work, found = spare.pop() if spare else new_scratch()
            derivations = []
            # The GIL is taken rarely, for others make trees with it, and often enough for Ctrl-C.
            for begin in range(first, end, JOINT):
                own = lengths[begin : min(begin + JOINT, end)]
                bases = np.concatenate([[0], np.cumsum(2 * own - 1)])
                kept, scores = empty_nodes(int(bases[-1])), np.empty(len(own))
                given = self.grammar.arrays, sentences, begin, begin + len(own), w
                parse_sentences(*given, work, found, kept, scores)
                derivations += [
                    (kept, base, score)
                    for base, score in zip(bases[:-1].tolist(), scores.tolist(), strict=True)
                ]
            spare.append((work, found))
            return derivations

        unit = 0.2 * len(self.grammar.arrays.left)
        yield from chain.from_iterable(parallel_chunks(n_jobs, cubes(lengths), unit, parse))

    def psi(self, sentences: Sentences, i: int, nodes: Nodes, base: int) -> Ints:
        """Features of a derivation of sentence i, each as often as it counts."""
        first, end = sentences.offsets[i], sentences.offsets[i + 1]
        n_views = len(sentences.view_sizes)
        features = np.empty(4 * n_views + 1, np.int64)
        listed = np.empty(longest_row(int(end - first), n_views), np.int64)
        count = list_features(
            self.grammar.arrays, sentences, first, end - first, nodes, base, features, listed
        )
        return listed[:count]

    def tree(self, nodes: Nodes, words: Sequence[str], base: int = 0) -> Tree:
        """The tree of a derivation."""
        grammar, n = self.grammar, len(words)
        own = slice(base, base + 2 * n - 1)
        starts, splits = nodes.start[own].tolist(), nodes.split[own].tolist()
        numbers, unary = nodes.symbol[own].tolist(), nodes.unary[own].tolist()
        # Children of the categories under construction, from the last node to the first.
        above: list[tuple[Tree, ...]] = [()] * (2 * n - 1)
        for t in range(2 * n - 2, -1, -1):
            symbol, start, split = grammar.symbols[numbers[t]], starts[t], splits[t]
            if split < 0:
                subtree = Tree(symbol.label, (words[start],))
            else:
                children = above[t + 1] + above[t + 2 * (split - start)]
                if symbol.kind == "part":
                    above[t] = children
                    continue
                subtree = Tree(symbol.label, children)
            if unary[t] >= 0:
                for k in reversed(grammar.chains[unary[t]][:-1]):
                    subtree = Tree(grammar.symbols[k].label, (subtree,))
            above[t] = (subtree,)
        return above[0][0]


def longest_row(n: int, n_views: int) -> int:
    """Upper bound on the features of a derivation of n words."""
    per_span = 4 * n_views + 1 if n_views else 0
    return 1 + (2 * n - 1) * (2 + per_span)
