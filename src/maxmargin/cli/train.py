"""``maxmargin train``: a model from a file of examples."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from ..defaults import TOL
from .codes import DONE, ERROR, EXIT_CODES, STOPPED_EARLY, UsageError
from .options import add_reading_options, non_negative
from .signals import Signals
from .telling import tell, tell_result, warn

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Train a model on a file, which may be compressed (.gz, .xz, .bz2).

  tag         CoNLL columns: one token per line, its fields separated by white space, an empty
              line between sequences. One column holds the labels (the last, unless
              --label-column says otherwise), the others make the features.
  multiclass  svmlight: a label and index:value pairs on each line.
"""

EPILOG = f"""\
Templates are chunking (columns w and p: word and part of speech), ner, words (one column), or a
file with one template on each line, such as  w[0]  p[-1]|p[0]  suffix3(w[0])  lower(w[1]).
Columns are called w, p, c2, c3, ... in the order of the file, that of the labels left out.

Ctrl-C (or SIGTERM) ends the training, and the best model so far is saved; a second one ends at
once, and nothing is saved. A model that is there already is replaced only by one that has reached
the precision asked for (--tol, --epsilon), or with --force. Otherwise the new one is saved beside
it, with .partial appended to its name.

{EXIT_CODES}"""

LOSSES = {"tag": ("hamming", "normalized-hamming", "zero-one"), "multiclass": ("zero-one",)}


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a model on a file",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=list(LOSSES), help="what the file holds")
    parser.add_argument("data", help="training file, or - for the standard input")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="model to write")
    parser.add_argument(
        "--force", action="store_true", help="write over MODEL, whatever it is and however good"
    )
    model = parser.add_argument_group("model")
    model.add_argument("--C", type=float, default=1.0, help="weight of the errors (default 1)")
    model.add_argument("--loss", help="tag: hamming (default), normalized-hamming or zero-one")
    model.add_argument("--rescaling", default="margin", choices=["margin", "slack", "none"])
    model.add_argument("--slack", default="l1", choices=["l1", "l2", "none"])
    model.add_argument(
        "--intercept",
        action=argparse.BooleanOptionalAction,
        help="a constant feature (default for multiclass, not for tag)",
    )
    tag = parser.add_argument_group("tag only")
    tag.add_argument("--templates", metavar="NAME|FILE", help="chunking, ner, words, or a file")
    tag.add_argument("--label-column", type=int, metavar="N", help="from 0; default -1, the last")
    tag.add_argument(
        "--min-count", type=non_negative, metavar="N", help="drop features rarer than this"
    )
    tag.add_argument("--constraints", choices=["bio"], help="forbid I-X but after B-X or I-X")
    tag.add_argument(
        "--on-violation",
        choices=["raise", "drop", "repair"],
        help="what to do with sequences that break the constraints: end with an error (default), "
        "leave them out, or change I-X to B-X where it continues nothing",
    )
    tag.add_argument("--boundary-weights", action="store_true", help="weights for first and last")
    add_reading_options(parser.add_argument_group("reading"), "auto")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--solver",
        default="auto",
        metavar="NAME",
        help="default auto; perceptron, mira, sgd and pegasos make 10 passes unless --max-passes",
    )
    training.add_argument("--tol", type=float, default=TOL, help=f"relative gap (default {TOL:g})")
    training.add_argument("--epsilon", type=float, help="gap in units of mean loss")
    training.add_argument("--max-passes", type=float, metavar="N")
    training.add_argument("--max-time", type=float, metavar="SECONDS")
    training.add_argument("--seed", type=non_negative, default=0, help="default 0")
    parser.add_argument("-q", "--quiet", action="store_true", help="show warnings and errors only")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train and save."""
    from .outputs import check_model_output, model_place, save_somewhere

    _refuse_misplaced(arguments)
    _refuse_bad_values(arguments)
    templates = _templates(arguments.templates)
    read = [arguments.data]
    if arguments.templates and templates is not None:
        read.append(arguments.templates)
    check_model_output(arguments.output, read, arguments.force)  # before training, not after
    make = _tagger if arguments.task == "tag" else _classifier
    fit, estimator, extra = make(arguments, templates)
    estimator.set_params(callbacks=(signals.check,), on_interrupt="return")
    try:
        fit()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("before the first pass was over; no model was saved") from None
    with signals.saving():
        # The file is to hold what a Python program would have asked for.
        estimator.set_params(callbacks=(), on_interrupt="raise", verbose=0)
        result = estimator.result_
        finished = is_finished(result)
        wanted = model_place(arguments.output, finished, arguments.force)
        place, error = save_somewhere(estimator, extra, wanted)
    return _report(arguments, signals, result, place, error)


def _report(
    arguments: argparse.Namespace,
    signals: Signals,
    result: Any,
    place: str,
    error: OSError | None,
) -> int:
    """Say how training went and where the model is; returns the exit code."""
    from ..formats.writing import descriptor_of

    interrupted = result.status == "interrupted" or signals.received is not None
    # Words would spoil a model that is written to /dev/stdout.
    speak = tell_result if descriptor_of(place) is None else tell
    if not arguments.quiet:
        speak(describe(result))
        speak(f"saved {place}")
    if error is not None:
        tell(
            f"maxmargin: error: {arguments.output}: {error.strerror or error}; the model is in "
            f"{place} instead"
        )
        return ERROR
    if place != arguments.output:
        why = "training was interrupted" if interrupted else "it has not reached the precision"
        warn(
            f"{arguments.output} is left as it was, for {why}; the new model is in {place} "
            "(--force would have written over the old one)"
        )
    if interrupted:
        return signals.code
    return DONE if is_finished(result) else STOPPED_EARLY


def is_finished(result: Any) -> bool:
    """Whether training did what was asked for; solvers without a gap are asked for passes."""
    if result.gap is None:
        return result.status in ("converged", "max_passes", "early_stopping")
    return bool(result.converged) and result.status != "interrupted"


def describe(result: Any) -> str:
    """The certificate in words."""
    if result.gap is None:
        quality = "no certificate (the solver gives none)"
    else:
        share = f"{100 * max(result.relative_gap, 0.0):.3g} % of the objective"  # not below 0
        gap = f"certified gap {max(result.gap, 0.0):.4g} ({share})"  # by rounding
        quality = f"objective {result.primal:.6g}, {gap}"
    return (
        f"{quality}, {result.n_oracle_calls} oracle calls "
        f"({result.n_passes:.1f} passes), {result.seconds:.1f} s"
    )


def _classifier(arguments: argparse.Namespace, templates: list[str] | None) -> Training:
    """A classifier, to be trained on an svmlight file."""
    from ..estimators.multiclass import MulticlassSVM
    from .data import read_training_examples

    data = read_training_examples(arguments)
    _say(arguments, f"{data.X.shape[0]} examples, {data.X.shape[1]} features")
    intercept = True if arguments.intercept is None else arguments.intercept
    loss = arguments.loss or "zero-one"
    estimator = MulticlassSVM(loss=loss, fit_intercept=intercept, **_shared(arguments))
    return Training(lambda: estimator.fit(data.X, data.y), estimator, {"task": "multiclass"})


def _tagger(arguments: argparse.Namespace, templates: list[str] | None) -> Training:
    """A tagger, to be trained on a column file."""
    from ..estimators.sequence import SequenceTagger
    from ..features import WindowFeatures
    from .data import read_training_tokens

    tokens, label_column = read_training_tokens(arguments)
    data = tokens.columns
    _say(arguments, f"{data.n_sequences} sequences, {data.n_tokens} tokens")
    estimator = SequenceTagger(
        features=WindowFeatures(
            templates, min_count=1 if arguments.min_count is None else arguments.min_count
        ),
        loss=arguments.loss or "hamming",
        fit_intercept=bool(arguments.intercept),
        boundary_weights=arguments.boundary_weights,
        constraints=arguments.constraints,
        on_violation=arguments.on_violation or "raise",
        **_shared(arguments),
    )

    def fit() -> None:
        estimator.fit(tokens.inputs, tokens.labels)
        _say(arguments, f"{estimator.n_features_in_} features, {len(estimator.classes_)} labels")

    extra = {"task": "tag", "n_columns": len(data.columns), "label_column": label_column}
    if arguments.separator:
        extra["separator"] = arguments.separator
    return Training(fit, estimator, extra)


class Training(NamedTuple):
    """An estimator, the call that trains it, and what else belongs into its file."""

    fit: Callable[[], object]
    estimator: Any
    extra: dict[str, Any]


def _shared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Parameters that both estimators have."""
    return {
        "C": arguments.C,
        "rescaling": arguments.rescaling,
        "slack": arguments.slack,
        "solver": arguments.solver,
        "tol": arguments.tol,
        "epsilon": arguments.epsilon,
        "max_passes": arguments.max_passes,
        "max_time": arguments.max_time,
        "random_state": arguments.seed,
        "verbose": 0 if arguments.quiet else 1,
    }


def _refuse_misplaced(arguments: argparse.Namespace) -> None:
    """Refuse options that the task does not know, rather than ignore them."""
    names = (
        "templates",
        "label_column",
        "min_count",
        "constraints",
        "on_violation",
        "boundary_weights",
        "separator",
    )
    # Not `in (None, False)`: the column 0 is given, and equals False.
    given = [name for name in names if not _is_absent(getattr(arguments, name))]
    if arguments.task == "multiclass" and given:
        raise UsageError(f"--{given[0].replace('_', '-')} is for the task 'tag' only")
    if arguments.on_violation and not arguments.constraints:
        raise UsageError("--on-violation is of use with --constraints only")
    losses = LOSSES[arguments.task]
    if arguments.loss is not None and arguments.loss not in losses:
        raise UsageError(
            f"--loss of {arguments.task} must be {' or '.join(losses)}, got {arguments.loss!r:.40}"
        )


def _refuse_bad_values(arguments: argparse.Namespace) -> None:
    """Refuse, before any file is read, values that no training could do with."""
    from ..estimators.multiclass import MulticlassSVM
    from ..formulation import Formulation
    from ..problems.classes.multiclass import MulticlassProblem

    smallest = MulticlassProblem([[0.0], [1.0]], [0, 1], 2)
    formulation = Formulation(arguments.rescaling, arguments.slack)
    try:
        solver = MulticlassSVM(**_shared(arguments))._make_solver()
        solver.check(smallest, formulation, arguments.C)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _is_absent(value: Any) -> bool:
    """Whether an option was not given."""
    return value is None or value is False


def _templates(name: str | None) -> list[str] | None:
    """Templates by name or from a file; None for the default."""
    from ..features import chunking_templates, ner_templates, words_templates
    from ..features.templates import parse_template
    from ..formats import open_text

    named = {"chunking": chunking_templates, "ner": ner_templates, "words": words_templates}
    if name is None:
        return None
    if name in named:
        return named[name]()
    templates = []
    with open_text(name) as stream:
        for number, line in enumerate(stream, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                parse_template(text)
            except ValueError as error:
                raise ValueError(f"{name}:{number}: {error}") from None
            templates.append(text)
    if not templates:
        raise ValueError(f"{name}: no templates found, expected one on each line")
    return templates


def _say(arguments: argparse.Namespace, text: str) -> None:
    """Tell the user, unless told to be quiet."""
    if not arguments.quiet:
        tell(text)
