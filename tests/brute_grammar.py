"""Brute-force twin of the grammar problem: every derivation of a sentence is listed.

A derivation is a nested tuple ``(chain, below)``: the symbols of a unary chain from the top (one
symbol: no unary rule), and a word's position or two derivations. Rules and symbols are plain text,
as `Grammar.describe` gives them, and binarisation is written once more, from its documentation.
"""

import itertools

import numpy as np

from brute import Twin
from cases import Case
from maxmargin.formats import Tree
from maxmargin.problems.grammar.data import encode, make_sentences
from maxmargin.problems.grammar.problem import GrammarProblem
from maxmargin.problems.grammar.rules import Grammar, derive


def binarise(tree, horizontal, vertical, ancestors=(), start=0):
    """``(derivation, end)`` of a tree that begins at a word."""

    def name(node, above):
        return node.label if node.is_tag else "^".join([node.label, *above[: vertical - 1]])

    chain = [name(tree, ancestors)]
    while not tree.is_tag and len(tree.children) == 1:
        ancestors = (tree.label, *ancestors)
        tree = tree.children[0]
        chain.append(name(tree, ancestors))
    if tree.is_tag:
        return (tuple(chain), start), start + 1
    parts = []
    for child in tree.children:
        below, start = binarise(child, horizontal, vertical, (tree.label, *ancestors), start)
        parts.append(below)
    labels = [child.label for child in tree.children]
    right = parts[-1]
    for c in range(len(parts) - 2, 0, -1):
        history = labels[:c]
        if horizontal is not None:
            history = history[len(history) - min(horizontal, c) :]
        right = ((f"@{chain[-1]}|{'-'.join(history)}",), (parts[c], right))
    return (tuple(chain), (parts[0], right)), start


def nodes_of(derivation, first=0):
    """``[(start, end, chain, below)]`` of a derivation, parents first."""
    chain, below = derivation
    if isinstance(below, int):
        return [(below, below + 1, chain, below)]
    left, right = nodes_of(below[0]), nodes_of(below[1])
    return [(left[0][0], right[0][1], chain, below), *left, *right]


def rules_of(derivation, terminals):
    """Descriptions of the rules of a derivation."""
    found = [f"start -> {derivation[0][0]}"]
    for _, _, chain, below in nodes_of(derivation):
        if len(chain) > 1:
            found.append(" -> ".join(chain))
        if isinstance(below, int):
            found.append(f"{chain[-1]} -> {terminals[below]!r}")
        else:
            found.append(f"{chain[-1]} -> {below[0][0][0]} {below[1][0][0]}")
    return found


def loss_label(symbol):
    """A symbol without what binarisation added: siblings and ancestors."""
    return symbol.split("|")[0].split("^")[0]


class GrammarTwin(Twin):
    def __init__(self, problem, trees, sentences, views, vocabularies, horizontal, vertical, loss):
        grammar = problem.decoder.grammar
        self.number = {grammar.describe(r): r for r in range(grammar.n_rules)}
        assert len(self.number) == grammar.n_rules
        self.symbols = [str(symbol) for symbol in grammar.symbols]
        self.n_rules = grammar.n_rules
        self.sentences, self.views, self.vocabularies = sentences, views, vocabularies
        self.loss_name = loss
        self.truths = [binarise(tree, horizontal, vertical)[0] for tree in trees]
        self.n_examples = len(trees)
        n_span = sum(4 * (len(v) + 2) for v in vocabularies) + 8 if vocabularies else 0
        self.n_features = self.n_rules + n_span * len(self.symbols)
        self.binary, self.chains, self.starts, self.lexical = set(), set(), set(), set()
        for truth, terminals in zip(self.truths, sentences, strict=True):
            self.starts.add(truth[0][0])
            for _, _, chain, below in nodes_of(truth):
                if len(chain) > 1:
                    self.chains.add(chain)
                if isinstance(below, int):
                    self.lexical.add((chain[-1], terminals[below]))
                else:
                    self.binary.add((chain[-1], below[0][0][0], below[1][0][0]))
        self._outputs = {}

    def truth(self, i):
        return self.truths[i]

    def outputs(self, i):
        if i not in self._outputs:
            self._outputs[i] = self.derivations(self.sentences[i])
        return self._outputs[i]

    def derivations(self, terminals):
        n = len(terminals)
        table = {}
        for width in range(1, n + 1):
            for start in range(n - width + 1):
                end = start + width
                bare = []
                if width == 1:
                    bare = [(a, start) for a, word in self.lexical if word == terminals[start]]
                for split in range(start + 1, end):
                    for a, b, c in self.binary:
                        pairs = itertools.product(table[start, split], table[split, end])
                        bare += [(a, (x, y)) for x, y in pairs if x[0][0] == b and y[0][0] == c]
                full = [((a,), below) for a, below in bare]
                full += [(ch, below) for a, below in bare for ch in self.chains if ch[-1] == a]
                table[start, end] = full
        return [y for y in table[0, n] if y[0][0] in self.starts]

    def psi(self, i, y):
        return self.features(y, self.sentences[i], [view[i] for view in self.views])

    def features(self, y, terminals, views):
        psi = np.zeros(self.n_features)
        for rule in rules_of(y, terminals):
            psi[self.number[rule]] += 1
        n = len(terminals)
        for start, end, chain, _ in nodes_of(y) if self.vocabularies else ():
            base = 0
            found = []
            for values, vocabulary in zip(views, self.vocabularies, strict=True):
                size = len(vocabulary) + 2

                def code(t, values=values, vocabulary=vocabulary):
                    if not 0 <= t < n:
                        return len(vocabulary)
                    return vocabulary.get(values[t], len(vocabulary) + 1)

                for kind, t in enumerate((start, end - 1, start - 1, end)):
                    found.append(base + kind * size + code(t))
                base += 4 * size
            longest = (1, 2, 3, 5, 8, 14, 24)
            found.append(base + sum(end - start > limit for limit in longest))
            for f in found:
                psi[self.n_rules + f * len(self.symbols) + self.symbols.index(chain[-1])] += 1
        return psi

    def loss(self, i, y):
        if self.loss_name == "zero_one":
            return float(y != self.truths[i])

        def labels(derivation):
            return {
                (start, end, tuple(loss_label(symbol) for symbol in chain))
                for start, end, chain, _ in nodes_of(derivation)
            }

        mine, true = labels(y), labels(self.truths[i])
        return 1.0 - len(mine & true) / len(true)


def random_tree(rng, n, start=0, depth=0):
    """A tree of n words with few labels, some unary nodes and up to four children."""
    if n == 1 and rng.random() < 0.7:
        return Tree(str(rng.choice(["x", "y"])), (f"w{start}",))
    label = str(rng.choice(["A", "B"]))
    if n == 1 or (depth < 3 and rng.random() < 0.25):
        child = random_tree(rng, n, start, depth + 1) if depth < 3 else Tree("x", (f"w{start}",))
        while not child.is_tag and child.label == label:
            child = child.children[0]
        return Tree(label, (child,))
    pieces = min(n, int(rng.integers(2, 5)))
    cuts = [0, *sorted(rng.choice(np.arange(1, n), pieces - 1, replace=False).tolist()), n]
    children = [random_tree(rng, b - a, start + a, depth + 1) for a, b in itertools.pairwise(cuts)]
    return Tree(label, tuple(children))


def grammar_case(
    rng, *, lengths=(4, 1, 3, 2), loss="f1", horizontal=None, vertical=1, words=False, n_views=0
):
    """A random treebank; with ``words``, terminals have several tags."""
    while True:
        trees = [random_tree(rng, n) for n in lengths]
        if words:
            sentences = [[str(rng.choice(["u", "v"])) for _ in tree.words()] for tree in trees]
        else:
            sentences = [tree.tags() for tree in trees]
        views = [[list(s) for s in sentences] for _ in range(n_views)]
        vocabularies = [{"x": 0, "u": 1}, {"y": 0}][:n_views]
        derivations = [derive(tree, horizontal, vertical) for tree in trees]
        grammar = Grammar.induce(derivations, sentences)
        problem = GrammarProblem(
            grammar,
            make_sentences(grammar, sentences, views, vocabularies),
            encode(grammar, derivations, sentences),
            loss=loss,
        )
        twin = GrammarTwin(
            problem, trees, sentences, views, vocabularies, horizontal, vertical, loss
        )
        sizes = [len(twin.outputs(i)) for i in range(len(trees))]
        if max(sizes) < 2000:
            return Case(problem, twin)
