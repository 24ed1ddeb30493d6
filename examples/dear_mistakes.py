"""Mistakes that cost more than others
===================================

Say what mistakes cost: find the rare alarms in a signal, at the price of some false ones.

Draws signals with short bursts of an alarm ("A") in noise; nine tokens of ten are quiet ("Q").
Trains chains for which it costs 1, 2, 4, ... to take an alarm for quiet, and 1 to take quiet for
an alarm; draws how recall rises and precision falls with the cost, and what the first and the last
of these models see in a signal.

::

    python examples/dear_mistakes.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.metrics import mean_cost

COSTS = (1.0, 2.0, 4.0, 8.0, 16.0)
LENGTH, WINDOW = 120, 2


def draw_signals(n, rng):
    """Signals, the values around each of their tokens as features, and labels."""
    signals, X, y = [], [], []
    for _ in range(n):
        is_alarm = np.zeros(LENGTH, bool)
        for start in rng.integers(0, LENGTH - 8, 2):
            is_alarm[start : start + rng.integers(3, 9)] = True
        signal = 1.2 * is_alarm + rng.normal(size=LENGTH)
        padded = np.pad(signal, WINDOW)
        X.append(np.lib.stride_tricks.sliding_window_view(padded, 2 * WINDOW + 1))
        y.append(np.where(is_alarm, "A", "Q").tolist())
        signals.append(signal)
    return signals, X, y


def main(picture: str = "dear_mistakes.png") -> None:
    """Train, compare, draw."""
    rng = np.random.default_rng(0)
    _, X, y = draw_signals(100, rng)
    signals, X_test, y_test = draw_signals(200, rng)
    truth = np.array(y_test) == "A"
    recall, precision, found = [], [], {}
    for cost in COSTS:
        loss = {("A", "Q"): cost}
        model = mm.SequenceTagger(loss=loss, C=0.1, fit_intercept=True, random_state=0).fit(X, y)
        predicted = model.predict(X_test)
        found[cost] = np.array(list(predicted)) == "A"
        both = (truth & found[cost]).sum()
        recall.append(both / truth.sum())
        precision.append(both / found[cost].sum())
        per_token = mean_cost(y_test, predicted, loss)
        print(
            f"missed alarms cost {cost:4g}: recall {recall[-1]:.3f}, "
            f"precision {precision[-1]:.3f}, mean cost of a token {per_token:.3f}"
        )

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 3), layout="constrained")
    axes[0].plot(COSTS, recall, "o-", label="recall of alarms")
    axes[0].plot(COSTS, precision, "s-", label="precision")
    axes[0].set(xscale="log", xlabel="cost of a missed alarm", ylabel="tokens of test signals")
    axes[0].set_xticks(COSTS, [f"{cost:g}" for cost in COSTS])
    axes[0].minorticks_off()
    axes[0].legend(frameon=False)
    # The signal in which the dearest costs change most.
    shown = int(np.argmax((found[COSTS[0]] != found[COSTS[-1]]).sum(axis=1)))
    axes[1].plot(signals[shown], color="0.6", linewidth=1)
    rows = [("truth", truth), *((f"cost {cost:g}", found[cost]) for cost in (COSTS[0], COSTS[-1]))]
    heights = [-4.0 - row for row in range(len(rows))]
    for row, (_, alarms) in enumerate(rows):
        where = np.flatnonzero(alarms[shown])
        axes[1].plot(where, np.full(len(where), heights[row]), "|", color=f"C{row}", markersize=12)
    axes[1].set_yticks(heights, [name for name, _ in rows])
    axes[1].set(xlabel="token", title="alarms in a signal")
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
