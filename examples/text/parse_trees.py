"""
Constituency parsing: learn a weighted grammar
==============================================

Who has the telescope in "Anna saw the man with the telescope"? A probabilistic grammar (PCFG)
counts how often rules occur. ``GrammarParser`` learns weights by which whole trees come out right,
also of features of spans. The sentences are synthetic.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.metrics import bracket_scores
from maxmargin.report import plot_tree

rng = np.random.default_rng(0)


def pick(tag, *words):
    """A leaf."""
    return f"({tag} {rng.choice(words)})"


def noun_phrase(depth):
    """A name, or a noun that may have a phrase of its own: nearly always one with "of"."""
    if rng.random() < 0.25:
        return f"(NP {pick('NNP', 'Anna', 'Bob')})"
    noun = f"(NP {pick('DT', 'the', 'a')} {pick('NN', 'cat', 'dog', 'hill', 'telescope')})"
    if depth < 3 and rng.random() < 0.3:
        word = "(OF of)" if rng.random() < 0.7 else pick("IN", "with", "on", "near")
        return f"(NP {noun} (PP {word} {noun_phrase(depth + 1)}))"
    return noun


def sentence():
    """A bracketed tree; half of the verbs have a phrase, which never begins with "of"."""
    verb = f"{pick('VBD', 'saw', 'fed', 'met')} {noun_phrase(0)}"
    if rng.random() < 0.5:
        verb += f" (PP {pick('IN', 'with', 'on', 'near')} {noun_phrase(1)})"
    return f"(S {noun_phrase(1)} (VP {verb}) (. .))"


trees = [mm.formats.parse_tree(sentence()) for _ in range(300)]
train, test = trees[:240], trees[240:]
print(test[0])

# %%
# Both parsers see the same trees.

found = {}
pcfg = mm.PCFGParser(horizontal=1).fit(train)
parser = mm.GrammarParser(horizontal=1, span_features=True, random_state=0).fit(train)
for name, model in (("PCFG", pcfg), ("GrammarParser", parser)):
    found[name] = model.predict(test)
    scores = bracket_scores(test, found[name])
    print(f"{name:14} F1 {scores.f1:.3f}, whole trees right {scores.exact_match:.3f}")

# %%
# A sentence on which the two differ; wrong constituents are orange.

differ = [i for i, tree in enumerate(test) if found["GrammarParser"][i] == tree != found["PCFG"][i]]
shown = min(differ, key=lambda i: len(test[i].words()))
figure, panels = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
for axes, (name, predicted) in zip(panels, found.items(), strict=True):
    plot_tree(predicted[shown], truth=test[shown], title=name, axes=axes)
plt.show()
