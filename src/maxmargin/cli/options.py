"""Options of the commands; light, for every call of the command line reads them.

`maxmargin.cli.tasks` says which task has which of the options that not every task has.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from .console import UsageError
from .numbers import jobs, non_negative, number, positive, whole_number
from .tasks import TASKS, Task

__all__ = [
    "CERTIFIED_SOLVERS",
    "INTERCEPT_HELP",
    "MEASURES",
    "ONLINE_SOLVERS",
    "SEPARATORS",
    "TOL_HELP",
    "TaskHelp",
    "add_command",
    "add_jobs_option",
    "add_output_options",
    "add_random_state",
    "add_reading_options",
    "add_task_options",
    "check_task_options",
    "either",
    "has_intercept",
    "list_tasks",
    "underscored",
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
        help="file to write (default -, standard output)",
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


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
        help="separator of the fields of a column file: auto (any spaces and tabs), tab (fields "
        f"may contain spaces) or space (default {default_separator})",
    )


def add_jobs_option(group: Any) -> None:
    """Describe the number of threads."""
    group.add_argument(
        "--n-jobs", type=jobs, metavar="N", help="number of threads; -1 for all cores (default 1)"
    )


def add_random_state(group: Any, what: str) -> None:
    """Describe the seed of some random numbers."""
    group.add_argument(
        "--random-state",
        "--seed",
        type=non_negative,
        default=0,
        metavar="SEED",
        help=f"seed of the {what} (default 0)",
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


def either(names: Sequence[str]) -> str:
    """Names of which one is to be chosen."""
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last


INTERCEPT_HELP = "learn an intercept: the weight of a constant feature"
TOL_HELP = "relative duality gap at which training stops"

#: Names of solvers and measures, which modules have that take long to import.
CERTIFIED_SOLVERS = (
    *("auto", "sda", "fasole", "sdm", "bcfw", "one_slack", "n_slack"),
    *("dcd_light", "dcd", "cpd"),
)
ONLINE_SOLVERS = ("perceptron", "mira", "sgd", "pegasos")
MEASURES = (
    *("error", "f1", "fbeta", "prbep", "precision_at_k", "recall_at_k", "recall_at_precision"),
    *("precision_at_recall", "roc_auc", "average_precision"),
)

#: Those without help have one of each task, `Task.option_help`.
OPTIONS: dict[str, dict[str, Any]] = {
    "features": {
        "metavar": "NAME|FILE",
        "help": "feature templates: chunking, ner, pos or words, or a file of templates, which may "
        "be one of CRF++ or Wapiti (default: words for files with one column beside the labels, "
        "chunking for others)",
    },
    "format": {
        "choices": ["columns", "crfsuite"],
        "help": "format of the training file (default: recognised from its first lines)",
    },
    "label_column": {
        "type": whole_number,
        "metavar": "N",
        "help": "column that holds the labels, counted from 0 (default -1, the last one)",
    },
    "min_count": {
        "type": non_negative,
        "metavar": "N",
        "help": "drop features that occur fewer than N times in the training file (default 1: "
        "keep all)",
    },
    "constraints": {
        "choices": ["bio"],
        "help": "rule that predicted labels obey: bio allows I-X only after B-X or I-X (default: "
        "any label may follow any other)",
    },
    "on_violation": {
        "choices": ["raise", "drop", "repair", "keep"],
    },
    "boundary_weights": {
        "action": "store_true",
        "help": "learn weights of the labels at the first and at the last token of a sequence",
    },
    "order": {
        "type": whole_number,
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
        "help": "learn weights of pairs of labels that occur together: the pairs of a learned tree "
        "(tree), or all pairs, for at most 14 labels (pairs; default: no pairs)",
    },
    "grades": {
        "metavar": "A,B,...",
        "help": "grades from the lowest to the highest, separated by commas (default: the whole "
        "numbers in the training file)",
    },
    "measure": {
        "choices": MEASURES,
        "metavar": "NAME",
        "help": f"measure to optimise: {either(['error (default)', *MEASURES[1:]])}",
    },
    "k": {
        "type": positive,
        "metavar": "N",
    },
    "beta": {
        "type": number,
        "help": "weight of recall against precision in the measure fbeta (default 1: as in f1)",
    },
    "floor": {
        "type": number,
        "help": "smallest precision that the measure recall_at_precision allows, or smallest "
        "recall that precision_at_recall allows",
    },
    "projective": {
        "action": argparse.BooleanOptionalAction,
        "help": "predict only trees without crossing arcs (default); --no-projective allows "
        "crossing arcs",
    },
    "labeled": {
        "action": argparse.BooleanOptionalAction,
        "help": "learn the labels of arcs (DEPREL) as well as the heads (default); --no-labeled "
        "learns heads only",
    },
    "hash_bits": {
        "type": non_negative,
        "metavar": "N",
        "help": "hash the features into 2^N weights (default 22)",
    },
    "terminals": {
        "choices": ["tags", "words"],
        "help": "leaves of the trees that the grammar derives: tags, which are then part of the "
        "input (default), or words",
    },
    "horizontal": {
        "type": non_negative,
        "metavar": "N",
        "help": "number of siblings that the symbols of binarised rules remember (default: all)",
    },
    "vertical": {
        "type": positive,
        "metavar": "N",
        "help": "number of labels that a symbol of the grammar consists of: 1 for its own "
        "(default), 2 for its own and its parent's, and so on",
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
        "help": "cost of a gap: one weight for each of its letters (linear), or another weight for "
        "opening it as well (affine, default)",
    },
    "symmetric": {
        "action": "store_true",
        "help": "learn the same score for the letters a and b as for b and a",
    },
    "probability": {
        "action": "store_true",
        "help": "learn the probabilities that predict --confidence writes; takes three more fits",
    },
}

TEMPLATES = """\
Feature templates are chunking (for columns w and p: word and part of speech), ner, pos (prefixes
and suffixes of words) and words (one column), or a file with one template on each line, such as
  w[0]  p[-1]|p[0]  suffix3(w[0])  lower(w[1])
or a template file of CRF++ or Wapiti (U05:%x[-1,0]/%x[0,0], B).
Columns are called w, p, c2, c3, ... in the order of the file, without the column of labels.

"""


def add_task_options(parser: argparse.ArgumentParser, without: Sequence[str] = ()) -> None:
    """Describe the options that not every task has, but for some that a command does without."""
    group = parser.add_argument_group("options of the task")
    for name, settings in OPTIONS.items():
        if name in without:
            continue
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
    own["on_violation"].choices = task.violations
    if task.losses:
        first, *others = task.losses
        own["loss"].help = f"loss to minimise: {either([f'{first} (default)', *others])}"
    own["tol"].help = f"{TOL_HELP} (default {task.tol:g})"
    if "fit_intercept" in task.options:
        default = "--fit-intercept" if has_intercept(task) else "--no-fit-intercept"
        own["fit_intercept"].help = f"{INTERCEPT_HELP} (default {default})"
    for group in parser._action_groups:
        if group.title == "options of the task":
            group.title = f"options of {task.name}"
    parser.usage = (parser.usage or "").replace("TASK", task.name)
    parser.description = f"{parser.description}\n{list_tasks({task.name: task.description})}"
    if "features" in task.options:
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
        able = either([*task.violations])
        raise UsageError(
            f"--on-violation of {task.name} must be {able}, got {arguments.on_violation!r}"
        )
    if arguments.loss is not None and not task.losses:
        raise UsageError(f"the task {task.name!r} has no --loss; it optimises --measure")
    if arguments.loss is not None and arguments.loss not in task.losses:
        raise UsageError(
            f"--loss of {task.name} must be {either([*task.losses])}, got {arguments.loss!r:.40}"
        )


def has_intercept(task: Task) -> bool:
    """Whether a task learns an intercept by default: not with templates, which make features."""
    return "features" not in task.options


def _all_options() -> list[str]:
    """Options that not every task has."""
    return list(dict.fromkeys(name for task in TASKS.values() for name in task.options))


def _has(task: Task, name: str) -> bool:
    """Whether a task has an option."""
    if name in ("stream", "max_features"):
        return task.streams
    return bool(task.losses) if name == "loss" else name in task.options


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
