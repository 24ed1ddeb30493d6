"""
Weak supervision: train a tagger on partial labels
==================================================

Half of the labels are missing, or more? Write ``None``. The tagger completes them while it trains
(``partial_labels="cccp"``), and uses every word. Data: words of handwritten digits from
scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import make_digit_words

words = make_digit_words(n_train=300, n_test=300, noise=0.4)
rng = np.random.default_rng(0)


def hide(y, share):
    """The labels, with a share of them replaced by None."""
    return [[None if rng.random() < share else int(label) for label in word] for word in y]


print(hide(words.y_train[:1], 0.8)[0])

# %%
# With the same number of labels, is it better to have all labels of few words, or a few labels of
# all words?

hidden = (0.0, 0.5, 0.8, 0.9, 0.95)
scores = {"few labels of all words": [], "all labels of few words": []}
for share in hidden:
    tagger = mm.SequenceTagger(C=0.1, partial_labels="cccp", random_state=0)
    partial = tagger.fit(words.X_train, hide(words.y_train, share))
    scores["few labels of all words"].append(partial.score(words.X_test, words.y_test))
    n = max(1, round(len(words.X_train) * (1 - share)))
    whole = tagger.fit(words.X_train[:n], words.y_train[:n])
    scores["all labels of few words"].append(whole.score(words.X_test, words.y_test))
for name, values in scores.items():
    print(f"{name}:", *(f"{value:.3f}" for value in values))

# %%
# Where most are missing, labels spread over all words are worth more: images without a label still
# show what digits look like beside known ones. A set such as ``{3, 8}`` is possible, too: "one of
# these".

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, values in scores.items():
    axes.plot([f"{share:.0%}" for share in hidden], values, "o-", label=name)
axes.set(xlabel="labels missing", ylabel="digits right, test words")
axes.legend(frameon=False)
plt.show()
