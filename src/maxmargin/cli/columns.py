"""Column files of models that label or segment their tokens; CRFsuite's data; data on disk."""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..features import (
    FeatureDictionary,
    PackedSequences,
    StoredSequences,
    WindowFeatures,
    chunking_templates,
    ner_templates,
    pos_templates,
    read_templates,
    words_templates,
)
from ..features.streaming import pack_stream
from ..features.window.templates import is_crf_template, parse_template
from ..formats import (
    CrfsuiteData,
    TokenColumns,
    open_text,
    read_columns,
    read_columns_in_parts,
    write_columns,
)
from ..formats.opening import Source
from ..formats.recognising import Kind, recognise
from ..formats.writing import descriptor_of
from ..progress import running_clock
from ..utils.warn import warn_user
from .console import UsageError
from .evaluation import answer_line
from .files import Chunk, Model, at_lines, check_kind, check_several_labels, open_input
from .options import SEPARATORS
from .tasks import Task

__all__ = [
    "ATTRIBUTES",
    "TEMPLATES_BY_NAME",
    "Columns",
    "Templates",
    "Tokens",
    "are_attributes",
    "attribute_features",
    "check_can_stream",
    "check_some_known",
    "extra_of_columns",
    "knows_attributes",
    "label_index",
    "load_column_schema",
    "read_labelled_tokens",
    "read_template_option",
    "read_tokens",
    "read_training_tokens",
    "stored_tokens",
    "window_features",
    "write_labels",
    "write_ranked_tokens",
    "write_tokens",
]

TEMPLATES_BY_NAME = {
    "chunking": chunking_templates,
    "ner": ner_templates,
    "pos": pos_templates,
    "words": words_templates,
}
_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tag", "ner_tags", "pos", "chunk", "class"}


class Columns(NamedTuple):
    """What column files of a model look like."""

    number: int
    label: int
    separator: str


class Templates(NamedTuple):
    """What makes features of labels (None: the default), and of pairs of labels."""

    of_labels: list[str] | None
    of_pairs: list[str] | None = None


class Tokens(NamedTuple):
    """A file: all of it, what features are made of, and the labels, if present."""

    columns: Any
    inputs: Any
    labels: list[list[str]] | None

    def line(self, token: int) -> int:
        """The line of a token."""
        lines = self.columns.lines
        return int(lines[token]) if lines is not None else token + 1

    @property
    def first_lines(self) -> list[int]:
        """The line of the first token of each sequence."""
        return [self.line(token) for token in self.columns.offsets[:-1].tolist()]

    def located(self) -> AbstractContextManager[None]:
        """Let errors that name a sequence name the line of its first token."""
        return at_lines("sequence", self.columns.source, self.first_lines)


# ----- training ---------------------------------------------------------------------------------


def read_template_option(arguments: argparse.Namespace) -> tuple[list[str], Templates]:
    """Files that --features names, and the templates."""
    name = arguments.features
    if name is None or name in TEMPLATES_BY_NAME:
        return [], Templates(TEMPLATES_BY_NAME[name]() if name else None)
    if not Path(name).exists():
        raise UsageError(
            f"--features {name}: this is neither one of {', '.join(TEMPLATES_BY_NAME)} nor a file"
        )
    return [name], _read_templates(name)


def _read_templates(path: str) -> Templates:
    """Templates of a file, one on each line: ours, or those of CRF++ and Wapiti."""
    with open_text(path) as stream:
        is_crf = any(is_crf_template(line.partition("#")[0]) for line in stream)
    if is_crf:
        found = read_templates(path)
        if not found.has_transitions:
            warn_user(
                f"{path} has no template B for transitions; the tagger learns their weights all "
                "the same"
            )
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


def window_features(
    arguments: argparse.Namespace, templates: Templates
) -> tuple[WindowFeatures, WindowFeatures | None]:
    """Features of labels, and of pairs of labels if there are templates of those."""
    least = 1 if arguments.min_count is None else arguments.min_count
    pairs = templates.of_pairs
    return (
        WindowFeatures(templates.of_labels, min_count=least),
        WindowFeatures(pairs, min_count=least) if pairs else None,
    )


def read_training_tokens(arguments: argparse.Namespace, task: Task) -> tuple[Tokens, int]:
    """Read a labelled column file; the number of the column of labels comes with it."""
    source = open_input(arguments.data)
    # CoNLL-X files look like CoNLL-U; who names a column of one knows what is in it.
    allowed = () if arguments.label_column is None else (Kind.CONLLU,)
    check_kind(source, task, arguments.encoding, allowed)
    data = read_columns(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    n_columns = len(data.columns)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = label_index(chosen, n_columns, source)
    inputs = data.select(j for j in range(n_columns) if j != label_column)
    tokens = Tokens(data, inputs, data.split(label_column))
    labels = data.columns[label_column]
    check_several_labels(source, set(labels))
    if labels[0].lower() in _HEADERS and Counter(labels)[labels[0]] == 1:
        warn_user(
            f"{source}:{tokens.line(0)}: the only token with the label {labels[0]!r}; is this line "
            "a header? It is trained on like the others"
        )
    return tokens, label_column


def label_index(column: int, n_columns: int, source: Source) -> int:
    """A column number, which may count from the end, as one that counts from 0."""
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"{source}: no label column {column}, the file has {n_columns} columns (0 to "
            f"{n_columns - 1}, or -1 for the last)"
        )
    if n_columns < 2:
        raise ValueError(
            f"{source}: one column only, expected words and labels (--separator says what "
            "separates them)"
        )
    return column % n_columns


def extra_of_columns(
    arguments: argparse.Namespace, tokens: Tokens, label_column: int
) -> dict[str, Any]:
    """What a model file says of column files."""
    n_columns = len(tokens.columns.columns)
    extra: dict[str, Any] = {"n_columns": n_columns, "label_column": label_column}
    return extra | ({"separator": arguments.separator} if arguments.separator else {})


# ----- with a model -----------------------------------------------------------------------------


def load_column_schema(path: str, estimator: Any, extra: dict[str, Any]) -> Columns:
    """What the column files of a model look like."""
    columns = getattr(estimator.features_, "columns_", None)
    if columns is None:
        raise ValueError(
            f"{path}: the model was trained on feature vectors, which column files do not hold; "
            "use it from Python, or train with features=WindowFeatures()"
        )
    n_columns = extra.get("n_columns", len(columns) + 1)
    label_column = extra.get("label_column", len(columns))
    separator = extra.get("separator", "auto")
    if n_columns != len(columns) + 1 or label_column not in range(n_columns):
        raise ValueError(
            f"{path}: the model has features of {len(columns)} columns, but says that it "
            f"was trained on files with {n_columns!r:.40}, the labels in column "
            f"{label_column!r:.40} (from 0)"
        )
    if separator not in list(SEPARATORS):
        raise ValueError(f"{path}: unknown separator {separator!r:.40}; upgrade maxmargin")
    return Columns(n_columns, label_column, separator)


def read_tokens(model: Model, source: Source, arguments: argparse.Namespace) -> Tokens:
    """Read a column file for a trained model, with or without the column of labels."""
    expected = model.files.number
    allowed = (Kind.CONLLU,) if expected in (10, 11) else ()
    check_kind(source, model.task, arguments.encoding, allowed)
    separator = SEPARATORS[arguments.separator or model.files.separator]
    data = read_columns(source, encoding=arguments.encoding, separator=separator)
    found = len(data.columns)
    if found == expected:
        inputs = data.select(j for j in range(found) if j != model.files.label)
        return Tokens(data, inputs, data.split(model.files.label))
    if found == expected - 1:
        return Tokens(data, data, None)
    where = f"{source}:{Tokens(data, data, None).line(0)}"
    raise ValueError(
        f"{where}: {found} columns, but the model was trained on {expected}, the labels in column "
        f"{model.files.label} (from 0): expected {expected}, or {expected - 1} without labels"
    )


def read_labelled_tokens(
    model: Model, arguments: argparse.Namespace
) -> tuple[Tokens, list[list[str]]]:
    """Read a column file that must have labels."""
    tokens = read_tokens(model, open_input(arguments.data), arguments)
    if tokens.labels is None:
        raise ValueError(
            f"{tokens.columns.source}: no column of labels, expected {model.files.number} columns"
        )
    return tokens, tokens.labels


def write_tokens(
    model: Model,
    arguments: argparse.Namespace,
    tokens: Tokens,
    labels: Iterable[Sequence[Any]],
    *more: list[str],
) -> str:
    """The columns of a file, with one more: a label for each token of each sequence."""
    flat = [str(y) for ys in labels for y in ys]
    text = io.StringIO()
    separator = _separator(model, arguments)
    columns = [*tokens.columns.columns, flat, *more]
    write_columns(text, columns, tokens.columns.offsets, separator=separator)
    return text.getvalue()


def write_ranked_tokens(
    model: Model,
    arguments: argparse.Namespace,
    tokens: Tokens,
    ranked: Iterable[Sequence[tuple[Sequence[Any], float]]],
) -> str:
    """The k best labellings of each sequence, each below a line with its number and score."""
    separator = _separator(model, arguments)

    def lines() -> Iterator[str]:
        for fields, labellings in zip(tokens.columns.sequences(), ranked, strict=True):
            for number, (labels, score) in enumerate(labellings, 1):
                yield answer_line(number, score)
                for own, label in zip(fields, labels, strict=True):
                    yield separator.join((*own, str(label)))
                yield ""

    return "".join(f"{line}\n" for line in lines())


def _separator(model: Model, arguments: argparse.Namespace) -> str:
    """What to put between two fields."""
    return SEPARATORS[arguments.separator or model.files.separator] or " "


ATTRIBUTES = "attributes"  # what is understood of the files of such a model


def are_attributes(arguments: argparse.Namespace) -> bool:
    """Whether a training file has attributes: --format says so, or how it begins."""
    if arguments.format is not None or not os.path.isfile(arguments.data):  # pipes: read but once
        return bool(arguments.format == "crfsuite")
    return recognise(arguments.data, arguments.encoding) is Kind.CRFSUITE


def attribute_features(arguments: argparse.Namespace) -> FeatureDictionary:
    """What numbers the attributes; options for columns are refused."""
    for name in ("features", "label_column", "separator"):
        if getattr(arguments, name) is not None:
            flag = name.replace("_", "-")
            raise UsageError(
                f"--{flag} is for column files, and {arguments.data} is read as CRFsuite's data"
            )
    return FeatureDictionary(min_count=1 if arguments.min_count is None else arguments.min_count)


def knows_attributes(estimator: Any) -> bool:
    """Whether a tagger was trained on attributes."""
    return isinstance(estimator.features_, FeatureDictionary)


def check_some_known(estimator: Any, data: CrfsuiteData, source: Source) -> None:
    """Raise ValueError if a model knows no attribute of a file; chunks may be a single token."""
    known = set(estimator.features_.feature_names_)
    if not isinstance(source, Chunk) and not any(
        name in known for x in data.X for token in x for name in token
    ):
        raise ValueError(
            f"{source}: the model knows none of the attributes in this file; expected those of "
            f"the training file, such as {estimator.features_.feature_names_[0]!r:.60} (for CoNLL "
            "columns use a model that 'maxmargin train tag' trained on columns)"
        )


def write_labels(predicted: Any) -> str:
    """One label on each line, a blank line behind each sequence, as CRFsuite has them."""
    return "".join("".join(f"{label}\n" for label in labels) + "\n" for labels in predicted)


def check_can_stream(arguments: argparse.Namespace, templates: Templates) -> None:
    """Raise UsageError for what cannot be done with data that stay in a file."""
    if not arguments.stream:
        if arguments.max_features is not None:
            raise UsageError("--max-features requires --stream")
        return
    if not os.path.isfile(arguments.data) and (
        arguments.data == "-" or os.path.exists(arguments.data)
    ):
        raise UsageError(
            "--stream reads the training file more than once: expected the name of a file, "
            f"got {arguments.data!r:.60}"
        )
    for given, why in (
        (arguments.probability, "--probability trains on parts of the data"),
        (
            templates.of_pairs,
            "--features has templates for pairs of labels, which are counted in memory",
        ),
        ((arguments.order or 1) > 1, "--order above 1 lists tuples of labels in memory"),
        (arguments.on_violation in ("drop", "repair"), "--on-violation changes the data in memory"),
    ):
        if given:
            raise UsageError(f"{why}, so it cannot be combined with --stream")


def stored_tokens(
    arguments: argparse.Namespace, task: Task, features: WindowFeatures
) -> tuple[StoredSequences, WindowFeatures, Tokens, int]:
    """Features of a column file, in a file that lasts as long as they are used.

    With them come the fitted extractor, the first tokens, and the number of the column of labels.
    """
    source = arguments.data
    check_kind(
        source,
        task,
        arguments.encoding,
        () if arguments.label_column is None else (Kind.CONLLU,),
    )
    parts = read_columns_in_parts(
        source, encoding=arguments.encoding, separator=SEPARATORS[arguments.separator or "auto"]
    )
    first: TokenColumns = next(parts)
    chosen = -1 if arguments.label_column is None else arguments.label_column
    label_column = label_index(chosen, len(first.columns), source)
    with ExitStack() as files:
        path = _file_beside(arguments.output)
        files.callback(_remove, path)
        try:
            with running_clock("features"):  # which are built as the file is read
                fitted = pack_stream(
                    path,
                    chain([first], parts),
                    features,
                    label_column=label_column,
                    max_features=arguments.max_features,
                )
        except ValueError as error:
            if str(error).startswith(str(source)):
                raise
            raise ValueError(f"{source}: {error}") from error
        stored = PackedSequences.open(path)
        if arguments.cluster is not None:
            _keep_while_mapped(stored, files)
    tokens = Tokens(first, first.select(_others(first, label_column)), None)
    return stored, fitted, tokens, label_column


def _others(data: TokenColumns, column: int) -> list[int]:
    """All columns but one."""
    return [j for j in range(len(data.columns)) if j != column]


def _file_beside(output: str) -> str:
    """The name of a new file in the folder of another."""
    folder: Any = None if descriptor_of(output) is not None else Path(output).resolve().parent
    handle, path = tempfile.mkstemp(".packed", ".maxmargin-", folder)
    os.close(handle)
    return path


def _remove(path: str) -> None:
    """Take its name from a file.

    What is mapped into memory needs none, so that not even a crash leaves the file behind.
    """
    with suppress(OSError):  # where an open file cannot lose its name it stays
        os.unlink(path)


def _keep_while_mapped(stored: StoredSequences, files: ExitStack) -> None:
    """Let a file have its name for as long as it is in use: workers find it by that."""
    from ..cluster.executor import mapping_of

    weakref.finalize(mapping_of(stored.tokens.indices), files.pop_all().close)
