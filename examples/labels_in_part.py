"""Labels known in part
====================

Learn from labels that are known in part, and predict where some are known already.

Reads words of handwritten digits. Of the training words most labels are hidden, and the tagger is
trained on what is left: by alternation, with one completion (the convex bound), and on whole words,
as many as have as many labels. Draws the shares of digits that are read right, the objective of
alternation round by round, and how many of the other digits of a word are right when some of them
are given (`predict(X, fixed=...)`).

::

    python examples/labels_in_part.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.datasets import make_digit_words

HIDDEN = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
GIVEN = (0.0, 0.2, 0.4, 0.6, 0.8)


def hide(y, share, rng):
    """The labels with a share of them, drawn at random, replaced by None."""
    return [[None if rng.random() < share else label for label in word] for word in y]


def main(picture: str = "labels_in_part.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    words = make_digit_words(n_train=400, n_test=400, noise=0.4)
    X, y = words.X_train, [np.asarray(word).tolist() for word in words.y_train]
    test = words.X_test, [np.asarray(word).tolist() for word in words.y_test]
    right: dict[str, list[float]] = {"cccp": [], "convex": [], "whole words": []}
    for share in HIDDEN:
        part = hide(y, share, rng)
        known = sum(label is not None for word in part for label in word)
        n_whole = int(np.searchsorted(np.cumsum([len(word) for word in y]), known, "right"))
        for name, scores in right.items():
            model = mm.SequenceTagger(C=0.1, tol=1e-3, random_state=0)
            if name == "whole words":
                model.fit(X[:n_whole], y[:n_whole])
            else:
                model.set_params(partial_labels=name, max_rounds=30).fit(X, part)
            scores.append(model.score(*test))
            print(f"{share:.0%} hidden, {name}: {scores[-1]:.3f}")
            if name == "cccp":
                last = model

    full = mm.SequenceTagger(C=0.1, random_state=0).fit(X, y)
    plain = full.predict(test[0])
    others: dict[str, list[float]] = {"with those given": [], "without": []}
    for share in GIVEN:
        fixed = hide(test[1], 1.0 - share, rng)
        for (name, shares), found in zip(
            others.items(), (full.predict(test[0], fixed=fixed), plain), strict=True
        ):
            of_others = [
                label == guess
                for word, guesses, given in zip(test[1], found, fixed, strict=True)
                for label, guess, known in zip(word, guesses, given, strict=True)
                if known is None
            ]
            shares.append(float(np.mean(of_others)))
            print(f"{share:.0%} given: {shares[-1]:.3f} of the others right {name}")

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for name, scores in right.items():
        axes[0].plot(HIDDEN, scores, "o-", label=name)
    axes[0].set(xlabel="share of labels hidden", ylabel="digits right, test words")
    axes[0].legend(frameon=False)
    objectives = [value for r in last.rounds_ for value in (r.bound, r.objective)]
    axes[1].plot(np.repeat(np.arange(1, len(last.rounds_) + 1), 2), objectives, "o-", color="0.3")
    axes[1].set(xlabel=f"round, {HIDDEN[-1]:.0%} hidden: trained, completed", ylabel="objective")
    for name, shares in others.items():
        axes[2].plot(GIVEN, shares, "o-", label=name)
    axes[2].set(xlabel="share of digits given", ylabel="other digits right")
    axes[2].legend(frameon=False)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
