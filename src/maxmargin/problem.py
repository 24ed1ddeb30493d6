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
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .formulation import Formulation, Rescaling
from .types import Floats, Ints, Ints32

__all__ = ["Planes", "Problem", "check_problem"]

Row = tuple[Ints32, Floats]  # indices and values
LARGE = 2.0**40  # times weights, makes any loss small; a power of two, so that nothing is rounded


class Planes(NamedTuple):
    """Candidates as CSR rows of ``dpsi`` with their losses; row r is the r-th example asked for.

    A column may occur more than once in a row; its values add up.
    """

    indptr: Ints
    indices: Ints32
    values: Floats
    losses: Floats


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
            features = bound.joint_feature(X[0], Y[0])
            if isinstance(features, Mapping):
                raise ValueError(
                    "joint_feature returns a dict, so the problem must set n_features itself"
                )
            bound.n_features = int(features.shape[-1] if sp.issparse(features) else len(features))
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

        With margin rescaling that is ``loss(y) + <w, psi(x, y)>``. An oracle that serves one
        rescaling only should refuse the others: an output that is not the most violated one makes
        certificates wrong.
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
    ) -> Planes:
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
        Planes
            One row of ``dpsi`` and one (plain) loss for each index.
        """
        if sqrt_loss:
            raise ValueError(
                f"{type(self).__name__} has no oracle for the square root of the loss; "
                "use slack='l1' or sqrt_loss=False, or override oracle()"
            )
        rows, losses = [], np.empty(len(indices))
        for row, i in enumerate(indices):
            x, y = self.X[i], self.Y[i]
            candidate = self.most_violated(x, y, w, rescaling)
            losses[row] = self.loss(y, candidate)
            rows.append(_difference(self.joint_feature(x, y), self.joint_feature(x, candidate)))
        return _stack(rows, losses)

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
            f"{type(self).__name__} has no search for the k best outputs; use a solver that asks "
            "for one candidate at a time, or define k_best()"
        )

    def predictions(self, indices: Ints, w: Floats) -> Planes:
        """Return the predicted output of each listed example, ``argmax_y <w, psi(x, y)>``.

        Rows are like those of `oracle`: empty, with loss 0, where the prediction is the truth. Here
        the predictions are the oracle's answers at weights so large that the loss breaks ties only.
        """
        return self.oracle(indices, w * LARGE, "margin")

    def oracle_at_scale(
        self,
        indices: Ints,
        v: Floats,
        scale: float,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Return the answer of `oracle` at ``w = scale * v``, where ``scale > 0``.

        Online solvers that shrink all weights at every step keep them in this form. Here w is made,
        which costs time by the number of features; a problem with very many does without it.
        """
        return self.oracle(indices, scale * v, rescaling, sqrt_loss)

    #: Layout of parts (see `maxmargin.engine.parts`), for problems that define `part_oracle`.
    parts: Any = None

    def part_oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Like `oracle`, with the rows of dpsi given in parts instead of features."""
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    def online_pass(
        self,
        examples: Ints,
        weights: Floats,
        formulation: Formulation,
        rule: Any,
        state: Any,
    ) -> bool:
        """Let an online solver visit examples one after the other in compiled code; optional.

        For each of ``examples``, find its candidate at the weights in ``state`` - the prediction if
        ``rule.plain``, the most violated output of the formulation otherwise - and call
        `engine.online_steps.single_step` with it and with the example's entry of ``weights``.
        Returns False, having done nothing, where this is not offered: the solver then asks the
        oracle.
        """
        return False

    def compact_store(self, formulation: Formulation, caps: Floats, cache_bytes: int) -> Any:
        """Return a plane store made for this problem, or None to use the general one."""
        return None

    def complete_pool(self, formulation: Formulation) -> Any:
        """Return a pool that knows every candidate (see `cuts.pool`), or None if there is none."""
        return None


def _entries(features: Any) -> Row:
    """Turn any joint feature vector into (indices, values)."""
    if isinstance(features, Mapping):
        return (
            np.fromiter(features.keys(), dtype=np.int32, count=len(features)),
            np.fromiter(features.values(), dtype=np.float64, count=len(features)),
        )
    if sp.issparse(features):
        row = features.tocoo()
        return row.col.astype(np.int32), row.data.astype(np.float64)
    dense = np.asarray(features, dtype=np.float64).ravel()
    indices = np.flatnonzero(dense)
    return indices.astype(np.int32), dense[indices]


def _difference(truth: Any, candidate: Any) -> Row:
    """``psi(x, y_i) - psi(x, y)`` as (indices, values)."""
    if isinstance(truth, np.ndarray) and isinstance(candidate, np.ndarray):
        return _entries(truth - candidate)
    plus, minus = _entries(truth), _entries(candidate)
    # What both have cancels: the truth itself is an empty row, not one that rounds to about zero.
    columns, places = np.unique(np.concatenate([plus[0], minus[0]]), return_inverse=True)
    values = np.bincount(places, np.concatenate([plus[1], -minus[1]]), len(columns))
    kept = np.flatnonzero(values)
    return columns[kept], values[kept].astype(np.float64, copy=False)


def _stack(rows: list[Row], losses: Floats) -> Planes:
    """Stack (indices, values) rows."""
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(indices) for indices, _ in rows], out=indptr[1:])
    if not rows:
        return Planes(indptr, np.empty(0, np.int32), np.empty(0), losses)
    return Planes(
        indptr,
        np.concatenate([indices for indices, _ in rows]),
        np.concatenate([values for _, values in rows]),
        losses,
    )


def empty_planes(n_rows: int, capacity: int) -> Planes:
    """Room for so many rows with at most so many entries in all, for a kernel to fill."""
    return Planes(
        np.zeros(n_rows + 1, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity),
        np.zeros(n_rows),
    )


def trim(planes: Planes) -> Planes:
    """Cut off the room that no row has taken."""
    filled = planes.indptr[-1]
    return planes._replace(indices=planes.indices[:filled], values=planes.values[:filled])


def stack_k_best(found: list[list[tuple[Row, float]]], k: int) -> Planes:
    """The answer of `Problem.k_best` from (row, loss) lists, one for each example, k at most."""
    nothing = (np.empty(0, np.int32), np.empty(0)), 0.0
    filled = [pair for listed in found for pair in listed + [nothing] * (k - len(listed))]
    return _stack([row for row, _ in filled], np.array([loss for _, loss in filled], np.float64))


def validate_planes(planes: Planes, indices: Ints, n_features: int) -> None:
    """Raise ValueError, naming the example, if an oracle's answer cannot be used."""
    losses = np.asarray(planes.losses)
    if losses.shape != (len(indices),) or len(planes.indptr) != len(indices) + 1:
        raise ValueError(
            f"the oracle was asked for {len(indices)} examples and returned {len(losses)} losses "
            f"and {len(planes.indptr) - 1} rows"
        )
    n_entries = len(planes.indices)
    steps = np.diff(planes.indptr)
    ends = (planes.indptr[0], planes.indptr[-1], len(planes.values))
    if ends != (0, n_entries, n_entries) or (steps < 0).any():
        raise ValueError("the oracle's indptr, indices and values do not fit each other")
    bad = np.flatnonzero(~(losses >= 0) | ~np.isfinite(losses))
    if len(bad):
        raise ValueError(
            f"the oracle returned loss {losses[bad[0]]} for example {indices[bad[0]]}; "
            "losses must be finite and >= 0"
        )
    wrong = ~np.isfinite(planes.values) | (planes.indices < 0) | (planes.indices >= n_features)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(planes.indptr, entry, side="right")) - 1
        raise ValueError(
            f"the oracle's feature difference for example {indices[row]} has value "
            f"{planes.values[entry]} at index {planes.indices[entry]}; values must be finite and "
            f"indices in 0..{n_features - 1}"
        )


def check_problem(
    problem: Problem,
    *,
    outputs: Callable[[Any], Iterable[Any]] | None = None,
    candidates: Callable[[Any, np.random.Generator], Any] | None = None,
    rescalings: Sequence[Rescaling] = ("margin",),
    n_weights: int = 3,
    max_examples: int = 20,
    random_state: int = 0,
) -> None:
    """Test a problem and raise an error that names the first thing that is wrong with it.

    Checked, on random weights and the first examples: losses are non-negative and zero at the
    truth; the rows of an overridden oracle agree with ``joint_feature`` of ``most_violated``'s
    candidate; the oracle's value is no worse than that of the truth, of the prediction and of
    random candidates, and, where all outputs can be listed, equals the best of them; the
    prediction has the best score.

    Parameters
    ----------
    problem : Problem
        A problem with examples bound to it.
    outputs : callable, optional
        ``outputs(x)`` lists every output of ``x``; enables the exhaustive checks.
    candidates : callable, optional
        ``candidates(x, rng)`` draws a random output of ``x``.
    rescalings : sequence of str
        Rescalings to test.
    n_weights : int
        Number of weight vectors, the zero vector included.
    max_examples : int
        Number of examples to test.
    random_state : int
        Seed of the weights and candidates.

    Raises
    ------
    ValueError
        If a check fails; the message names the example.
    """
    rng = np.random.default_rng(random_state)
    n = min(problem.n_examples, max_examples)
    if n == 0:
        raise ValueError("the problem has no examples; bind them with problem.bind(X, Y)")
    if problem.n_features is None:
        raise ValueError("the problem has no n_features")
    if len(problem.X) < n or len(problem.Y) < n:
        raise ValueError(
            f"{type(problem).__name__} holds its examples in a form of its own; check_problem "
            "needs X, Y, joint_feature, loss and predict"
        )
    indices = np.arange(n)
    for k in range(n_weights):
        w = rng.normal(size=problem.n_features) * (k > 0)
        for rescaling in rescalings:
            planes = problem.oracle(indices, w, rescaling)
            validate_planes(planes, indices, problem.n_features)
            for i in range(n):
                _check_example(
                    problem, planes, i, w, Formulation(rescaling), outputs, candidates, rng
                )


def _check_example(
    problem: Problem,
    planes: Planes,
    i: int,
    w: Floats,
    formulation: Formulation,
    outputs: Callable[[Any], Iterable[Any]] | None,
    candidates: Callable[[Any, np.random.Generator], Any] | None,
    rng: np.random.Generator,
) -> None:
    """Check the oracle's answer for one example at one weight vector."""
    x, y = problem.X[i], problem.Y[i]
    rescaling = formulation.rescaling
    psi_truth = _dense(problem.joint_feature(x, y), problem.n_features)

    def value(loss: float, margin: float) -> float:
        offset, scale = formulation.plane_terms(np.array([loss]))
        return float(offset[0] - scale[0] * margin)

    def candidate_value(y_hat: Any) -> float:
        loss = problem.loss(y, y_hat)
        if not loss >= 0:
            raise ValueError(f"loss(y, y_hat) is {loss} for example {i}; it must be >= 0")
        return value(loss, float(w @ (psi_truth - _dense(problem.joint_feature(x, y_hat), len(w)))))

    if problem.loss(y, y) != 0:
        raise ValueError(f"loss(y, y) is {problem.loss(y, y)} for example {i}; it must be 0")
    row = slice(planes.indptr[i], planes.indptr[i + 1])
    margin = float(planes.values[row] @ w[planes.indices[row]])
    found = value(float(planes.losses[i]), margin)
    if not problem.trusted and type(problem).oracle is not Problem.oracle:
        _check_row(problem, planes, i, psi_truth, w, rescaling)
    rivals: list[tuple[str, Any]] = [("the prediction", problem.predict(x, w))]
    rivals += [("another candidate", candidates(x, rng)) for _ in range(5)] if candidates else []
    listed = list(outputs(x)) if outputs else []
    rivals += [("a listed output", y_hat) for y_hat in listed]
    tolerance = 1e-8 * (1.0 + abs(found))
    if rescaling != "none" and found < -tolerance:
        raise ValueError(
            f"the {rescaling} oracle's candidate for example {i} has value {found:.6g}, worse than "
            "the truth, whose value is 0"
        )
    for name, y_hat in rivals:
        rival = candidate_value(y_hat)
        if rival > found + tolerance:
            raise ValueError(
                f"the {rescaling} oracle's candidate for example {i} has value {found:.6g}, but "
                f"{name} ({y_hat!r}) has {rival:.6g}"
            )
    if listed:
        scores = [float(w @ _dense(problem.joint_feature(x, y_hat), len(w))) for y_hat in listed]
        score = float(w @ _dense(problem.joint_feature(x, problem.predict(x, w)), len(w)))
        if score < max(scores) - tolerance:
            raise ValueError(
                f"predict gives example {i} an output of score {score:.6g}, but the best has "
                f"{max(scores):.6g}"
            )


def _check_row(
    problem: Problem, planes: Planes, i: int, psi_truth: Floats, w: Floats, rescaling: Rescaling
) -> None:
    """Check that an overridden oracle's row agrees with joint_feature and loss, where defined."""
    if type(problem).most_violated is Problem.most_violated:
        return
    x, y = problem.X[i], problem.Y[i]
    row = slice(planes.indptr[i], planes.indptr[i + 1])
    dpsi = np.bincount(planes.indices[row], planes.values[row], minlength=len(w))
    candidate = problem.most_violated(x, y, w, rescaling)
    expected = psi_truth - _dense(problem.joint_feature(x, candidate), len(w))
    same_loss = np.isclose(planes.losses[i], problem.loss(y, candidate))
    if same_loss and not np.allclose(dpsi @ w, expected @ w):
        raise ValueError(
            f"the oracle's row for example {i} is not psi(x, y_i) - psi(x, y) of most_violated's "
            "candidate"
        )


def _dense(features: Any, n_features: int | None) -> Floats:
    """Turn any joint feature vector into a dense one, checking its size."""
    indices, values = _entries(features)
    if len(indices) and (indices.min() < 0 or (n_features and indices.max() >= n_features)):
        raise ValueError(
            f"joint_feature returned index {indices.max()}, but n_features is {n_features}"
        )
    return np.bincount(indices, values, minlength=n_features or 0).astype(np.float64)
