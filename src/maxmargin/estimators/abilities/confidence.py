"""How sure an estimator is of its outputs: margins, and probabilities once it is calibrated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...checkpoints import HELD_OUT, part_of
from ...progress import Loop, running_clock
from ...solvers.base import checked_weights
from ...utils.schema import from_values
from ...utils.sklearn_bases import clone
from ...utils.types import Floats, Ints
from ...utils.warn import warn_user
from ..examples import examples_at, n_examples_of
from ..parameters import training_options

__all__ = [
    "CalibratedMethod",
    "Calibration",
    "Confidences",
    "TokenConfidences",
    "fit_calibration",
    "margins_of",
    "probabilities_of",
    "temperature_of",
]

N_FOLDS = 3
NOTHING: Mapping[str, Any] = MappingProxyType({})
BLOCKS = 5  # of a fold: neighbouring sentences are of one document, and sorted data are spread


class Calibration(NamedTuple):
    """What turns scores into probabilities, ``P(y | x)`` proportional to ``exp(score / T)``.

    Attributes
    ----------
    temperature : float
        T.
    log_loss : float
        Mean negative logarithm of the probabilities of the right labels (heads, classes) there.
    n_positions : int
        How many of these the temperature was fitted on.
    """

    temperature: float
    log_loss: float
    n_positions: int


class Outputs(Protocol):
    """What confidences are asked of; see `maxmargin.search.distribution.Distribution`."""

    def margins(self) -> Any:
        """Margins of all choices."""

    def lengths(self) -> Ints:
        """How many positions each example has."""

    def log_likelihoods(self, gold: Any, temperature: float) -> Floats:
        """Of the right choices, one for each position."""


Part = tuple[Outputs, Any, Floats | None]  # with the right choices, and weights of examples


class CalibratedMethod:
    """A method that an estimator has only if it is calibrated, or will be by `fit`; a decorator."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        if not estimator.probability and not hasattr(estimator, "calibration_"):
            raise AttributeError(
                f"{self.method.__name__} needs a calibrated {type(estimator).__name__}: call "
                "calibrate(X, y) with held-out examples, or fit with probability=True"
            )
        return MethodType(self.method, estimator)


@dataclass(kw_only=True, eq=False, repr=False)
class Confidences:
    """Estimators that say how sure they are.

    Parameters
    ----------
    probability : bool, default=False
        Let ``fit`` also find what `predict_proba` needs, by three more fits, each on two thirds of
        the examples, and the temperature that makes the remaining ones most likely. With examples
        to spare, `calibrate` does it without more fits.
    """

    probability: bool = False

    if TYPE_CHECKING:  # of the estimators that inherit from this

        def _check_fitted(self) -> None: ...

    def calibrate(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Find the temperature that makes right labels most likely, for `predict_proba`.

        Parameters
        ----------
        X : inputs
            As for `fit`, but not those that were trained on: of these the model is too sure.
        y : outputs
            As for `fit`, all of them known.
        sample_weight : array of shape (n_examples,), optional
            Weight of each example in the likelihood; by default 1.

        Returns
        -------
        self
            With ``calibration_`` set.
        """
        self._check_fitted()
        weights = sample_weight
        if weights is not None:
            weights = checked_weights(weights, n_examples_of(X if y is None else y))
        part = (*self._with_gold(X, y), weights)
        self.calibration_: Calibration = _fitted_temperature([part])
        return self

    def predict_margins(self, X: Any) -> Any:
        """By how much each class beats the best other one.

        Parameters
        ----------
        X : inputs
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_examples, n_classes)
            The score of a class minus the largest of the others: positive for the class that is
            predicted, and then how much worse the next one is.
        """
        return margins_of(self, self._distribution(X))

    @CalibratedMethod
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; the estimator has to be calibrated.

        Parameters
        ----------
        X : inputs
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_examples, n_classes)
            In the order of ``classes_``; rows sum to 1.
        """
        return probabilities_of(self, self._distribution(X))

    # ----- what estimators provide --------------------------------------------------------------

    def _distribution(self, X: Any) -> Any:
        """The outputs of X and their scores."""
        raise NotImplementedError

    def _with_gold(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The same, and numbers of the right choices at all positions, -1 for unknown ones."""
        raise NotImplementedError

    def _set_calibration(self, values: dict[str, Any]) -> None:
        """Take up what a model file says."""
        found = from_values(Calibration, values, "calibration")
        if not (np.isfinite(found.temperature) and found.temperature > 0.0):
            raise ValueError(
                f"calibration.temperature: expected a positive number, found {found.temperature}"
            )
        self.calibration_ = found

    def _set_weights(self, w: Floats) -> None:
        """See `Savable`: a calibration is for the weights it was found with."""
        super()._set_weights(w)  # type: ignore[misc]
        self.__dict__.pop("calibration_", None)


class TokenConfidences(Confidences):
    """Estimators of outputs with many parts, of which some may be known."""

    n_jobs: int | None

    def predict_margins(self, X: Any, fixed: Any = None) -> Any:
        """By how much each label beats the best other one, token by token (max-marginals).

        Parameters
        ----------
        X : inputs
            As for `predict`.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of ndarray of shape (n_tokens, n_labels)
            The score of the best output with a label at a token minus that of the best output with
            another label there: positive for what is predicted, and then how much worse the best
            other output is. -inf for a label that cannot be, inf for the only one that can.
        """
        return self._tables(X, fixed, lambda outputs: outputs.margins())

    @CalibratedMethod
    def predict_proba(self, X: Any, fixed: Any = None) -> Any:
        """Probabilities of the labels of each token; the estimator has to be calibrated.

        Parameters
        ----------
        X : inputs
            As for `predict`.
        fixed : list, optional
            What is known already, as for `predict`; probabilities are those given that.

        Returns
        -------
        list of ndarray of shape (n_tokens, n_labels)
            Marginals over all outputs, in the order of ``classes_``; rows sum to 1. The most
            probable labels need not be those of the best output.
        """
        temperature = temperature_of(self)
        return self._tables(X, fixed, lambda outputs: outputs.probabilities(temperature))

    def _tables(self, X: Any, fixed: Any, read: Callable[[Any], Any]) -> Any:
        """What is read from the outputs, as users get it."""
        outputs = self._distribution(X, fixed)
        outputs.n_jobs = self.n_jobs
        return outputs.shown(read(outputs))

    def _distribution(self, X: Any, fixed: Any = None) -> Any:
        """See `Confidences`."""
        raise NotImplementedError


def margins_of(estimator: Any, outputs: Any) -> Any:
    """Margins as users get them."""
    outputs.n_jobs = estimator.n_jobs
    return outputs.shown(outputs.margins())


def probabilities_of(estimator: Any, outputs: Any) -> Any:
    """Probabilities as users get them."""
    outputs.n_jobs = estimator.n_jobs
    return outputs.shown(outputs.probabilities(temperature_of(estimator)))


def temperature_of(estimator: Any) -> float:
    """What scores are divided by."""
    if not hasattr(estimator, "calibration_"):  # with probability=True: it was promised
        raise AttributeError(
            f"this {type(estimator).__name__} is not calibrated, because its training was "
            "interrupted, done by partial_fit, or for many C at once; call calibrate(X, y) "
            "with held-out examples"
        )
    return float(estimator.calibration_.temperature)


def fit_calibration(
    estimator: Any,
    X: Any,
    y: Any,
    shared: Mapping[str, Any] = NOTHING,
    *,
    groups: Any = None,
    inputs_at: Callable[[Any, Ints], Any] = examples_at,
    **of_examples: Any,
) -> None:
    """After training on these: find the temperature by folds, if that is wanted.

    ``of_examples`` are what `fit` takes besides, with an entry for each example, or None;
    ``shared`` is what it takes for all of them. ``groups`` are classes of examples, the same share
    of which all folds should have; ``inputs_at`` gives the inputs of some examples.
    """
    if not estimator.probability or estimator.result_.status == "interrupted":
        return
    try:
        with running_clock("calibration") as clock, clock.loop(N_FOLDS) as loop:
            found = _held_out(estimator, X, y, of_examples, shared, groups, inputs_at, loop)
            estimator.calibration_ = _fitted_temperature(found)
    except KeyboardInterrupt:  # the model is complete, and may have taken hours
        warn_user("the calibration was interrupted; the model is kept, without probabilities")


def _held_out(
    estimator: Any,
    X: Any,
    y: Any,
    more: dict[str, Any],
    shared: Mapping[str, Any],
    groups: Any,
    inputs_at: Callable[[Any, Ints], Any],
    loop: Loop,
) -> Iterable[Part]:
    """Outputs of the examples of each fold, by models of the others."""
    n = n_examples_of(X if y is None else y)
    if n < N_FOLDS:
        raise ValueError(
            f"probability=True holds out a third of the examples, so it needs at least "
            f"{N_FOLDS}; got {n}"
        )
    plain = {"probability": False, "warm_start": False, "verbose": 0}
    for number, held_out in enumerate(_folds(n, groups)):
        loop.begin(f"calibration {number + 1} of {N_FOLDS}")
        rest = np.setdiff1d(np.arange(n), held_out)
        twin = clone(estimator).set_params(**plain)
        options = training_options(twin.training)
        kept = part_of(options.checkpoint, HELD_OUT, number)
        twin.set_params(training__on_interrupt="raise", training__checkpoint=kept)
        own = {name: np.asarray(m)[rest] for name, m in more.items() if m is not None}
        twin.fit(inputs_at(X, rest), examples_at(y, rest), **own, **shared)
        weights = more.get("sample_weight")
        weights = None if weights is None else np.asarray(weights, np.float64)[held_out]
        inputs, outputs = inputs_at(X, held_out), examples_at(y, held_out)
        yield *twin._with_gold(inputs, outputs), weights


def _fitted_temperature(parts: Iterable[Part]) -> Calibration:
    """The temperature of the largest likelihood of all positions, each by itestimator.

    Marginals are what users read; at the temperature of the largest likelihood of whole outputs
    they are too sure (docs/internals.md has figures). A made-up error at the median margin
    keeps it above 0 where there are no errors, as in Platt's (1999) targets.
    """
    known, outputs, of_positions = [], [], []
    for one, gold, of_examples in parts:
        known.append((one, gold))
        outputs.append(one)
        of_positions.append(None if of_examples is None else np.repeat(of_examples, one.lengths()))
    typical = _typical_margin(outputs, of_positions)

    def likelihoods(temperature: float) -> Floats:
        return np.concatenate([o.log_likelihoods(gold, temperature) for o, gold in known])

    first = likelihoods(typical)
    given = [weights for weights in of_positions if weights is not None]
    weights = np.concatenate(given) if given else np.ones(len(first))
    possible = first > -np.inf
    if not possible.any():
        raise ValueError("y has no labels that the model could predict")
    if not weights[possible].any():
        raise ValueError("sample_weight is 0 wherever the model could be calibrated")
    if not possible.all():
        warn_user(
            f"{np.count_nonzero(~possible)} of {len(possible)} labels are impossible "
            "by the model (unknown, or against its constraints) and left out of the calibration"
        )

    def cost(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        error = np.logaddexp(0.0, typical / temperature)
        return float(error - weights[possible] @ likelihoods(temperature)[possible])

    from scipy.optimize import minimize_scalar

    bounds = np.log(typical) + np.array([-1.0, 1.0]) * np.log(1e4)
    best = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x
    temperature = float(np.exp(best))
    loss = -float(np.average(likelihoods(temperature)[possible], weights=weights[possible]))
    return Calibration(temperature, loss, int(np.count_nonzero(possible)))


def _folds(n: int, groups: Any) -> list[Ints]:
    """Examples of each fold: blocks of neighbours, or the same share of every group."""
    if groups is None:
        n_blocks = min(N_FOLDS * BLOCKS, n)
        # In no order that data could have too, and always the same.
        of_block = np.random.default_rng(0).permutation(np.arange(n_blocks) % N_FOLDS)
        fold = of_block[np.arange(n) * n_blocks // n]
    else:
        fold = np.empty(n, np.int64)
        fold[np.argsort(groups, kind="stable")] = np.arange(n) % N_FOLDS
    return [np.flatnonzero(fold == f) for f in range(N_FOLDS)]


def _typical_margin(outputs: Iterable[Any], of_positions: Iterable[Floats | None]) -> float:
    """The median of the margins of what is predicted, which tells the scale of the scores."""
    margins, weights = [np.empty(0)], [np.empty(0)]
    for one, given in zip(outputs, of_positions, strict=True):
        start = 0
        for table in one.margins():
            own = np.ones(len(table)) if given is None else given[start : start + len(table)]
            margins.append(np.ravel(table))
            weights.append(np.repeat(own, table.size // max(len(table), 1)))
            start += len(table)
    found, shares = np.concatenate(margins), np.concatenate(weights)
    counts = (found > 0.0) & np.isfinite(found) & (shares > 0.0)
    if not counts.any():
        return 1.0
    order = np.argsort(found[counts], kind="stable")
    ends = np.cumsum(shares[counts][order])
    middle = [np.searchsorted(ends, 0.5 * ends[-1], side=side) for side in ("left", "right")]
    return float(found[counts][order][middle].mean())
