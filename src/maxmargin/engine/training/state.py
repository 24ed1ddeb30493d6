"""What a solver keeps: from it a warm start goes on, and from its arrays a later process can."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.formulation import Formulation
from ...core.objective import DualTerms
from ...core.problem import Problem
from ...core.result import Result
from ...utils.schema import as_annotated, checked_arrays
from ...utils.types import Floats, Ints
from ..accelerators import AdaptiveFeatures
from ..oracle import Oracle
from ..packed_problem import PackedProblem

__all__ = [
    "DRIFT",
    "FULL",
    "OWN",
    "Arrays",
    "Checkpointable",
    "SolverState",
    "StoredPlanes",
    "add_prefix",
    "check_budget",
    "check_close",
    "copied",
    "declare_state",
    "extends",
    "feature_arrays",
    "fingerprint",
    "from_file",
    "from_text",
    "named_arrays",
    "of_kind",
    "restore_features",
    "strip_prefix",
    "to_text",
]

Arrays = dict[str, NDArray[Any]]
Tuple = TypeVar("Tuple", bound=NamedTuple)
Kind = TypeVar("Kind", bound="SolverState")

#: In `Checkpointable.state_fields`: goes to arrays and back by itself.
OWN = "own"
FULL = 1e-9  # by so much, relatively, rounding may take a sum of multipliers beyond its bound
DRIFT = 1e-8  # relative difference of sums that rounding may leave, and no more
ROOM = (
    64  # budget that a training may have needed beyond the given one, as a multiple of its arrays
)


class StoredPlanes(NamedTuple):
    """Planes of a state at some weights: whose they are, their values there, and their offsets.

    ``vector(k)`` is the k-th plane's a. With ``sums`` planes are sums over all examples, by these
    weights.
    """

    example: Ints
    values: Floats
    offsets: Floats
    vector: Callable[[int], Floats]
    sums: Floats | None = None


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
        """Take over what `arrays` of a state of equal data and formulation has given.

        Arrays may come from a stranger's file: they go through `schema.checked_arrays`, and what
        kernels rely on beyond that is checked too. ValueError where something does not fit.
        """

    def proven_dual(self) -> float:
        """The dual value of multipliers and planes alone; ValueError if ``w`` is not their sum."""
        return np.inf

    def planes_at(self, w: Floats) -> list[StoredPlanes]:
        """The planes' values at some weights; none where they cannot be wrong."""
        return []


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
    can tell (`PackedProblem.is_renumbered`).
    """
    n = earlier.n_examples
    if type(problem) is not type(earlier) or problem.n_examples <= n:
        return False
    head = problem.subset(np.arange(n))
    if isinstance(head, PackedProblem) and head.is_renumbered(earlier):
        return True
    return fingerprint(head) == fingerprint(earlier) is not None


def fingerprint(problem: Problem) -> str | None:
    """Hash of all that a problem holds; None where that cannot be told."""
    import joblib

    try:
        # A user's own __getstate__ may leave out what its oracle needs; ours leave out caches.
        own = isinstance(problem, PackedProblem) and hasattr(problem, "__getstate__")
        held = problem.__getstate__() if own else vars(problem)
        return str(joblib.hash((type(problem).__qualname__, held)))
    except Exception:  # whatever a user's objects raise when they are pickled
        return None


class Checkpointable:
    """What goes to arrays and back: members that are numbers, arrays, or go so themselves."""

    #: Those that later decisions depend on, by name, and what they have to be in a file: a type as
    #: in `schema`, a function that gives an array's `ArrayOf` for this object, or `OWN`.
    state_fields: ClassVar[Mapping[str, Any]] = {}

    def arrays(self) -> Arrays:
        """All of them, as arrays by name; those in use, to be written before anything goes on."""
        numbers: dict[str, Any] = {}
        found: Arrays = {}
        for name in self.state_fields:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                found[name] = value
            elif isinstance(value, Checkpointable | SolverState):
                found |= add_prefix(name, value.arrays())
            else:
                numbers[name] = value
        return {**found, "numbers": to_text(numbers)}

    def restore(self, arrays: Arrays) -> None:
        """Take over what `arrays` has given."""
        numbers = from_text(arrays["numbers"])
        for name, declared in self.state_fields.items():
            if declared is OWN:
                getattr(self, name).restore(strip_prefix(name, arrays))
            elif not isinstance(declared, FunctionType):
                setattr(self, name, as_annotated(numbers[name], declared, name))
            elif name in arrays or getattr(self, name) is not None:  # some are None for a while
                setattr(self, name, checked_arrays(arrays, {name: declared(self)})[name])


def declare_state(*inherited: Mapping[str, Any], **declared: Any) -> Mapping[str, Any]:
    """The `Checkpointable.state_fields` of base classes, and those of this one."""
    return {name: form for own in (*inherited, declared) for name, form in own.items()}


def feature_arrays(problem: object) -> Arrays:
    """What a problem has found in training, of most nothing, beside the arrays of a run."""
    return (
        add_prefix("problem", problem.feature_arrays())
        if isinstance(problem, AdaptiveFeatures)
        else {}
    )


def restore_features(problem: object, arrays: Arrays) -> None:
    """Give it back to an equal problem."""
    if isinstance(problem, AdaptiveFeatures):
        problem.restore_features(strip_prefix("problem", arrays))


@contextmanager
def from_file(path: str) -> Iterator[None]:
    """Whatever is wrong with arrays from a file becomes a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{path}: the checkpoint is damaged, or was changed ({reason:.300}); remove it "
            "to start afresh"
        ) from error


def check_close(found: Floats, expected: Floats, scale: float, place: str) -> None:
    """Raise ValueError where sums out of a file are not those of what they are made of."""
    difference = float(np.abs(found - expected).max(initial=0.0))
    if not difference <= DRIFT * (scale + float(np.abs(expected).max(initial=0.0))):
        raise ValueError(
            f"{place}: expected the sum of its parts, found a difference of {difference:.3g}"
        )


def check_budget(found: int, given: int, held: int) -> int:
    """A budget in bytes out of a file, if it is the given one or what these many bytes needed."""
    most = max(2 * given, ROOM * (held + 2**16))
    if not 0 <= found <= most:
        raise ValueError(f"expected a budget of at most {most} bytes, found {found}")
    return found


# ----- arrays by name ----------------------------------------------------------------------------


def named_arrays(group: NamedTuple) -> Arrays:
    """The arrays of a NamedTuple, by the names of its fields."""
    return dict(zip(group._fields, group, strict=True))


def add_prefix(name: str, arrays: Arrays) -> Arrays:
    """The same arrays, with a name put before theirs."""
    return {f"{name}.{key}": value for key, value in arrays.items()}


def strip_prefix(name: str, arrays: Arrays) -> Arrays:
    """The arrays that `add_prefix` has put below a name."""
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
