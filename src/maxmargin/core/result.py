"""What a solver returns, and what it reports on the way."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, ClassVar, Protocol

from ..registry import import_name
from ..utils.tables import named_values
from ..utils.types import Floats

__all__ = ["Callback", "HistoryCallback", "Progress", "Result", "WeightsCallback"]


@dataclass(frozen=True, repr=False)
class Progress:
    """The state of training after an outer iteration.

    Attributes
    ----------
    seconds : float
        Time since the start, without that of compiling kernels.
    oracle_calls : int
        Oracle calls so far.
    primal, dual, gap : float or None
        Objective values and certified gap; None where they are not known at this point.
    planes : int
        Planes stored.
    gap_estimate : float or None
        Sum of the blocks' gaps as the iteration found them. Not a certificate: the weights moved
        in the meantime.
    target : float or None
        Gap at which training stops.
    bound_gap : float or None
        How much of the gap is due to inference, see `Result`; None where the oracle gave no bounds.
    loss, held_out_loss : float or None
        Of online solvers: mean loss of the candidates found in the pass, while the weights moved,
        and mean loss of the predictions for the examples held out, after it.
    score, test_loss : float or None
        What a `HistoryCallback` has measured of the weights.
    """

    seconds: float
    oracle_calls: int
    primal: float | None
    dual: float | None
    gap: float | None
    planes: int
    gap_estimate: float | None = None
    target: float | None = None
    loss: float | None = None
    held_out_loss: float | None = None
    bound_gap: float | None = None
    score: float | None = None
    test_loss: float | None = None

    def __repr__(self) -> str:
        known = ((f.name, getattr(self, f.name)) for f in fields(self))
        shown = (f"{name}={_number(value)}" for name, value in known if value is not None)
        return f"Progress({', '.join(shown)})"


#: Called after every outer iteration; training stops if it returns True.
Callback = Callable[[Progress], bool | None]


class WeightsCallback:
    """A callback that is shown the weights too, if it asks for them."""

    def __call__(
        self, progress: Progress, weights: Callable[[], Floats] | None = None
    ) -> bool | None:
        """See an outer iteration; ``weights()`` are those it ended with, not to be changed."""
        raise NotImplementedError

    def identity(self) -> dict[str, str]:
        """What has to be the same for a training that goes on from a checkpoint."""
        return {}

    def arrays(self) -> dict[str, Any]:
        """What it has seen so far, as arrays by name, for checkpoints."""
        return {}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` has given."""


class HistoryCallback(WeightsCallback):
    """Adds to every record of the history what functions measure of its weights.

    The clock of the training stands still meanwhile, so that curves over time are those of the
    solver alone. Oracle calls of the functions do not count.

    Parameters
    ----------
    primal : callable, optional
        ``primal(w)`` gives the primal value. Where a record is certified, it keeps its own.
    score, test_loss : callable, optional
        Score and loss of the weights on test data, such as
        ``lambda w: test.predictions(range(test.n_examples), w).losses.mean()``.

    Examples
    --------
    >>> solver.solve(problem, formulation, C, callbacks=[HistoryCallback(score=accuracy)])
    """

    def __init__(
        self,
        *,
        primal: Callable[[Floats], float] | None = None,
        score: Callable[[Floats], float] | None = None,
        test_loss: Callable[[Floats], float] | None = None,
    ) -> None:
        measures = {"primal": primal, "score": score, "test_loss": test_loss}
        self.measures = {name: own for name, own in measures.items() if own is not None}

    def __call__(
        self, progress: Progress, weights: Callable[[], Floats] | None = None
    ) -> bool | None:
        """See `WeightsCallback`; the records are there already."""
        return None

    def measure(self, progress: Progress, weights: Callable[[], Floats]) -> Progress:
        """The record with what the functions measure where it knows nothing."""
        w = weights()
        for name, measure in self.measures.items():
            if getattr(progress, name) is None:
                progress = replace(progress, **{name: float(measure(w))})  # type: ignore[arg-type]
        return progress


class CheckpointedState(Protocol):
    """What a solver keeps for a warm start; see `engine.training.state.SolverState`."""

    kind: ClassVar[str]

    def arrays(self) -> dict[str, Any]:
        """All of it but the data, as arrays by name."""


@dataclass(repr=False)
class Result:
    """Trained weights with their certificate; it prints as a short table.

    Attributes
    ----------
    w : array of shape (n_features,)
        The weights.
    primal, dual, gap, relative_gap : float or None
        ``primal`` comes from a full pass of true oracle calls at ``w``; ``gap = primal - dual``
        bounds its distance from the optimum. Solvers without a dual leave dual and gap None. Where
        the oracle gave bounds on what it may have missed, ``primal`` is the bound that follows.
    converged : bool
        Whether the requested precision was reached: ``gap`` meets ``tol`` or ``epsilon``. (Without
        a certified gap, or with a solver's own rule such as ``NSlack(violation=...)``, whether
        training came to its end.)
    status : str
        Why training ended: "converged", "max_passes", "max_time", "early_stopping", "interrupted",
        "callback", "rounding" (the gap is as small as floating-point numbers allow, and that is
        more than was asked for), "stalled" (neither bound moved any more), "loose bounds" (the
        candidates found would do, but the oracle's bounds on others leave a larger gap, which is
        ``bound_gap``, and do not get tighter), "inexact oracle" (the oracle missed an output: its
        candidate was worse than the gold output, or the dual value exceeds the primal one),
        "cluster lost" (nobody was left to ask) or "compacted" (the weights are those of
        ``estimator.compact``).
    n_passes : float
        Oracle calls divided by the number of examples.
    n_oracle_calls, n_cache_hits : int
        True oracle calls, and visits of an example that were served from stored planes.
    n_planes : int
        Planes stored at the end.
    seconds : float
        Time of the training, without that of compiling kernels.
    n_support_vectors : int
        Planes whose multiplier is positive. Online solvers store no planes and have none.
    oracle_seconds, step_seconds : float
        How much of that went into oracle calls, and how much into solving QPs and other changes of
        multipliers and weights; `other_seconds` is the rest. Where one compiled pass does both, its
        time is divided by the counted work; online passes count as oracle calls.
    oracle_work, step_work : float
        The same as counted work, which does not depend on the machine: about nanoseconds of one
        core. It is what solvers decide by; one-slack and online solvers count no steps.
    compile_seconds : float
        Time of compiling kernels on the way, or of reading them from the cache.
    relative_to_oracle : bool
        Whether the problem's search gave no bounds and may miss the most violated outputs (then
        convergence is judged by what it found), or was seen to (``status`` is "inexact oracle").
        The primal value is that of what it found, and the gaps are None.
    bound_gap : float or None
        How much of the gap is due to inference that is not exact: ``primal`` less the lowest
        objective by the outputs that the oracle found, without its bounds; at most the gap. Only
        tighter bounds make it smaller, the rest falls with more training. None without bounds.
    proven_fraction : float or None
        Fraction of the oracle calls that were proven to have found the best output, where inference
        is not always exact and says so (graphs).
    history : list of Progress
        One record per outer iteration.
    state : SolverState or None
        The solver's planes and multipliers, from which a warm start goes on.
    """

    w: Floats
    primal: float | None
    dual: float | None
    converged: bool
    status: str
    n_passes: float
    n_oracle_calls: int
    n_cache_hits: int
    n_planes: int
    seconds: float
    n_support_vectors: int = 0
    oracle_seconds: float = 0.0
    step_seconds: float = 0.0
    oracle_work: float = 0.0
    step_work: float = 0.0
    compile_seconds: float = 0.0
    relative_to_oracle: bool = False
    bound_gap: float | None = None
    proven_fraction: float | None = None
    history: list[Progress] = field(default_factory=list)
    state: CheckpointedState | None = None

    def __repr__(self) -> str:
        parts = [repr(self.status)]
        for name in ("primal", "dual", "relative_gap", "n_passes", "seconds"):
            value = getattr(self, name)
            parts += [f"{name}={_number(value)}"] if value is not None else []
        parts += ["relative to the oracle"] if self.relative_to_oracle else []
        return f"Result({', '.join(parts)})"

    def __str__(self) -> str:
        rows = [("status", self.status)]
        for name in ("primal", "dual", "gap", "relative_gap"):
            value = getattr(self, name)
            rows += [(name.replace("_", " "), _number(value))] if value is not None else []
        if self.bound_gap is not None:
            rows.append(("due to inference", _share(self.bound_gap, self.gap)))
        if self.proven_fraction is not None:
            share = f"{100 * self.proven_fraction:.3g} % of the oracle calls"
            rows.append(("proven optimal", share))
        if self.relative_to_oracle:
            rows.append(("gap", "unknown: all is relative to the oracle, which is not exact"))
        elif self.gap is None:
            rows.append(("gap", "not certified"))
        rows += [
            ("passes", f"{self.n_passes:.1f}"),
            ("oracle calls", str(self.n_oracle_calls)),
            ("cache hits", str(self.n_cache_hits)),
            ("planes", str(self.n_planes)),
        ]
        if self.n_support_vectors:
            rows.append(("support vectors", str(self.n_support_vectors)))
        rows.append(("seconds", f"{self.seconds:.2f}"))
        if self.compile_seconds > 0:
            rows.append(("compiling", f"{self.compile_seconds:.2f} s more"))
        return named_values(rows)

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, path: Any = None, **options: Any) -> Any:
        """Draw how primal, dual and gap went; see `maxmargin.report.plot_convergence`.

        Parameters
        ----------
        path : str or path-like, optional
            Picture to write.
        **options
            ``x="passes"`` for passes in place of seconds, ``title``, ``size``.

        Returns
        -------
        matplotlib.figure.Figure
            What a notebook shows.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return import_name("report.plots", "plot_convergence")(self, path, **options)

    @property
    def n_examples(self) -> int:
        """Number of examples trained on; 0 if there was no training."""
        return round(self.n_oracle_calls / self.n_passes) if self.n_passes > 0 else 0

    @property
    def other_seconds(self) -> float:
        """Seconds that were neither oracle calls nor steps."""
        return max(0.0, self.seconds - self.oracle_seconds - self.step_seconds)

    @property
    def gap(self) -> float | None:
        """Certified duality gap."""
        if self.primal is None or self.dual is None or self.relative_to_oracle:
            return None
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float | None:
        """Certified gap divided by the primal value."""
        if self.gap is None or not self.primal:
            return 0.0 if self.gap == 0 else None
        if self.primal == inf:  # where bounds of the oracle tell nothing
            return inf
        return self.gap / self.primal


def _share(part: float, whole: float | None) -> str:
    """A part of a gap for people."""
    share = f" ({100 * part / whole:.3g} % of the gap)" if whole and 0 < whole < inf else ""
    return f"{_number(part)}{share}"


def _number(value: float) -> str:
    """A number for people."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"
