"""Which solver when
=================

Certified curves of the same problem: how far above the best objective each model is, by time.

Reads words of handwritten digits with a chain, at two strengths of regularisation. Every solver is
asked for ever finer gaps, and each of its models is judged by the same yardstick: its own primal
objective, from a pass of true oracle calls, against the best dual value that any solver reached. A
curve that ends early has reached the finest gap; online solvers level off.

What to take from it: ``auto`` is a good default. Where C is large, solvers that visit stored planes
again without a search (``auto``, ``dcd``) are far ahead of those that take one step for each search
(``bcfw``). Online solvers are quick to a rough model, and do not tell how rough it is unless they
are asked (``certificate=True``).

::

    python examples/which_solver.py [picture.png]
"""

import sys
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import solvers
from maxmargin.datasets import make_digit_words

STRENGTHS = (0.01, 1.0)
TOLERANCES = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)
PASSES = (1, 2, 4, 8, 16, 32)
CERTIFIED = ("auto", "fasole", "bcfw", "one_slack", "dcd")
ONLINE = {"sgd": solvers.SGD, "pegasos": solvers.Pegasos}


def course(name, words, C):
    """Seconds and primal objectives of ever better models, and the best dual value."""
    seconds, primals, duals = [], [], [0.0]
    for tol, passes in zip(TOLERANCES, PASSES, strict=True):
        if name in ONLINE:
            solver = ONLINE[name](certificate=True, max_passes=passes, tol=None)
            model = mm.SequenceTagger(C=C, solver=solver, random_state=0)
        else:
            model = mm.SequenceTagger(C=C, solver=name, tol=tol, max_time=5.0, random_state=0)
        result = model.fit(words.X_train, words.y_train).result_
        seconds.append(result.seconds)
        primals.append(result.primal)
        duals.append(result.dual or 0.0)
    return seconds, primals, max(duals)


def main(picture="which_solver.png"):
    """Train, compare, draw."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # max_time may end the slow ones
    words = make_digit_words(n_train=300, n_test=1, noise=0.4)
    figure, axes = plt.subplots(1, len(STRENGTHS), figsize=(11, 4), layout="constrained")
    for axis, C in zip(axes, STRENGTHS, strict=True):
        courses = {name: course(name, words, C) for name in (*CERTIFIED, *ONLINE)}
        best = max(dual for _, _, dual in courses.values())
        for name, (seconds, primals, _) in courses.items():
            above = [max(primal / best - 1.0, 1e-6) for primal in primals]
            axis.loglog(seconds, above, "o--" if name in ONLINE else "o-", label=name, ms=4)
            print(f"C = {C:g}, {name}: {above[-1]:.2%} above the bound after {seconds[-1]:.2f} s")
        axis.set(title=f"C = {C:g}", xlabel="seconds", ylabel="objective above the lower bound")
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
