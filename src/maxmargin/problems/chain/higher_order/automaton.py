"""States of the search: what has to be remembered of the labels so far.

A state is the longest tuple of last labels that begins some tuple with a weight of its own, or
just the last label: whatever was before it, the weights of all labels to come are then the same
(the automaton of Aho & Corasick 1975). So a search over states is exact over all labellings, with
far fewer states than tuples, since few of these are ever seen.

From a state and the next label one gets to the state of the longest such tuple at the end of both.
As no state is longer than the order, the first label of the longest ones does not matter for that:
states that agree in all other labels have a *core* in common, and are numbered one after the
other. A step of the search takes the maximum over the states of each core, for all next labels
at once, and goes on from there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ....types import Ints, Ints32
from .tuples import LabelTuples, check_size

__all__ = ["Automaton", "make_automaton"]

NONE = -1  # no tuple: no weight
Labels = tuple[int, ...]


class Automaton(NamedTuple):
    """States and moves, for kernels."""

    last: Ints32  # (state,): its last label
    core: Ints32  # (state,)
    core_states: Ints  # (core + 1,): where the states of each core begin
    core_last: Ints32  # (core,): the last label of its states
    after: Ints32  # (core, label): the state that a label leads to
    cores_before: Ints32  # from which cores a state is reached,
    before: Ints  # (state + 1,): from here on
    alone: Ints32  # (label,): the state of a first label
    triple: Ints32  # (state, label): the number of the triple that a label completes, or NONE
    quadruple: Ints32  # the same

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.last)


def make_automaton(tuples: LabelTuples, n_labels: int) -> Automaton:
    """The states for tuples with weights; ValueError where there are too many."""
    triples, quadruples = ([tuple(t) for t in table.tolist()] for table in tuples[1:])
    longest = 3 if quadruples else 2
    begun = {t[:n] for t in (*triples, *quadruples) for n in range(2, len(t))}
    check_size(n_labels + len(begun), n_labels)
    alone = [(k,) for k in range(n_labels)]

    def core_of(state: Labels) -> Labels:
        return state[1:] if len(state) == longest else state

    # By core; of a core, in the order of the first labels.
    states = sorted([*alone, *begun], key=lambda s: (core_of(s), s))
    number = {state: n for n, state in enumerate(states)}
    cores = sorted({core_of(state) for state in states})
    core_number = {core: n for n, core in enumerate(cores)}
    core = np.array([core_number[core_of(state)] for state in states], np.int32)
    core_last = np.array([c[-1] for c in cores], np.int32)

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

    reached = np.argsort(after.ravel(), kind="stable")
    counts = np.bincount(after.ravel(), minlength=len(states))
    return Automaton(
        np.array([state[-1] for state in states], np.int32),
        core,
        np.searchsorted(core, np.arange(len(cores) + 1)).astype(np.int64),
        core_last,
        after,
        (reached // n_labels).astype(np.int32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([number[s] for s in alone], np.int32),
        triple,
        quadruple,
    )
