"""Problems with joint kernels whose training is stopped and goes on, also in another process."""

import numpy as np

import maxmargin as mm
from brute_general import KernelLabels


class Labelling:
    """An output that is no plain value."""

    def __init__(self, labels):
        self.labels = labels

    def __eq__(self, other):
        return isinstance(other, Labelling) and self.labels == other.labels

    def __hash__(self):
        return hash(self.labels)


class LabellingObjects(KernelLabels):
    """Outputs are objects, all of which are listed."""

    def outputs(self, x):
        return [Labelling(labels) for labels in super().outputs(x)]

    def joint_kernel(self, x, y, x2, y2):
        return super().joint_kernel(x, y.labels, x2, y2.labels)

    def loss(self, y, y_hat):
        return super().loss(y.labels, y_hat.labels)


class Climbing(KernelLabels):
    """Outputs are arrays that a search meets on its way, some of them early and some late."""

    exact = False
    outputs = mm.JointKernelProblem.outputs

    def argmax(self, x, value):
        best = np.zeros(len(x), int)
        for place in (*range(len(x)), *range(len(x))):
            other = best.copy()
            other[place] = 1 - other[place]
            best = other if value(other) > value(best) else best
        return best


def kernel_examples():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(n, 2)) for n in (3, 1, 4, 2, 3, 4)]
    return X, [tuple(rng.integers(0, 2, len(x)).tolist()) for x in X]


def kernel(kind=KernelLabels, **options):
    problem, (X, Y) = kind(), kernel_examples()
    for name, value in options.items():
        setattr(problem, name, value)
    return problem.bind(X, list(map(Labelling, Y)) if kind is LabellingObjects else Y)
