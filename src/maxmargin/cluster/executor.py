"""Who does the work of the parts: the driver asks a team, wherever its members are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..core.formulation import Formulation
from ..core.problem import Problem
from ..engine.training.run import StopTraining
from ..engine.training.state import fingerprint
from ..utils.types import Floats
from .shard import Shard, ShardOptions

__all__ = [
    "ClusterLost",
    "Executor",
    "InProcess",
    "Loader",
    "NobodyWorks",
    "Reply",
    "ShardConfig",
    "ShardInfo",
    "Traffic",
    "build_shard",
    "count_bytes",
]

#: Makes the problem of a part, where the part is to be.
Loader = Callable[[], Problem]


class NobodyWorks(RuntimeError):
    """Raised where a cluster has nobody to train, before there is any model."""


class ClusterLost(StopTraining):
    """Raised where nobody answers any more: training ends with the best model so far."""

    def __init__(self, why: str) -> None:
        super().__init__("cluster lost")
        self.why = why


class ShardConfig(NamedTuple):
    """What a part is trained for, beside its examples; ``weights`` None are ones."""

    formulation: Formulation
    C: float
    weights: Floats | None
    options: ShardOptions
    hashed: bool = False  # whether the content of the examples is to be told from others


class ShardInfo(NamedTuple):
    """What the driver has to know of a part."""

    n_examples: int
    n_features: int
    weight: float
    exact: bool
    content: str | None


@dataclass
class Traffic:
    """Bytes of the numbers that each question sent to all parts, w once, and of the answers."""

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


class Reply(NamedTuple):
    """An answer, and in which call of `Executor.call` it was asked for."""

    answer: Any
    asked: int


class Executor(Protocol):
    """Shards that answer.

    Attributes
    ----------
    facts : list of ShardInfo
        Of all parts.
    traffic : Traffic
        What went to and fro.
    asked : int
        Calls of `call` so far.
    """

    info: list[ShardInfo]
    traffic: Traffic
    asked: int

    def call(
        self,
        method: str,
        w: Floats,
        messages: Mapping[int, tuple[Any, ...]],
        *,
        may_be_late: bool = False,
    ) -> dict[int, Reply]:
        """Call a method of parts with w and a message for each; answers by part.

        Where answers may be late, they may also come from a later call, and then belong to
        the one before; a part that still works on an earlier question is not asked.
        """


def build_shard(loader: Loader, config: ShardConfig) -> tuple[Shard, ShardInfo]:
    """A part, and what is to be known of it; raises ValueError where its weights do not fit."""
    from ..solvers.base import checked_weights

    problem = loader()
    weights = checked_weights(config.weights, problem.n_examples)
    shard = Shard(problem, config.formulation, config.C, weights, config.options)
    content = fingerprint(problem) if config.hashed else None
    info = ShardInfo(
        problem.n_examples,
        shard.oracle.n_features,
        float(weights.sum()),
        shard.oracle.exact,
        content,
    )
    return shard, info


class InProcess:
    """All parts in this process, one after the other: for tests, and to see what rounds there are.

    Parameters
    ----------
    recipes : list of callables
        Make the problems of the parts.
    terms : list of ShardConfig
        What each is trained for.
    """

    def __init__(self, loaders: list[Loader], config: list[ShardConfig]) -> None:
        built = [build_shard(loader, of) for loader, of in zip(loaders, config, strict=True)]
        self.shards = [shard for shard, _ in built]
        self.info = [info for _, info in built]
        self.traffic = Traffic()
        self.asked = 0

    def call(
        self,
        method: str,
        w: Floats,
        messages: Mapping[int, tuple[Any, ...]],
        *,
        may_be_late: bool = False,
    ) -> dict[int, Reply]:
        """See `Executor`."""
        self.asked += 1
        self.traffic.sent.append(w.nbytes + sum(map(count_bytes, messages.values())))
        answers = {
            k: Reply(getattr(self.shards[k], method)(w, *message), self.asked)
            for k, message in messages.items()
        }
        self.traffic.received.append(sum(count_bytes(a.answer) for a in answers.values()))
        return answers


def count_bytes(answer: Any) -> int:
    """Bytes of the numbers of an answer."""
    if hasattr(answer, "nbytes"):
        return int(answer.nbytes)
    if isinstance(answer, Mapping):
        return sum(8 + count_bytes(value) for value in answer.values())
    if isinstance(answer, tuple):
        return sum(map(count_bytes, answer))
    return 0 if answer is None else 8
