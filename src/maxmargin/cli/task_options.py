"""Options of train that not every task has; light, for every call of the command line reads them.

`maxmargin.registry` says which task has which.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..registry import TASKS, Task
from .codes import UsageError
from .options import non_negative

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
        "choices": ["raise", "drop", "repair"],
        "help": "what to do with sequences that break the constraints: end with an error "
        "(default), leave them out, or change I-X to B-X where it continues nothing",
    },
    "boundary_weights": {"action": "store_true", "help": "weights for first and last"},
    "order": {
        "type": int,
        "choices": [1, 2, 3],
        "help": "labels that a transition looks back on; default 1",
    },
}


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options, those of the same tasks together."""
    groups: dict[str, Any] = {}
    for name, settings in OPTIONS.items():
        title = f"{' and '.join(_tasks_with(name))} only"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(_flag(name), **settings)


def refuse_misplaced(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError for an option or a loss that the task does not have."""
    for name in dict.fromkeys(name for other in TASKS.values() for name in other.options):
        if name not in task.options and _is_given(getattr(arguments, name)):
            tasks = [repr(other) for other in _tasks_with(name)]
            noun = "task" if len(tasks) == 1 else "tasks"
            raise UsageError(f"{_flag(name)} is for the {noun} {' and '.join(tasks)} only")
    if arguments.loss is not None and arguments.loss not in task.losses:
        raise UsageError(
            f"--loss of {task.name} must be {' or '.join(task.losses)}, got {arguments.loss!r:.40}"
        )


def _tasks_with(option: str) -> list[str]:
    """Names of the tasks that have an option."""
    return [task.name for task in TASKS.values() if option in task.options]


def _flag(name: str) -> str:
    """An option as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def _is_given(value: Any) -> bool:
    """Whether an option was given; not `in (None, False)`, for the column 0 equals False."""
    return value is not None and value is not False
