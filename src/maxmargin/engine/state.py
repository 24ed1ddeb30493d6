"""What a solver keeps: from it a warm start goes on, and from its arrays a later process can."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..formulation import Formulation
from ..objective import DualTerms
from ..problem import Problem
from ..result import Result
from .growing import Growing
from .native import NativeProblem
from .oracle import Oracle

__all__ = [
    "Arrays",
    "Kept",
    "SolverState",
    "copied",
    "extends",
    "fingerprint",
    "from_text",
    "grown_arrays",
    "inside",
    "named_arrays",
    "of_kind",
    "restore_grown",
    "to_text",
    "under",
]

Arrays = dict[str, NDArray[Any]]
Tuple = TypeVar("Tuple", bound=NamedTuple)
Kind = TypeVar("Kind", bound="SolverState")


class SolverState(ABC):
    """Planes, multipliers and whatever else a solver goes on from; one kind for each family.

    Attributes
    ----------
    oracle : Oracle
        Of the problem and the formulation that the state belongs to.
    """

    kind: ClassVar[str]
    oracle: Oracle

    def matches(self, problem: Problem, formulation: Formulation) -> bool:
        """Whether the state is of this formulation, and of this problem or one of equal data."""
        if formulation != self.oracle.formulation:
            return False
        own = self.oracle.problem
        return problem is own or (
            type(problem) is type(own)
            and (problem.n_examples, problem.n_features) == (own.n_examples, own.n_features)
            and fingerprint(own) == fingerprint(problem) is not None
        )

    def dual_terms(self) -> DualTerms | None:
        """What the dual value of the multipliers is made of; None where there are none."""
        return None

    @abstractmethod
    def arrays(self) -> Arrays:
        """All that `restore` needs besides the problem, as arrays by name.

        They are those in use: to be written or copied before training goes on.
        """

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` of a state of equal data and formulation has given."""


def of_kind(
    warm: Result | None, kind: type[Kind], problem: Problem, formulation: Formulation
) -> Kind | None:
    """The state of an earlier result, if it is of this kind and matches."""
    state = warm.state if warm is not None else None
    if isinstance(state, kind) and state.matches(problem, formulation):
        return state
    return None


def extends(problem: Problem, earlier: Problem) -> bool:
    """Whether the first examples of a problem are those of an earlier one, which has fewer.

    Features that the others have brought may have changed the numbers of theirs, in a problem that
    can tell (`NativeProblem.is_renumbered`).
    """
    n = earlier.n_examples
    if type(problem) is not type(earlier) or problem.n_examples <= n:
        return False
    head = problem.subset(np.arange(n))
    if isinstance(head, NativeProblem) and head.is_renumbered(earlier):
        return True
    return fingerprint(head) == fingerprint(earlier) is not None


def fingerprint(problem: Problem) -> str | None:
    """Hash of all that a problem holds; None where that cannot be told."""
    import joblib

    try:
        # A user's own __getstate__ may leave out what its oracle needs; ours leave out caches.
        own = isinstance(problem, NativeProblem) and hasattr(problem, "__getstate__")
        held = problem.__getstate__() if own else vars(problem)
        return str(joblib.hash((type(problem).__qualname__, held)))
    except Exception:  # whatever a user's objects raise when they are pickled
        return None


class Kept:
    """What goes to arrays and back: members that are numbers, arrays, or go so themselves."""

    #: Names of those that later decisions depend on.
    kept: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> Arrays:
        """All of them, as arrays by name; those in use, to be written before anything goes on."""
        numbers: dict[str, Any] = {}
        found: Arrays = {}
        for name in self.kept:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                found[name] = value
            elif isinstance(value, Kept | SolverState):
                found |= under(name, value.arrays())
            else:
                numbers[name] = value
        return {**found, "numbers": to_text(numbers)}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` has given."""
        numbers = from_text(arrays["numbers"])
        for name in self.kept:
            if name in numbers:
                setattr(self, name, numbers[name])
            elif name in arrays:
                setattr(self, name, arrays[name].copy())
            else:
                getattr(self, name).restore(inside(name, arrays))


def grown_arrays(problem: object) -> Arrays:
    """What a problem has found in training, of most nothing, beside the arrays of a run."""
    return under("problem", problem.grown_arrays()) if isinstance(problem, Growing) else {}


def restore_grown(problem: object, arrays: Arrays) -> None:
    """Give it back to an equal problem."""
    if isinstance(problem, Growing):
        problem.restore_grown(inside("problem", arrays))


# ----- arrays by name ----------------------------------------------------------------------------


def named_arrays(group: NamedTuple) -> Arrays:
    """The arrays of a NamedTuple, by the names of its fields."""
    return dict(zip(group._fields, group, strict=True))


def under(name: str, arrays: Arrays) -> Arrays:
    """The same arrays, with a name put before theirs."""
    return {f"{name}.{key}": value for key, value in arrays.items()}


def inside(name: str, arrays: Arrays) -> Arrays:
    """The arrays that `under` has put below a name."""
    start = name + "."
    return {key[len(start) :]: value for key, value in arrays.items() if key.startswith(start)}


def copied(arrays: Arrays) -> Arrays:
    """Copies of the arrays, which may be changed."""
    return {name: array.copy() for name, array in arrays.items()}


def to_text(values: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Numbers, texts and lists of them as one array of bytes."""
    text = json.dumps(dict(values), default=lambda number: number.item())  # of numpy's types
    return np.frombuffer(text.encode(), np.uint8)


def from_text(array: NDArray[Any]) -> dict[str, Any]:
    """What `to_text` was given."""
    values: dict[str, Any] = json.loads(array.tobytes().decode())
    return values
