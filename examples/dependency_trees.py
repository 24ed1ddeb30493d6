"""Dependency trees
================

Who saw with the telescope? Dependency trees, learned and drawn.

Draws sentences in which a prepositional phrase belongs to the verb or to the noun before it,
depending on the words, trains labelled parsers on few and on many of them, and draws the trees they
find: arcs that are wrong in red, with the true ones dotted.

::

    python examples/dependency_trees.py [picture.png]
    python examples/dependency_trees.py picture.png train.conllu test.conllu    # a real treebank
"""

import sys
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.formats import read_conllu
from maxmargin.metrics import attachment_scores

SUBJECTS = ("Mary", "John", "she", "everyone")
VERBS = {"saw": ("telescope", "binoculars"), "ate": ("fork", "spoon"), "opened": ("key", "knife")}
NOUNS = {"man": ("hat", "beard"), "pizza": ("cheese", "olives"), "box": ("lid", "label")}
ADJECTIVES = ("old", "small", "red", "new")
SHOWN = 3


def draw_sentence(rng):
    """Tokens (word, tag) and arcs (head, label) of one sentence."""
    verb, noun = str(rng.choice(list(VERBS))), str(rng.choice(list(NOUNS)))
    to_verb = rng.random() < 0.5
    last = str(rng.choice(VERBS[verb] if to_verb else NOUNS[noun]))
    words = [(str(rng.choice(SUBJECTS)), "NOUN", 2, "nsubj"), (verb, "VERB", 0, "root")]

    def phrase(head, label, word, case=None):
        start = len(words) + 1
        before = [("the", "DET", "det")]
        before += [(str(rng.choice(ADJECTIVES)), "ADJ", "amod")] * int(rng.integers(0, 2))
        if case:
            before.insert(0, (case, "ADP", "case"))
        place = start + len(before)
        words.extend((w, tag, place, kind) for w, tag, kind in before)
        words.append((word, "NOUN", head, label))
        return place

    place = phrase(2, "obj", noun)
    phrase(2 if to_verb else place, "obl" if to_verb else "nmod", last, case="with")
    return [(w, tag) for w, tag, _, _ in words], [(head, label) for _, _, head, label in words]


def height(head, modifier):
    """Of the top of an arc."""
    return 0.45 * abs(head - modifier) ** 0.8


def draw_tree(axis, tokens, truth, found, title):
    """Arcs above the words; the root's arc comes from above."""
    arcs = [(h, m) for tree in (truth, found) for m, (h, _) in enumerate(tree, 1) if h > 0]
    top = max((height(*arc) for arc in arcs), default=0.0) + 0.5
    for m, (true_arc, arc) in enumerate(zip(truth, found, strict=True), 1):
        if true_arc[0] != arc[0]:
            draw_arc(axis, *true_arc, m, top, "grey", ":")
        draw_arc(axis, *arc, m, top, "black" if true_arc == arc else "crimson", "-")
    for t, (word, tag, *_) in enumerate(tokens, 1):
        axis.text(t, -0.1, word, ha="center", va="top", fontsize=10)
        axis.text(t, -0.45, tag, ha="center", va="top", fontsize=7, color="grey")
    axis.set(xlim=(0.3, len(tokens) + 0.7), ylim=(-0.8, top + 0.3), title=title)
    axis.axis("off")


def draw_arc(axis, head, label, modifier, top, color, linestyle):
    """An arc with its label on top."""
    if head == 0:
        path, place = Path([(modifier, top), (modifier, 0.0)]), (modifier, top)
    else:
        peak = height(head, modifier)
        corners = [(head, 0.0), (head, peak * 4 / 3), (modifier, peak * 4 / 3), (modifier, 0.0)]
        path = Path(corners, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        place = ((head + modifier) / 2, peak)
    style = {"color": color, "linestyle": linestyle, "linewidth": 1.1, "mutation_scale": 9}
    axis.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", fill=False, **style))
    axis.text(*place, label, ha="center", va="bottom", fontsize=7, color=color)


def generated():
    """Training sets of 8 and of 200 sentences, and a test set."""
    rng = np.random.default_rng(4)
    drawn = [draw_sentence(rng) for _ in range(300)]
    X, Y = [tokens for tokens, _ in drawn], [arcs for _, arcs in drawn]
    return [(X[:8], Y[:8]), (X[:200], Y[:200])], (X[200:], Y[200:])


def from_files(train, test):
    """A tenth of a treebank and all of it, and a test set."""
    bank = read_conllu(train)
    X, Y = bank.tokens(), bank.labeled_heads()
    other = read_conllu(test)
    return [(X[::10], Y[::10]), (X, Y)], (other.tokens(), other.labeled_heads())


def main(picture="dependency_trees.png", *files):
    """Train, compare, draw."""
    trainings, (X_test, Y_test) = from_files(*files) if files else generated()
    found = {}
    for X, Y in trainings:
        parser = mm.DependencyParser(
            C=0.1, labeled=True, hash_bits=22 if files else 16, max_passes=10, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            parser.fit(X, Y)
        predicted = parser.predict(X_test)
        uas, las, exact = attachment_scores(Y_test, predicted)
        print(f"{len(X):6d} sentences: UAS {uas:.1%}, LAS {las:.1%}, whole trees {exact:.1%}")
        found[f"{len(X)} training sentences: LAS {las:.1%}"] = predicted
    # Short sentences that the parser trained on few gets wrong.
    few = next(iter(found.values()))
    wrong = [i for i, tree in enumerate(few) if tree != Y_test[i] and len(tree) <= 12]
    shown = (wrong + list(range(len(X_test))))[:SHOWN]
    figure, axes = plt.subplots(SHOWN, 2, figsize=(13, 2.6 * SHOWN), layout="constrained")
    for row, i in zip(axes, shown, strict=True):
        for axis, (title, trees) in zip(row, found.items(), strict=True):
            draw_tree(axis, X_test[i], Y_test[i], trees[i], title if i == shown[0] else "")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
