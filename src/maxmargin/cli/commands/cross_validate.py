"""``maxmargin cross-validate``: scores of models on held-out parts of a file."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ...utils.tables import columns, gap_fraction, named_score, score_name, score_text
from ..console import DONE, EXIT_CODES, STOPPED_EARLY, Signals, announcing_interrupts
from ..numbers import folds
from ..options import add_command
from ..tasks import TASKS
from ..training import add_data_arguments, add_training_options, is_finished, make_plan, spent

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Split a file at random into folds of about the same size; for each of them, train on the others and
evaluate on it. Sentences stay whole, and so do the documents of a query. The scores of each fold
are shown, with their mean and standard deviation. The same --random-state gives the same folds.
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "cross-validate",
        run,
        help="evaluate models on held-out folds of a file",
        usage="%(prog)s TASK DATA [options; -h lists them]",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        add_help=False,
    )
    add_data_arguments(parser)
    parser.add_argument(
        "--folds", type=folds, default=5, metavar="K", help="number of folds (default 5)"
    )
    parser.add_argument("--json", action="store_true", help="write the scores as JSON")
    add_training_options(parser, has_probability=False)  # it changes no scores
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train and evaluate, part by part."""
    from sklearn.base import clone

    from ...progress import running_clock
    from ..console import write_report
    from ..held_out import split
    from ..training import fit_on, say

    task = TASKS[arguments.task]
    training = make_plan(arguments).make()
    found = []
    verbose = training.estimator.get_params(deep=False)["verbose"]
    with running_clock("features", verbose) as clock, clock.loop(arguments.folds) as loop:
        for number, (train, test) in enumerate(
            split(training.examples, arguments.folds, arguments.random_state), 1
        ):
            where = f"fold {number} of {arguments.folds}"
            loop.begin(where)
            estimator = clone(training.estimator)
            with announcing_interrupts(f"in {where}"):
                fit_on(estimator, train)
                signals.check()
                with clock.phase("evaluation"):
                    tally = task.count(estimator, test)
            fold = _fold(estimator.result_, tally)
            found.append(fold)
            name, score = next(iter(fold["scores"].items()))
            say(arguments, f"{where}: {named_score(name, score)}")
    report = {"task": task.name, "n_folds": arguments.folds, "seed": arguments.random_state}
    report |= {"folds": found, **_summary([fold["scores"] for fold in found])}
    write_report(json.dumps(report, indent=2) if arguments.json else _table(report))
    say(arguments, f"done in {spent()}")
    return DONE if all(fold["finished"] for fold in found) else STOPPED_EARLY


def _fold(result: Any, tally: Any) -> dict[str, Any]:
    """What is reported of a part."""
    return {
        "unit": tally.unit,
        "n_units": tally.n_units,
        "scores": {name: ratio.score for name, ratio in tally.scores.items()},
        "relative_gap": result.relative_gap,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "finished": is_finished(result),
    }


def _summary(scores: list[dict[str, float]]) -> dict[str, Any]:
    """Mean and standard deviation of the scores that all parts have."""
    from statistics import fmean, stdev

    names = [name for name in scores[0] if all(name in own for own in scores)]
    values = {name: [own[name] for own in scores] for name in names}
    return {
        "mean": {name: fmean(own) for name, own in values.items()},
        "standard_deviation": {name: stdev(own) for name, own in values.items()},
    }


def _table(report: dict[str, Any]) -> str:
    """Scores in per cent, a row for each part."""
    names, unit = list(report["mean"]), report["folds"][0]["unit"]
    rows = [("fold", unit, *map(score_name, names), "gap", "seconds")]
    for number, fold in enumerate(report["folds"], 1):
        gap = fold["relative_gap"]
        values = [score_text(name, fold["scores"][name]) for name in names]
        gap_text = "" if gap is None else gap_fraction(gap)
        rows.append(
            (str(number), str(fold["n_units"]), *values, gap_text, f"{fold['seconds']:.1f}")
        )
    for key in ("mean", "standard_deviation"):
        values = [score_text(name, report[key][name]) for name in names]
        rows.append((key.replace("_", " "), "", *values, "", ""))
    return columns(rows)
