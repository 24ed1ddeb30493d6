"""How sure is it?
===============

Say how sure a tagger is: probabilities of labels, and how far they can be believed.

Draws noisy signals that switch between three levels, trains a chain of labels on some, finds the
temperature of its probabilities on others, and draws for a third part: how many of the labels with
a probability of 60 %, 70 %, ... are right, with the temperature found, with half and with twice as
much; the probabilities of the labels of one signal; and how accuracy grows where labels that are
not sure enough are left to somebody else, by probability and by margin.

::

    python examples/confidences.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.metrics import reliability
from maxmargin.report import plot_reliability

ERROR_COUNTS = ("low", "middle", "high")
LENGTH, WINDOW, NOISE = 60, 1, 0.7


def draw_signals(n, rng):
    """Signals, the values around each of their tokens as features, and labels."""
    signals, X, y = [], [], []
    for _ in range(n):
        jumps = rng.random(LENGTH) < 0.12
        levels = np.cumsum(jumps * rng.integers(1, 3, LENGTH)) % 3
        signal = levels + NOISE * rng.normal(size=LENGTH)
        padded = np.pad(signal, WINDOW, mode="edge")
        values = np.lib.stride_tricks.sliding_window_view(padded, 2 * WINDOW + 1)
        X.append(np.hstack([values, (values - 1.0) ** 2]))  # squares tell the middle from the rest
        y.append([ERROR_COUNTS[level] for level in levels])
        signals.append(signal)
    return signals, X, y


def main(picture: str = "confidences.png") -> None:
    """Train, calibrate, draw."""
    rng = np.random.default_rng(0)
    (_, X, y), (_, X_other, y_other) = draw_signals(60, rng), draw_signals(60, rng)
    signals, X_test, y_test = draw_signals(300, rng)
    tagger = mm.SequenceTagger(C=0.1, fit_intercept=True, random_state=0).fit(X, y)
    tagger.calibrate(X_other, y_other)
    temperature, loss, n = tagger.calibration_
    print(f"temperature {temperature:.3f}, log loss {loss:.3f} on {n} tokens")

    classes = tagger.classes_.tolist()
    predicted = np.array([classes.index(k) for labels in tagger.predict(X_test) for k in labels])
    gold = np.array([classes.index(label) for labels in y_test for label in labels])
    tokens, right = np.arange(len(gold)), predicted == gold
    found, shares = {}, np.concatenate(tagger.predict_proba(X_test))[tokens, predicted]
    for name, factor in (("as found", 1.0), ("half", 0.5), ("twice", 2.0)):
        tagger.calibration_ = tagger.calibration_._replace(temperature=factor * temperature)
        probabilities = np.concatenate(tagger.predict_proba(X_test))[tokens, predicted]
        found[f"temperature {name}"] = reliability(probabilities, right)
    tagger.calibration_ = tagger.calibration_._replace(temperature=temperature)
    print(found["temperature as found"])
    margins = np.concatenate(tagger.predict_margins(X_test))[tokens, predicted]

    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    plot_reliability(found, axes=axes[0], title="labels of test signals")
    shown = tagger.predict_proba(X_test[:1])[0]
    order = [classes.index(level) for level in ERROR_COUNTS]
    axes[1].stackplot(np.arange(LENGTH), shown[:, order].T, labels=ERROR_COUNTS, alpha=0.5)
    twin = axes[1].twinx()
    twin.plot(signals[0], color="0.2", linewidth=1)
    twin.set_yticks([])
    axes[1].set(xlabel="token", ylabel="probability", title="one signal", xlim=(0, LENGTH - 1))
    axes[1].legend(frameon=False, loc="lower left", fontsize=8)
    for name, sure in (("probability", shares), ("margin", margins)):
        kept = np.argsort(-sure, kind="stable")
        accuracy = np.cumsum(right[kept]) / np.arange(1, len(kept) + 1)
        axes[2].plot(np.linspace(0.0, 1.0, len(kept))[100:], accuracy[100:], label=f"by {name}")
    axes[2].set(xlabel="share of tokens that are labelled", ylabel="share that is right")
    axes[2].legend(frameon=False)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
