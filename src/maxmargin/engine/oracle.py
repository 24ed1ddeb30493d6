"""Who asks: the only place where solvers put questions to a problem.

It chooses between parts and features, cuts batches, checks what a user's oracle returns, compares
it with the given output, counts the calls, and turns answers into planes and their violations.
Kernels that have a search of their own inside count their calls here too.

With constraints on weights, what solvers have for w is the change u from the weights' mean. Here,
and nowhere else, it becomes weights, and planes of these become planes of the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.cutting_planes import (
    BoundedPlanes,
    Planes,
    concatenate,
    split_bounds,
    validate_bounds,
    validate_planes,
)
from ..core.formulation import Formulation
from ..core.problem import Problem
from ..core.weight_constraints import FeasibleSet
from ..jit.compiling import working_clock
from ..search.margin_search import search_of
from ..utils.types import Floats, Ints
from ..utils.warn import warn_user
from .accelerators import AdaptiveFeatures, FeatureBlocksOnly, accelerators_of
from .feature_blocks import FeatureBlocks, row_products, single_weights
from .parallel.processes import Processes, in_processes
from .parallel.threads import Threads
from .violations import Violations, batches, violations

__all__ = ["Oracle", "OracleResult"]

BATCH = 512  # examples per call in a full pass: bounds the memory of the planes
WORSE = -1e-6  # value of a candidate below which it is worse than the given output
ROUNDING = 1e-10  # of the terms of a difference, share of them that their rounding may make up
CHUNK_WORK = 5e6  # counted work that a thread is given at a time: long against handing it over
FEWEST, MOST = 8, BATCH  # examples of such a piece
LOW_BOUND = 1e-6  # by so much, relatively, a candidate's value may exceed its bound: rounding


Found = TypeVar("Found")

#: Finds candidates for some examples at some weights.
Search = Callable[[Ints, Floats], Planes | BoundedPlanes]


class OracleResult(NamedTuple):
    """Candidates, and their planes' terms: ``b = offsets`` and ``a = scales * dpsi``."""

    planes: Planes
    offsets: Floats
    scales: Floats


class Oracle:
    """A problem's oracle under one formulation.

    Parameters
    ----------
    problem : Problem
        What is asked; it may be duck-typed.
    formulation : Formulation
        What is asked for, and how candidates become planes.

    Attributes
    ----------
    parts : FeatureBlocks
        What the rows of `call` are counted in: the problem's parts, or single weights.
    calls : int
        Examples that were asked for so far.
    calls_inside : int
        Those of them that compiled passes made by themselves (`count`).
    seconds : float
        Time of all calls so far, without compiling; of ``calls_inside`` as `Run.stepping` finds.
    work : float
        Counted work of one call, on average.
    exact : bool
        Whether the problem says that it finds the most violated candidates.
    bounds : array of shape (n_examples,) or None
        Upper bounds on the largest violations, by each example's latest answer to `call` or
        `call_features`; None as long as no answer had any. Of an exact answer without one the
        candidate's own value is the bound, here -inf.
    missed : bool
        Whether a candidate was worse than the gold output, so that no gap is a certificate.
    region : FeasibleSet or None
        Where the weights may be, if there are constraints.
    threads : Threads or None
        What searches pieces of batches at the same time; see `in_threads`. By default each batch
        is searched as a whole.
    rounding : float
        A slack, or a squared one where slacks are squared, that is no more than rounding. A mean
        may be so good that there are no others, and neither primal nor dual value to compare with.
    """

    def __init__(self, problem: Problem, formulation: Formulation) -> None:
        self.problem = problem
        self.formulation = formulation
        self.threads: Threads | None = None
        self.n_examples = problem.n_examples
        self.n_features = int(problem.n_features or 0)
        self.accelerators = accelerators_of(problem, formulation)
        self.feasible_set: FeasibleSet | None = None
        self.rounding = 0.0
        if formulation.constraints is not None:
            self.feasible_set = formulation.constraints.feasible_set(self.n_features)
            # The features that a part has of fixed weights cannot leave it.
            self.accelerators = FeatureBlocksOnly(
                self.accelerators, not self.feasible_set.fixed.any()
            )
        feature_blocks = self.accelerators.feature_blocks
        self.in_blocks = feature_blocks is not None
        self.feature_blocks: FeatureBlocks = (
            feature_blocks if feature_blocks is not None else single_weights(self.n_features)
        )
        self.work = float(self.accelerators.oracle_work)
        self._piece_size = int(np.clip(CHUNK_WORK / max(self.work, 1.0), FEWEST, MOST))
        self.calls = 0
        self.calls_inside = 0
        self.seconds = 0.0
        self.exact = bool(getattr(problem, "exact", True))
        self.bounds: Floats | None = None
        self.missed = False
        # Native problems build valid planes by construction; those of a user are checked.
        self.trusted = bool(getattr(problem, "trusted", False))
        # Without rescaling the given output is no candidate, and negative values are right.
        self._compares = self.exact and not self.trusted and formulation.rescaling != "none"
        self._kind = (formulation.rescaling, formulation.uses_sqrt_loss)
        self._search: Search = search_of(problem, *self._kind)
        self._no_bound = -np.inf if self.exact else np.inf

    @property
    def certifies(self) -> bool:
        """Whether slacks that are measured here are true ones, or bounds on them."""
        return self.exact or self.bounds is not None

    @contextmanager
    def in_threads(self, count: int) -> Iterator[None]:
        """Within it, so many threads search, where the problem says that they may, or processes."""
        if count == 1 or isinstance(self.problem, AdaptiveFeatures):
            yield
            return
        if not getattr(self.problem, "in_threads", False):
            own = self._search
            with in_processes(count, own) as processes:
                self._search = partial(self._search_in_processes, processes)
                try:
                    yield
                finally:
                    self._search = own
            return
        self.threads = Threads(count)
        try:
            yield
        finally:
            self.threads = None

    def __getstate__(self) -> dict[str, Any]:
        """All but threads and processes, which a callback may meet when it makes a copy."""
        own = search_of(self.problem, *self._kind)
        return {**self.__dict__, "threads": None, "_search": own}

    # ----- weights ------------------------------------------------------------------------------

    @property
    def has_bounds(self) -> bool:
        """Whether single weights have bounds."""
        return self.feasible_set is not None and len(self.feasible_set.bounded) > 0

    def weights(self, w: Floats) -> Floats:
        """The problem's weights for those of a solver."""
        return w if self.feasible_set is None else self.feasible_set.weights(w)

    def change(self, w: Floats) -> Floats:
        """A solver's weights for those of the problem."""
        return w if self.feasible_set is None else self.feasible_set.change(w)

    # ----- questions ----------------------------------------------------------------------------

    def call(self, examples: Ints, w: Floats, weights: Floats | None = None) -> OracleResult:
        """The most violated candidate of each example at ``w``, in parts.

        ``weights`` are the problem's own there, if they are at hand: to make them takes a while.
        """
        at = w if weights is None else weights
        return self._answer(
            self._factored_search,
            examples,
            at,
            in_blocks=True,
            measures=True,
            known=weights is not None,
        )

    def call_all(
        self, examples: Ints, w: Floats, size: int = BATCH, *, in_blocks: bool = False
    ) -> Iterator[tuple[Ints, OracleResult]]:
        """Batches of so many examples, and their most violated candidates at ``w``.

        As by `call`, where they are ``in_blocks``, or by `call_features`. Threads search ahead, so
        ``w`` must stay as it is until the end.
        """
        w = self.weights(w)
        search = self._factored_search if in_blocks else self._search
        groups = list(batches(examples, size))
        cut = [self._pieces(group) for group in groups]
        found = self._searched(search, chain.from_iterable(cut), w)
        for group, chunks in zip(groups, cut, strict=True):
            with self.timed():
                planes, bounds = self._joined(islice(found, len(chunks)))
            yield group, self._noted(group, planes, bounds, in_blocks=in_blocks, measures=True)

    def call_candidates(
        self, examples: Ints, w: Floats
    ) -> Iterator[tuple[Ints, OracleResult, Floats]]:
        """As `call_all`, in parts, with the products of rows and ``w``, which threads find too."""
        at, factored_search = self.weights(w), self._factored_search

        def search(chunk: Ints, at: Floats) -> tuple[Planes | BoundedPlanes, Floats | None]:
            found = factored_search(chunk, at)
            if not self.trusted:  # and may be anything
                return found, None
            return found, row_products(split_bounds(found)[0], self.feature_blocks, w)

        groups = list(batches(examples, BATCH))
        cut = [self._pieces(group) for group in groups]
        found = self._searched(search, chain.from_iterable(cut), at)
        for group, chunks in zip(groups, cut, strict=True):
            with self.timed():
                rows, products = zip(*islice(found, len(chunks)), strict=True)
                planes, bounds = self._joined(rows)
            oracle_result = self._noted(group, planes, bounds, in_blocks=True, measures=True)
            if self.trusted:
                yield group, oracle_result, np.concatenate(products)
            else:
                yield (
                    group,
                    oracle_result,
                    row_products(oracle_result.planes, self.feature_blocks, w),
                )

    def call_features(self, examples: Ints, w: Floats, scale: float = 1.0) -> OracleResult:
        """The most violated candidate of each example at ``scale * w``, in features."""
        search = self._search
        if scale != 1.0 and self.feasible_set is not None:
            w = scale * w
        elif scale != 1.0:
            search = partial(self._search_at_scale, scale=scale)
        return self._answer(search, examples, w, measures=True)

    def call_k_best(
        self, examples: Ints, w: Floats, k: int, *, by_score: bool = False
    ) -> OracleResult:
        """The k best candidates of each example at ``w``, in features; see `Problem.k_best`.

        They are ranked by their violations, or else by plain scores.
        """
        kind = ("none", False) if by_score else self._kind
        found = self._method("k_best")
        return self._answer(lambda i, w: found(i, w, k, *kind), examples, w, rows=k)

    def predictions(self, examples: Ints, w: Floats, *, count: bool = True) -> OracleResult:
        """The predicted outputs, in features; not counted where they only measure the weights."""
        return self._answer(self._method("predictions"), examples, w, count=count)

    def violations(self, w: Floats, check: Callable[[], None] | None = None) -> Violations:
        """Values and offsets of all examples' most violated planes, by a full pass at ``w``.

        ``check`` is called after every batch, to end the pass.
        """
        found = Violations(np.empty(self.n_examples), np.empty(self.n_examples))
        for examples, values, offsets in self._measured(np.arange(self.n_examples), w):
            found.values[examples] = values
            found.offsets[examples] = offsets
            self.compare(examples, values)
            if check is not None:
                check()
        return found

    def _measured(self, examples: Ints, w: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Some examples at a time, values of their most violated planes at ``w``, and offsets."""
        if self.threads is None or self.feasible_set is not None or not self.trusted:
            for batch, oracle_result in self.call_all(examples, w):
                yield batch, violations(oracle_result, w), oracle_result.offsets
            return

        def measure(chunk: Ints) -> tuple[Floats, Floats, Floats | None]:
            planes, bounds = split_bounds(self._search(chunk, w))
            oracle_result = OracleResult(planes, *self.formulation.plane_terms(planes.losses))
            return violations(oracle_result, w), oracle_result.offsets, bounds

        chunks = self._pieces(examples)
        found = self._timed(self.threads.map(measure, chunks))
        for chunk, (values, offsets, bounds) in zip(chunks, found, strict=True):
            self._note_calls(chunk, bounds)
            yield chunk, values, offsets

    def count(self, calls: int) -> None:
        """Count calls that a kernel made by itself."""
        self.calls += calls
        self.calls_inside += calls

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time inside as that of oracle calls."""
        before, began = self.seconds, working_clock()
        try:
            yield
        finally:
            self.seconds = before + working_clock() - began  # calls inside have added theirs

    def compare(self, examples: Ints, values: Floats) -> None:
        """Warn, once, of candidates that are worse than the given output, whose value is 0.

        ``values`` are those of the candidates at the weights they were found at. Where they have
        bounds, these are what is tested: ValueError if one is below the value of its candidate.
        """
        if self.bounds is not None:
            self._check_bounds(examples, values)
            return
        if not self._compares or len(values) == 0:
            return
        worst = int(np.argmin(values))
        if values[worst] < WORSE:
            self._compares, self.missed = False, True
            warn_user(
                f"the oracle's candidate for example {examples[worst]} has value "
                f"{values[worst]:.4g}, worse than the gold output (0): the oracle is not exact and "
                "gaps are not certificates; check_problem() may say why"
            )

    def bounded(self, slacks: Floats) -> Floats:
        """Slacks by a full pass at some weights, raised to the bounds of the same pass."""
        return slacks if self.bounds is None else np.maximum(slacks, self.bounds)

    def _check_bounds(self, examples: Ints, values: Floats) -> None:
        """Raise ValueError for a bound that a candidate exceeds."""
        assert self.bounds is not None
        bounds = self.bounds[examples]
        low = (bounds < values - LOW_BOUND * (1.0 + np.abs(values))) & (bounds > -np.inf)
        if low.any():
            row = int(np.argmax(low))
            raise ValueError(
                f"the oracle's bound for example {examples[row]} is {bounds[row]:.6g}, but the "
                f"candidate itself has value {values[row]:.6g}"
            )

    def _timed(self, found: Iterator[Found]) -> Iterator[Found]:
        """The same, whose making is timed."""
        while True:
            with self.timed():
                try:
                    item = next(found)
                except StopIteration:
                    return
            yield item

    # ----- searches -----------------------------------------------------------------------------

    def _search_at_scale(self, examples: Ints, v: Floats, scale: float) -> Planes | BoundedPlanes:
        found = self.accelerators.oracle_at_scale(examples, v, scale)
        return self._search(examples, scale * v) if found is None else found

    def _search_in_processes(
        self, processes: Processes, examples: Ints, w: Floats
    ) -> Planes | BoundedPlanes:
        """The search, of which processes do their share."""
        chunks = []
        for chunk, found in processes.find(examples, w):
            validate_planes(split_bounds(found)[0], chunk, self.n_features)
            chunks.append(found)
        planes, bounds = self._joined(chunks)
        return planes if bounds is None else BoundedPlanes(planes, bounds)

    def _method(self, name: str) -> Any:
        """A method of the problem; what a duck-typed one lacks is taken from the base class."""
        return getattr(self.problem, name, None) or partial(getattr(Problem, name), self.problem)

    @property
    def _factored_search(self) -> Search:
        """The search in parts, where there are some."""
        return self.accelerators.factored_oracle if self.in_blocks else self._search

    def _answer(
        self,
        search: Search,
        examples: Ints,
        w: Floats,
        *,
        in_blocks: bool = False,
        rows: int = 1,
        count: bool = True,
        measures: bool = False,
        known: bool = False,
    ) -> OracleResult:
        """Search for candidates, ``rows`` of each example, with entries in features or in parts.

        Where they are ``known``, the weights are the problem's.
        """
        w = w if known else self.weights(w)
        chunks = self._pieces(examples)
        began = working_clock()  # a context takes a microsecond, and calls may be as short as 20
        found = [search(examples, w)] if len(chunks) == 1 else self._searched(search, chunks, w)
        planes, bounds = self._joined(found)
        self.seconds += working_clock() - began
        return self._noted(
            examples, planes, bounds, in_blocks=in_blocks, rows=rows, count=count, measures=measures
        )

    def _pieces(self, examples: Ints) -> list[Ints]:
        """What is searched at a time, whatever the number of threads; a whole batch without any."""
        size = self._piece_size
        if self.threads is None or len(examples) <= size:  # single ones, again and again
            return [examples]
        return list(batches(examples, size))

    def _searched(
        self, search: Callable[[Ints, Floats], Found], chunks: Iterable[Ints], w: Floats
    ) -> Iterator[Found]:
        """What is found for each piece, at the problem's weights."""
        if self.threads is None:
            return (search(chunk, w) for chunk in chunks)
        return self.threads.map(lambda chunk: search(chunk, w), chunks)

    def _noted(
        self,
        examples: Ints,
        planes: Planes,
        bounds: Floats | None,
        *,
        in_blocks: bool = False,
        rows: int = 1,
        count: bool = True,
        measures: bool = False,
    ) -> OracleResult:
        """What was found, counted, checked and with the terms of its planes."""
        feature_blocks = self.feature_blocks if in_blocks and self.in_blocks else None
        self._note_calls(examples, bounds, count=count, measures=measures)
        if not self.trusted:
            asked = examples if rows == 1 else examples.repeat(rows)
            size = self.n_features if feature_blocks is None else feature_blocks.n_feature_blocks
            validate_planes(planes, asked, size)
            planes = Planes(
                np.asarray(planes.indptr, np.int64),
                np.asarray(planes.indices, np.int32),
                np.asarray(planes.values, np.float64),
                np.asarray(planes.losses, np.float64),
            )
        oracle_result = OracleResult(planes, *self.formulation.plane_terms(planes.losses))
        return (
            oracle_result
            if self.feasible_set is None
            else self._of_change(oracle_result, self.feasible_set, feature_blocks)
        )

    def _note_calls(
        self, examples: Ints, bounds: Floats | None, *, count: bool = True, measures: bool = True
    ) -> None:
        """Count calls, and keep their bounds where they measure violations."""
        if count:
            self.calls += len(examples)
        if measures and (bounds is not None or self.bounds is not None):
            self._keep_bounds(examples, bounds)

    def _of_change(
        self,
        oracle_result: OracleResult,
        feasible_set: FeasibleSet,
        feature_blocks: FeatureBlocks | None,
    ) -> OracleResult:
        """Planes of the change from the weights' mean: what that decides is in their offsets."""
        planes, offsets, scales = oracle_result
        if feature_blocks is not None:
            decided = row_products(planes, feature_blocks, feasible_set.mean)
            return oracle_result._replace(offsets=self._difference(offsets, scales * decided))
        n = len(planes.losses)
        row_of = np.repeat(np.arange(n), np.diff(planes.indptr))
        products = planes.values * feasible_set.mean[planes.indices]
        decided = np.bincount(row_of, products, n).astype(np.float64, copy=False)
        free = ~feasible_set.fixed[planes.indices]
        if not free.all():
            ends = np.cumsum(np.bincount(row_of[free], minlength=n))
            planes = planes._replace(
                indptr=np.concatenate([[0], ends]),
                indices=planes.indices[free],
                values=planes.values[free],
            )
        return OracleResult(planes, self._difference(offsets, scales * decided), scales)

    def _difference(self, offsets: Floats, decided: Floats) -> Floats:
        """Offsets less what the mean decides of them; how large these are tells of rounding."""
        size = float(np.maximum(np.abs(offsets), np.abs(decided)).max(initial=0.0))
        power = 2 if self.formulation.slack == "l2" else 1
        self.rounding = max(self.rounding, ROUNDING * size**power)
        return offsets - decided

    def _joined(self, chunks: Iterable[Planes | BoundedPlanes]) -> tuple[Planes, Floats | None]:
        """The planes of all pieces, and their bounds if any has some."""
        planes, bounds = zip(*map(split_bounds, chunks), strict=True)
        if len(planes) == 1:
            return planes[0], bounds[0]
        together = concatenate(planes)
        if all(bound is None for bound in bounds):
            return together, None
        filled = [
            np.full(len(rows.losses), self._no_bound) if bound is None else bound
            for rows, bound in zip(planes, bounds, strict=True)
        ]
        return together, np.concatenate(filled)

    def _keep_bounds(self, examples: Ints, bounds: Floats | None) -> None:
        """Keep the bounds of an answer, or that it has none."""
        if self.bounds is None:
            self.bounds = np.full(self.n_examples, self._no_bound)
        if bounds is None:
            self.bounds[examples] = self._no_bound
        else:
            validate_bounds(bounds, examples)
            self.bounds[examples] = bounds
