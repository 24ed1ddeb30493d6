"""Form of the images, gamma and C of a radial basis function on USPS digits, without the test part.

``python -m benchmarks.kernel_choice [--quick]`` prints errors of 5-fold cross-validation on the
training part, for kernels of rank 2,500 from random rows. Among all settings whose error is within
one standard error of the best, those of the smallest C count, and the best of these is chosen.
"""

from __future__ import annotations

import argparse
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

import maxmargin as mm
from maxmargin.features import KernelMap

from .case import Floats
from .datasets import usps
from .datasets.digit_images import smoothed, upright
from .datasets.kernels import LIKE_LARANK

GAMMAS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # times what "scale" stands for
CS = (1.0, 3.0, 10.0, 30.0, 100.0)
RANK, TOL = 2500, 0.03
FORMS = {"smoothed": smoothed, "upright": upright}


class Setting(NamedTuple):
    """What is chosen, and its share of errors."""

    error: float
    form: str
    C: float
    gamma: float


def errors(X: Any, y: Any, gamma: float, rank: int) -> Floats:
    """Shares of errors for all C."""
    wrong = np.zeros(len(CS))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for train, test in folds.split(X, y):
        mapping = KernelMap(gamma=gamma, n_components=rank, basis="random", random_state=0)
        Z, Z_test = mapping.fit_transform(X[train]), mapping.transform(X[test])
        model = mm.MulticlassSVM(tol=TOL, random_state=0, **LIKE_LARANK)
        models = mm.path(model, Z, y[train], CS)
        wrong += [np.sum(models.at(C).predict(Z_test) != y[test]) for C in CS]
    return wrong / len(y)


def choose(settings: list[Setting], n: int) -> Setting:
    """The smallest C within one standard error of the best, and the best with it."""
    best = min(settings).error
    near = best + sqrt(best * (1.0 - best) / n)
    smallest = min(setting.C for setting in settings if setting.error <= near)
    return min(setting for setting in settings if setting.C == smallest)


def main() -> None:
    """Print all errors, and what is chosen."""
    parser = argparse.ArgumentParser("python -m benchmarks.kernel_choice")
    parser.add_argument("--quick", action="store_true", help="few rows: does everything work?")
    limit = 300 if parser.parse_args().quick else None
    images, y = usps.load(limit)
    settings = []
    for form, change in FORMS.items():
        X = change(images, usps.WHITE).astype(np.float32)
        for factor in GAMMAS:
            gamma = factor / (X.shape[1] * float(X.var()))
            found = errors(X, y, gamma, 100 if limit else RANK)
            settings += [Setting(float(e), form, C, gamma) for e, C in zip(found, CS, strict=True)]
            each = "  ".join(f"C = {C:g}: {100 * e:.2f}" for e, C in zip(found, CS, strict=True))
            print(f"{form}, gamma {gamma:.4f}   {each}", flush=True)
    print("best:  ", min(settings))
    print("chosen:", choose(settings, len(y)))


if __name__ == "__main__":
    main()
