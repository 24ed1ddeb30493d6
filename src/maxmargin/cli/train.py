"""``maxmargin train``: a model from a file of examples."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["add_parser", "run"]

DESCRIPTION = """\
Train a model on a file, which may be compressed (.gz, .xz, .bz2).

  tag         CoNLL columns: one token per line, its fields separated by white space, an empty
              line between sequences. One column holds the labels (the last, unless
              --label-column says otherwise), the others make the features.
  multiclass  svmlight: a label and index:value pairs on each line.
"""

EPILOG = """\
Templates are chunking (columns w and p: word and part of speech), ner, words (one column), or a
file with one template on each line, such as  w[0]  p[-1]|p[0]  suffix3(w[0])  lower(w[1]).
Columns are called w, p, c2, c3, ... in the order of the file, that of the labels left out.

Ctrl-C ends the training; the best model so far is saved.
"""


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "train",
        help="train a model on a file",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=["tag", "multiclass"], help="what the file holds")
    parser.add_argument("data", help="training file")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="model to write")
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
    tag.add_argument("--min-count", type=int, metavar="N", help="drop features rarer than this")
    tag.add_argument("--constraints", choices=["bio"], help="forbid I-X but after B-X or I-X")
    tag.add_argument("--boundary-weights", action="store_true", help="weights for first and last")
    tag.add_argument("--encoding", default="utf-8")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--solver",
        default="auto",
        metavar="NAME",
        help="default auto; perceptron, mira, sgd and pegasos make 10 passes unless --max-passes",
    )
    training.add_argument("--tol", type=float, default=1e-3, help="relative gap (default 0.001)")
    training.add_argument("--epsilon", type=float, help="gap in units of mean loss")
    training.add_argument("--max-passes", type=float, metavar="N")
    training.add_argument("--max-time", type=float, metavar="SECONDS")
    training.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train and save."""
    from ..persistence import check_folder, save_model

    _refuse_misplaced(arguments)
    check_folder(arguments.output)  # before training, not after
    estimator, extra = _train_tagger(arguments) if arguments.task == "tag" else _train(arguments)
    save_model(estimator, arguments.output, extra)
    if not arguments.quiet:
        result = estimator.result_
        state = (
            "interrupted: saved the best model so far to"
            if (result.status == "interrupted")
            else "saved"
        )
        print(describe(result))
        print(f"{state} {arguments.output}")
    return 0


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


def _train(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Train a classifier on an svmlight file."""
    from ..estimators.multiclass import MulticlassSVM
    from ..formats import read_svmlight

    data = read_svmlight(arguments.data)
    _say(arguments, f"{data.X.shape[0]} examples, {data.X.shape[1]} features")
    intercept = True if arguments.intercept is None else arguments.intercept
    loss = arguments.loss or "zero-one"
    estimator = MulticlassSVM(loss=loss, fit_intercept=intercept, **_shared(arguments))
    return estimator.fit(data.X, data.y), {"task": "multiclass"}


def _train_tagger(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Train a tagger on a column file."""
    from ..estimators.sequence import SequenceTagger
    from ..features import WindowFeatures
    from ..formats import read_columns
    from .data import label_index

    data = read_columns(arguments.data, encoding=arguments.encoding)
    n_columns = len(data.columns)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = label_index(chosen, n_columns, arguments.data)
    _say(arguments, f"{data.n_sequences} sequences, {data.n_tokens} tokens")
    estimator = SequenceTagger(
        features=WindowFeatures(
            _templates(arguments.templates),
            min_count=1 if arguments.min_count is None else arguments.min_count,
        ),
        loss=arguments.loss or "hamming",
        fit_intercept=bool(arguments.intercept),
        boundary_weights=arguments.boundary_weights,
        constraints=arguments.constraints,
        **_shared(arguments),
    )
    inputs = data.select(j for j in range(n_columns) if j != label_column)
    estimator.fit(inputs, data.split(label_column))
    _say(arguments, f"{estimator.n_features_in_} features, {len(estimator.classes_)} labels")
    extra = {"task": "tag", "n_columns": n_columns, "label_column": label_column}
    return estimator, extra


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
    names = ("templates", "label_column", "min_count", "constraints", "boundary_weights")
    given = [name for name in names if getattr(arguments, name) not in (None, False)]
    if arguments.task == "multiclass" and given:
        raise ValueError(f"--{given[0].replace('_', '-')} is for the task 'tag' only")


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
        print(text, file=sys.stderr)
