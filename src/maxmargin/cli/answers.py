"""How several outputs of an input, and scores of outputs, are written."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from ..registry import Task
from .codes import UsageError

__all__ = [
    "answer_line",
    "check_output_options",
    "number_of_answers",
    "pairs_of_scores",
    "score_text",
]


def check_output_options(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError for --k, --scores or --confidence where the task has no such answers."""
    for name in ("k", "scores", "confidence"):
        if getattr(arguments, name) and name not in task.answers:
            raise UsageError(f"models of the task {task.name!r} have no --{name}")
    if arguments.confidence and (arguments.k or arguments.scores):
        raise UsageError("--confidence is of the best output; leave out --k and --scores")


def number_of_answers(arguments: argparse.Namespace) -> int | None:
    """How many outputs to write with their scores; None for the best one without."""
    return arguments.k or (1 if arguments.scores else None)


def score_text(score: float) -> str:
    """A score, as it is written."""
    return f"{score:.9g}"


def answer_line(number: int, score: float) -> str:
    """What stands before an output: a comment, where the format has comments."""
    return f"# k = {number} score = {score_text(score)}"


def pairs_of_scores(scores: Iterable[tuple[Any, float]]) -> str:
    """Names and their scores on a line."""
    return " ".join(f"{name}:{score_text(score)}" for name, score in scores)
