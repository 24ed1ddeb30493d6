"""Options of the commands; light, for every call of the command line reads them.

`maxmargin.cli.tasks` says which task has which of the options that not every task has.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from .console import UsageError
from .tasks import TASKS, Task

__all__ = [
    "SEPARATORS",
    "TOL_HELP",
    "TaskHelp",
    "add_command",
    "add_jobs_option",
    "add_output_options",
    "add_reading_options",
    "add_task_options",
    "check_task_options",
    "folds",
    "has_intercept",
    "list_tasks",
    "non_negative",
    "per_cent",
    "positive",
    "seconds",
    "underscored",
    "values_of_C",
]

SEPARATORS = {"auto": None, "tab": "\t", "space": " "}
_ENCODING = "utf-8"


def add_command(
    commands: Any, name: str, run: Callable[..., int], **settings: Any
) -> argparse.ArgumentParser:
    """The parser of a command, done by ``run(arguments, signals)``; texts of several lines stay."""
    has_lines = "\n" in settings["description"]
    formatter = argparse.RawDescriptionHelpFormatter if has_lines else argparse.HelpFormatter
    parser: argparse.ArgumentParser = commands.add_parser(
        name, formatter_class=formatter, **settings
    )
    parser.set_defaults(run=run)
    return parser


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Describe the text file to write."""
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="file to write (default -, the standard output)",
    )
    parser.add_argument("--force", action="store_true", help="write over FILE if it exists")


def add_reading_options(group: Any, default_separator: str) -> None:
    """Describe the options for text files; the default of the separator is put into words."""
    group.add_argument(
        "--encoding",
        default=_ENCODING,
        type=_encoding,
        help=f"text encoding of the files (default {_ENCODING})",
    )
    group.add_argument(
        "--separator",
        choices=list(SEPARATORS),
        help="what separates the fields of a column file: auto (any spaces and tabs), tab (fields "
        f"may hold spaces) or space (default {default_separator})",
    )


def add_jobs_option(group: Any) -> None:
    """Describe the number of threads."""
    group.add_argument(
        "--n-jobs", type=jobs, metavar="N", help="number of threads; -1 for all cores (default 1)"
    )


def list_tasks(texts: dict[str, str]) -> str:
    """Lines of help on each task."""
    width = 2 + max(map(len, texts))
    return "\n".join(
        textwrap.fill(
            text,
            width=96,
            initial_indent=f"  {name:<{width}}",
            subsequent_indent=" " * (2 + width),
            break_on_hyphens=False,
        )
        for name, text in texts.items()
    )


def underscored(text: str) -> str:
    """The name of a loss, measure or solver as Python has it; hyphens may stand for underscores."""
    return text.replace("-", "_")


def non_negative(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r:.40}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    if non_negative(text) == 0:
        raise argparse.ArgumentTypeError("expected a whole number >= 1, got '0'")
    return int(text)


def jobs(text: str) -> int:
    """A number of threads, or -1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1 and value != -1:
        raise argparse.ArgumentTypeError(
            f"expected a whole number >= 1, or -1 for all cores, got {text!r:.40}"
        )
    return value


def folds(text: str) -> int:
    """A number of folds."""
    if (value := non_negative(text)) < 2:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 2, got {text!r:.40}")
    return value


def values_of_C(text: str) -> list[float]:
    """Values between commas, or FROM:TO:N for N of them in equal ratios."""
    ends, colon, number = text.rpartition(":")
    try:
        if colon:
            low, high = map(float, ends.split(":"))
            n = positive(number)
            ratio = (high / low) ** (1.0 / max(n - 1, 1))
            values = [low * ratio**k for k in range(n)]
        else:
            values = [float(value) for value in text.split(",")]
        if all(0.0 < value < math.inf for value in values):
            return sorted(set(values))
    except (ValueError, ZeroDivisionError, OverflowError, argparse.ArgumentTypeError):
        pass
    raise argparse.ArgumentTypeError(
        f"expected positive numbers between commas, or FROM:TO:N, got {text!r:.40}"
    )


def per_cent(text: str) -> float:
    """A number between 0 and 100."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 100.0:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 100, got {text!r:.40}")
    return value


def seconds(text: str) -> float:
    """A time, of 0 seconds or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r:.40}")
    return value


def _encoding(name: str) -> str:
    """An encoding named on the command line."""
    if name == _ENCODING:  # the default needs no import
        return name
    from ..formats.opening import check_encoding

    try:
        check_encoding(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


TOL_HELP = "relative duality gap at which training stops"

#: Those without help have one of each task, `Task.option_help`.
OPTIONS: dict[str, dict[str, Any]] = {
    "templates": {
        "metavar": "NAME|FILE",
        "help": "feature templates: chunking, ner or words, or a file of templates, which may be "
        "one of CRF++ or Wapiti",
    },
    "format": {
        "choices": ["columns", "crfsuite"],
        "help": "format of the training file (default: found out from its first lines)",
    },
    "label_column": {
        "type": int,
        "metavar": "N",
        "help": "number of the column that holds the labels, from 0 (default -1, the last)",
    },
    "min_count": {
        "type": non_negative,
        "metavar": "N",
        "help": "drop features that occur fewer than N times in the training file",
    },
    "constraints": {
        "choices": ["bio"],
        "help": "rule that predicted labels obey: bio allows I-X after B-X or I-X only (default: "
        "any label may follow any other)",
    },
    "on_violation": {
        "choices": ["raise", "drop", "repair", "keep"],
    },
    "boundary_weights": {
        "action": "store_true",
        "help": "learn a weight of each label at the first and at the last token",
    },
    "order": {
        "type": int,
        "choices": [1, 2, 3],
        "help": "number of previous labels that a transition depends on (default 1)",
    },
    "max_segment_length": {
        "type": positive,
        "metavar": "N",
        "help": "largest number of tokens in a segment (default: that of the longest segment in "
        "the training file)",
    },
    "edges": {
        "choices": ["tree", "pairs"],
        "help": "learn weights of pairs of labels that are on together: the pairs of a learned "
        "tree, or all pairs, for at most 14 labels (default: no pairs)",
    },
    "grades": {
        "metavar": "A,B,...",
        "help": "names of the grades from the lowest to the highest (default: the whole numbers "
        "in the training file)",
    },
    "measure": {
        "type": underscored,
        "metavar": "NAME",
        "help": "measure to optimise: error (default), f1, fbeta, prbep, precision_at_k, "
        "recall_at_k, recall_at_precision, precision_at_recall, roc_auc or average_precision",
    },
    "k": {
        "type": positive,
        "metavar": "N",
    },
    "beta": {
        "type": float,
        "help": "weight of recall against precision in the measure fbeta (1: as in f1)",
    },
    "floor": {
        "type": float,
        "help": "smallest precision allowed in recall_at_precision, or recall in "
        "precision_at_recall",
    },
    "projective": {
        "action": argparse.BooleanOptionalAction,
        "help": "predict trees without crossing arcs only (default); --no-projective allows "
        "crossing arcs",
    },
    "relations": {
        "action": argparse.BooleanOptionalAction,
        "help": "learn the labels of arcs (DEPREL) too (default); --no-relations learns heads only",
    },
    "hash_bits": {
        "type": non_negative,
        "metavar": "N",
        "help": "hash the features into 2^N weights (default 22)",
    },
    "terminals": {
        "choices": ["tags", "words"],
        "help": "leaves that the grammar derives: the tags, which are then part of the input "
        "(default), or the words",
    },
    "horizontal": {
        "type": non_negative,
        "metavar": "N",
        "help": "number of siblings that the symbols of binarised rules remember (default: all)",
    },
    "vertical": {
        "type": positive,
        "metavar": "N",
        "help": "number of ancestors, itself included, that a symbol of the grammar names: 1 for "
        "the label alone (default), 2 for the label and its parent's, and so on",
    },
    "span_features": {
        "action": "store_true",
        "help": "learn weights of the tags at and around both ends of a constituent",
    },
    "lexical_features": {
        "action": "store_true",
        "help": "learn weights of the words at and around both ends of a constituent",
    },
    "mode": {
        "choices": ["local", "global"],
        "help": "kind of alignment: local (default), where letters before the first and after the "
        "last pair cost nothing, or global, where they count as gaps",
    },
    "gaps": {
        "choices": ["linear", "affine"],
        "help": "cost of a gap: linear, a weight for each letter, or affine (default), a weight "
        "for opening it too",
    },
    "symmetric": {
        "action": "store_true",
        "help": "learn one score for each pair of letters, whichever comes first",
    },
    "calibrate": {
        "action": "store_true",
        "help": "learn the probabilities that predict --confidence writes, by three more fits",
    },
}

TEMPLATES = """\
Templates are chunking (columns w and p: word and part of speech), ner, words (one column), or a
file with one template on each line, such as  w[0]  p[-1]|p[0]  suffix3(w[0])  lower(w[1]),
or a template file of CRF++ or Wapiti (U05:%x[-1,0]/%x[0,0], B).
Columns are called w, p, c2, c3, ... in the order of the file, that of the labels left out.

"""


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options that not every task has."""
    group = parser.add_argument_group("options of the task")
    for name, settings in OPTIONS.items():
        by_task = [task.option_help[name] for task in TASKS.values() if name in task.option_help]
        group.add_argument(_flag(name), **{"help": "; ".join(by_task), **settings})


class TaskHelp(argparse.Action):
    """``-h``: the options of the task that is named before it; else the tasks and what all have."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(
            option_strings,
            argparse.SUPPRESS,
            nargs=0,
            default=argparse.SUPPRESS,
            help="show this help message and exit; after TASK, with the options of that task",
        )

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any
    ) -> None:
        """Print the help, and end."""
        _describe(parser, TASKS.get(getattr(namespace, "task", None) or ""))
        parser.print_help()
        parser.exit()


def _describe(parser: argparse.ArgumentParser, task: Task | None) -> None:
    """Leave in the help what is for one task; without one, what is for all."""
    own = {action.dest: action for action in parser._actions}
    for name in (*_all_options(), "loss", "stream", "max_features"):
        if name in own and (task is None or not _has(task, name)):
            own[name].help = argparse.SUPPRESS
    if task is None:
        tasks = list_tasks({name: entry.description for name, entry in TASKS.items()})
        more = f"{parser.prog} TASK --help lists the options of a task."
        parser.description = f"{parser.description}\ntasks:\n{tasks}\n\n{more}"
        return
    own["task"].help = argparse.SUPPRESS
    own[argparse.SUPPRESS].help = "show this help message and exit"  # that of -h
    for name, text in task.option_help.items():
        own[name].help = text
    if task.losses:
        first, *others = task.losses
        own["loss"].help = f"loss to train for: {_either([f'{first} (default)', *others])}"
    own["tol"].help = f"{TOL_HELP} (default {task.tol:g})"
    if "intercept" in task.options:
        default = "--intercept" if has_intercept(task) else "--no-intercept"
        own["intercept"].help = f"learn the weight of a constant feature (default {default})"
    for group in parser._action_groups:
        if group.title == "options of the task":
            group.title = f"options of {task.name}"
    parser.usage = (parser.usage or "").replace("TASK", task.name)
    parser.description = f"{parser.description}\n{list_tasks({task.name: task.description})}"
    if "templates" in task.options:
        parser.epilog = f"{TEMPLATES}{parser.epilog}"


def check_task_options(arguments: argparse.Namespace, task: Task) -> None:
    """Raise UsageError for an option or a loss that the task does not have."""
    for name in (*_all_options(), "stream", "max_features"):
        if not _has(task, name) and _is_given(getattr(arguments, name)):
            tasks = [repr(other.name) for other in TASKS.values() if _has(other, name)]
            noun = "task" if len(tasks) == 1 else "tasks"
            raise UsageError(
                f"{_flag(name)} is for the {noun} {_listed(tasks)} only, not for {task.name!r}"
            )
    if arguments.on_violation and arguments.on_violation not in task.violations:
        able = _listed([repr(name) for name in task.violations])
        raise UsageError(f"--on-violation of {task.name} is {able}, got {arguments.on_violation!r}")
    if arguments.loss is not None and not task.losses:
        raise UsageError(f"--loss is not for the task {task.name!r}")
    if arguments.loss is not None and arguments.loss not in task.losses:
        raise UsageError(
            f"--loss of {task.name} must be {' or '.join(task.losses)}, got {arguments.loss!r:.40}"
        )


def has_intercept(task: Task) -> bool:
    """Whether a task learns an intercept by default: not with templates, which make features."""
    return "templates" not in task.options


def _all_options() -> list[str]:
    """Options that not every task has."""
    return list(dict.fromkeys(name for task in TASKS.values() for name in task.options))


def _has(task: Task, name: str) -> bool:
    """Whether a task has an option."""
    if name in ("stream", "max_features"):
        return task.streams
    return bool(task.losses) if name == "loss" else name in task.options


def _either(names: list[str]) -> str:
    """Names of which one is to be chosen."""
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last


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
