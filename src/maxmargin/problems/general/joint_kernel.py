"""Problems that know the inner products of joint features, but no features.

Solvers are given features all the same: coordinates of the points (x, y) that planes are made of,
in which inner products are the kernel's values (`kernel_points`). So every solver, every rescaling
and every certificate works unchanged (Tsochantaridis et al. 2005, sec. 3.1 and Prop. 21; Joachims,
Finley & Yu 2009, sec. 3.3). After training the weights become coefficients of those points that
have any.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ...core.cutting_planes import Planes, Row, entries, stack, stack_k_best
from ...core.formulation import RESCALINGS, Formulation, Rescaling
from ...core.problem import Problem
from ...engine.training.state import Arrays
from ...search.limits import as_examples, as_weights
from ...utils.types import Floats, Ints
from ...utils.validation import is_at_least
from .kernel_points import Expansion, KernelPoints, KernelReport, output_key
from .output_texts import OutputTexts

__all__ = ["JointKernelProblem", "JointScore"]

DRAWN_POINTS = 20  # of random weights


class JointScore:
    """What a search has to maximise over the outputs of one input.

    Call it with an output, or `of` with many of them. In prediction that is the score
    ``f(x, y) = sum_t c_t K((x_t, y_t), (x, y))``; in training the violation, which is the score
    with what the loss adds to it, or multiplies.

    Attributes
    ----------
    truth : object
        The given output; None in prediction.
    rescaling : {"margin", "slack", "none"} or None
        How the loss enters; None in prediction.
    """

    def __init__(
        self,
        problem: JointKernelProblem,
        w: Floats,
        coordinates: Callable[[Sequence[Any]], Floats],
        *,
        where: str = "",
        truth: Any = None,
        formulation: Formulation | None = None,
    ) -> None:
        self.truth = truth
        self.rescaling: Rescaling | None = formulation.rescaling if formulation else None
        self._problem = problem
        self._w = w
        self._coordinates = coordinates
        self._where = where
        self._formulation = formulation
        self._of_truth: float | None = None

    def __call__(self, y: Any) -> float:
        """The value of one output."""
        return float(self.of([y])[0])

    def of(self, outputs: Sequence[Any]) -> Floats:
        """The values of many outputs, for which the kernel is asked at once."""
        scores: Floats = self._coordinates(outputs) @ self._w
        if self._formulation is None:
            return scores
        if self._of_truth is None:
            self._of_truth = float(self._coordinates([self.truth])[0] @ self._w)
        offsets, scales = self._formulation.plane_terms(self.losses(outputs))
        values: Floats = offsets + scales * (scores - self._of_truth)
        return values

    def losses(self, outputs: Sequence[Any]) -> Floats:
        """Their losses."""
        losses = np.array([self._problem.loss(self.truth, y) for y in outputs], np.float64)
        wrong = np.flatnonzero(~((losses >= 0.0) & (losses < np.inf)))
        if len(wrong):
            raise ValueError(
                f"loss(y, y_hat) is {losses[wrong[0]]} for {self._where} and the output "
                f"{outputs[wrong[0]]!r:.60}; it must be finite and >= 0"
            )
        return losses

    def expansion(self) -> list[tuple[float, Any, Any]]:
        """``(c_t, x_t, y_t)`` of all points: what f is made of, for a search of your own.

        Where the kernel is a sum over pieces of outputs, so is f, and its best output can be
        found by dynamic programming.
        """
        return self._problem._expansion_of(self._w)


class JointKernelProblem(Problem):
    """A problem of your own that has a kernel of pairs (input, output) in place of features.

    Subclass it and write `joint_kernel`, `loss` and either `outputs`, which lists all outputs of an
    input, or `argmax`, a search of your own. Train it with `StructuralSVM`.

    Attributes
    ----------
    max_points : int, default=2000
        Bound on the points (example, output) that weights are made of. Each has a row of a
        triangular factor, so that 2,000 of them take 32 MB. Further points are projected on the
        span of these, with a warning: the result is then the best expansion over these points, and
        its gap is relative to them.
    cache_mb : float, default=256
        Bound on the values of the kernel that are kept for other outputs of the training examples;
        beyond it they are computed again whenever they are needed.

    Notes
    -----
    A trained `StructuralSVM` has the coefficients of the points in ``coef_``, and the points that
    have any in ``problem_``; ``problem_.kernel_report`` tells what training had. Outputs that are
    objects of a class of your own should have ``__eq__`` and ``__hash__``; a ``checkpoint`` keeps
    them where `outputs` lists them. Training has one process, whatever ``n_jobs``: others would
    find points of their own.

    Examples
    --------
    >>> import maxmargin as mm
    >>> class Letters(mm.JointKernelProblem):
    ...     def outputs(self, x):
    ...         return ["vowels", "consonants"]
    ...     def joint_kernel(self, x, y, x2, y2):
    ...         return float(y == y2) * len(set(x) & set(x2))
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    >>> kinds = ["vowels", "consonants", "vowels"]
    >>> model = mm.StructuralSVM(Letters()).fit(["ae", "bc", "iu"], kinds)
    >>> model.predict(["ua", "cb"])
    ['vowels', 'consonants']
    """

    max_points: int = 2000
    cache_mb: float = 256.0
    has_features = False
    search_method = "argmax"  # what `check_problem` calls the search that may be wrong
    rescalings = RESCALINGS  # by `outputs`; see `__init_subclass__`
    _space: KernelPoints | Expansion | None = None
    _numbers: Sequence[int] = ()  # of the examples in that space
    _report: KernelReport | None = None  # of the training that is over

    # ----- what a problem of one's own writes ---------------------------------------------------

    def joint_kernel(self, x: Any, y: Any, x2: Any, y2: Any) -> float:
        """``<psi(x, y), psi(x2, y2)>``: symmetric and positive semidefinite."""
        raise NotImplementedError(f"{type(self).__name__} must define joint_kernel(x, y, x2, y2)")

    def joint_kernels(
        self, x: Any, outputs: Sequence[Any], X2: Sequence[Any], Y2: Sequence[Any]
    ) -> Floats:
        """The same for many outputs of one input, and many points; optional, for speed.

        Parameters
        ----------
        x : object
            An input.
        outputs : sequence
            Outputs of it.
        X2, Y2 : sequence
            Inputs and outputs of other points.

        Returns
        -------
        array of shape (len(outputs), len(Y2))
        """
        points = list(zip(X2, Y2, strict=True))
        return np.array(
            [[self.joint_kernel(x, y, x2, y2) for x2, y2 in points] for y in outputs], np.float64
        )

    def outputs(self, x: Any) -> Sequence[Any]:
        """Every output of an input; not needed where there is an `argmax` of your own."""
        raise NotImplementedError(
            f"{type(self).__name__} must define outputs(x), or else argmax(x, value)"
        )

    def argmax(self, x: Any, value: JointScore) -> Any:
        """The output of the largest value; by default, the best of all that `outputs` lists.

        Parameters
        ----------
        x : object
            An input.
        value : JointScore
            What is to be maximised: ``value(y)``.

        Returns
        -------
        object
            The output.
        """
        listed = list(self.outputs(x))
        if not listed:
            raise ValueError(f"outputs(x) lists nothing for the input {x!r:.60}")
        return listed[int(np.argmax(value.of(listed)))]

    # ----- what follows from it -----------------------------------------------------------------

    @property
    def kernel_report(self) -> KernelReport:
        """How many points training has, their bytes, and what they lack of others."""
        return self._report or self._training_space.report

    def bind(self, X: Sequence[Any], Y: Sequence[Any]) -> Problem:
        """Return a copy of the problem that holds these examples, and no points yet."""
        if not isinstance(self.max_points, Integral) or self.max_points < 1:
            raise ValueError(f"max_points must be a whole number >= 1, got {self.max_points!r}")
        if not is_at_least(self.cache_mb, 0, finite=False):
            raise ValueError(f"cache_mb must be a number >= 0, got {self.cache_mb!r}")
        unbound = copy.copy(self)
        unbound.n_features = int(self.max_points)
        bound = super(JointKernelProblem, unbound).bind(X, Y)
        assert isinstance(bound, JointKernelProblem)
        bound._space = KernelPoints(X, Y, int(self.max_points), 1e6 * float(self.cache_mb))
        bound._numbers, bound._report = range(len(X)), None
        return bound

    def subset(self, indices: Ints) -> Problem:
        """Return the problem of these examples alone; its points are those of this one."""
        part = copy.copy(self)
        part.X, part.Y = [self.X[i] for i in indices], [self.Y[i] for i in indices]
        part._numbers = [self._numbers[i] for i in indices]
        return part

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """Coordinates in the span of the points; after training, the values with them."""
        space = self._known_space
        features = np.zeros(int(self.n_features or 0))
        features[: space.size] = space.coordinates(self.joint_kernels, x, [y])[0]
        return features

    def predict(self, x: Any, w: Floats) -> Any:
        """The output of the largest score."""
        space = self._known_space
        w = as_weights(w, int(self.n_features or 0))[: space.size]

        def coordinates(outputs: Sequence[Any]) -> Floats:
            return space.coordinates(self.joint_kernels, x, outputs)

        return _found(self.argmax(x, JointScore(self, w, coordinates)), f"the input {x!r:.60}")

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated output of each listed example; see `Problem.oracle`."""
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        rows, losses = [], np.zeros(len(indices))
        for row, i in enumerate(as_examples(indices, self.n_examples).tolist()):
            value = self._violation(i, w, formulation)
            found = _found(self.argmax(self.X[i], value), f"example {i}")
            if value(found) <= 0.0:  # the given output is as good, listed or not
                found = self.Y[i]
            losses[row] = value.losses([found])[0]
            rows.append(self._row(i, found))
        return stack(rows, losses)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong outputs of each listed example; see `Problem.k_best`."""
        if type(self).outputs is JointKernelProblem.outputs:
            return super().k_best(indices, w, k, rescaling, sqrt_loss)
        formulation = Formulation(rescaling, sqrt_loss=sqrt_loss)
        listed = []
        for i in as_examples(indices, self.n_examples).tolist():
            different = {output_key(y): y for y in self.outputs(self.X[i])}
            different.pop(output_key(self.Y[i]), None)
            others = list(different.values())
            value = self._violation(i, w, formulation)
            values, losses = value.of(others), value.losses(others)
            order = np.argsort(-values, kind="stable")
            if rescaling != "margin":  # outputs without a loss are as the truth
                order = order[losses[order] > 0.0]
            listed.append([(self._row(i, others[j]), float(losses[j])) for j in order[:k]])
        return stack_k_best(listed, k)

    def draw_weights(self, rng: np.random.Generator) -> Floats:
        """Weights to test the problem with: only those of points have a meaning."""
        space, kernel = self._training_space, self.joint_kernels
        for i in range(min(self.n_examples, DRAWN_POINTS)):
            space.place(kernel, self._numbers[i], self.Y[i])
        w = np.zeros(int(self.n_features or 0))
        w[: space.size] = rng.normal(size=space.size)
        return w

    def predictor(self, weights: Sequence[Floats]) -> tuple[Problem, list[Floats]]:
        """The problem of the points that some weights need, and their coefficients."""
        reduced, coefficients = self._training_space.expansion(weights)
        without = copy.copy(self)
        without.X, without.Y, without._numbers = (), (), ()
        without._space, without.n_features = reduced, reduced.size
        without._report = self.kernel_report
        return without, coefficients

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "argmax" in vars(cls) and "rescalings" not in vars(cls):
            cls.rescalings = Problem.rescalings  # as of any search that declares no others

    # ----- checkpoints: see `engine.training.state.AdaptiveFeatures` ---------------------------

    def before_training(self) -> Problem:
        """The same problem without points."""
        fresh = copy.copy(self)
        fresh._space = self._training_space.empty()
        return fresh

    def feature_arrays(self) -> Arrays:
        """The points, and the coordinates that are known."""
        return self._training_space.arrays(self._texts)

    def restore_features(self, arrays: Arrays) -> None:
        """Take them over, in place of those there are."""
        self._training_space.restore(arrays, self._texts)

    @property
    def _texts(self) -> OutputTexts:
        space, lists = self._training_space, type(self).outputs is not JointKernelProblem.outputs
        return OutputTexts(space.inputs, space.truths, self.outputs if lists else None)

    # ----- points -------------------------------------------------------------------------------

    @property
    def _known_space(self) -> KernelPoints | Expansion:
        if self._space is None:
            raise ValueError("the problem has no examples; bind them with problem.bind(X, Y)")
        return self._space

    @property
    def _training_space(self) -> KernelPoints:
        if not isinstance(self._space, KernelPoints):
            raise ValueError("the problem has no examples; bind them with problem.bind(X, Y)")
        return self._space

    def _violation(self, i: int, w: Floats, formulation: Formulation) -> JointScore:
        """What is searched for in training."""
        space, kernel, number = self._training_space, self.joint_kernels, self._numbers[i]
        w = as_weights(w, int(self.n_features or 0))
        if w[space.size :].any():
            raise ValueError(
                f"there are {space.size} points, but weights of others are not 0: weights have to "
                "be sums of planes of this problem"
            )

        def coordinates(outputs: Sequence[Any]) -> Floats:
            return space.of_example(kernel, number, outputs)

        return JointScore(
            self,
            w[: space.size],
            coordinates,
            where=f"example {i}",
            truth=self.Y[i],
            formulation=formulation,
        )

    def _row(self, i: int, y: Any) -> Row:
        """The feature difference of an output, whose point is one from now on."""
        if output_key(y) == output_key(self.Y[i]):
            return np.empty(0, np.int32), np.empty(0)
        space, kernel, number = self._training_space, self.joint_kernels, self._numbers[i]
        gold, other = (space.place(kernel, number, output) for output in (self.Y[i], y))
        dense = np.zeros(max(len(gold), len(other)))
        dense[: len(gold)] = gold
        dense[: len(other)] -= other
        return entries(dense)

    def _expansion_of(self, w: Floats) -> list[tuple[float, Any, Any]]:
        """Coefficients, inputs and outputs of all points."""
        space = self._known_space
        points = space.points if isinstance(space, KernelPoints) else space
        found = zip(space.coefficients(w), points.inputs, points.outputs, strict=True)
        return [(float(c), x, y) for c, x, y in found]


def _found(y: Any, where: str) -> Any:
    """What a search has found."""
    if y is None:
        raise ValueError(f"argmax returned None for {where}; is a return missing?")
    return y
