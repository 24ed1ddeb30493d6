"""Options as the tools of SVM-struct read them; light, for every call of the command line does."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..codes import UsageError
from ..console import echo

__all__ = [
    "Option",
    "add_options",
    "classify_options",
    "echo_notes",
    "learn_options",
    "make_parser",
    "non_negative_number",
    "positive_number",
]


class Option(NamedTuple):
    """An option; one with a ``note``, which says why, is read and has no effect."""

    flag: str
    name: str
    help: str = ""
    type: Callable[[str], Any] = int
    default: Any = None
    choices: tuple[int, ...] | None = None
    note: str = ""


def positive_number(text: str) -> float:
    """A finite number above 0."""
    number = _finite(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r:.40}")
    return number


def non_negative_number(text: str) -> float:
    """A finite number from 0."""
    number = _finite(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r:.40}")
    return number


def _finite(text: str) -> float:
    """A finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r:.40}")
    return number


_OWN_SOLVER = "is of SVM-struct's own solver, and has no effect here"
_LINEAR = "is of kernels, and has no effect with the linear one"


def _verbosity(default: int) -> Option:
    """How much is printed."""
    return Option("-v", "v", f"verbosity; 0 for silence (default {default})", default=default)


def learn_options(epsilon: float, losses: dict[int, str], loss: int) -> tuple[Option, ...]:
    """What the learners of SVM-struct have in common; ``losses`` are what -l takes."""
    listed = ", ".join(f"{number}: {words}" for number, words in losses.items())
    return (
        _verbosity(1),
        Option("-c", "c", "C of C/n times the sum of slacks (default 0.01)", positive_number, 0.01),
        Option("-p", "p", "1: slacks, 2: squared slacks (default 1)", default=1, choices=(1, 2)),
        Option(
            "-o", "o", "1: slack rescaling, 2: margin rescaling (default 2)", int, 2, choices=(1, 2)
        ),
        Option("-l", "l", f"loss; {listed} (default {loss})", int, loss, tuple(losses)),
        Option(
            "-e",
            "e",
            f"stop at a certified gap of C times this (default {epsilon:g})",
            positive_number,
            epsilon,
        ),
        Option(
            "-w",
            "w",
            "0, 1: n-slack, 2, 3, 4: one-slack; default: what maxmargin finds fastest",
            choices=(0, 1, 2, 3, 4, 9),
        ),
        Option("-t", "t", "kernel; 0, the linear one, only", default=0, choices=(0, 1, 2, 3, 4)),
        Option("-y", "y", note=_OWN_SOLVER),
        Option("-k", "k", note=_OWN_SOLVER),
        Option("-f", "f", note=_OWN_SOLVER),
        Option("-b", "b", type=float, note=_OWN_SOLVER),
        Option("-n", "n", note=_OWN_SOLVER),
        Option("-m", "m", type=float, note=_OWN_SOLVER),
        Option("-h", "h", note=_OWN_SOLVER),
        Option("-#", "most", note=_OWN_SOLVER),
        Option("-q", "q", note=_OWN_SOLVER),
        Option(
            "-a", "a", type=str, note="would write multipliers, which are not kept; no such file"
        ),
        Option("-d", "d", note=_LINEAR),
        Option("-g", "g", type=float, note=_LINEAR),
        Option("-s", "s", type=float, note=_LINEAR),
        Option("-r", "r", type=float, note=_LINEAR),
        Option("-u", "u", type=str, note=_LINEAR),
    )


def classify_options() -> tuple[Option, ...]:
    """What the classifiers of SVM-struct have in common."""
    return (_verbosity(2), Option("-y", "y", note=_OWN_SOLVER))


def make_parser(commands: Any, name: str, description: str) -> argparse.ArgumentParser:
    """A parser that is not listed one by one; -h is an option of most learners."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        aliases=[name.replace("-", "_")] if "-" in name else [],
        description=description,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-?", "--help", action="help", help="show this text and end")
    return parser


def add_options(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Describe the options; those without effect share one line of the help."""
    ignored = [option.flag for option in options if option.note]
    if ignored:
        parser.epilog = f"Read, but without effect: {' '.join(ignored)}."
    for option in options:
        parser.add_argument(
            option.flag,
            dest=option.name,
            type=option.type,
            default=None if option.note else option.default,
            choices=option.choices,
            metavar=option.flag.lstrip("-").upper(),
            help=argparse.SUPPRESS if option.note else option.help,
        )


def echo_notes(arguments: argparse.Namespace, options: Sequence[Option]) -> None:
    """Say of options without effect that they have none; refuse what cannot be."""
    if getattr(arguments, "t", 0):
        raise UsageError("-t: only 0, the linear kernel; kernel= of the estimators has others")
    if getattr(arguments, "w", None) in (2, 3, 4) and arguments.p == 2:
        raise UsageError(f"-w {arguments.w}, one slack for all examples, goes with -p 1 only")
    for option in options:
        if option.note and getattr(arguments, option.name) is not None:
            echo(f"maxmargin: note: {option.flag} {option.note}")
