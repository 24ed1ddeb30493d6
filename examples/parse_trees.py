"""Parse trees
===========

Learn to parse: a weighted grammar against relative frequencies, on generated sentences.

::

    python examples/parse_trees.py [picture.png]
    python examples/parse_trees.py picture.png trees.mrg    # bracketed trees of your own

Without a file of bracketed trees, sentences are generated in which a phrase such as "with a fork"
belongs to the verb or to the noun before it, depending on its words' tags. A probabilistic grammar
counts every rule on its own; the structural SVM weighs them so that whole trees come out right.
The picture shows a sentence where the two differ, with wrong constituents in orange.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin.formats import Tree, clean_tree, read_trees
from maxmargin.metrics import bracket_scores
from maxmargin.report import plot_tree

LONGEST = 15
WORDS = {
    "DT": ["the", "a", "every"],
    "NN": ["cat", "dog", "fork", "hill", "telescope"],
    "NNP": ["Anna", "Bob"],
    "VBD": ["saw", "fed", "met"],
    "IN": ["with", "on", "near"],
    "OF": ["of"],
    ".": ["."],
}


def generate(n: int, seed: int = 0) -> list[Tree]:
    """Draw n trees. "of" binds to nouns, other prepositions mostly to the verb if it is near."""
    rng = np.random.default_rng(seed)

    def word(tag: str) -> Tree:
        return Tree(tag, (str(rng.choice(WORDS[tag])),))

    def phrase(tag: str, depth: int) -> Tree:
        return Tree("PP", (word(tag), noun(depth + 1)))

    def noun(depth: int) -> Tree:
        if rng.random() < 0.25:
            return Tree("NP", (word("NNP"),))
        bare = Tree("NP", (word("DT"), word("NN")))
        if depth < 3 and rng.random() < 0.3:
            return Tree("NP", (bare, phrase("OF" if rng.random() < 0.7 else "IN", depth)))
        return bare

    def verb() -> Tree:
        parts = [word("VBD"), noun(0)]
        if rng.random() < 0.5:
            parts.append(phrase("IN", 0))
        return Tree("VP", tuple(parts))

    return [Tree("S", (noun(1), verb(), word("."))) for _ in range(n)]


def main(picture: str = "parse_trees.png", source: str | None = None) -> None:
    """Train both parsers on four fifths of the trees, and compare them on the rest."""
    if source is None:
        trees = generate(400)
    else:
        cleaned = [clean_tree(tree) for tree in read_trees(source).trees]
        trees = [tree for tree in cleaned if len(tree.words()) <= LONGEST]
    test, train = trees[::5], [tree for i, tree in enumerate(trees) if i % 5]
    baseline = mm.PCFGParser(horizontal=1).fit(train)
    parser = mm.GrammarParser(horizontal=1, span_features=True, tol=0.01, random_state=0)
    parser.fit(train)
    print(f"{len(train)} trees for training, {parser.grammar_.n_rules} rules")
    seconds = f"{parser.result_.seconds:.1f} s"
    print(f"trained in {seconds}, certified within 1 % of the optimum")
    answers = {}
    for name, model in (("PCFG", baseline), ("GrammarParser", parser)):
        answers[name] = model.predict(test)
        scores = bracket_scores(test, answers[name])
        print(f"{name:14s} F1 {scores.f1:.3f}   exact {scores.exact_match:.3f}")
    differ = [
        i
        for i, tree in enumerate(test)
        if answers["PCFG"][i] != tree and answers["GrammarParser"][i] == tree
    ]
    shortest = min(differ, key=lambda i: len(test[i].words()), default=0)
    draw(shortest, test, answers, picture)
    for against in (False, True):
        rules = (f"{rule} ({w:+.2f})" for rule, w in parser.top_rules(4, against=against))
        print("rules it dislikes:" if against else "rules it likes:", *rules, sep="\n  ")


def draw(i: int, test: list[Tree], answers: dict[str, list[Tree]], picture: str) -> None:
    """Two trees of one sentence, side by side."""
    from matplotlib.figure import Figure

    width = max(5.0, 0.7 * len(test[i].words()))
    figure = Figure(figsize=(2 * width, 4.5), dpi=120, layout="constrained")
    for axes, (name, trees) in zip(figure.subplots(1, 2), answers.items(), strict=True):
        plot_tree(trees[i], truth=test[i], title=name, axes=axes)
    figure.savefig(picture)
    print(f"wrote {Path(picture).resolve().name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
