"""Intervals of scores and comparisons of two models: for programs, and in words."""

from __future__ import annotations

import argparse
from typing import Any

from ..metrics import bootstrap_intervals, paired_comparison
from ..metrics.tallies import Tally
from ..tables import columns, score_name, score_text
from .codes import UsageError
from .evaluation import Evaluation

__all__ = ["compared", "with_intervals"]


def with_intervals(evaluation: Evaluation, arguments: argparse.Namespace) -> Evaluation:
    """The judgement, with intervals of its scores where they can be had."""
    tally = evaluation.tally
    if tally is None or tally.n_units < 2 or not arguments.resamples:
        return evaluation
    found = bootstrap_intervals(tally.scores, **_settings(arguments))
    report = {
        **_how(tally, arguments),
        "scores": {name: interval._asdict() for name, interval in found.items()},
    }
    rows: list[tuple[str, ...]] = [("intervals", "score", "from", "to")]
    rows += [
        (score_name(name), *(score_text(name, value) for value in interval))
        for name, interval in found.items()
    ]
    text = f"{columns(rows)}\n({_how_in_words(tally, arguments)})"
    return evaluation._replace(
        report={**evaluation.report, "intervals": report}, text=f"{evaluation.text}\n\n{text}"
    )


def compared(
    evaluation: Evaluation, other: Evaluation, arguments: argparse.Namespace
) -> Evaluation:
    """The judgement, with the differences from another model's."""
    ours, theirs = evaluation.tally, other.tally
    if ours is None or theirs is None:
        raise ValueError("--against: the scores of this task are not sums over examples")
    if ours.n_units != theirs.n_units or ours.unit != theirs.unit:
        raise ValueError(
            f"--against: {arguments.model} finds {ours.n_units} {ours.unit} in the file, "
            f"{arguments.against} finds {theirs.n_units} {theirs.unit}"
        )
    if not arguments.resamples:
        raise UsageError("--against needs --resamples of 1 or more")
    found = paired_comparison(ours.scores, theirs.scores, **_settings(arguments))
    report = {
        "model": arguments.against,
        **_how(ours, arguments),
        "test": "approximate randomization",
        "scores": {name: comparison._asdict() for name, comparison in found.items()},
    }
    title = f"against {arguments.against}"
    rows: list[tuple[str, ...]] = [(title, "score", "other", "difference", "from", "to", "p")]
    rows += [
        (
            score_name(name),
            *(score_text(name, value) for value in comparison[:5]),
            f"{comparison.p:.4f}",
        )
        for name, comparison in found.items()
    ]
    text = (
        f"{columns(rows)}\n({_how_in_words(ours, arguments)}, the same for both; p: two-sided, by "
        "approximate randomization)"
    )
    return evaluation._replace(
        report={**evaluation.report, "against": report}, text=f"{evaluation.text}\n\n{text}"
    )


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """How resamples are drawn."""
    return {
        "level": arguments.level / 100.0,
        "resamples": arguments.resamples,
        "random_state": arguments.seed,
    }


def _how(tally: Tally, arguments: argparse.Namespace) -> dict[str, Any]:
    """How intervals came about, for programs."""
    settings = _settings(arguments)
    del settings["random_state"]
    return {**settings, "seed": arguments.seed, "unit": tally.unit, "n_units": tally.n_units}


def _how_in_words(tally: Tally, arguments: argparse.Namespace) -> str:
    """How intervals came about."""
    return (
        f"{arguments.level:g} % intervals by {arguments.resamples} resamples of "
        f"{tally.n_units} {tally.unit}"
    )
