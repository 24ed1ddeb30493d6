"""Labels of the tokens of column files."""

from __future__ import annotations

import argparse
import io
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..._warn import warn_user
from ...estimators.sequence import SequenceTagger
from ...features import (
    WindowFeatures,
    chunking_templates,
    ner_templates,
    read_templates,
    words_templates,
)
from ...features.crf_templates import is_crf_template
from ...features.templates import parse_template
from ...formats import TokenColumns, open_text, read_columns, read_crfsuite, write_columns
from ...formats.opening import Source
from ...formats.recognising import Kind
from ...metrics import (
    are_chunk_tags,
    chunk_scores,
    label_scores,
    sequence_accuracy,
    tagging_report,
)
from ...registry import TAG
from ..attributes import (
    ATTRIBUTES,
    are_attributes,
    attribute_features,
    knows_attributes,
    write_labels,
)
from ..codes import UsageError
from ..data import Model, open_input, refuse_single_label
from ..judging import Judgement, as_json, confusions, count_unknown, error_lines
from ..kinds import refuse_other_kinds
from ..options import SEPARATORS
from ..training import Plan, Training, say, shared_parameters

__all__ = ["judge", "plan", "predict", "understand"]

_TEMPLATES = {"chunking": chunking_templates, "ner": ner_templates, "words": words_templates}
_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tag", "ner_tags", "pos", "chunk", "class"}


class Columns(NamedTuple):
    """What column files of a model look like."""

    number: int
    label: int
    separator: str


class Tokens(NamedTuple):
    """A file: all of it, what features are made of, and the labels, if present."""

    columns: Any
    inputs: Any
    labels: list[list[str]] | None


# ----- training ---------------------------------------------------------------------------------


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    if arguments.on_violation and not arguments.constraints:
        raise UsageError("--on-violation is of use with --constraints only")
    name = arguments.templates
    if name is None or name in _TEMPLATES:
        own = Templates(_TEMPLATES[name]() if name else None)
        return Plan([], partial(_make, arguments, own))
    if not Path(name).exists():
        raise UsageError(f"--templates {name}: neither {', '.join(_TEMPLATES)} nor a file")
    return Plan([name], partial(_make, arguments, _read_templates(name)))


class Templates(NamedTuple):
    """What makes features of labels, and of pairs of labels."""

    of_labels: list[str] | None
    of_pairs: list[str] | None = None


def _make(arguments: argparse.Namespace, templates: Templates) -> Training:
    """A tagger, to be trained on a column file, or on attributes."""
    if are_attributes(arguments):
        features, pairs = attribute_features(arguments), None
        tokens, extra = _read_attributes(arguments), {"task": TAG.name}
        refuse_single_label(arguments.data, {y for ys in tokens.labels or () for y in ys})
    else:
        features, pairs = _window_features(arguments, templates)
        tokens, extra = _read_training_file(arguments)
    say(arguments, f"{tokens.columns.n_sequences} sequences, {tokens.columns.n_tokens} tokens")
    estimator = SequenceTagger(
        features=features,
        transition_features=pairs,
        fit_intercept=bool(arguments.intercept),
        boundary_weights=arguments.boundary_weights,
        order=arguments.order or 1,
        constraints=arguments.constraints,
        on_violation=arguments.on_violation or "raise",
        **shared_parameters(arguments, TAG),
    )

    def fit() -> None:
        estimator.fit(tokens.inputs, tokens.labels)
        say(arguments, f"{estimator.n_features_in_} features, {len(estimator.classes_)} labels")

    return Training(fit, estimator, extra)


def _window_features(
    arguments: argparse.Namespace, templates: Templates
) -> tuple[WindowFeatures, WindowFeatures | None]:
    """Features of labels, and of pairs of labels if there are templates of those."""
    least = 1 if arguments.min_count is None else arguments.min_count
    pairs = templates.of_pairs
    return (
        WindowFeatures(templates.of_labels, min_count=least),
        WindowFeatures(pairs, min_count=least) if pairs else None,
    )


def _read_templates(path: str) -> Templates:
    """Templates of a file, one on each line: ours, or those of CRF++ and Wapiti."""
    with open_text(path) as stream:
        is_crf = any(is_crf_template(line.partition("#")[0]) for line in stream)
    if is_crf:
        found = read_templates(path)
        if not found.has_transitions:
            warn_user(f"{path} has no B, for plain transitions; the tagger has them all the same")
        return Templates(found.unigram, found.bigram)
    templates = []
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                parse_template(text)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            templates.append(text)
    if not templates:
        raise ValueError(f"{path}: no templates found, expected one on each line")
    return Templates(templates)


def _read_attributes(arguments: argparse.Namespace) -> Tokens:
    """Read a data file of CRFsuite."""
    data = read_crfsuite(open_input(arguments.data), encoding=arguments.encoding)
    return Tokens(data, data.X, data.y)


def _read_training_file(arguments: argparse.Namespace) -> tuple[Tokens, dict[str, Any]]:
    """Read a labelled column file; what a model file says of such files comes with it."""
    source = open_input(arguments.data)
    # CoNLL-X files look like CoNLL-U; who names a column of one knows what is in it.
    allowed = () if arguments.label_column is None else (Kind.CONLLU,)
    refuse_other_kinds(source, TAG, arguments.encoding, allowed)
    data = read_columns(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    n_columns = len(data.columns)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = _label_index(chosen, n_columns, source)
    labels = data.columns[label_column]
    refuse_single_label(source, set(labels))
    if labels[0].lower() in _HEADERS and Counter(labels)[labels[0]] == 1:
        warn_user(
            f"{source}:{_line(data, 0)}: the only token with the label {labels[0]!r}; is this line "
            "a header? It is trained on like the others"
        )
    inputs = data.select(j for j in range(n_columns) if j != label_column)
    extra = {"task": TAG.name, "n_columns": n_columns, "label_column": label_column}
    if arguments.separator:
        extra["separator"] = arguments.separator
    return Tokens(data, inputs, data.split(label_column)), extra


def _label_index(column: int, n_columns: int, source: Source) -> int:
    """A column number, which may count from the end, as one that counts from 0."""
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"{source}: no label column {column}, the file has {n_columns} columns (0 to "
            f"{n_columns - 1}, or -1 for the last)"
        )
    if n_columns < 2:
        raise ValueError(
            f"{source}: one column only, expected words and labels (--separator says what stands "
            "between them)"
        )
    return column % n_columns


def _line(data: TokenColumns, token: int) -> int:
    """The line of a token."""
    return int(data.lines[token]) if data.lines is not None else token + 1


# ----- with a model -----------------------------------------------------------------------------


def understand(path: str, estimator: Any, extra: dict[str, Any]) -> Columns | str:
    """What the column files of a tagger look like, or that it knows attributes."""
    if knows_attributes(estimator):
        return ATTRIBUTES
    columns = getattr(estimator.features_, "columns_", None)
    if columns is None:
        raise ValueError(
            f"{path}: the tagger was trained on feature vectors, which column files do not hold; "
            "use it from Python, or train with features=WindowFeatures()"
        )
    n_columns = extra.get("n_columns", len(columns) + 1)
    label_column = extra.get("label_column", len(columns))
    separator = extra.get("separator", "auto")
    if n_columns != len(columns) + 1 or label_column not in range(n_columns):
        raise ValueError(
            f"{path}: the model has features of {len(columns)} columns, but is said to be of files "
            f"with {n_columns!r:.40}, the labels in column {label_column!r:.40} (from 0)"
        )
    if separator not in list(SEPARATORS):
        raise ValueError(f"{path}: unknown separator {separator!r:.40}; upgrade maxmargin")
    return Columns(n_columns, label_column, separator)


def predict(model: Model, arguments: argparse.Namespace) -> str:
    """The columns of the file, with one more; for attributes the labels alone."""
    tokens = _read(model, arguments)
    if model.files == ATTRIBUTES:
        return write_labels(model.estimator.predict(tokens.inputs))
    predicted = [str(y) for ys in model.estimator.predict(tokens.inputs) for y in ys]
    separator = SEPARATORS[arguments.separator or model.files.separator] or " "
    text = io.StringIO()
    columns = [*tokens.columns.columns, predicted]
    write_columns(text, columns, tokens.columns.offsets, separator=separator)
    return text.getvalue()


def judge(model: Model, arguments: argparse.Namespace) -> Judgement:
    """Scores of a tagger, and tables of them."""
    tokens = _read(model, arguments)
    if tokens.labels is None:
        raise ValueError(
            f"{tokens.columns.source}: no column of labels, expected {model.files.number} columns"
        )
    known = {str(label) for label in model.estimator.classes_.tolist()}
    gold = tokens.labels
    predicted = [[str(y) for y in ys] for ys in model.estimator.predict(tokens.inputs)]
    flat_gold = [y for ys in gold for y in ys]
    labels = label_scores(gold, predicted)
    report: dict[str, Any] = {
        "task": model.task.name,
        "sequences": tokens.columns.n_sequences,
        "tokens": tokens.columns.n_tokens,
        "accuracy": labels.accuracy,
        "sequence_accuracy": sequence_accuracy(gold, predicted),
        "unknown_labels": count_unknown(flat_gold, known),
        "confusions": confusions(flat_gold, [y for ys in predicted for y in ys]),
        "labels": as_json(labels.per_label),
    }
    if are_chunk_tags({*known, *flat_gold}):
        scores = chunk_scores(gold, predicted)
        report["chunks"] = {
            "precision": scores.precision,
            "recall": scores.recall,
            "f1": scores.f1,
            "per_type": as_json(scores.per_type),
        }
    return Judgement(report, "\n".join([tagging_report(gold, predicted), *error_lines(report)]))


def _read(model: Model, arguments: argparse.Namespace) -> Tokens:
    """Read a column file for a trained tagger, with or without the column of labels."""
    if model.files == ATTRIBUTES:
        return _read_attributes(arguments)
    source, expected = open_input(arguments.data), model.files.number
    allowed = (Kind.CONLLU,) if expected in (10, 11) else ()
    refuse_other_kinds(source, TAG, arguments.encoding, allowed)
    separator = SEPARATORS[arguments.separator or model.files.separator]
    data = read_columns(source, encoding=arguments.encoding, separator=separator)
    found = len(data.columns)
    if found == expected:
        inputs = data.select(j for j in range(found) if j != model.files.label)
        return Tokens(data, inputs, data.split(model.files.label))
    if found == expected - 1:
        return Tokens(data, data, None)
    raise ValueError(
        f"{source}: {found} columns, but the model was trained on {expected}, the labels in "
        f"column {model.files.label} (from 0): expected {expected}, or {expected - 1} without "
        "labels"
    )
