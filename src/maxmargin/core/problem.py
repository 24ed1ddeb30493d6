"""The contract between what is learned and how it is learned.

A *problem* holds examples ``(x_i, y_i)`` and answers one question, the **batch oracle**: which
candidate output of each listed example violates its margin most at these weights? It knows nothing
of C, solvers or estimators. With ``dpsi_i(y) = psi(x_i, y_i) - psi(x_i, y)`` the oracle maximises

    margin rescaling   Delta(y_i, y) - <dpsi_i(y), w>
    slack rescaling    Delta(y_i, y) (1 - <dpsi_i(y), w>)
    no rescaling       1 - <dpsi_i(y), w>                     over y != y_i

with ``sqrt(Delta)`` in place of ``Delta`` if ``sqrt_loss``. Where the truth itself is the maximiser
(value 0) the oracle returns it: an empty row with loss 0.

A problem of your own subclasses `Problem` and writes three small methods in plain Python,
``joint_feature``, ``loss`` and ``most_violated`` (and ``predict``); the base class builds the
oracle from them. A problem that wants native speed overrides ``oracle`` itself. `check_problem`
tests either kind. A problem that can search for more than one output at a time also offers
``k_best``.

A search that is not exact says so: by bounds on what it may have missed
(``planes.with_bounds(bounds)``), with which certificates stay true, or else by ``exact = False``.
One that knows margin rescaling only, as is assumed of a search that declares nothing else, serves
slack rescaling all the same (see `search.margin_search`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from ..utils.types import Floats, Ints
from .cutting_planes import BoundedPlanes, Planes, difference, split_bounds, stack
from .formulation import Formulation, Rescaling

__all__ = ["BoundedPlanes", "Planes", "Problem", "loss_value", "raise_for_example"]

LARGE = 2.0**40  # times weights, makes any loss small; a power of two, so that nothing is rounded


class Problem:
    """Examples, their joint features and losses, and the search for the most violated output.

    Attributes
    ----------
    n_examples : int
        Number of examples bound to the problem.
    n_features : int
        Dimension of the joint feature vector; set it in ``__init__``, or leave None where
        ``joint_feature`` returns dense arrays.
    X, Y : sequence
        The bound examples (see `bind`).
    exact : bool
        Whether the oracle finds the most violated outputs. Set it to False where it may miss them
        and gives no bounds: results are then relative to the oracle, and have no gap.
    rescalings : tuple of str, default=("margin",)
        Rescalings for which the oracle finds the most violated output. With ``("margin",)`` alone,
        slack rescaling is searched for through the margin oracle, with bounds where that is not
        exact, and "none" is refused. A search that uses its argument ``rescaling`` declares them:
        ``rescalings = ("margin", "slack")``; `check_problem` tests each.
    loss_unit : float
        All losses are multiples of it; 0 if they may have any value. It makes the bounds of such
        a search tighter.
    in_threads : bool
        Whether ``oracle`` may be called by several threads at once, for different examples, and
        gains by it since it releases the GIL. Otherwise ``n_jobs`` of solvers means processes.

    Examples
    --------
    >>> import numpy as np
    >>> class Parity(Problem):
    ...     n_features = 4
    ...     def joint_feature(self, x, y):
    ...         return np.concatenate([x * (y == 0), x * (y == 1)])
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    ...     def most_violated(self, x, y, w, rescaling):
    ...         return max((0, 1), key=lambda c: self.loss(y, c) + w @ self.joint_feature(x, c))
    ...     def predict(self, x, w):
    ...         return max((0, 1), key=lambda c: w @ self.joint_feature(x, c))
    >>> problem = Parity().bind([np.array([1.0, 0.0]), np.array([0.0, 1.0])], [0, 1])
    >>> check_problem(problem)
    """

    X: Sequence[Any] = ()
    Y: Sequence[Any] = ()
    n_features: int | None = None
    #: Native problems build valid planes by construction; those of a user are checked in training.
    trusted: bool = False
    exact: bool = True
    rescalings: tuple[Rescaling, ...] = ("margin",)
    loss_unit: float = 0.0
    #: Whether ``oracle`` may be called by several threads at once, and releases the GIL.
    in_threads: bool = False
    #: Whether weights have a meaning one by one, so that each can be constrained.
    has_features: bool = True

    @property
    def n_examples(self) -> int:
        """Number of bound examples."""
        return len(self.X)

    def bind(self, X: Sequence[Any], Y: Sequence[Any]) -> Problem:
        """Return a copy of the problem that holds these examples."""
        if len(X) != len(Y):
            shorter = min(len(X), len(Y))
            raise ValueError(
                f"X has {len(X)} examples but Y has {len(Y)}; first without a partner: {shorter}"
            )
        bound = copy.copy(self)
        bound.X, bound.Y = X, Y
        if bound.n_features is None and len(X):
            bound.n_features = _width(bound.joint_feature(X[0], Y[0]))
        n = bound.n_features
        if n is not None and (not isinstance(n, Real) or n < 0 or n != int(n)):
            raise ValueError(f"n_features must be a whole number >= 0, got {n!r}")
        return bound

    # ----- what a problem in plain Python writes ------------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> Any:
        """``psi(x, y)`` as a dense vector, a sparse row or a dict ``{index: value}``."""
        raise NotImplementedError(f"{type(self).__name__} must define joint_feature(x, y)")

    def loss(self, y: Any, y_hat: Any) -> float:
        """``Delta(y, y_hat) >= 0``, zero at ``y_hat = y``."""
        raise NotImplementedError(f"{type(self).__name__} must define loss(y, y_hat)")

    def most_violated(self, x: Any, y: Any, w: Floats, rescaling: Rescaling) -> Any:
        """``argmax_y`` of what the rescaling asks for; see `oracle`.

        With margin rescaling that is ``loss(y) + <w, psi(x, y)>``. It is called with the
        rescalings that the class declares in ``rescalings``, by default margin rescaling alone.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define most_violated(x, y, w, rescaling)"
        )

    def predict(self, x: Any, w: Floats) -> Any:
        """``argmax_y <w, psi(x, y)>``."""
        raise NotImplementedError(f"{type(self).__name__} must define predict(x, w)")

    # ----- the narrow waist ---------------------------------------------------------------------

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes | BoundedPlanes:
        """Return the most violated candidate of each listed example.

        Parameters
        ----------
        indices : array of int
            Examples to ask for.
        w : array of shape (n_features,)
            Weights.
        rescaling : {"margin", "slack", "none"}
            What the loss rescales.
        sqrt_loss : bool
            Search with the square root of the loss. Problems in plain Python do not support it
            unless they override this method.

        Returns
        -------
        Planes or BoundedPlanes
            One row of ``dpsi`` and one (plain) loss for each index; with bounds on the largest
            violations where the candidates may not reach them.
        """
        if sqrt_loss:
            raise ValueError(
                f"{type(self).__name__} has no oracle for the square root of the loss; "
                "use slack='l1' or sqrt_loss=False, or override oracle()"
            )
        rows, losses = [], np.empty(len(indices))
        for row, i in enumerate(indices):
            found: list[Any] = []
            try:
                x, y = self.X[i], self.Y[i]
                candidate = self.most_violated(x, y, w, rescaling)
                found.append(candidate)
                losses[row] = loss_value(self.loss(y, candidate), int(i))
                rows.append(difference(self.joint_feature(x, y), self.joint_feature(x, candidate)))
            except Exception as error:
                _raise_for_search(error, found, int(i))
        return stack(rows, losses)

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Return the k best candidates of each listed example; optional.

        The k outputs other than the truth with the largest values, by the formulas of `oracle`
        (``rescaling="none"`` ranks by the plain score), whatever the sign of these values.

        Parameters
        ----------
        indices : array of int
            Examples to ask for.
        w : array of shape (n_features,)
            Weights.
        k : int
            How many candidates to return for each.
        rescaling : {"margin", "slack", "none"}
            What the loss rescales; a problem need not support all of them.
        sqrt_loss : bool
            Search with the square root of the loss.

        Returns
        -------
        Planes
            ``k`` rows for each index, best first: rows ``r * k`` to ``r * k + k - 1`` are those of
            ``indices[r]``. All are different outputs. Where there are not enough of them, the last
            rows are empty, with loss 0.
        """
        raise ValueError(
            f"{type(self).__name__} has no search for the k best outputs; use a solver that needs "
            "one candidate at a time, or define k_best()"
        )

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Return the predicted output of each listed example, ``argmax_y <w, psi(x, y)>``.

        Rows are like those of `oracle`: empty, with loss 0, where the prediction is the truth. Here
        the predictions are the oracle's answers at weights so large that the loss breaks ties only.
        """
        return split_bounds(self.oracle(indices, w * LARGE, "margin"))[0]

    def subset(self, indices: Ints) -> Problem:
        """Return the problem of these examples alone, in this order.

        Parts of a problem can be searched apart from each other, on other cores or machines.
        """
        return self.bind([self.X[i] for i in indices], [self.Y[i] for i in indices])

    def draw_weights(self, rng: np.random.Generator) -> Floats:
        """Random weights that the oracle may be asked with, for `check_problem`."""
        return rng.normal(size=self.n_features)

    def predictor(self, weights: Sequence[Floats]) -> tuple[Problem, list[Floats]]:
        """The problem without its examples, and the weights that it then predicts by.

        ``weights`` are what was learned, for one C or for several.
        """
        without = copy.copy(self)
        without.X, without.Y = (), ()
        return without, list(weights)

    # ----- what only native problems offer -------------------------------------------------------

    def accelerators(self, formulation: Formulation) -> Any:
        """Faster ways to the oracle's answers, see `engine.accelerators`; None: there are none."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Inherited accelerators and threads belong to the inherited oracle, not to a new one
        # (`_most_violated` is the search of a packed problem's oracle).
        own = vars(cls)
        if "oracle" not in own and "_most_violated" not in own:
            return
        if "accelerators" not in own:
            cls.accelerators = Problem.accelerators  # type: ignore[method-assign]
        if "in_threads" not in own:
            cls.in_threads = False


def raise_for_example(error: Exception, i: int) -> NoReturn:
    """Raise what a user's method has raised, with a note of the example, from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(f"(raised for example {i})")
    raise error


def _raise_for_search(error: Exception, found: list[Any], i: int) -> NoReturn:
    """The same for an oracle in plain Python; ``found`` is empty where the search itself failed."""
    if not found:
        if isinstance(error, TypeError) and "most_violated() takes" in str(error):
            raise TypeError(
                f"{error}: it must have the arguments (x, y, w, rescaling); rescaling is 'margin' "
                "unless the class declares others"
            ) from error
        raise_for_example(error, i)
    if found[0] is None:
        raise ValueError(
            f"most_violated returned None for example {i}; is a return missing?"
        ) from error
    if hasattr(error, "add_note"):
        error.add_note(f"(loss or joint_feature of most_violated's output {found[0]!r:.60})")
    raise_for_example(error, i)


def loss_value(loss: Any, i: int) -> float:
    """What ``loss`` has returned for an example."""
    try:
        return float(loss)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"loss(y, y_hat) is {loss!r:.60} for example {i}; it must be a number"
        ) from None


def _width(features: Any) -> int:
    """Number of features of what ``joint_feature`` has returned for the first example."""
    if features is None:
        raise ValueError("joint_feature returned None for example 0; is a return missing?")
    if isinstance(features, Mapping) and not sp.issparse(features):
        raise ValueError("joint_feature returns a dict, so the problem must set n_features itself")
    shape = features.shape if sp.issparse(features) else np.shape(features)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
        raise ValueError(
            f"joint_feature returned {type(features).__name__} for example 0, of shape {shape}; "
            "expected a vector"
        )
    return int(shape[-1])
