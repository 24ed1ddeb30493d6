"""One shard of a plane store, and how blocks are dealt out to shards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...utils.types import Floats, Ints
from ..violations import batches
from .arena import grown
from .block_store import BlockReport, StepRule
from .planes import PlaneStore
from .sharding_kernels import move_back, note_multipliers, ridge_of_change

__all__ = ["Shard", "deal", "split"]


class Shard:
    """Some of the blocks: a store of its own, and what it notes for the next synchronisation."""

    def __init__(self, store: PlaneStore) -> None:
        self.store = store
        self.examples: Ints = np.empty(0, np.int64)  # visited since the last synchronisation
        self._before: Floats = np.empty(
            0
        )  # multipliers of their planes at the last synchronisation

    @property
    def gain(self) -> float:
        """What its steps have added to the dual, since the last synchronisation or in its turn."""
        return float(self.store.dual_now[0])

    def look(self, do: Callable[[Shard], BlockReport]) -> BlockReport:
        """Visit the examples."""
        self.store.dual_now[0] = 0.0
        if len(self.examples) == 0:
            return BlockReport(np.empty(0), np.empty(0))
        return do(self)

    def improve(self, do: Callable[[Shard], BlockReport]) -> BlockReport:
        """Visit the examples with steps, and note what `end` and a synchronisation need."""
        store = self.store
        n_planes = int(store.used[0])
        self._before = grown(self._before, 0, n_planes)
        note_multipliers(store.arena, store.blocks, self.examples, self._before)
        store.stays = True
        report = self.look(do)
        self._before = grown(self._before, n_planes, int(store.used[0]))
        self._before[n_planes : store.used[0]] = 0.0  # new planes
        return report

    def oracle_pass(self, rule: StepRule, batch_size: int) -> BlockReport:
        """True oracle calls and steps."""
        if self.store.visits_in_order or rule.max_steps == 0:
            return self.store.oracle_pass(self.examples, rule)
        reports = [
            self.store.oracle_pass(batch, rule) for batch in batches(self.examples, batch_size)
        ]
        return BlockReport(*(np.concatenate(values) for values in zip(*reports, strict=True)))

    def ridge(self) -> float:
        """What squared slacks add to the curvature of the change."""
        store = self.store
        if store.formulation.slack != "l2":
            return 0.0
        return float(ridge_of_change(store.arena, store.blocks, self.examples, self._before))

    def end(self, step: float) -> None:
        """Keep so much of the change; planes may move again."""
        store = self.store
        if step < 1.0:
            move_back(store.arena, store.blocks, self.examples, self._before, step)
        store.keep_budget()


def deal(sizes: Floats, n_shards: int) -> Ints:
    """A share for each example, so that all have about as many, and as much work.

    The largest are dealt out first, and every round begins where the last one has ended.
    """
    rounds, places = np.divmod(np.arange(len(sizes)), n_shards)
    owner = np.empty(len(sizes), np.int64)
    turned = np.where(rounds % 2, n_shards - 1 - places, places)
    owner[np.argsort(-sizes, kind="stable")] = turned
    return owner


def split(own: Ints, sizes: Floats, n_chunks: int) -> list[Ints]:
    """Pieces in a row of about the same size."""
    aims = sizes.sum() * np.arange(1, n_chunks) / n_chunks
    return np.split(own, np.searchsorted(np.cumsum(sizes), aims))
