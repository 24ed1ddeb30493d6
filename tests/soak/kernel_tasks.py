"""Problems with joint kernels, which find their points in training."""

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

import maxmargin as mm

from .listing import Task


@dataclass(frozen=True)
class Labels:
    """An output that is an object."""

    numbers: tuple


class RowLabels(mm.JointKernelProblem):
    """Labels of rows, by Gaussians of the rows with equal labels; all of them are listed."""

    def __init__(self, kind, width):
        self.kind, self.width = kind, width

    def outputs(self, x):
        return [self.kind(y) for y in product((0, 1), repeat=len(x))]

    def numbers(self, y):
        return np.asarray(y.numbers if isinstance(y, Labels) else y)

    def joint_kernel(self, x, y, x2, y2):
        squares = ((x[:, None] - x2) ** 2).sum(axis=2)
        same = self.numbers(y)[:, None] == self.numbers(y2)
        return float((np.exp(-squares / self.width) * same).sum())

    def loss(self, y, y_hat):
        return float(np.count_nonzero(self.numbers(y) != self.numbers(y_hat)))


class SearchedRowLabels(RowLabels):
    """The same by a search that looks at neighbours of its best output so far."""

    exact = False
    outputs = mm.JointKernelProblem.outputs

    def argmax(self, x, value):
        best = self.kind((0,) * len(x))
        for place in (*range(len(x)), *range(len(x))):
            numbers = self.numbers(best).copy()
            numbers[place] = 1 - numbers[place]
            other = self.kind(numbers.tolist())
            best = other if value(other) > value(best) else best
        return best


def joint_kernels(rng):
    """Listed or searched; outputs are tuples, arrays or objects; short of room or not."""
    searched = rng.random() < 0.5
    kinds = (tuple, np.array) if searched else (tuple, np.array, Labels)
    kind = kinds[int(rng.integers(len(kinds)))]
    problem = (SearchedRowLabels if searched else RowLabels)(kind, float(rng.uniform(0.5, 5.0)))
    problem.cache_mb = float(rng.choice([0.0, 0.003, 0.02, 256.0]))
    problem.max_points = int(rng.choice([5, 20, 2000]))
    X = [rng.normal(size=(int(rng.integers(1, 5)), 2)) for _ in range(int(rng.integers(3, 9)))]
    Y = [kind(rng.integers(0, 2, len(x)).tolist()) for x in X]
    described = f"joint kernel ({type(problem).__name__}, {kind.__name__})"
    return Task(
        described,
        partial(mm.StructuralSVM, problem),
        X,
        Y,
        list_examples=lambda model: [],
        key=lambda y: tuple(problem.numbers(y).tolist()),
        n_examples=len(X),
        savable=False,
        has_sqrt_loss=False,
    )
