"""Options of the drop-ins, and the commands that have them; light, for every call reads them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...registry import import_name
from ..console import Signals, UsageError, echo
from ..numbers import non_negative_number, positive, positive_number

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


_OWN_SOLVER = "belongs to the solver of SVM-struct, and has no effect here"
_LINEAR = "belongs to kernels, and has no effect with the linear one"


def _verbosity(default: int) -> Option:
    """How much is printed."""
    return Option("-v", "v", f"verbosity; 0 prints nothing (default {default})", default=default)


def learn_options(epsilon: float, losses: dict[int, str], loss: int) -> tuple[Option, ...]:
    """What the learners of SVM-struct have in common; ``losses`` are what -l takes."""
    listed = ", ".join(f"{number}: {words}" for number, words in losses.items())
    return (
        _verbosity(1),
        Option(
            "-c",
            "c",
            "weight C of the training errors, which are multiplied by C/n (default 0.01)",
            positive_number,
            0.01,
        ),
        Option(
            "-p",
            "p",
            "norm of the slacks; 1: slacks, 2: squared slacks (default 1)",
            default=1,
            choices=(1, 2),
        ),
        Option(
            "-o",
            "o",
            "rescaling by the loss; 1: of slacks, 2: of margins (default 2)",
            int,
            2,
            choices=(1, 2),
        ),
        Option("-l", "l", f"loss to minimise; {listed} (default {loss})", int, loss, tuple(losses)),
        Option(
            "-e",
            "e",
            f"precision: stop at a certified gap of C times this (default {epsilon:g})",
            positive_number,
            epsilon,
        ),
        Option(
            "-w",
            "w",
            "solver; 0, 1: n-slack, 2, 3: one-slack without a cache, 4: with one (default: "
            "maxmargin's own choice)",
            choices=(0, 1, 2, 3, 4, 9),
        ),
        Option(
            "-t",
            "t",
            "kernel; only 0, the linear one (default)",
            default=0,
            choices=(0, 1, 2, 3, 4),
        ),
        Option("-y", "y", note=_OWN_SOLVER),
        Option(
            "-k",
            "k",
            "constraints to add before the QP is solved again, with -w 0 and 1 (default 100)",
            positive,
            100,
        ),
        Option(
            "-f",
            "f",
            "candidates of each example in the cache, with -w 4 (default 5)",
            positive,
            5,
        ),
        Option("-b", "b", type=float, note=_OWN_SOLVER),
        Option("-n", "n", note=_OWN_SOLVER),
        Option("-m", "m", type=float, note=_OWN_SOLVER),
        Option("-h", "h", note=_OWN_SOLVER),
        Option("-#", "most", note=_OWN_SOLVER),
        Option("-q", "q", note=_OWN_SOLVER),
        Option("-a", "a", type=str, note="names a file for multipliers, which is not written here"),
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
    parser.add_argument("-?", "--help", action="help", help="show this help message and exit")
    return parser


def add_options(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Describe the options; those without effect share one line of the help."""
    ignored = [option.flag for option in options if option.note]
    if ignored:
        parser.epilog = f"Accepted, but without effect: {' '.join(ignored)}."
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
    """Say which options have no effect; UsageError for what is not possible."""
    if getattr(arguments, "t", 0):
        raise UsageError(
            "-t must be 0, the linear kernel; for others, use MulticlassSVM(kernel=...) from Python"
        )
    if getattr(arguments, "w", None) in (2, 3, 4) and arguments.p == 2:
        raise UsageError(f"-w {arguments.w}, one slack for all examples, needs -p 1")
    for option in options:
        if option.note and getattr(arguments, option.name) is not None:
            echo(f"maxmargin: note: {option.flag} {option.note}")


class _Refused(argparse.Action):
    """An option of the other tool that has no counterpart; its help says what to use instead."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.error(f"{self.option_strings[0]} is not offered here: {self.metavar}")


class StructTool(NamedTuple):
    """A tool: its name, and the options of both commands, which `svm_struct` has as functions."""

    name: str
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
            f"Train as {their}_learn does, with its options and data files, whose lines are\n"
            f"{self.lines}. The model is a file of maxmargin.",
        )
        add_options(first, self.learning)
        first.add_argument("data", help="training file")
        first.add_argument(
            "model",
            nargs="?",
            default="svm_struct_model",
            help="model file to write (default svm_struct_model)",
        )
        first.set_defaults(run=lambda *given: self._run("learn", self.learning, *given))
        second = make_parser(
            commands,
            classify,
            f"Predict as {their}_classify does, with a model of 'maxmargin {learn}'. Writes\n"
            f"{self.writes}.",
        )
        second.add_argument("-h", action="help", help="show this help message and exit")
        add_options(second, self.classifying)
        second.add_argument("data", help="test file")
        second.add_argument(
            "model",
            nargs="?",
            default="svm_struct_model",
            help="model file to read (default svm_struct_model)",
        )
        second.add_argument(
            "output",
            nargs="?",
            default="svm_predictions",
            help="file to write (default svm_predictions)",
        )
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
        do = import_name("cli.dropins.svm_struct", f"{what}_{self.name.removeprefix('svm-')}")
        return int(do(arguments, signals))


_BEAM = Option("--b", "beam", note="is the width of a beam; the search here is exact and has none")

HMM = StructTool(
    "svm-hmm",
    "TAG qid:SEQUENCE INDEX:VALUE ... # comment",
    "the tag of each line",
    (
        *learn_options(
            0.1, {0: "1 for a sequence with any wrong tag", 1: "number of wrong tags"}, 1
        ),
        Option(
            "--t",
            "order",
            "order of transitions: how many previous tags count (default 1)",
            int,
            1,
            (0, 1, 2, 3),
        ),
        Option(
            "--e",
            "emissions",
            "order of emissions: how many previous tags they see (default 0)",
            int,
            0,
            (0, 1),
        ),
        _BEAM,
    ),
    (*classify_options(), _BEAM),
)
MULTICLASS = StructTool(
    "svm-multiclass",
    "CLASS INDEX:VALUE ... # comment",
    "the class of each line, and the scores of all classes",
    learn_options(0.1, {0: "100 for a wrong class", 1: "squared difference of classes"}, 0),
)
_SPARSE = "belongs to sparse kernel training, and has no effect here"

PERF = StructTool(
    "svm-perf",
    "+1 or -1 INDEX:VALUE ... # comment",
    "the score of each line, positive ones for the class +1",
    (
        *learn_options(
            0.1,
            {
                0: "any error (not offered)",
                1: "F1",
                2: "error rate",
                3: "break-even point",
                4: "precision at k",
                5: "recall at k",
                10: "ROC area",
            },
            2,
        ),
        Option(
            "--b",
            "bias",
            "value of the constant feature that makes the bias; 0: none (default 1)",
            non_negative_number,
            1.0,
        ),
        Option(
            "--p",
            "fraction",
            "k as a fraction of the positive rows (default 0: 0.5 for -l 4, 2 for -l 5)",
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
    "RELEVANCE qid:QUERY INDEX:VALUE ... # comment",
    "the score of each line, larger ones ranked first",
    learn_options(0.001, {1: "swapped pairs of a query", 2: "share of swapped pairs"}, 1),
)

CFG = StructTool(
    "svm-cfg",
    "trees in brackets, (S (NP (DT the) (NN cat)) ...)",
    "the tree of each sentence on a line",
    learn_options(0.1, {0: "100 for a wrong tree", 1: "100 (1 - F1) of its constituents"}, 0),
)

TOOLS = (HMM, MULTICLASS, PERF, RANK, CFG)


ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
_DATA = "data file, or - for standard input"


def add_crfsuite(commands: Any) -> list[argparse.ArgumentParser]:
    """Describe the commands."""
    parser = commands.add_parser(
        "crfsuite",
        description="Do what CRFsuite's commands do, with their options and data files: on each\n"
        "line a label and its attributes, separated by tabs. Models are files of maxmargin.",
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
        "Train a tagger: a structural SVM with C = 1 / (2 c2) for lbfgs, l2sgd and arow, the "
        "averaged perceptron for ap, and MIRA for pa.",
    )
    parser.add_argument("data", nargs="*", default=["-"], help=_DATA)
    parser.add_argument("-m", "--model", help="model file to write (default: none)")
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
        "max_iterations (default 100); other parameters of CRFsuite have no effect",
    )
    parser.add_argument(
        "-t",
        "--type",
        default="1d",
        choices=["1d", "crf1d"],
        help="kind of model: a first-order chain, the only one",
    )
    parser.add_argument("-g", "--split", type=int, metavar="N", help="split the data into N groups")
    parser.add_argument(
        "-e",
        "--holdout",
        type=int,
        metavar="M",
        help="hold out group (or file) M, and test the model on it",
    )
    parser.add_argument(
        "--probability",
        action="store_true",
        help="learn the probabilities that -p, -i and -l of tag write; takes three more fits (this "
        "option is not one of CRFsuite)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show only notes and errors")
    parser.add_argument(
        "-x",
        "--cross-validate",
        action=_Refused,
        nargs=0,
        metavar="use 'maxmargin cross-validate tag DATA --folds N'",
        help=argparse.SUPPRESS,
    )
    return parser


def _add_tag(parts: Any) -> argparse.ArgumentParser:
    """Describe tag."""
    parser = _add(
        parts, "tag", "Label a file: one label on each line, an empty line behind each sequence."
    )
    parser.add_argument("data", nargs="?", default="-", help=_DATA)
    parser.add_argument("-m", "--model", required=True, help="model of 'crfsuite learn'")
    parser.add_argument(
        "-t",
        "--test",
        action="store_true",
        help="compare the predictions with the labels in the file",
    )
    parser.add_argument(
        "-r",
        "--reference",
        action="store_true",
        help="write the labels in the file as well, before the predicted ones",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="write no labels")
    for flags, what in (
        (("-p", "--probability"), "that of the labels of a whole sequence, on a line before it"),
        (("-i", "--marginal"), "that of each label, behind it"),
        (("-l", "--marginal-all"), "those of all possible labels, behind each predicted one"),
    ):
        text = f"write probabilities: {what} (needs a model of learn --probability)"
        parser.add_argument(*flags, action="store_true", help=text)
    return parser


def _add_dump(parts: Any) -> argparse.ArgumentParser:
    """Describe dump."""
    parser = _add(parts, "dump", "List labels, transitions and state features with their weights.")
    parser.add_argument("model", help="model of 'crfsuite learn'")
    return parser
