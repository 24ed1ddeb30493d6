"""``maxmargin evaluate``: how good a model is on a labelled file."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ...jit.compiling import compiling_for
from ..console import DONE, Signals, warn
from ..numbers import non_negative, per_cent
from ..options import (
    add_command,
    add_jobs_option,
    add_random_state,
    add_reading_options,
    list_tasks,
)
from ..tasks import TASKS

__all__ = ["add_parser", "run"]

DESCRIPTION = f"""\
Evaluate a model on a labelled file. What each task reports:

{list_tasks({name: task.scores for name, task in TASKS.items()})}

Intervals are bootstrap percentiles: the sequences (or examples, trees, ...) of the file are
resampled with replacement, 1000 times by default, and scored anew. With --against another model of
the same task is evaluated on the same file: the interval of the difference uses the same resamples
for both models, and the p value comes from a randomisation test, in which the results of the two
models for a sequence are swapped at random. The same file and --random-state give the same numbers.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "evaluate",
        run,
        help="evaluate a model on a labelled file",
        usage="%(prog)s MODEL DATA [options; -h lists them]",
        description=DESCRIPTION,
    )
    parser.add_argument("model", metavar="MODEL", help="model file written by train")
    parser.add_argument("data", metavar="DATA", help="labelled file, or - for standard input")
    parser.add_argument("--json", action="store_true", help="write the scores as JSON")
    parser.add_argument(
        "--against", metavar="OTHER", help="other model file to compare with, by a paired test"
    )
    parser.add_argument(
        "--resamples",
        type=non_negative,
        default=1000,
        metavar="N",
        help="number of resamples for the intervals (default 1000; 0: no intervals)",
    )
    parser.add_argument(
        "--level",
        type=per_cent,
        default=95.0,
        metavar="PERCENT",
        help="confidence level of the intervals (default 95)",
    )
    add_random_state(parser, "resamples")
    add_jobs_option(parser)
    add_reading_options(parser, "that of the training")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Predict, compare and report."""
    from ..console import write_report
    from ..evaluation import compared, with_intervals
    from ..files import open_input, read_model

    model = read_model(arguments.model, arguments.data, arguments.n_jobs)
    other = None
    if arguments.against is not None:
        other = read_model(arguments.against, arguments.data, arguments.n_jobs)
        if other.task is not model.task:
            raise ValueError(
                f"--against {other.path}: this is a model of the task '{other.task.name}', "
                f"expected one of the task '{model.task.name}', as {model.path} is"
            )
        if type(other.files) is not type(model.files):  # columns, and attributes of CRFsuite
            raise ValueError(
                f"--against {other.path}: one of the two models was trained on CoNLL columns, the "
                "other on CRFsuite's data; only models of the same format can be compared on a file"
            )
        arguments.data = open_input(arguments.data)  # a pipe can be read but once
    with compiling_for(model.task.name):
        evaluation = with_intervals(model.task.evaluate(model, arguments), arguments)
        if other is not None:
            evaluation = compared(evaluation, other.task.evaluate(other, arguments), arguments)
    report = {"task": model.task.name, **evaluation.report}
    write_report(json.dumps(report, indent=2) if arguments.json else evaluation.text)
    _warn_of_strangers(evaluation.report, model)
    return DONE


def _warn_of_strangers(report: dict[str, Any], model: Any) -> None:
    """Say that the file is of other labels altogether, which its scores might hide."""
    import numpy as np

    labels, unknown = report.get("labels", {}), report.get("unknown_labels", {})
    n_given = sum(scores["n_true"] for scores in labels.values())
    if n_given == 0 or sum(unknown.values()) < n_given:
        return
    names = model.files if model.task.name == "multilabel" else model.estimator.classes_
    # Trees have labels for each node.
    known = list(dict.fromkeys(str(y) for ys in names for y in np.ravel(ys).tolist()))
    shown = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
    warn(
        "the model knows none of the labels in this file, so all predictions count as "
        f"wrong; it was trained on {shown}"
    )
