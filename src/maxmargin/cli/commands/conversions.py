"""Data files in another form, each a function from a source and the arguments to what to write."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...features import WindowFeatures
from ...formats import TokenColumns, read_columns, read_conllu, read_svmlight, write_columns
from ...formats.opening import Source, open_text
from ...formats.writing import write_text_atomically
from ...metrics import chunks
from ...metrics.chunks import are_chunk_tags
from ...utils.warn import warn_user
from ..columns import TEMPLATES_BY_NAME
from ..console import UsageError
from ..options import SEPARATORS

__all__ = ["CONVERSIONS"]

_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")


# ----- columns ----------------------------------------------------------------------------------


def _read(source: Source, arguments: argparse.Namespace) -> tuple[TokenColumns, int]:
    """A column file, and where its labels are."""
    separator = SEPARATORS[arguments.separator or "auto"]
    data = read_columns(source, encoding=arguments.encoding, separator=separator)
    n = len(data.columns)
    if n < 2 or not -n <= arguments.label_column < n:
        raise ValueError(
            f"{source}: no label column {arguments.label_column}, the file has {n} columns"
        )
    return data, arguments.label_column % n


def _written(columns: list[list[str]], offsets: Any, arguments: argparse.Namespace) -> str:
    """Columns as text."""
    text = io.StringIO()
    separator = SEPARATORS[arguments.separator or "auto"] or " "
    write_columns(text, columns, offsets, separator=separator)
    return text.getvalue()


def _with_scheme(scheme: str, source: Source, arguments: argparse.Namespace) -> str:
    """A column file with tags of another scheme, that say the same."""
    data, place = _read(source, arguments)
    tags = data.columns[place]
    if not are_chunk_tags(tags):
        odd = next((tag for tag in tags if not are_chunk_tags(["B-X", tag])), tags[0])
        line = "" if data.lines is None else f":{data.lines[tags.index(odd)]}"
        raise ValueError(f"{source}{line}: the label is {odd!r:.40}, expected O, B-X, I-X, ...")
    converted: list[str] = []
    n_merged = 0
    for start, stop in pairwise(data.offsets.tolist()):
        found = chunks(tags[start:stop])
        if scheme == "io":
            n_merged += sum(a[0] == b[0] and a[2] == b[1] for a, b in pairwise(found))
        converted += _tags(scheme, found, stop - start)
    if n_merged:
        warn_user(
            f"{source}: chunks of the same type that follow each other were merged: "
            f"{n_merged} of them"
        )
    columns = [*data.columns[:place], converted, *data.columns[place + 1 :]]
    return _written(columns, data.offsets, arguments)


def _tags(scheme: str, found: list[tuple[str, int, int]], length: int) -> list[str]:
    """Tags of the chunks of a sequence."""
    tags = ["O"] * length
    for kind, start, stop in found:
        letters = ["I"] * (stop - start)
        if scheme != "io":
            letters[0] = "B"
        if scheme == "iobes":
            letters[-1] = "E" if stop - start > 1 else "S"
        tags[start:stop] = [f"{letter}-{kind}" for letter in letters]
    return tags


def _columns_of_conllu(source: Source, arguments: argparse.Namespace) -> str:
    """Some fields of a treebank, word by word."""
    names = [name.strip().lower() for name in arguments.fields.split(",")]
    unknown = [name for name in names if name not in _FIELDS]
    if unknown:
        raise UsageError(
            f"--fields: unknown field {unknown[0]!r:.40}, expected some of {', '.join(_FIELDS)}"
        )
    treebank = read_conllu(source, encoding=arguments.encoding)
    words = [word for sentence in treebank.rows for word in sentence]
    columns = [[word[_FIELDS.index(name)] for word in words] for name in names]
    offsets = np.cumsum([0, *map(len, treebank.rows)])
    spaced = {" " in field for column in columns for field in column}
    if spaced == {True, False} and arguments.separator is None:
        arguments.separator = "tab"
        warn_user(f"{source}: some fields contain spaces, so the columns are separated by tabs")
    return _written(columns, offsets, arguments)


# ----- numbers ----------------------------------------------------------------------------------


class _Dictionary(NamedTuple):
    """Numbers of labels and features, from 1."""

    labels: dict[str, int]
    features: dict[str, int]


def _svm_hmm(source: Source, arguments: argparse.Namespace) -> str:
    """A column file as one of SVM-hmm."""
    if arguments.features not in TEMPLATES_BY_NAME:
        raise UsageError(f"--features must be one of {', '.join(TEMPLATES_BY_NAME)}")
    data, place = _read(source, arguments)
    inputs = data.select(j for j in range(len(data.columns)) if j != place)
    extractor = WindowFeatures(TEMPLATES_BY_NAME[arguments.features]())
    rows = extractor.fit_transform(inputs)
    names, labels = extractor.get_feature_names_out().tolist(), data.columns[place]
    if os.path.exists(arguments.dictionary):
        known = _read_dictionary(arguments.dictionary)
        missing = sorted({label for label in labels if label not in known.labels})
        if missing:
            raise ValueError(
                f"{source}: the label {missing[0]!r:.40} is not in {arguments.dictionary}"
            )
    else:
        known = _Dictionary(
            {label: k for k, label in enumerate(sorted(set(labels)), 1)},
            {name: k for k, name in enumerate(names, 1)},
        )
        _write_dictionary(arguments.dictionary, known)
    numbers = [known.features.get(name, 0) for name in names]
    lines = []
    matrix, words = rows.tokens.tocsr(), data.columns[0 if place else 1]
    for i, (start, stop) in enumerate(pairwise(data.offsets.tolist()), 1):
        for t in range(start, stop):
            own = slice(matrix.indptr[t], matrix.indptr[t + 1])
            pairs = zip(matrix.indices[own].tolist(), matrix.data[own].tolist(), strict=True)
            listed = sorted((numbers[f], value) for f, value in pairs if numbers[f])
            features = " ".join(f"{f}:{value:.17g}" for f, value in listed)
            lines.append(f"{known.labels[labels[t]]} qid:{i} {features} # {words[t]}\n")
    return "".join(lines)


def _write_dictionary(path: str, dictionary: _Dictionary) -> None:
    """Write the numbers."""
    with write_text_atomically(path) as stream:
        for kind, numbers in zip(("label", "feature"), dictionary, strict=True):
            for name, number in numbers.items():
                stream.write(f"{kind}\t{number}\t{name}\n")


def _read_dictionary(path: str) -> _Dictionary:
    """Read the numbers."""
    found: dict[str, dict[str, int]] = {"label": {}, "feature": {}}
    with open_text(path) as stream:
        for line_number, line in enumerate(stream, 1):
            fields = line.rstrip("\n").split("\t", 2)
            if len(fields) != 3 or fields[0] not in found or not fields[1].isdecimal():
                raise ValueError(
                    f"{path}:{line_number}: expected label or feature, a number and a name, "
                    f"between tabs; found {line.rstrip()!r:.60}"
                )
            found[fields[0]][fields[2]] = int(fields[1])
    if not found["label"] or not found["feature"]:
        raise ValueError(f"{path}: expected a dictionary with labels and features")
    return _Dictionary(found["label"], found["feature"])


def _npz(source: Source, arguments: argparse.Namespace) -> bytes:
    """An svmlight file as arrays."""
    data = read_svmlight(source, encoding=arguments.encoding)
    arrays = {
        "data": data.X.data,
        "indices": data.X.indices,
        "indptr": data.X.indptr,
        "shape": np.array(data.X.shape),
        "y": data.y,
    }
    if data.qid is not None:
        arrays["qid"] = data.qid
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


#: By what --to takes.
CONVERSIONS: dict[str, Callable[[Source, argparse.Namespace], str | bytes]] = {
    "bio": partial(_with_scheme, "bio"),
    "iobes": partial(_with_scheme, "iobes"),
    "io": partial(_with_scheme, "io"),
    "columns": _columns_of_conllu,
    "svm-hmm": _svm_hmm,
    "npz": _npz,
}
