"""``maxmargin path``: which C is the best, by held-out scores."""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

from ...utils.tables import columns, gap_fraction, named_score, score_name, score_text
from ..console import (
    DONE,
    EXIT_CODES,
    KEPT,
    NO_MODEL,
    STOPPED_EARLY,
    Signals,
    UsageError,
    announcing_interrupts,
)
from ..numbers import folds, values_of_C
from ..options import add_command
from ..tasks import TASKS
from ..training import (
    add_checkpoint_options,
    add_data_arguments,
    add_training_options,
    check_checkpoint_options,
    check_inputs_differ,
    check_keeping,
    is_finished,
    keep,
    leave,
    make_plan,
    save_and_report,
    spent,
)

__all__ = ["add_parser", "run"]

CS = "0.001:10:9"
DESCRIPTION = """\
Train with many values of C, each starting from the model before, and show the score of each on
held-out data: a file (--dev), or each fold of the training file in turn (--folds, 5 by default;
objectives and scores are then means over the folds, gaps the largest). The best C is the one with
the best score, the smallest of them in a tie.

With -o the best model is saved: with --dev the one that was evaluated, with --folds one that is
trained on the whole file with the best C. --probability applies to this model; with --dev it uses
that file and needs no more fits.

With --checkpoint the command can resume after a crash or Ctrl-C: the same command with --resume
ends with the same model. With --folds each fold has its own checkpoint, FILE-fold0 and so on.
"""


class Point(NamedTuple):
    """What is reported of a C."""

    C: float
    objective: float
    relative_gap: float
    score: float
    merit: float
    passes: float
    seconds: float
    finished: bool


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "path",
        run,
        help="find the best C by held-out scores",
        usage="%(prog)s TASK DATA [--dev FILE | --folds K] [options; -h lists them]",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        allow_abbrev=False,  # --C would be taken for --Cs
        add_help=False,
    )
    add_data_arguments(parser)
    parser.add_argument(
        "--Cs",
        type=values_of_C,
        default=CS,
        metavar="LIST",
        help="values of C to try: numbers separated by commas, or FROM:TO:N for N of them in "
        f"equal ratios (default {CS})",
    )
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument(
        "--dev", metavar="FILE", help="held-out labelled file to score the models on"
    )
    held_out.add_argument(
        "--folds",
        type=folds,
        metavar="K",
        help="number of folds for cross-validation, if there is no --dev (default 5)",
    )
    parser.add_argument("-o", "--output", metavar="MODEL", help="file to save the best model to")
    parser.add_argument(
        "--force", action="store_true", help="replace MODEL, whatever it is and however good"
    )
    parser.add_argument("--json", action="store_true", help="write the scores as JSON")
    add_training_options(parser, has_C=False)
    add_checkpoint_options(parser)
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train for all C, evaluate, and save the best."""
    from ..console import write_report
    from ..files import check_model_output
    from ..held_out import HeldOutFile
    from ..training import say

    check_inputs_differ(arguments)
    if arguments.probability and arguments.output is None:
        raise UsageError("--probability requires -o")
    _check_path_options(arguments)
    check_checkpoint_options(arguments)
    plan = make_plan(arguments)
    read = [arguments.data, *plan.inputs, *([arguments.dev] if arguments.dev else [])]
    if arguments.output is not None:
        check_model_output(arguments.output, read, arguments.force)
    check_keeping(arguments, [*read, *([arguments.output] if arguments.output else [])])
    training = plan.make()
    keep(training.estimator, arguments)
    dev = models = None
    with announcing_interrupts(lambda: _when_interrupted(arguments)):
        if arguments.dev is not None:
            dev = HeldOutFile.named(arguments.dev, TASKS[arguments.task], training.extra, arguments)
            models = _path(training.estimator, training.examples, arguments)
            name, points = _by_file(models, dev, signals)
        else:
            name, points = _by_folds(arguments, training, signals)
            keep(training.estimator, arguments)
    best = max(points, key=lambda point: point.merit)
    report = {
        "task": arguments.task,
        "score": name,
        "points": [{k: v for k, v in point._asdict().items() if k != "merit"} for point in points],
        "best_C": best.C,
        "best_score": best.score,
    }
    write_report(json.dumps(report, indent=2) if arguments.json else _table(name, points, best))
    if arguments.output is None:
        say(arguments, f"done in {spent()}")
        leave(arguments, finished=True)  # whatever the gaps: all scores were reported
        return DONE if all(point.finished for point in points) else STOPPED_EARLY
    estimator = training.estimator
    if models is not None and dev is not None:
        estimator = models.at(best.C)
        if arguments.probability:
            dev.calibrate(estimator)
    else:
        estimator.set_params(
            C=best.C, training__callbacks=(signals.check,), training__on_interrupt="return"
        )
        with announcing_interrupts(NO_MODEL):
            training.fit()
    code = save_and_report(arguments, signals, estimator, training.extra)
    leave(arguments, finished=code in (DONE, STOPPED_EARLY, KEPT))  # limits are those of the path
    return code


def _when_interrupted(arguments: argparse.Namespace) -> str:
    """What is left of a path that was interrupted."""
    from ..files import has_checkpoint

    text = "before all C were evaluated; nothing was saved"
    if arguments.checkpoint is None:
        return f"{text} (with --checkpoint FILE it could be resumed)"
    if has_checkpoint(arguments.checkpoint):
        return f"{text}; --resume continues from {arguments.checkpoint}"
    return f"{text}, nor was there time to write {arguments.checkpoint}"


def _check_path_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a solver or a slack without planes or C to continue from."""
    from ...solvers import is_online

    if arguments.slack == "none":
        raise UsageError("--slack none has no C, so there is no path to compute")
    if is_online(arguments.solver):
        raise UsageError(
            f"--solver {arguments.solver} returns no certificate to continue a path of C "
            "from; use another one, such as auto"
        )


def _by_file(models: Any, dev: Any, signals: Signals) -> tuple[str, list[Point]]:
    """Points of one path, evaluated on a file."""
    from ...progress import running_clock

    evaluated = []
    with running_clock("evaluation"):
        for C in models.Cs.tolist():
            signals.check()
            evaluated.append(dev.evaluate(models.at(C)))
    pairs = zip(models.Cs.tolist(), models.results, evaluated, strict=True)
    points = [_point(C, [result], [own]) for C, result, own in pairs]
    return evaluated[0].name, points


def _by_folds(
    arguments: argparse.Namespace, training: Any, signals: Signals
) -> tuple[str, list[Point]]:
    """Points of a path for each part, evaluated on that part."""
    from ...checkpoints import FOLD, part_of
    from ...progress import running_clock
    from ..held_out import Evaluated, split
    from ..training import say

    task = TASKS[arguments.task]
    n_folds = arguments.folds or 5
    verbose = training.estimator.get_params(deep=False)["verbose"]
    rows: list[list[Any]] = []
    with running_clock("features", verbose) as clock, clock.loop(n_folds) as loop:
        for number, (train, test) in enumerate(
            split(training.examples, n_folds, arguments.random_state), 1
        ):
            loop.begin(f"fold {number} of {n_folds}")
            kept = part_of(arguments.checkpoint, FOLD, number - 1)
            estimator = training.estimator.set_params(training__checkpoint=kept)
            models = _path(estimator, train, arguments)
            signals.check()
            with clock.phase("evaluation"):
                own = [Evaluated.by(task.count(models.at(C), test)) for C in models.Cs.tolist()]
            rows.append(list(zip(models.Cs.tolist(), models.results, own, strict=True)))
            best = max(rows[-1], key=lambda entry: entry[2].merit)
            text = f"best C {best[0]:g}, {named_score(best[2].name, best[2].score)}"
            say(arguments, f"fold {number} of {n_folds}: {text}")
    points = []
    for column in zip(*rows, strict=True):
        Cs, results, evaluated = zip(*column, strict=True)
        points.append(_point(Cs[0], list(results), list(evaluated)))
    return rows[0][0][2].name, points


def _path(estimator: Any, examples: Any, arguments: argparse.Namespace) -> Any:
    """Models for all C."""
    from ...estimators.selection.path import path

    return path(estimator, examples.X, examples.y, arguments.Cs, **examples.params)


def _point(C: float, results: list[Any], evaluated: list[Any]) -> Point:
    """A C, by what was found for it in all parts."""
    n = len(results)
    return Point(
        C,
        sum(result.primal for result in results) / n,
        max(max(result.relative_gap, 0.0) for result in results),
        sum(own.score for own in evaluated) / n,
        sum(own.merit for own in evaluated) / n,
        sum(result.n_passes for result in results),
        sum(result.seconds for result in results),
        all(is_finished(result) for result in results),
    )


def _table(name: str, points: list[Point], best: Point) -> str:
    """A row for each C, the best marked."""
    rows = [("C", "objective", "gap", score_name(name), "passes", "seconds", "")]
    for point in points:
        gap = gap_fraction(point.relative_gap)
        work = (f"{point.passes:.1f}", f"{point.seconds:.1f}")
        mark = "best" if point is best else ""
        numbers = (f"{point.C:.4g}", f"{point.objective:.6g}", gap, score_text(name, point.score))
        rows.append((*numbers, *work, mark))
    lines = [line.rstrip() for line in columns(rows).splitlines()]
    return "\n".join([*lines, "", f"best C {best.C:g}: {named_score(name, best.score)}"])
