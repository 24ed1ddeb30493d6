"""How predictions and scores are written: for programs, and in words."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..metrics import bootstrap_intervals, paired_comparison
from ..metrics.tallies import Tally
from ..utils.tables import columns, score_name, score_text
from .console import UsageError
from .tasks import Task

__all__ = [
    "Evaluation",
    "answer_line",
    "as_json",
    "check_output_options",
    "compared",
    "confidence_of",
    "confusions",
    "count_unknown",
    "error_lines",
    "number_of_answers",
    "pairs_of_scores",
    "with_intervals",
    "written_score",
]

N_CONFUSIONS = 10  # most frequent confusions to list
_PAIR = ("true", "predicted")
N_UNKNOWN = 10  # unknown labels to list


class Evaluation(NamedTuple):
    """Scores that can be written as JSON, and as text; and what they are made of, unit by unit."""

    report: dict[str, Any]
    text: str
    tally: Tally | None = None


def as_json(each: dict[Any, Any]) -> dict[str, dict[str, Any]]:
    """Scores of labels or types as they can be written to JSON."""
    return {str(name): scores._asdict() for name, scores in each.items()}


def count_unknown(gold: Iterable[Any], known: set[Any]) -> dict[str, int]:
    """How often there are labels that the model does not know."""
    return dict(Counter(str(y) for y in gold if y not in known))


def confusions(gold: list[Any], predicted: list[Any]) -> list[dict[str, Any]]:
    """The most frequent errors."""
    counts = Counter((a, b) for a, b in zip(gold, predicted, strict=True) if a != b)
    return [
        {"true": a, "predicted": b, "count": count}
        for (a, b), count in counts.most_common(N_CONFUSIONS)
    ]


def error_lines(report: dict[str, Any]) -> list[str]:
    """The confusions and unknown labels of a report, for people."""
    lines = []
    if report["confusions"]:
        lines += ["", "most frequent errors (true, predicted, number)"]
        names = [str(item[which]) for item in report["confusions"] for which in _PAIR]
        width = max(10, *map(len, names)) + 2
        for item in report["confusions"]:
            true, predicted = (f"{item[which]!s:<{width}}" for which in _PAIR)
            lines.append(f"  {true}{predicted}{item['count']:>8}")
    unknown = Counter(report["unknown_labels"])
    for label, count in unknown.most_common(N_UNKNOWN):
        lines.append(f"label {label!r} is unknown to the model: {count} counted as wrong")
    if len(unknown) > N_UNKNOWN:
        rest = sum(unknown.values()) - sum(n for _, n in unknown.most_common(N_UNKNOWN))
        lines.append(f"{len(unknown) - N_UNKNOWN} more labels are unknown: {rest} counted as wrong")
    return lines


def check_output_options(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError for --k, --scores or --confidence where the task has no such answers."""
    for name in ("k", "scores", "confidence"):
        if getattr(arguments, name) and name not in task.answers:
            raise UsageError(f"--{name} is not available for models of the task {task.name!r}")
    if arguments.confidence and (arguments.k or arguments.scores):
        raise UsageError("--confidence cannot be combined with --k or --scores")


def number_of_answers(arguments: argparse.Namespace) -> int | None:
    """How many outputs to write with their scores; None for the best one without."""
    return arguments.k or (1 if arguments.scores else None)


def written_score(score: float) -> str:
    """A score, as it is written."""
    return f"{score:.9g}"


def answer_line(number: int, score: float) -> str:
    """What stands before an output: a comment, where the format has comments."""
    return f"# k = {number} score = {written_score(score)}"


def pairs_of_scores(scores: Iterable[tuple[Any, float]]) -> str:
    """Names and their scores on a line."""
    return " ".join(f"{name}:{written_score(score)}" for name, score in scores)


def confidence_of(estimator: Any, X: Any, predicted: Sequence[Any]) -> list[str]:
    """The probability of each predicted label, or its margin if the model is not calibrated."""
    is_calibrated = hasattr(estimator, "calibration_")
    tables = estimator.predict_proba(X) if is_calibrated else estimator.predict_margins(X)
    number = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    codes = np.array([number[label] for label in predicted], np.int64)
    table = tables if isinstance(tables, np.ndarray) else np.concatenate(tables)
    return [f"{value:.6g}" for value in table[np.arange(len(codes)), codes].tolist()]


def with_intervals(evaluation: Evaluation, arguments: argparse.Namespace) -> Evaluation:
    """The evaluation, with intervals of its scores where they can be had."""
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
    """The evaluation, with the differences from another model's."""
    ours, theirs = evaluation.tally, other.tally
    if ours is None or theirs is None:
        raise ValueError(
            "--against is not available for this task, whose scores are not sums over examples"
        )
    if ours.n_units != theirs.n_units or ours.unit != theirs.unit:
        raise ValueError(
            f"--against: {arguments.model} finds {ours.n_units} {ours.unit} in the file, "
            f"{arguments.against} finds {theirs.n_units} {theirs.unit}"
        )
    if not arguments.resamples:
        raise UsageError("--against requires --resamples of at least 1")
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
        "random_state": arguments.random_state,
    }


def _how(tally: Tally, arguments: argparse.Namespace) -> dict[str, Any]:
    """How intervals came about, for programs."""
    settings = _settings(arguments)
    del settings["random_state"]
    return {
        **settings,
        "seed": arguments.random_state,
        "unit": tally.unit,
        "n_units": tally.n_units,
    }


def _how_in_words(tally: Tally, arguments: argparse.Namespace) -> str:
    """How intervals came about."""
    return (
        f"{arguments.level:g} % intervals by {arguments.resamples} resamples of "
        f"{tally.n_units} {tally.unit}"
    )
