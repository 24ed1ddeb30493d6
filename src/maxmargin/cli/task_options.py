"""Options of train that not every task has; light, for every call of the command line reads them.

`maxmargin.registry` says which task has which.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..registry import TASKS, Task
from .codes import UsageError
from .options import non_negative, positive

__all__ = ["add_task_options", "refuse_misplaced"]

OPTIONS: dict[str, dict[str, Any]] = {
    "templates": {"metavar": "NAME|FILE", "help": "chunking, ner, words, or a file (of CRF++ too)"},
    "format": {
        "choices": ["columns", "crfsuite"],
        "help": "of the data; by default judged by how the file begins",
    },
    "label_column": {"type": int, "metavar": "N", "help": "from 0; default -1, the last"},
    "min_count": {"type": non_negative, "metavar": "N", "help": "drop features rarer than this"},
    "constraints": {"choices": ["bio"], "help": "forbid I-X but after B-X or I-X"},
    "on_violation": {
        "choices": ["raise", "drop", "repair", "keep"],
        "help": "what to do with training examples that break the constraints, have longer "
        "segments than --max-length, or, without --no-projective, crossing arcs: end with an "
        "error, leave them out (default of segment), repair them (default of tag: change I-X to "
        "B-X where it continues nothing; depend: lift crossing arcs) or train on them as they are "
        "(depend, default)",
    },
    "boundary_weights": {"action": "store_true", "help": "weights for first and last"},
    "order": {
        "type": int,
        "choices": [1, 2, 3],
        "help": "labels that a transition looks back on; default 1",
    },
    "max_length": {
        "type": positive,
        "metavar": "N",
        "help": "most tokens of a segment; default the longest of the training file",
    },
    "edges": {
        "choices": ["tree", "pairs"],
        "help": "weights for pairs of labels that are on together: those of a learned tree, or, "
        "for at most 14 labels, all; default none",
    },
    "grades": {"metavar": "A,B,...", "help": "the grades from the lowest to the highest"},
    "measure": {
        "metavar": "NAME",
        "help": "error (default), f1, fbeta, prbep, precision@k, recall@k, recall@precision, "
        "precision@recall, rocarea or average_precision",
    },
    "k": {"type": positive, "metavar": "N", "help": "places or rows that ndcg and ...@k count"},
    "beta": {"type": float, "help": "recall counts so much more than precision in fbeta"},
    "floor": {"type": float, "help": "the least precision or recall of ...@precision, ...@recall"},
    "projective": {
        "action": argparse.BooleanOptionalAction,
        "help": "search trees without crossing arcs only (default)",
    },
    "relations": {
        "action": argparse.BooleanOptionalAction,
        "help": "learn DEPREL too (default)",
    },
    "hash_bits": {
        "type": non_negative,
        "metavar": "N",
        "help": "features are hashed into 2^N weights (default 22)",
    },
    "terminals": {
        "choices": ["tags", "words"],
        "help": "what the grammar derives: tags, which are then part of the input (default), or "
        "words",
    },
    "horizontal": {
        "type": non_negative,
        "metavar": "N",
        "help": "siblings that parts of long rules remember; default all",
    },
    "vertical": {
        "type": positive,
        "metavar": "N",
        "help": "1: symbols are labels (default); 2: with that of the parent; and so on",
    },
    "span_features": {"action": "store_true", "help": "weights for the ends of constituents"},
    "lexical_features": {"action": "store_true", "help": "the same with words"},
    "mode": {
        "choices": ["local", "global"],
        "help": "whether letters before the first and after the last pair cost nothing (default) "
        "or count as gaps",
    },
    "gaps": {
        "choices": ["linear", "affine"],
        "help": "whether a gap has a weight for each letter, or also one for itself (default)",
    },
    "symmetric": {"action": "store_true", "help": "one score for two letters in either order"},
    "calibrate": {
        "action": "store_true",
        "help": "probabilities for predict --confidence; takes three more fits",
    },
}

# What each task can do with examples that break its rules.
VIOLATIONS = {
    "tag": ("raise", "drop", "repair"),
    "segment": ("raise", "drop"),
    "depend": ("raise", "drop", "repair", "keep"),
}


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options, those of the same tasks together."""
    groups: dict[str, Any] = {}
    for name, settings in OPTIONS.items():
        title = f"{_listed(_tasks_with(name))} only"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(_flag(name), **settings)


def refuse_misplaced(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError for an option or a loss that the task does not have."""
    for name in dict.fromkeys(name for other in TASKS.values() for name in other.options):
        if name not in task.options and _is_given(getattr(arguments, name)):
            tasks = [repr(other) for other in _tasks_with(name)]
            noun = "task" if len(tasks) == 1 else "tasks"
            raise UsageError(f"{_flag(name)} is for the {noun} {_listed(tasks)} only")
    if arguments.on_violation and arguments.on_violation not in VIOLATIONS[task.name]:
        able = _listed([repr(name) for name in VIOLATIONS[task.name]])
        raise UsageError(f"--on-violation of {task.name} is {able}, got {arguments.on_violation!r}")
    if arguments.loss is not None and not task.losses:
        raise UsageError(f"--loss is not for the task {task.name!r}")
    if arguments.loss is not None and arguments.loss not in task.losses:
        raise UsageError(
            f"--loss of {task.name} must be {' or '.join(task.losses)}, got {arguments.loss!r:.40}"
        )


def _tasks_with(option: str) -> list[str]:
    """Names of the tasks that have an option."""
    return [task.name for task in TASKS.values() if option in task.options]


def _listed(names: list[str]) -> str:
    """Names in a sentence."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def _flag(name: str) -> str:
    """An option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def _is_given(value: Any) -> bool:
    """Whether an option was given; not `in (None, False)`, for the column 0 equals False."""
    return value is not None and value is not False
