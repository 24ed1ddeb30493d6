"""Runs the contestants of a case in turns, and holds the figures against the targets."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from .case import Case, Contestant, Point, Target
from .objective import add_gaps, assess
from .timing import Measures, median_ratio, medians, timed_without_jit

logger = logging.getLogger("benchmarks")


@dataclass
class Finding:
    """A target and its figure; ``ok`` is None where no limit is set or nothing is judged."""

    target: Target
    value: float
    converged: bool
    ok: bool | None

    def as_json(self) -> dict[str, Any]:
        """The finding for the record."""
        target = self.target
        return {
            "what": target.what,
            "value": self.value,
            "unit": target.unit,
            "reference": target.reference,
            "must": target.must,
            "converged": self.converged,
            "ok": self.ok,
        }


@dataclass
class CaseReport:
    """All figures of a case."""

    name: str
    runs: dict[str, list[Measures]] = field(default_factory=dict)
    curves: dict[str, list[Point]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    sizes: dict[str, float | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The report for the record."""
        return {
            "name": self.name,
            **self.sizes,
            "contestants": {
                label: {
                    "median": medians(runs),
                    "runs": runs,
                    "curve": [point._asdict() for point in self.curves.get(label, [])],
                }
                for label, runs in self.runs.items()
            },
            "findings": [finding.as_json() for finding in self.findings],
        }


def run_case(case: Case, repeat: int, evaluated: bool = True) -> CaseReport:
    """Run every contestant ``repeat`` times; ``judged=False`` leaves the limits out."""
    report = CaseReport(case.name, {contestant.label: [] for contestant in case.contestants})
    problem = case.problem(None) if case.problem is not None else None
    if problem is not None:
        report.sizes = {"examples": problem.n_examples, "weights": problem.n_features, "C": case.C}
    for contestant in case.contestants:
        logger.info("%s: preparing %s", case.name, contestant.label)
        contestant.prepare()
    for turn in range(repeat):
        for contestant in case.contestants:
            if turn == 0 or not contestant.once:
                _take_turn(case, contestant, problem, report)
    add_gaps(run for runs in report.runs.values() for run in runs)
    report.findings = [
        finding for target in case.targets if (finding := _finding(target, report, evaluated))
    ]
    return report


def _take_turn(case: Case, contestant: Contestant, problem: Any, report: CaseReport) -> None:
    """One timed run, and its assessment, which is not timed."""
    outcome, timing = timed_without_jit(contestant.run)
    measures = {**timing._asdict(), **outcome.measures, **assess(case, problem, outcome)}
    report.runs[contestant.label].append(measures)
    report.curves[contestant.label] = outcome.curve
    shown = "  ".join(f"{name} {value:.4g}" for name, value in measures.items())
    logger.info("%s: %s: %s", case.name, contestant.label, shown)


def _finding(target: Target, report: CaseReport, evaluated: bool) -> Finding | None:
    """Hold a figure against its target; a run that was stopped early cannot meet it."""
    value = _figure(target, report)
    if value is None:
        return None
    converged = all(run.get("converged", 1.0) for run in report.runs[target.of])
    ok = target.holds(value) if evaluated else None
    return Finding(target, value, converged, ok and converged)


def _figure(target: Target, report: CaseReport) -> float | None:
    """The figure a target asks for; None if its contestant did not run."""
    own = report.runs.get(target.of)
    if not own:
        return None
    if target.relative_to is None:
        return medians(own).get(target.measure)
    label, measure = target.relative_to
    other = report.runs.get(label)
    return median_ratio(own, target.measure, other, measure) if other else None
