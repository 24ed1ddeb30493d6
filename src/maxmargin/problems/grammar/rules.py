"""Grammars read off treebanks: trees as derivations with two children or a word at each node.

A tree becomes a *derivation* in two reversible steps. A chain of nodes with one child each is
collapsed into one *unary rule*, named by all symbols of the chain; at most one such rule stands
above any node. A node with more than two children is split into nodes with two: its first child,
and a *part* that holds the others and remembers the label and the last ``horizontal`` siblings
before it (all of them by default, and then the grammar has the rules of the treebank exactly).
With ``vertical`` > 1, symbols also carry the labels of their ancestors.

A sentence of n words has 2n - 1 nodes in every derivation, whatever its tree: n - 1 with two
children and n above words. They are kept in preorder: the left child of node t is t + 1, the right
one is t + 2 (split - start).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.types import Floats, Ints32

__all__ = ["Derivation", "Grammar", "GrammarArrays", "Symbol", "Tree", "derive"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A node with its children; the children of a tag are one word.

    Attributes
    ----------
    label : str
        Category, or part-of-speech tag.
    children : tuple of Tree, or tuple of one str
        Subtrees; for a tag, its word.
    is_fallback : bool
        Whether a parser made the tree up because its grammar has none for the sentence. It plays
        no part in comparisons.
    """

    label: str
    children: tuple[Tree | str, ...]
    is_fallback: bool = field(default=False, compare=False)

    @property
    def is_tag(self) -> bool:
        """Whether the node is a tag above a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def subtrees(self) -> Iterator[Tree]:
        """All nodes, parents before children, from left to right."""
        waiting: list[Tree] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, Tree)]

    def leaves(self) -> list[tuple[str, str]]:
        """Words with their tags, as pairs ``(word, tag)``."""
        return [(str(node.children[0]), node.label) for node in self.subtrees() if node.is_tag]

    def words(self) -> list[str]:
        """The sentence."""
        return [word for word, _ in self.leaves()]

    def tags(self) -> list[str]:
        """Part-of-speech tags of the words."""
        return [tag for _, tag in self.leaves()]

    def spans(self) -> list[tuple[str, int, int]]:
        """Constituents ``(label, start, end)`` with their words ``start..end - 1``; no tags."""
        found: list[tuple[str, int, int]] = []
        _collect_spans(self, 0, found)
        return found

    def __str__(self) -> str:
        pieces: list[str] = []
        _write(self, pieces)
        return "".join(pieces)


def _collect_spans(tree: Tree, start: int, found: list[tuple[str, int, int]]) -> int:
    """Append the constituents of a tree that begins at a word; returns where it ends."""
    if tree.is_tag:
        return start + 1
    place = len(found)
    found.append((tree.label, start, start))
    end = start
    for child in tree.children:
        if isinstance(child, Tree):
            end = _collect_spans(child, end, found)
    found[place] = (tree.label, start, end)
    return end


def _write(tree: Tree, pieces: list[str]) -> None:
    """Append a tree in brackets."""
    pieces.append(f"({tree.label}")
    for child in tree.children:
        pieces.append(" ")
        if isinstance(child, Tree):
            _write(child, pieces)
        else:
            pieces.append(child)
    pieces.append(")")


class Symbol(NamedTuple):
    """A symbol of the grammar: a tag, a category, or a part of a category's children."""

    kind: Literal["tag", "category", "part"]
    label: str
    ancestors: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = "^".join((self.label, *self.ancestors))
        return f"@{name}|{'-'.join(self.siblings)}" if self.kind == "part" else name

    @property
    def loss_label(self) -> str:
        """What the loss compares: the label, without what the grammar adds to it."""
        return f"@{self.label}" if self.kind == "part" else self.label


class Step(NamedTuple):
    """A node of a derivation: ``chain`` from its top symbol down, and what is below."""

    start: int
    split: int  # start of the right child; -1 above a word
    end: int
    chain: tuple[Symbol, ...]  # one symbol: no unary rule
    below: tuple[Symbol, Symbol] | None  # top symbols of both children

    @property
    def symbol(self) -> Symbol:
        """The symbol that is rewritten by a binary or lexical rule."""
        return self.chain[-1]


Derivation = list[Step]


def derive(tree: Tree, horizontal: int | None = None, vertical: int = 1) -> Derivation:
    """Steps of a tree's derivation, in preorder."""
    steps: Derivation = []
    _derive(tree, 0, (), horizontal, vertical, steps)
    return steps


# A treebank has few symbols, each many times: an object for each time takes long to make, and
# makes the garbage collector look through all of them.
_known_symbol = lru_cache(maxsize=2**14)(Symbol)
_OPEN = Step(-1, -1, -1, (), None)  # in place of a step whose end is not known yet


def _symbol(tree: Tree, ancestors: tuple[str, ...], vertical: int) -> Symbol:
    """Symbol of a node below these ancestors, nearest first; tags do not remember any."""
    if tree.is_tag:
        return _known_symbol("tag", tree.label)
    return _known_symbol("category", tree.label, ancestors[: vertical - 1])


def _derive(
    tree: Tree,
    start: int,
    ancestors: tuple[str, ...],
    horizontal: int | None,
    vertical: int,
    steps: Derivation,
) -> int:
    """Append the steps of a subtree that begins at a word; returns where it ends."""
    chain = [_symbol(tree, ancestors, vertical)]
    while not tree.is_tag and len(tree.children) == 1:
        ancestors = (tree.label, *ancestors)[: vertical - 1]
        tree = _subtrees(tree)[0]
        chain.append(_symbol(tree, ancestors, vertical))
    if tree.is_tag:
        steps.append(Step(start, -1, start + 1, tuple(chain), None))
        return start + 1
    children = _subtrees(tree)
    below = (tree.label, *ancestors)[: vertical - 1]
    tops = [_symbol(child, below, vertical) for child in children]
    opened = []
    end = start
    for c in range(len(children) - 1):
        seen = tuple(child.label for child in children[: c + 1])
        kept = seen if horizontal is None else seen[len(seen) - min(horizontal, len(seen)) :]
        is_last = c == len(children) - 2
        rest = _known_symbol("part", tree.label, chain[-1].ancestors, kept)
        right = tops[c + 1] if is_last else rest
        opened.append((len(steps), end, (tops[c], right), tuple(chain)))
        steps.append(_OPEN)
        end = _derive(children[c], end, below, horizontal, vertical, steps)
        chain = [rest]
    splits = [steps[place + 1].end for place, *_ in opened]
    end = _derive(children[-1], end, below, horizontal, vertical, steps)
    for (place, begin, pair, symbols), split in zip(opened, splits, strict=True):
        steps[place] = Step(begin, split, end, symbols, pair)
    return end


def _subtrees(tree: Tree) -> list[Tree]:
    """Children that are trees: all of them, above the tags."""
    return [child for child in tree.children if isinstance(child, Tree)]


class GrammarArrays(NamedTuple):
    """A grammar for the kernels; a rule's number is its position in the weight vector.

    Binary rules are sorted by their left child, and numbered from 0: those of symbol B are
    ``left_ptr[B]`` to ``left_ptr[B + 1] - 1``; ``by_parent`` lists them by parent. Unary rules
    are sorted by their top symbol. Then come start and lexical rules, and the weights of span
    features, ``first_span + feature * n_symbols + symbol``.
    """

    left_ptr: Ints32
    left: Ints32
    right: Ints32
    parent: Ints32
    by_parent_ptr: Ints32
    by_parent: Ints32
    unary_ptr: Ints32
    unary_bottom: Ints32
    start: Ints32  # number of the start rule of each symbol, or -1
    lexical_ptr: Ints32  # rules of each terminal
    lexical_symbol: Ints32
    symbol_label: Ints32  # what the loss compares, of a symbol without and ...
    unary_label: Ints32  # ... with a unary rule
    first_unary: int
    first_lexical: int
    first_span: int


class Grammar:
    """All rules of a list of derivations.

    Parameters
    ----------
    symbols : list of Symbol
        Symbols by number.
    binary : array of shape (n_rules, 3)
        Parent, left and right child, sorted by left child.
    chains : list of tuple of int
        Unary rules: symbols from the top to the bottom, sorted by the first.
    starts : list of int
        Symbols of roots.
    terminals : list of str
        Terminals by number.
    lexical : array of shape (n_rules, 2)
        Terminal and symbol, sorted.
    """

    def __init__(
        self,
        symbols: list[Symbol],
        binary: Ints32,
        chains: list[tuple[int, ...]],
        starts: list[int],
        terminals: list[str],
        lexical: Ints32,
    ) -> None:
        self.symbols, self.binary, self.chains = symbols, binary, chains
        self.starts, self.terminals, self.lexical = starts, terminals, lexical
        self.terminal_number = {terminal: t for t, terminal in enumerate(terminals)}
        self.arrays = self._make_arrays()
        self.n_rules = self.arrays.first_span

    @classmethod
    def induce(
        cls, derivations: Iterable[Derivation], sentences: Iterable[Sequence[str]]
    ) -> Grammar:
        """Collect the rules of derivations of these terminals."""
        binary: set[tuple[Symbol, Symbol, Symbol]] = set()
        chains: set[tuple[Symbol, ...]] = set()
        lexical: set[tuple[str, Symbol]] = set()
        starts: set[Symbol] = set()
        for steps, terminals in zip(derivations, sentences, strict=True):
            starts.add(steps[0].chain[0])
            for step in steps:
                if len(step.chain) > 1:
                    chains.add(step.chain)
                if step.below is not None:
                    binary.add((step.symbol, *step.below))
                else:
                    lexical.add((terminals[step.start], step.symbol))
        used = {symbol for rule in (*binary, *chains) for symbol in rule}
        symbols = sorted(used | starts | {symbol for _, symbol in lexical})
        number = {symbol: k for k, symbol in enumerate(symbols)}
        terminals_ = sorted({terminal for terminal, _ in lexical})
        place = {terminal: t for t, terminal in enumerate(terminals_)}
        rules = sorted((number[b], number[a], number[c]) for a, b, c in binary)
        pairs = sorted((place[terminal], number[symbol]) for terminal, symbol in lexical)
        return cls(
            symbols,
            np.array([(a, b, c) for b, a, c in rules], np.int32).reshape(-1, 3),
            sorted(tuple(number[symbol] for symbol in chain) for chain in chains),
            sorted(number[symbol] for symbol in starts),
            terminals_,
            np.array(pairs, np.int32).reshape(-1, 2),
        )

    @property
    def n_symbols(self) -> int:
        """Number of symbols."""
        return len(self.symbols)

    def rule_numbers(self) -> dict[Any, int]:
        """Numbers of the rules by what they are made of, as `encode` looks them up."""
        first_unary, first_lexical = self.arrays.first_unary, self.arrays.first_lexical
        found: dict[Any, int] = {("binary", *map(int, row)): r for r, row in enumerate(self.binary)}
        found |= {("chain", *chain): first_unary + u for u, chain in enumerate(self.chains)}
        found |= {
            ("lexical", *map(int, row)): first_lexical + x for x, row in enumerate(self.lexical)
        }
        return found

    def describe(self, rule: int) -> str:
        """A rule as text, such as ``"S -> NP VP"``."""
        name = [str(symbol) for symbol in self.symbols]
        arrays = self.arrays
        if rule < arrays.first_unary:
            parent, left, right = self.binary[rule]
            return f"{name[parent]} -> {name[left]} {name[right]}"
        first_start = arrays.first_unary + len(self.chains)
        if rule < first_start:
            return " -> ".join(name[k] for k in self.chains[rule - arrays.first_unary])
        if rule < arrays.first_lexical:
            return f"start -> {name[self.starts[rule - first_start]]}"
        terminal, symbol = self.lexical[rule - arrays.first_lexical]
        return f"{name[symbol]} -> {self.terminals[terminal]!r}"

    def parents(self) -> Ints32:
        """Number of the symbol that each rule rewrites; -1 for start rules."""
        tops = [chain[0] for chain in self.chains]
        starts = [-1] * len(self.starts)
        parts = [self.binary[:, 0], tops, starts, self.lexical[:, 1]]
        return np.concatenate([np.asarray(part, np.int32) for part in parts])

    def _make_arrays(self) -> GrammarArrays:
        """Index the rules for the kernels."""
        K = self.n_symbols
        parent, left, right = (np.ascontiguousarray(column) for column in self.binary.T)
        labels: dict[tuple[str, ...], int] = {}

        def label(chain: Iterable[int]) -> int:
            return labels.setdefault(tuple(self.symbols[k].loss_label for k in chain), len(labels))

        symbol_label = np.array([label((k,)) for k in range(K)], np.int32)
        unary_label = np.array([label(chain) for chain in self.chains], np.int32)
        first_start = len(parent) + len(self.chains)
        start = np.full(K, -1, np.int32)
        start[self.starts] = first_start + np.arange(len(self.starts))
        first_lexical = first_start + len(self.starts)
        tops = np.array([chain[0] for chain in self.chains], np.int32)
        return GrammarArrays(
            _pointers(left, K),
            left,
            right,
            parent,
            _pointers(np.sort(parent), K),
            np.argsort(parent, kind="stable").astype(np.int32),
            _pointers(tops, K),
            np.array([chain[-1] for chain in self.chains], np.int32),
            start,
            _pointers(self.lexical[:, 0], len(self.terminals)),
            np.ascontiguousarray(self.lexical[:, 1]),
            symbol_label,
            unary_label,
            len(parent),
            first_lexical,
            first_lexical + len(self.lexical),
        )

    # ----- files --------------------------------------------------------------------------------

    def to_state(self) -> GrammarState:
        """The grammar as values that a model file can keep."""
        return GrammarState(
            [(s.kind, s.label, list(s.ancestors), list(s.siblings)) for s in self.symbols],
            self.binary,
            [list(chain) for chain in self.chains],
            [int(k) for k in self.starts],
            self.terminals,
            self.lexical,
        )

    @classmethod
    def from_state(cls, state: GrammarState) -> Grammar:
        """The inverse of `to_state`."""
        state.check()
        return cls(
            [Symbol(kind, name, tuple(up), tuple(by)) for kind, name, up, by in state.symbols],
            state.binary,
            [tuple(chain) for chain in state.chains],
            state.starts,
            state.terminals,
            state.lexical,
        )


class GrammarState(NamedTuple):
    """What a file keeps of a grammar; see `Grammar`."""

    symbols: list[tuple[Literal["tag", "category", "part"], str, list[str], list[str]]]
    binary: Ints32
    chains: list[list[int]]
    starts: list[int]
    terminals: list[str]
    lexical: Ints32

    def check(self) -> None:
        """Raise ValueError for rules of symbols or terminals that there are not."""
        if self.binary.ndim != 2 or self.binary.shape[1] != 3:
            raise ValueError(f"binary rules of shape {self.binary.shape}, expected (n, 3)")
        if self.lexical.ndim != 2 or self.lexical.shape[1] != 2:
            raise ValueError(f"lexical rules of shape {self.lexical.shape}, expected (n, 2)")
        chained = np.array([symbol for chain in self.chains for symbol in chain], np.int64)
        symbols = (self.binary.ravel(), chained, np.array(self.starts), self.lexical[:, 1])
        for numbers in symbols:
            _check_numbers(numbers, len(self.symbols), "symbol")
        _check_numbers(self.lexical[:, 0], len(self.terminals), "terminal")
        if min(map(len, self.chains), default=2) < 2:
            raise ValueError("a unary rule of fewer than 2 symbols")
        tops = np.array([chain[0] for chain in self.chains], np.int64)
        for keys in (self.binary[:, 1], tops, self.lexical[:, 0]):
            if (np.diff(keys) < 0).any():
                raise ValueError("rules are not sorted")


def _check_numbers(numbers: NDArray[Any], count: int, name: str) -> None:
    """Raise ValueError unless all are below the number of what they stand for."""
    if ((numbers < 0) | (numbers >= count)).any():
        raise ValueError(
            f"a rule of {name} {numbers[(numbers < 0) | (numbers >= count)][0]}, but "
            f"there are {count}"
        )


def _pointers(sorted_keys: Ints32, n_keys: int) -> Ints32:
    """Where each key begins in a sorted array, and the end."""
    return np.searchsorted(sorted_keys, np.arange(n_keys + 1)).astype(np.int32)


def relative_frequencies(grammar: Grammar, counts: Counter[int]) -> Floats:
    """Logarithm of each rule's share among the rules that rewrite the same symbol.

    This is the maximum likelihood estimate of a probabilistic grammar. Start rules count as those
    of one symbol of their own.
    """
    total = np.zeros(grammar.n_rules)
    for rule, count in counts.items():
        total[rule] = count
    parents = grammar.parents()
    parents[parents < 0] = grammar.n_symbols
    by_parent = np.bincount(parents, total, minlength=grammar.n_symbols + 1)
    return np.log(total) - np.log(by_parent[parents])
