"""``maxmargin convert``: a data file in another form."""

from __future__ import annotations

import argparse
from typing import Any

from ..console import DONE, Signals, UsageError
from ..numbers import whole_number
from ..options import add_command, add_output_options, add_reading_options, list_tasks

__all__ = ["add_parser", "run"]

FORMS = {
    "bio": "columns with tags B-X (first token of a chunk), I-X (other tokens) and O",
    "iobes": "columns with tags B-X, I-X, E-X (last token), S-X (single token) and O",
    "io": "columns with tags I-X and O; adjacent chunks of the same type become one",
    "columns": "CoNLL-U as columns, the fields listed in --fields, of which the last is the label",
    "svm-hmm": "columns as an SVM-hmm file: a number for each label, qid:N for each sequence, "
    "and the features that --features makes; --dictionary holds the numbers",
    "npz": "svmlight as NumPy arrays: data, indices, indptr, shape (of SciPy's CSR), y and qid",
}
DESCRIPTION = f"Convert a data file to another format:\n\n{list_tasks(FORMS)}"
EPILOG = """\
A dictionary has lines "label NUMBER NAME" and "feature NUMBER NAME", separated by tabs. It is
written if it does not exist, and read if it does: a test file then gets the numbers of the training
file, and features that are not in the dictionary are left out.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "convert",
        run,
        help="convert a data file to another format",
        usage="%(prog)s DATA --to FORMAT [options; -h lists them]",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("data", metavar="DATA", help="file to convert, or - for standard input")
    parser.add_argument("--to", required=True, choices=list(FORMS), help="format to convert to")
    add_output_options(parser)
    parser.add_argument(
        "--label-column",
        type=whole_number,
        default=-1,
        metavar="N",
        help="column that holds the labels, counted from 0 (default -1, the last one)",
    )
    parser.add_argument(
        "--fields",
        default="form,xpos,upos",
        metavar="LIST",
        help="CoNLL-U fields that --to columns writes, such as lemma or deprel, separated by "
        "commas (default form,xpos,upos)",
    )
    parser.add_argument(
        "--features",
        default="words",
        metavar="NAME",
        help="feature templates for --to svm-hmm: chunking, ner, pos or words (default)",
    )
    parser.add_argument(
        "--dictionary",
        metavar="FILE",
        help="file with the numbers of labels and features, which --to svm-hmm needs",
    )
    add_reading_options(parser, "auto")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Read, convert and write."""
    from ...formats import write_atomically
    from ..files import check_text_output, is_standard, open_input, open_output
    from .conversions import CONVERSIONS

    if arguments.to == "svm-hmm" and arguments.dictionary is None:
        raise UsageError("--to svm-hmm requires --dictionary")
    if arguments.to != "svm-hmm" and arguments.dictionary is not None:
        raise UsageError("--dictionary requires --to svm-hmm")
    to_standard = is_standard(arguments.output)
    if to_standard and arguments.to == "npz":
        raise UsageError("arrays cannot be written to standard output: name a file after -o")
    if not to_standard:
        inputs = [arguments.data, *([arguments.dictionary] if arguments.dictionary else [])]
        check_text_output(arguments.output, inputs, arguments.force)
    converted = CONVERSIONS[arguments.to](open_input(arguments.data), arguments)
    signals.check()
    if isinstance(converted, bytes):
        with write_atomically(arguments.output) as binary:
            binary.write(converted)
        return DONE
    with open_output(arguments.output, arguments.encoding) as stream:
        stream.write(converted)
    return DONE
