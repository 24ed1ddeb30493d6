"""Weighted grammars: all derivations of short sentences.

A tree is (label, children), a tag (label, word). A derivation is a set of nodes
(start, split, end, chain of symbols, symbols of both children or the terminal).
"""

from functools import partial
from itertools import product

import numpy as np

import maxmargin as mm

from .listing import Example, Task

MOST_DERIVATIONS = 150


def random_parse(rng, words, label="S"):
    """A random tree over (word, tag) pairs, without a category directly below itself."""
    if len(words) == 1:
        below = words[0][::-1] if rng.random() < 0.6 else ("N", (words[0][::-1],))
        return below if label == "N" and below[0] == "N" else (label, (below,))
    n_children = min(len(words), int(rng.choice([1, 2, 2, 3])))
    if n_children == 1:
        return label, (random_parse(rng, words, category(rng, label)),)
    cuts = np.sort(rng.choice(np.arange(1, len(words)), n_children - 1, replace=False))
    children = []
    for piece in np.split(np.arange(len(words)), cuts):
        inner = [words[k] for k in piece]
        is_tag = len(inner) == 1 and rng.random() < 0.6
        children.append(inner[0][::-1] if is_tag else random_parse(rng, inner, category(rng)))
    return label, tuple(children)


def category(rng, other=None):
    return str(rng.choice([name for name in ("N", "V") if name != other]))


def brackets(tree):
    label, below = tree
    inside = below if isinstance(below, str) else " ".join(map(brackets, below))
    return f"({label} {inside})"


def from_tree(tree):
    """A tree of the package as nested pairs."""
    if isinstance(tree.children[0], str):
        return tree.label, tree.children[0]
    return tree.label, tuple(map(from_tree, tree.children))


class Binariser:
    """Trees as derivations, with symbols named as the grammar names them."""

    def __init__(self, horizontal, vertical, terminals):
        self.horizontal, self.vertical, self.terminals = horizontal, vertical, terminals

    def name(self, tree, ancestors):
        is_tag = isinstance(tree[1], str)
        return tree[0] if is_tag else "^".join((tree[0], *ancestors[: self.vertical - 1]))

    def nodes(self, tree, start=0, ancestors=()):
        """Nodes of a derivation, and where it ends."""
        chain = [self.name(tree, ancestors)]
        while not isinstance(tree[1], str) and len(tree[1]) == 1:
            ancestors = (tree[0], *ancestors)
            tree = tree[1][0]
            chain.append(self.name(tree, ancestors))
        if isinstance(tree[1], str):
            terminal = tree[0] if self.terminals == "tags" else tree[1]
            return {(start, None, start + 1, tuple(chain), terminal)}, start + 1
        return self.split(tree, tree[1], (), tuple(chain), start, ancestors)

    def split(self, tree, children, before, chain, start, ancestors):
        """The first of the children, and the others as a part that remembers those before it."""
        below = (tree[0], *ancestors)
        left, middle = self.nodes(children[0], start, below)
        before = (*before, children[0][0])
        if len(children) == 2:
            right, end = self.nodes(children[1], middle, below)
            part = self.name(children[1], below)
        else:
            memory = len(before) if self.horizontal is None else self.horizontal
            kept = before[max(0, len(before) - memory) :]
            own = "^".join((tree[0], *ancestors[: self.vertical - 1]))
            part = f"@{own}|{'-'.join(kept)}"
            right, end = self.split(tree, children[1:], before, (part,), middle, ancestors)
        symbols = self.name(children[0], below), part
        return {(start, middle, end, chain, symbols)} | left | right, end


def all_derivations(sentence, grammar):
    """Every set of nodes that the rules allow; None if there are too many."""
    binary, chains, lexical, starts = grammar
    found = {}  # (start, end, top symbol) -> derivations

    def add(start, split, end, symbol, inside, below):
        for chain in [(symbol,), *(chain for chain in chains if chain[-1] == symbol)]:
            node = (start, split, end, chain, inside)
            found.setdefault((start, end, chain[0]), []).append(below | {node})

    n = len(sentence)
    for length, start in ((a, s) for a in range(1, n + 1) for s in range(n - a + 1)):
        end = start + length
        if length == 1:
            for symbol in sorted(k for terminal, k in lexical if terminal == sentence[start]):
                add(start, None, end, symbol, sentence[start], frozenset())
        for (symbol, left, right), split in product(sorted(binary), range(start + 1, end)):
            for a in found.get((start, split, left), ()):
                for b in found.get((split, end, right), ()):
                    add(start, split, end, symbol, (left, right), a | b)
        if sum(map(len, found.values())) > 10 * MOST_DERIVATIONS:
            return None
    complete = [tree for symbol in sorted(starts) for tree in found.get((0, n, symbol), ())]
    return complete if len(complete) <= MOST_DERIVATIONS else None


def top_symbol(derivation, sentence):
    whole = (0, len(sentence))
    return next(chain[0] for start, _, end, chain, _ in derivation if (start, end) == whole)


def loss_labels(derivation):
    """What the loss compares at each span: labels without what the grammar adds to them."""
    return {
        (start, end): tuple(symbol.partition("|")[0].partition("^")[0] for symbol in chain)
        for start, _, end, chain, _ in derivation
    }


def span_features(codes, start, end, size):
    """Numbers of a span's features in one view, behind it those of its length."""
    ends = (codes[start], codes[end - 1])
    around = (codes[start - 1] if start else size - 2, codes[end] if end < len(codes) else size - 2)
    bucket = sum(end - start > most for most in (1, 2, 3, 5, 8, 14, 24))
    return [k * size + code for k, code in enumerate(ends + around)] + [4 * size + bucket]


def grammars(rng):
    """Weighted grammars read off random trees, with or without features of spans."""
    terminals = str(rng.choice(["tags", "words"]))
    horizontal = [None, None, 0, 1, 2][int(rng.integers(5))]
    binariser = Binariser(horizontal, int(rng.choice([1, 1, 2])), terminals)
    trees, gold, sentences = [], [], []
    for _ in range(int(rng.integers(1, 5))):
        tags = rng.choice(["a", "b", "c"], int(rng.integers(1, 6)))
        words = [(f"{tag}{rng.integers(2)}", str(tag)) for tag in tags]
        trees.append(random_parse(rng, words))
        gold.append(frozenset(binariser.nodes(trees[-1])[0]))
        sentences.append([word[terminals == "tags"] for word in words])
    nodes = [node for derivation in gold for node in derivation]
    grammar = (
        {(chain[-1], *inside) for _, split, _, chain, inside in nodes if split is not None},
        sorted({chain for *_, chain, _ in nodes if len(chain) > 1}),
        {(inside, chain[-1]) for _, split, _, chain, inside in nodes if split is None},
        {top_symbol(*pair) for pair in zip(gold, sentences, strict=True)},
    )
    listed = [all_derivations(sentence, grammar) for sentence in sentences]
    if any(derivations is None for derivations in listed):
        return grammars(rng)
    loss = str(rng.choice(["f1", "zero_one"]))
    has_spans = bool(rng.random() < 0.3)

    def psi(model, sentence, derivation):
        grammar = model.grammar_
        number = {grammar.describe(r): r for r in range(grammar.n_rules)}
        symbols = [str(symbol) for symbol in grammar.symbols]
        known = sorted({terminal for s in sentences for terminal in s})
        codes = [known.index(terminal) for terminal in sentence]
        total = np.zeros(len(model.result_.w))
        for start, split, end, chain, inside in derivation:
            if (start, end) == (0, len(sentence)):
                total[number[f"start -> {chain[0]}"]] += 1
            if len(chain) > 1:
                total[number[" -> ".join(chain)]] += 1
            below = repr(inside) if split is None else " ".join(inside)
            total[number[f"{chain[-1]} -> {below}"]] += 1
            for f in span_features(codes, start, end, len(known) + 2) if has_spans else ():
                total[grammar.n_rules + f * len(symbols) + symbols.index(chain[-1])] += 1
        return total

    def loss_of(truth, derivation):
        if loss == "zero_one":
            return float(derivation != truth)
        labels = loss_labels(truth)
        right = sum(labels.get(span) == chain for span, chain in loss_labels(derivation).items())
        return 1.0 - right / len(truth)

    def examples(model):
        return [
            Example.of(truth, partial(psi, model, sentence), partial(loss_of, truth), derivations)
            for truth, sentence, derivations in zip(gold, sentences, listed, strict=True)
        ]

    Y = [brackets(tree) for tree in trees]
    options = {"terminals": terminals, "horizontal": horizontal, "vertical": binariser.vertical}
    options |= {"loss": loss, "span_features": has_spans, "min_word_count": 1}
    return Task(
        "grammars",
        partial(mm.GrammarParser, **options),
        sentences,
        Y,
        examples,
        lambda tree: frozenset(binariser.nodes(from_tree(tree))[0]),
        len(Y),
        refusals=[(sentences[:-1], Y), (sentences, ["(S"] * len(Y)), ([], [])],
    )
