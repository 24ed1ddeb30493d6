"""Coordinates of points (x, y) that are known by a joint kernel alone.

Points that planes are made of are numbered as they come. With ``L L' = K``, the Cholesky factor of
their kernel matrix, row t of L is the feature vector of point t: inner products of rows are the
kernel's values. A new point with values k adds one row,

    z = L^-1 k,   rest = sqrt(K(p, p) - |z|^2),   row = (z, rest),

so that old coordinates never change, and a point that the others span (rest = 0) adds none. Weights
that are sums of such rows have a score <w, z> for every other point, whatever is left of it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...engine.training.state import Arrays, add_prefix, check_budget, from_text, to_text
from ...utils.schema import Amount, Count, checked_arrays, from_values, numbers, whole
from ...utils.types import Bools, Floats, Ints
from ...utils.warn import warn_user

__all__ = ["Expansion", "KernelPoints", "KernelReport", "KernelValues", "output_key"]

#: ``kernel(x, outputs, X2, Y2)``: values of the pairs (x, y) with the points, a row for each y.
KernelValues = Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], Floats]

SPANNED = 1e-12  # share of a point's squared norm below which nothing is left of it
NEGATIVE = 1e-6  # share below zero that is more than rounding
SYMMETRIC = 1e-8
NO_COEFFICIENT = 1e-8  # share of the largest one below which a coefficient is dropped
FIRST_POINTS = 64  # that room is made for


class KernelReport(NamedTuple):
    """What stands for a joint kernel: points, bytes, and what was left out of them.

    Attributes
    ----------
    n_points : int
        Points that have coordinates of their own.
    n_bytes : int
        Bytes of their triangular factor, and of the values kept of other outputs.
    largest_residual : float
        Largest share of the squared norm of a plane's point that those lack; 0 unless
        ``max_points`` were not enough.
    """

    n_points: int
    n_bytes: int
    largest_residual: float


class Texts(Protocol):
    """Outputs as texts; see `output_texts.OutputTexts`."""

    def text(self, i: int, y: Any) -> str:
        """The text of an output of an example, which is JSON."""

    def outputs(self, examples: Sequence[int], forms: Sequence[Any]) -> list[Any]:
        """The outputs of these examples that such texts stand for."""


class _KeptNumbers(NamedTuple):
    """Which points there are, of which outputs something is known, and the room there is."""

    examples: list[Count]
    seen: list[Count]
    room: Count
    largest: Amount
    largest_residual: Amount


@dataclass
class Expansion:
    """Points with coefficients: scores are sums of coefficients times values of the kernel."""

    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.outputs)

    def coordinates(self, kernel: KernelValues, x: Any, outputs: Sequence[Any]) -> Floats:
        """Values with the points, a row for each output of an input."""
        return checked_values(kernel, x, outputs, self.inputs, self.outputs)

    def coefficients(self, w: Floats) -> Floats:
        """The weights are coefficients."""
        return w


class KernelPoints:
    """Points that planes are made of, with their coordinates, for the inputs of training.

    Parameters
    ----------
    inputs, truths : sequence
        Inputs and given outputs, by the numbers of their examples.
    max_points : int
        Bound on the points with coordinates of their own. Others are projected on their span.
    cache_bytes : float
        Bound on what is kept of the coordinates of all outputs that were looked at.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        truths: Sequence[Any],
        max_points: int,
        cache_bytes: float,
    ) -> None:
        self.inputs = inputs
        self.truths = truths
        self.max_points = max_points
        self.cache_bytes = cache_bytes
        self.points = Expansion()
        self.examples: list[int] = []  # of the points
        self.largest_residual = 0.0
        self._factor: Floats = np.zeros((0, 0))
        self._places: dict[tuple[int, Hashable], int] = {}
        self._texts: list[str] = []  # of the first points' outputs
        self._seen: dict[int, _Seen] = {}
        self._largest = 0.0  # squared norm of a point
        self._cached = 0  # bytes
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be computed again."""
        again: dict[str, Any] = {"_seen": {}, "_texts": [], "_cached": 0}
        return {**self.__dict__, **again, "_factor": self.factor.copy()}

    @property
    def size(self) -> int:
        """Number of points."""
        return self.points.size

    @property
    def factor(self) -> Floats:
        """L, lower triangular."""
        return self._factor[: self.size, : self.size]

    @property
    def report(self) -> KernelReport:
        """What there is."""
        n_bytes = self._factor.nbytes + self._cached
        return KernelReport(self.size, n_bytes, self.largest_residual)

    # ----- coordinates --------------------------------------------------------------------------

    def coordinates(self, kernel: KernelValues, x: Any, outputs: Sequence[Any]) -> Floats:
        """Coordinates of outputs of any input in the span of the points; nothing is kept."""
        return self._more(kernel, x, outputs, np.zeros((len(outputs), 0)))

    def coefficients(self, w: Floats) -> Floats:
        """``L^-T w``: the score of any (x, y) is the sum of these times values with the points."""
        if not self.size:
            return np.empty(0)
        return solve_triangular(self.factor, w[: self.size], lower=True, trans="T")

    def of_example(self, kernel: KernelValues, i: int, outputs: Sequence[Any]) -> Floats:
        """Coordinates of outputs of an example in the span of the points; they are kept."""
        n, keys = self.size, [output_key(y) for y in outputs]
        seen = self._seen.setdefault(i, _Seen())
        new = {key: y for key, y in zip(keys, outputs, strict=True) if key not in seen.rows}
        n_rows, n_columns = seen.shape_for(len(new), n)
        more = 8 * n_rows * n_columns - seen.table.nbytes
        if self._cached + more > self.cache_bytes:
            self._cached -= seen.table.nbytes
            del self._seen[i]
            return self.coordinates(kernel, self.inputs[i], outputs)
        self._cached += more
        seen.add(new, n)
        rows = np.array([seen.rows[key] for key in keys], np.int64)
        behind = seen.n_known[rows] < n
        if behind.any():
            self._catch_up(kernel, i, seen, np.unique(rows[behind]))
        return seen.table[rows, :n]

    def place(self, kernel: KernelValues, i: int, y: Any) -> Floats:
        """Coordinates of an output of an example that a plane is made of; it becomes a point.

        What the bound on the points leaves out is noted, and warned of once.
        """
        key = (i, output_key(y))
        if key in self._places:
            place = self._places[key]
            return self._factor[place, : place + 1]
        z, x = self.of_example(kernel, i, [y])[0], self.inputs[i]
        norm = float(checked_values(kernel, x, [y], [x], [y])[0, 0])
        rest = norm - float(z @ z)
        self._largest = max(self._largest, norm)
        rounding = SPANNED * self._largest
        if norm < -rounding or rest < -NEGATIVE * norm - rounding:
            raise ValueError(self._not_a_kernel(i, y, norm, z))
        if norm <= 0.0 or rest <= SPANNED * norm:
            return z
        if self.size == self.max_points:
            self._leave_out(rest / norm)
            return z
        self._check_symmetry(kernel, i, y, z)
        row = np.append(z, np.sqrt(rest))
        self._make_room()
        self._factor[self.size, : len(row)] = row
        # From here on the point is there, wherever a Ctrl-C comes.
        self.examples.append(i)
        self.points.inputs.append(x)
        self.points.outputs.append(y)
        self._places[key] = len(row) - 1
        return row

    def expansion(self, weights: Sequence[Floats]) -> tuple[Expansion, list[Floats]]:
        """The points that some weights have a coefficient for, and these coefficients."""
        found = [self.coefficients(w) for w in weights]
        kept: Bools = np.zeros(self.size, bool)
        for c in found:
            kept |= np.abs(c) > NO_COEFFICIENT * np.abs(c).max(initial=0.0)
        chosen = np.flatnonzero(kept)
        inputs = [self.points.inputs[t] for t in chosen]
        outputs = [self.points.outputs[t] for t in chosen]
        return Expansion(inputs, outputs), [c[kept] for c in found]

    def _more(self, kernel: KernelValues, x: Any, outputs: Sequence[Any], known: Floats) -> Floats:
        """Coordinates of outputs, of which the first ones are known."""
        start, n = known.shape[1], self.size
        if start == n or not len(outputs):
            return known
        inputs, others = self.points.inputs[start:], self.points.outputs[start:]
        values = checked_values(kernel, x, outputs, inputs, others)
        below, corner = self._factor[start:n, :start], self._factor[start:n, start:n]
        fresh = solve_triangular(corner, (values - known @ below.T).T, lower=True).T
        return np.hstack([known, fresh])

    def _catch_up(self, kernel: KernelValues, i: int, seen: _Seen, rows: Ints) -> None:
        """Complete the coordinates of these rows, those known to the same point together."""
        n = self.size
        for start in np.unique(seen.n_known[rows]):
            same = rows[seen.n_known[rows] == start]
            listed = [seen.outputs[row] for row in same]
            seen.table[same, :n] = self._more(
                kernel, self.inputs[i], listed, seen.table[same, :start]
            )
            seen.n_known[same] = n

    # ----- checkpoints --------------------------------------------------------------------------

    def empty(self) -> KernelPoints:
        """The same inputs, and no points yet."""
        return KernelPoints(self.inputs, self.truths, self.max_points, self.cache_bytes)

    def arrays(self, texts: Texts) -> Arrays:
        """All that later coordinates depend on.

        Coordinates that are known are part of it: those computed again would be rounded otherwise,
        for what is known of an output tells in which steps the rest is found.
        """
        for t in range(len(self._texts), self.size):
            self._texts.append(texts.text(self.examples[t], self.points.outputs[t]))
        kept = _KeptNumbers(
            self.examples, list(self._seen), len(self._factor), self._largest, self.largest_residual
        )
        arrays: Arrays = {
            "numbers": to_text(kept._asdict()),
            "outputs": _joined(self._texts),
            "factor": self.factor,
        }
        for i, seen in self._seen.items():
            arrays |= add_prefix(f"seen {i}", seen.arrays(i, texts))
        return arrays

    def restore(self, arrays: Arrays, texts: Texts) -> None:
        """Take over what `arrays` has given, in place of what there is."""
        kept = from_values(_KeptNumbers, from_text(arrays["numbers"]), "numbers")
        examples, n = kept.examples, len(kept.examples)
        rooms = (max(FIRST_POINTS, 2 * n), self.max_points)
        if not n <= kept.room <= min(rooms) or max([*examples, *kept.seen, 0]) >= len(self.inputs):
            raise ValueError(f"numbers: expected {n} points of {len(self.inputs)} examples")
        outputs = texts.outputs(examples, json.loads(arrays["outputs"].tobytes()))
        seen = {
            i: _Seen.of({name: arrays[f"seen {i}.{name}"] for name in _Seen.names}, i, texts)
            for i in kept.seen
        }
        self._factor = np.zeros((kept.room,) * 2)
        self._factor[:n, :n] = checked_arrays(arrays, {"factor": numbers(n, n)})["factor"]
        self.points = Expansion([self.inputs[i] for i in examples], outputs)
        self.examples, self._texts = examples, []
        keys = [(i, output_key(y)) for i, y in zip(examples, outputs, strict=True)]
        self._places = {key: t for t, key in enumerate(keys)}
        self._seen = seen
        self._cached = sum(own.table.nbytes for own in seen.values())
        self._largest, self.largest_residual = kept.largest, kept.largest_residual

    # ----- bounds -------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """For one more row of the factor."""
        n = self.size
        if n == len(self._factor):
            wider = np.zeros((min(max(FIRST_POINTS, 2 * n), self.max_points),) * 2)
            wider[:n, :n] = self._factor[:n, :n]
            self._factor = wider

    def _leave_out(self, share: float) -> None:
        """Note a point that is projected on the span of the others."""
        self.largest_residual = max(self.largest_residual, share)
        if not self._warned:
            self._warned = True
            n = self.max_points
            warn_user(
                f"planes are made of more than max_points={n} points of the joint kernel: all "
                f"others are projected on the span of these {n}. The weights are the best "
                "expansion over these points, and the gap bounds their distance from that optimum; "
                f"more points may give a better model. Set max_points={2 * n} in the problem, "
                f"which may take {8e-6 * (2 * n) ** 2:.0f} MB"
            )

    # ----- kernels that are none ----------------------------------------------------------------

    def _check_symmetry(self, kernel: KernelValues, i: int, y: Any, z: Floats) -> None:
        """Refuse a kernel that depends on the order of two points: of the new one and the last."""
        if not self.size:
            return
        x, t = self.inputs[i], self.size - 1
        other = self.points.inputs[t], self.points.outputs[t]
        value = float(checked_values(kernel, x, [y], [other[0]], [other[1]])[0, 0])
        swapped = float(checked_values(kernel, other[0], [other[1]], [x], [y])[0, 0])
        if abs(value - swapped) > SYMMETRIC * (1.0 + abs(value)):
            raise ValueError(
                f"joint_kernel is not symmetric: it is {value:.8g} for {_point(i, y)} and "
                f"{_point(self.examples[t], other[1])}, but {swapped:.8g} the other way round"
            )

    def _not_a_kernel(self, i: int, y: Any, norm: float, z: Floats) -> str:
        """What is wrong with a kernel that gives a point a negative squared length."""
        new = _point(i, y)
        if norm < 0.0:
            return f"joint_kernel of {new} with itself is {norm:.6g}; it must be >= 0"
        values = self.factor[:, : len(z)] @ z
        norms = np.einsum("ij,ij->i", self.factor, self.factor)
        t = int(np.argmax(values**2 / norms))
        other = _point(self.examples[t], self.points.outputs[t])
        found = (
            f"joint_kernel is {values[t]:.6g} for {new} and {other}, whose own values are "
            f"{norm:.6g} and {norms[t]:.6g}"
        )
        if values[t] ** 2 > norm * norms[t] * (1.0 + NEGATIVE):
            return f"{found}: no inner product is larger than the lengths allow"
        return (
            f"joint_kernel is not positive semidefinite: the squared length of what {new} has "
            f"apart from {self.size} other points is {norm - float(z @ z):.6g}; of these, {other} "
            f"is nearest ({found})"
        )


class _Seen:
    """Outputs of an example that were looked at, and their coordinates as far as known."""

    names = ("outputs", "known", "n_known", "shape")  # of its arrays

    def __init__(self) -> None:
        self.rows: dict[Hashable, int] = {}
        self.outputs: list[Any] = []
        self.table: Floats = np.zeros((0, 0))
        self.n_known: Ints = np.zeros(0, np.int64)  # coordinates of each
        self._texts: list[str] = []  # of the first outputs

    @classmethod
    def of(cls, arrays: Arrays, i: int, texts: Texts) -> _Seen:
        """What `arrays` has given, for this example."""
        seen, forms = cls(), json.loads(arrays["outputs"].tobytes())
        seen.outputs = texts.outputs([i] * len(forms), forms)
        seen.rows = {output_key(y): row for row, y in enumerate(seen.outputs)}
        n = len(forms)
        own = checked_arrays(arrays, {"known": numbers(n, None), "shape": whole(2)})
        known, shape = own["known"], tuple(own["shape"].tolist())
        form = whole(n, below=known.shape[1] + 1)
        n_known = checked_arrays(arrays, {"n_known": form})["n_known"]
        check_budget(8 * shape[0] * shape[1], 0, known.nbytes + 8 * FIRST_POINTS * (n + 1))
        seen.table, seen.n_known = np.zeros(shape), np.zeros(shape[0], np.int64)
        seen.table[: known.shape[0], : known.shape[1]] = known
        seen.n_known[: len(n_known)] = n_known
        return seen

    def arrays(self, i: int, texts: Texts) -> Arrays:
        """Outputs of this example, what is known of them, and the room there is."""
        for y in self.outputs[len(self._texts) :]:
            self._texts.append(texts.text(i, y))
        n_known = self.n_known[: len(self.outputs)]
        return {
            "outputs": _joined(self._texts),
            "known": self.table[: len(n_known), : n_known.max(initial=0)],
            "n_known": n_known,
            "shape": np.array(self.table.shape),
        }

    def shape_for(self, n_new: int, n_points: int) -> tuple[int, int]:
        """Shape of the table with so many more rows, and coordinates."""
        n_rows, n_columns = self.table.shape
        needed = len(self.outputs) + n_new
        if needed > n_rows:
            n_rows = max(needed, len(self.outputs) * 2)
        if n_points > n_columns:
            n_columns = max(n_points, n_columns * 2, FIRST_POINTS)
        return n_rows, n_columns

    def add(self, new: dict[Hashable, Any], n_points: int) -> None:
        """Add outputs of which nothing is known yet, and make room for coordinates."""
        shape = self.shape_for(len(new), n_points)
        if shape != self.table.shape:
            table, known = np.zeros(shape), np.zeros(shape[0], np.int64)
            known[: len(self.n_known)] = self.n_known
            table[: self.table.shape[0], : self.table.shape[1]] = self.table
            self.table, self.n_known = table, known
        for key, y in new.items():
            self.outputs.append(y)
            self.rows[key] = len(self.outputs) - 1


def _joined(texts: list[str]) -> NDArray[np.uint8]:
    """Texts that are JSON as one, of a list."""
    return np.frombuffer(f"[{','.join(texts)}]".encode(), np.uint8)


def output_key(y: Any) -> Hashable:
    """What equal outputs have in common, be they lists, tuples or arrays."""
    if isinstance(y, np.ndarray):
        return output_key(y.tolist())
    if isinstance(y, (list, tuple)):
        return tuple(map(output_key, y))
    if isinstance(y, (set, frozenset)):
        return frozenset(map(output_key, y))
    if type(y) is dict:
        return dict, frozenset((output_key(name), output_key(item)) for name, item in y.items())
    if isinstance(y, np.generic):
        return output_key(y.item())
    try:
        hash(y)
    except TypeError:
        return _pickled(y)
    return y  # type: ignore[no-any-return]


def _pickled(y: Any) -> bytes:
    """What stands for an output that has no hash."""
    try:
        return pickle.dumps(y)
    except Exception as error:  # whatever the user's objects raise
        raise ValueError(
            f"the output {y!r:.60} has no hash, and cannot be pickled either ({error}): give "
            f"{type(y).__name__} a method __hash__ that fits its __eq__"
        ) from error


def checked_values(
    kernel: KernelValues, x: Any, outputs: Sequence[Any], X2: Sequence[Any], Y2: Sequence[Any]
) -> Floats:
    """Values of the kernel; ValueError that names two points for what is none."""
    shape = (len(outputs), len(Y2))
    if 0 in shape:
        return np.zeros(shape)
    values = np.asarray(kernel(x, outputs, X2, Y2), np.float64)
    if values.shape != shape:
        raise ValueError(
            f"joint_kernels was called for {shape[0]} outputs of an input with {shape[1]} points, "
            f"and returned shape {values.shape}"
        )
    if not np.isfinite(values).all():
        row, t = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"joint_kernel is {values[row, t]} for the output {outputs[row]!r:.60} of the input "
            f"{x!r:.60} and the output {Y2[t]!r:.60} of {X2[t]!r:.60}"
        )
    return values


def _point(i: int, y: Any) -> str:
    """A point, for people."""
    return f"the output {y!r:.60} of example {i}"
