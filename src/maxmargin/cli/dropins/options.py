"""Options of the drop-ins, and the commands that have them; light, for every call reads them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...registry import import_name
from ..console import Signals, UsageError, echo

__all__ = [
    "TOOLS",
    "Option",
    "StructTool",
    "add_crfsuite",
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


class StructTool(NamedTuple):
    """A tool: its name, the options of both commands, and the module that does the work.

    That module has ``learn(arguments, signals)`` and ``classify(arguments)``, which return exit
    codes.
    """

    name: str
    module: str
    lines: str  # what its files look like
    writes: str  # and its predictions
    learning: tuple[Option, ...]
    classifying: tuple[Option, ...] = classify_options()

    @property
    def commands(self) -> tuple[str, str]:
        """Names of the commands."""
        return f"{self.name}-learn", f"{self.name}-classify"

    def add_parsers(self, commands: Any) -> list[argparse.ArgumentParser]:
        """Describe the commands."""
        learn, classify = self.commands
        their = self.name.replace("-", "_")
        first = make_parser(
            commands,
            learn,
            f"{their}_learn, by maxmargin: its options and files. Lines are {self.lines}.\n"
            "The model is a file of maxmargin's own.",
        )
        add_options(first, self.learning)
        first.add_argument("data", help="training file")
        first.add_argument("model", nargs="?", default="svm_struct_model", help="model to write")
        first.set_defaults(run=lambda *given: self._run("learn", self.learning, *given))
        second = make_parser(
            commands,
            classify,
            f"{their}_classify, by maxmargin, with a model of 'maxmargin {learn}'. Writes\n"
            f"{self.writes}.",
        )
        second.add_argument("-h", action="help", help="show this text and end")
        add_options(second, self.classifying)
        second.add_argument("data", help="test file")
        second.add_argument("model", nargs="?", default="svm_struct_model", help="model to read")
        second.add_argument("output", nargs="?", default="svm_predictions", help="file to write")
        second.set_defaults(run=lambda *given: self._run("classify", self.classifying, *given))
        return [first, second]

    def _run(
        self,
        what: str,
        options: Sequence[Option],
        arguments: argparse.Namespace,
        signals: Signals,
    ) -> int:
        """Do what a command is for."""
        echo_notes(arguments, options)
        return int(import_name(f"cli.dropins.{self.module}", what)(arguments, signals))


_BEAM = Option("--b", "beam", note="is a beam; the search here is exact, and needs none")

HMM = StructTool(
    "svm-hmm",
    "svm_hmm",
    "TAG qid:SEQUENCE INDEX:VALUE ... # comment",
    "the tag of each line",
    (
        *learn_options(0.1, {0: "a sequence is right or wrong", 1: "number of wrong tags"}, 1),
        Option("--t", "order", "order of transitions (default 1)", int, 1, (0, 1, 2, 3)),
        Option("--e", "emissions", "order of emissions (default 0)", int, 0, (0, 1)),
        _BEAM,
    ),
    (*classify_options(), _BEAM),
)
MULTICLASS = StructTool(
    "svm-multiclass",
    "svm_multiclass",
    "CLASS INDEX:VALUE ... # comment",
    "the class of each line, and the scores of all classes",
    learn_options(0.1, {0: "100 for a wrong class", 1: "squared difference of classes"}, 0),
)
_SPARSE = "is of sparse kernel training, and has no effect here"

PERF = StructTool(
    "svm-perf",
    "svm_perf",
    "+1 or -1 INDEX:VALUE ... # comment",
    "the score of each line, positive ones for the class +1",
    (
        *learn_options(
            0.1,
            {
                0: "any error (refused)",
                1: "F1",
                2: "error rate",
                3: "break-even point",
                4: "precision at k",
                5: "recall at k",
                10: "ROC area",
            },
            2,
        ),
        Option("--b", "bias", "value of a constant feature (default 1)", non_negative_number, 1.0),
        Option(
            "--p",
            "fraction",
            "k as a share of the positive rows (0, the default: 0.5 for -l 4, 2 for -l 5)",
            non_negative_number,
            0.0,
        ),
        Option("--t", "basis", note=_SPARSE),
        Option("--i", "preimages", note=_SPARSE),
        Option("--k", "basis_size", note=_SPARSE),
        Option("--r", "restarts", note=_SPARSE),
        Option("--s", "shrinking", note=_SPARSE),
        Option("--f", "basis_file", type=str, note=_SPARSE),
    ),
)
RANK = StructTool(
    "svm-rank",
    "svm_rank",
    "RELEVANCE qid:QUERY INDEX:VALUE ... # comment",
    "the score of each line, larger ones ranked first",
    learn_options(0.001, {1: "swapped pairs of a query", 2: "share of swapped pairs"}, 1),
)

TOOLS = (HMM, MULTICLASS, PERF, RANK)


ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
_DATA = "data file, or - for the standard input"


def add_crfsuite(commands: Any) -> list[argparse.ArgumentParser]:
    """Describe the commands."""
    parser = commands.add_parser(
        "crfsuite",
        description="CRFsuite's commands, by maxmargin: its options and data files, a label and\n"
        "its attributes on each line with tabs between them. Models are maxmargin's own.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parts = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, help="learn, tag or dump"
    )
    return [_add_learn(parts), _add_tag(parts), _add_dump(parts)]


def _add(parts: Any, name: str, description: str) -> argparse.ArgumentParser:
    """A command of CRFsuite's."""
    parser: argparse.ArgumentParser = parts.add_parser(
        name, description=description, allow_abbrev=False
    )

    def run(arguments: argparse.Namespace, signals: Signals) -> int:
        return int(import_name("cli.dropins.crfsuite", name)(arguments, signals))

    parser.set_defaults(run=run)
    return parser


def _add_learn(parts: Any) -> argparse.ArgumentParser:
    """Describe learn."""
    parser = _add(
        parts,
        "learn",
        "Train a tagger: a structural SVM for lbfgs, l2sgd and arow, with C = 1 / (2 c2); the "
        "averaged perceptron for ap, MIRA for pa.",
    )
    parser.add_argument("data", nargs="*", default=["-"], help=_DATA)
    parser.add_argument("-m", "--model", help="model file to write (default: none is written)")
    parser.add_argument(
        "-a",
        "--algorithm",
        default="lbfgs",
        choices=ALGORITHMS,
        help="training algorithm (default lbfgs)",
    )
    parser.add_argument(
        "-p",
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter: c2 (default 1), feature.minfreq (default 0) or, for ap and pa, "
        "max_iterations (default 100); others have no effect",
    )
    parser.add_argument(
        "-t",
        "--type",
        default="1d",
        choices=["1d", "crf1d"],
        help="kind of model: first-order chains",
    )
    parser.add_argument("-g", "--split", type=int, metavar="N", help="cut the data into N groups")
    parser.add_argument(
        "-e", "--holdout", type=int, metavar="M", help="keep group (or file) M for a test"
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="find what -p, -i and -l of tag need; takes three more fits (no option of CRFsuite's)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show notes and errors only")
    return parser


def _add_tag(parts: Any) -> argparse.ArgumentParser:
    """Describe tag."""
    parser = _add(parts, "tag", "Label a file; one label on each line, blank lines between.")
    parser.add_argument("data", nargs="?", default="-", help=_DATA)
    parser.add_argument("-m", "--model", required=True, help="model of 'crfsuite learn'")
    parser.add_argument("-t", "--test", action="store_true", help="compare with the file's labels")
    parser.add_argument(
        "-r", "--reference", action="store_true", help="write the file's labels too, first"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="write no labels")
    for flags, what in (
        (("-p", "--probability"), "that of all labels of a sequence, on a line before it"),
        (("-i", "--marginal"), "that of each label, behind it"),
        (("-l", "--marginal-all"), "those of all labels that could be there, behind it"),
    ):
        text = f"write probabilities: {what} (needs learn --calibrate)"
        parser.add_argument(*flags, action="store_true", help=text)
    return parser


def _add_dump(parts: Any) -> argparse.ArgumentParser:
    """Describe dump."""
    parser = _add(parts, "dump", "List labels, transitions and state features with their weights.")
    parser.add_argument("model", help="model of 'crfsuite learn'")
    return parser
