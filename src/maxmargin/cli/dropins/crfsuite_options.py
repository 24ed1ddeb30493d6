"""The options of CRFsuite's commands; light, for every call of the command line reads them."""

from __future__ import annotations

import argparse
from typing import Any

from ...registry import import_name
from ..signals import Signals

__all__ = ["add_parsers"]

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
_DATA = "data file, or - for the standard input"


def add_parsers(commands: Any) -> list[argparse.ArgumentParser]:
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
