"""Where the weights of a chain are, and the states that a search over its labellings has.

With K labels and P pairs of labels that features of the input have weights for:

    token features      W weights each, one behind the other: K of the labels and, with
                        ``emission_order`` 1, P of the pairs (label before, label)
    transitions         K x K, from-label first; then the triples; then the quadruples
    transition features P weights each, one behind the other
    boundaries          on request K weights of the first label, and K of the last one

All transitions and transition features count ``eta`` times. A constant token feature is the last
one. A chain of first order has neither tuples of more than two labels nor features on pairs.

A *state* is what has to be remembered of the labels so far: the longest tuple of last labels that
begins some tuple with a weight of its own, or just the last label. Whatever was before it, the
weights of all labels to come are then the same (the automaton of Aho & Corasick 1975). So a search
over states is exact over all labellings, with far fewer states than tuples, since few of these are
ever seen. Of a first-order chain the states are the labels.

From a state and the next label one gets to the state of the longest such tuple at the end of both.
As no state is longer than the order, the first label of the longest ones does not matter for that:
states that agree in all other labels have a *core* in common, and are numbered one after the
other. A step of the search takes the maximum over the states of each core, for all next labels
at once, and continues from there.

`ChainConstraints` say which labels may stand where.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.types import Bools, Floats, Ints, Ints32

__all__ = [
    "Automaton",
    "ChainConstraints",
    "ChainLayout",
    "ChainModel",
    "LabelTuples",
    "WeightOffsets",
    "WhichTuples",
    "bio_constraints",
    "check_possible",
    "forbidden_moves",
    "label_tuples",
]

WhichTuples = Literal["seen", "allowed"]
Labels = tuple[int, ...]
NONE = -1  # no tuple: no weight
#: Of the search: a move is a state with a label to come. A token then takes milliseconds.
MOST_MOVES = 2**22


# ----- tuples of labels ---------------------------------------------------------------------------


class LabelTuples(NamedTuple):
    """Tuples of consecutive labels, one in a row, without repetition and in order.

    All pairs have a weight as transitions; ``pairs`` are those that features of the input have
    weights for. All other labellings are possible, too, with the weights of shorter tuples alone.
    """

    pairs: NDArray[np.integer]
    triples: NDArray[np.integer]
    quadruples: NDArray[np.integer]


def label_tuples(
    labels: Ints32,
    offsets: Ints,
    n_labels: int,
    *,
    order: int,
    pairs: bool,
    which: WhichTuples = "seen",
    may_follow: Bools | None = None,
) -> LabelTuples:
    """The tuples for transitions of an order; ``pairs``: whether inputs have features on pairs.

    ``may_follow[j, k]`` tells whether label k may follow label j.
    """
    if which == "allowed":
        follows = np.ones((n_labels, n_labels), bool) if may_follow is None else may_follow
        _check_walks(follows, order)

    def found(length: int, wanted: bool) -> Ints32:
        if not wanted:
            return np.empty((0, length), np.int32)
        return _walks(follows, length) if which == "allowed" else _seen(labels, offsets, length)

    return LabelTuples(found(2, pairs), found(3, order >= 2), found(4, order >= 3))


def _seen(labels: Ints32, offsets: Ints, length: int) -> Ints32:
    """Tuples of consecutive labels that occur within sequences."""
    lengths = np.diff(offsets)
    place = np.arange(len(labels)) - np.repeat(offsets[:-1], lengths)
    starts = np.flatnonzero(place + length <= np.repeat(lengths, lengths))
    windows = labels[starts[:, None] + np.arange(length)]
    return np.unique(windows, axis=0).astype(np.int32).reshape(-1, length)


def _walks(follows: Bools, length: int) -> Ints32:
    """All tuples in which each label may follow the one before."""
    found = np.arange(len(follows), dtype=np.int32)[:, None]
    for _ in range(length - 1):
        row, label = np.nonzero(follows[found[:, -1]])
        found = np.column_stack([found[row], label.astype(np.int32)])
    return found


def _check_walks(follows: Bools, order: int) -> None:
    """Raise ValueError where there are too many to list."""
    steps = follows.astype(np.float64)
    ends, n_states = np.ones(len(follows)), float(len(follows))
    for _ in range(order - 1):
        ends = ends @ steps
        n_states += float(ends.sum())
    _check_size(round(n_states), len(follows))


def _check_size(n_states: int, n_labels: int) -> None:
    """Raise ValueError for more states than can be searched."""
    if n_states * n_labels > MOST_MOVES:
        raise ValueError(
            f"{n_states} states (tuples of labels to remember) with {n_labels} labels to come "
            f"make {n_states * n_labels} moves of the search; at most {MOST_MOVES} are supported: "
            "use label_tuples='seen', constraints or a lower order"
        )


# ----- states -------------------------------------------------------------------------------------


class Automaton(NamedTuple):
    """States and moves, for kernels. Each state has K moves out of it, one for each label."""

    last: Ints32  # (state,): its last label
    core: Ints32  # (state,)
    core_states: Ints  # (core + 1,): where the states of each core begin
    core_last: Ints32  # (core,): the last label of its states, if it is the same of all
    after: Ints32  # (core, label): the state that a label leads to
    came_from: Ints32  # (move,): the state that it leaves, of all moves by where they lead to,
    moves_into: Ints  # (state + 1,): from here on
    alone: Ints32  # (label,): the state of a first label
    triple: Ints32  # (state, label): the number of the triple that a label completes, or NONE
    quadruple: Ints32  # the same

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.last)


def make_automaton(tuples: LabelTuples, n_labels: int, has_pairs: bool) -> Automaton:
    """The states for tuples with weights; ValueError where there are too many."""
    triples, quadruples = ([tuple(t) for t in table.tolist()] for table in tuples[1:])
    # Where inputs have features on pairs, the states of a core end in the same label.
    longest = 3 if quadruples else 2 if triples or has_pairs else 1
    begun = {t[:n] for t in (*triples, *quadruples) for n in range(2, len(t))}
    _check_size(n_labels + len(begun), n_labels)
    alone = [(k,) for k in range(n_labels)]

    def core_of(state: Labels) -> Labels:
        return state[1:] if len(state) == longest else state

    # By core; of a core, in the order of the first labels.
    states = sorted([*alone, *begun], key=lambda s: (core_of(s), s))
    number = {state: n for n, state in enumerate(states)}
    cores = sorted({core_of(state) for state in states})
    core_number = {core: n for n, core in enumerate(cores)}
    core = np.array([core_number[core_of(state)] for state in states], np.int32)
    core_last = np.array([c[-1] if c else NONE for c in cores], np.int32)

    after = np.tile(np.array([number[s] for s in alone], np.int32), (len(cores), 1))
    for state in sorted(begun, key=len):  # the longer ones last, for they come first
        if len(state) == 2:
            after[core_last == state[0], state[1]] = number[state]
        else:
            after[core_number[state[:-1]], state[-1]] = number[state]

    ending: dict[Labels, list[int]] = defaultdict(list)
    for state in begun:
        ending[state[-2:]].append(number[state])
    triple = np.full((len(states), n_labels), NONE, np.int32)
    for n, t in enumerate(triples):
        triple[ending[t[:2]], t[2]] = n
    quadruple = np.full((len(states), n_labels), NONE, np.int32)
    for n, t in enumerate(quadruples):
        quadruple[number[t[:3]], t[3]] = n

    reached = after[core].ravel()
    counts = np.bincount(reached, minlength=len(states))
    return Automaton(
        np.array([state[-1] for state in states], np.int32),
        core,
        np.searchsorted(core, np.arange(len(cores) + 1)).astype(np.int64),
        core_last,
        after,
        (np.argsort(reached, kind="stable") // n_labels).astype(np.int32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([number[s] for s in alone], np.int32),
        triple,
        quadruple,
    )


# ----- weights ------------------------------------------------------------------------------------


class WeightOffsets(NamedTuple):
    """Where each kind of weights begins, for kernels; token features begin at 0.

    What there is none of begins where the next kind does.
    """

    transitions: int
    triples: int
    quadruples: int
    pair_features: int
    starts: int
    stops: int
    end: int


class ChainModel(NamedTuple):
    """What kernels need to know of labels, states and weights."""

    n_labels: int
    n_columns: int
    n_pairs: int
    eta: float
    boundary: bool
    has_pairs: bool  # whether any features of the input have weights for pairs
    at: WeightOffsets
    pair_number: Ints32  # (K * K,): of j * K + k, or NONE
    pair_place: Ints32  # (P,): j * K + k
    states: Automaton


class ChainLayout:
    """Where the weights of a chain are.

    Parameters
    ----------
    n_inputs : int
        Number of features of a token, a constant one included.
    n_labels : int
        Number of labels.
    boundary : bool
        Whether first and last labels have weights.
    tuples : LabelTuples, optional
        Tuples with weights of their own, beside the transitions; by default none.
    emission_order : {0, 1}
        Whether token features have weights for pairs of labels, too.
    n_pair_inputs : int
        Number of transition features.
    eta : float
        What transitions and transition features are multiplied by.
    """

    def __init__(
        self,
        n_inputs: int,
        n_labels: int,
        boundary: bool,
        tuples: LabelTuples | None = None,
        *,
        emission_order: int = 0,
        n_pair_inputs: int = 0,
        eta: float = 1.0,
    ) -> None:
        if tuples is None:
            tuples = LabelTuples(*(np.empty((0, n), np.int32) for n in (2, 3, 4)))
        self.n_inputs, self.n_labels, self.boundary = int(n_inputs), int(n_labels), bool(boundary)
        self.tuples, self.eta = tuples, float(eta)
        self.emission_order, self.n_pair_inputs = int(emission_order), int(n_pair_inputs)
        for table, n in zip(tuples, (2, 3, 4), strict=True):
            are_labels = table.size == 0 or (0 <= table.min() and table.max() < n_labels)
            if table.ndim != 2 or table.shape[1] != n or not are_labels:
                raise ValueError(f"expected tuples of {n} of {n_labels} labels, got {table!r:.80}")
        K, P = self.n_labels, len(tuples.pairs)
        self.n_columns = K + P if emission_order else K
        sizes = (
            self.n_inputs * self.n_columns,
            K * K,
            len(tuples.triples),
            len(tuples.quadruples),
            self.n_pair_inputs * P,
            K * self.boundary,
            K * self.boundary,
        )
        self.offsets = WeightOffsets(*np.cumsum(sizes).tolist())
        self.size = self.offsets.end
        self.has_pairs = self.n_columns > K or self.n_pair_inputs > 0
        #: Whether the faster kernels for chains of first order find its labellings.
        self.is_first_order = (
            self.offsets.starts == self.offsets.triples and not self.has_pairs and self.eta == 1.0
        )

    def with_sizes(self, n_inputs: int, boundary: bool) -> ChainLayout:
        """The same for other numbers of inputs, with or without weights of ends."""
        return ChainLayout(
            n_inputs,
            self.n_labels,
            boundary,
            self.tuples,
            emission_order=self.emission_order,
            n_pair_inputs=self.n_pair_inputs,
            eta=self.eta,
        )

    def is_like(self, other: ChainLayout) -> bool:
        """Whether weights mean the same, but for the number of inputs."""
        plain = ("n_labels", "boundary", "eta", "emission_order", "n_pair_inputs")
        return all(getattr(self, name) == getattr(other, name) for name in plain) and all(
            map(np.array_equal, self.tuples, other.tuples)
        )

    @cached_property
    def model(self) -> ChainModel:
        """What kernels need to know."""
        K, pairs = self.n_labels, self.tuples.pairs.astype(np.int64)
        place = pairs[:, 0] * K + pairs[:, 1]
        number = np.full(K * K, NONE, np.int32)
        number[place] = np.arange(len(place))
        return ChainModel(
            K,
            self.n_columns,
            len(place),
            self.eta,
            self.boundary,
            self.has_pairs,
            self.offsets,
            number,
            place.astype(np.int32),
            make_automaton(self.tuples, K, self.has_pairs),
        )

    def __getstate__(self) -> dict[str, Any]:
        """What layouts are told apart by: whether one has been used does not count."""
        return {name: value for name, value in vars(self).items() if name != "model"}

    def emissions(self, w: Floats) -> Floats:
        """View of the token weights of single labels, shape (n_inputs, n_labels)."""
        own = w[: self.offsets.transitions].reshape(self.n_inputs, self.n_columns)
        return own[:, : self.n_labels]

    def pair_emissions(self, w: Floats) -> Floats:
        """View of the token weights of pairs of labels, shape (n_inputs, n_pairs or 0)."""
        own = w[: self.offsets.transitions].reshape(self.n_inputs, self.n_columns)
        return own[:, self.n_labels :]

    def transitions(self, w: Floats) -> Floats:
        """View of the weights of pairs of labels, shape (n_labels, n_labels), from-label first."""
        at = self.offsets
        return w[at.transitions : at.triples].reshape(self.n_labels, self.n_labels)

    def longer_transitions(self, w: Floats) -> dict[Labels, float]:
        """Weights of triples and quadruples of labels."""
        own = w[self.offsets.triples : self.offsets.pair_features].tolist()
        listed = [tuple(t) for table in self.tuples[1:] for t in table.tolist()]
        return dict(zip(listed, own, strict=True))

    def pair_features(self, w: Floats) -> Floats:
        """View of the weights of transition features, shape (n_pair_inputs, n_pairs)."""
        at = self.offsets
        return w[at.pair_features : at.starts].reshape(self.n_pair_inputs, len(self.tuples.pairs))

    def boundaries(self, w: Floats) -> tuple[Floats, Floats]:
        """Start and stop weights; zeros where the model has none."""
        at = self.offsets
        if not self.boundary:
            return np.zeros(self.n_labels), np.zeros(self.n_labels)
        return w[at.starts : at.stops].copy(), w[at.stops : at.end].copy()


class ChainConstraints(NamedTuple):
    """Which labels may follow each other, open and close a sequence (True: allowed)."""

    transitions: Bools
    start: Bools
    stop: Bools

    def broken_by(self, labels: Ints32, offsets: Ints) -> Bools:
        """Tokens whose label may not stand where it does."""
        broken = np.zeros(len(labels), dtype=bool)
        broken[1:] = ~self.transitions[labels[:-1], labels[1:]]
        first, last = offsets[:-1], offsets[1:] - 1
        broken[first] = ~self.start[labels[first]]
        broken[last] |= ~self.stop[labels[last]]
        return broken

    def check_gold(self, labels: Ints32, offsets: Ints) -> None:
        """Raise ValueError if a training sequence breaks the constraints."""
        bad = self.broken_by(labels, offsets)
        if bad.any():
            token = int(np.argmax(bad))
            i = int(np.searchsorted(offsets, token, side="right")) - 1
            raise ValueError(
                f"the labels of sequence {i} break the constraints at token {token - offsets[i]}"
            )


def bio_constraints(labels: list[str]) -> ChainConstraints:
    """Allowed transitions of BIO (IOB2) tags: I-X only after B-X or I-X, and never first."""
    K = len(labels)
    names = [str(label) for label in labels]
    allowed = np.ones((K, K), dtype=bool)
    start = np.ones(K, dtype=bool)
    for k, name in enumerate(names):
        if name.startswith("I-"):
            kind = name[2:]
            allowed[:, k] = [other in (f"B-{kind}", f"I-{kind}") for other in names]
            start[k] = False
    return ChainConstraints(allowed, start, np.ones(K, dtype=bool))


def forbidden_moves(constraints: ChainConstraints | None, K: int) -> Floats:
    """0 or, where forbidden, -inf: for transitions, then one row for starts, one for stops."""
    if constraints is None:
        return np.zeros((K + 2, K))
    for mask, shape in zip(constraints, ((K, K), (K,), (K,)), strict=True):
        if mask.shape != shape:
            raise ValueError(f"constraints of shape {mask.shape}, expected {shape}")
    return np.where(np.vstack(constraints), 0.0, -np.inf)


def check_possible(impossible: Bools, before: int = 0) -> None:
    """Raise ValueError for the first sequence, behind others, that no labelling is allowed for."""
    if impossible.any():
        raise ValueError(
            f"sequence {before + int(np.argmax(impossible))}: no labelling has allowed labels and "
            "allowed transitions only"
        )
