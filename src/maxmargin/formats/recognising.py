"""What kind of file this is, judged by how it begins.

Readers refuse most files of another kind, but in words that do not help ("expected 6 columns, found
5"), and take a few for what they are not. A file is recognised if all lines at its beginning have
the form of one kind; otherwise nothing is said of it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from enum import Enum

from .opening import PathLike, Source, open_binary

__all__ = ["Kind", "is_model_file", "recognise"]

SAMPLE_BYTES = 2**16
SAMPLE_LINES = 200


class Kind(Enum):
    """Kinds of files, with what they are called."""

    MODEL = "a model file of maxmargin"
    ZIP = "a zip archive"
    SEVEN_ZIP = "a 7z archive"
    ZSTANDARD = "a file compressed by zstd"
    TAR = "a tar archive"
    NUMPY = "an array file of numpy"
    UTF_16 = "text in UTF-16"
    BINARY = "a binary file"
    SVMLIGHT = "an svmlight file"
    UNLABELLED_SVMLIGHT = "an svmlight file without labels"
    MULTILABEL = "an svmlight file with several labels on a line"
    LETOR = "a LETOR file, rankings with a query (qid:) on each line"
    SVM_HMM = "an svm_hmm file, sequences of examples with the same qid:"
    QUERIES = "an svmlight file with a query (qid:) on each line, as of rankings or of svm_hmm"
    CONLLU = "a CoNLL-U treebank"
    TREES = "a file of bracketed trees"
    LABEL_TREES = "a file of label trees, a node with its head and label on each line"
    FASTA = "a FASTA file"
    JSON = "a JSON file"
    COMMAS = "a table with commas between the fields"
    COLUMNS = "a file of CoNLL columns"
    CRFSUITE = "a data file of CRFsuite, a label and its attributes on each line"


_MARKS = {
    b"7z\xbc\xaf\x27\x1c": Kind.SEVEN_ZIP,
    b"\x28\xb5\x2f\xfd": Kind.ZSTANDARD,
    b"\x93NUMPY": Kind.NUMPY,
}
# Two open brackets, perhaps behind a name, and somewhere a word below its tag.
_TREE = re.compile(r"\s*(?:[^\s()]+\s+)?\(\s*[^\s()]*\s*\(.*?[^\s()]+ [^\s()]+\)", re.DOTALL)
_RESIDUES = re.compile(r"[A-Za-z.*-]+")
_CONLLU_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_PAIRS = r"(?P<pairs>(?:\s+[0-9]+:[^\s:]+)*)\s*(?:#(?P<note>.*))?"
_SVMLIGHT = re.compile(rf"(?P<label>[^\s:#]+)(?P<query>\s+qid:[^\s:]+)?{_PAIRS}")
_UNLABELLED = re.compile(r"(?:qid:[^\s:]+\s+)?[0-9]+:[^\s:]+(?:\s+[0-9]+:[^\s:]+)*\s*(?:#.*)?")
_NODE = re.compile(r"[0-9]+\s+(?:[0-9]+|_)\s+[^\s:]+(?P<pairs>(?:\s+[0-9]+:[^\s:]+)*)\s*")
_PAIR = re.compile(r"\s[^\s:]+:[^\s:]+")
_LABELS = re.compile(r"[^,]+(?:,[^,]+)+")
_ATTRIBUTE = re.compile(r".*=.*|[^:]+:[-+.0-9eE]+|__\w+__")


def recognise(source: Source, encoding: str = "utf-8") -> Kind | None:
    """Judge a file by its beginning.

    Parameters
    ----------
    source : str or path-like
        File, plain or compressed.
    encoding : str, default="utf-8"
        Encoding it is said to have.

    Returns
    -------
    Kind or None
        None if it is none of the kinds known, or has no lines.
    """
    with open_binary(source) as stream:
        data = stream.read(SAMPLE_BYTES)
    return _binary_kind(data, encoding) or _text_kind(data, encoding)


def is_model_file(path: PathLike) -> bool:
    """Whether a file begins as our models do."""
    with open(path, "rb") as stream:
        return _begins_as_model(stream.read(64))


def _begins_as_model(data: bytes) -> bool:
    """A zip archive of which the first member is the header."""
    return data.startswith(b"PK\x03\x04") and data[30:41] == b"header.json"


def _binary_kind(data: bytes, encoding: str) -> Kind | None:
    """The kind of a file that is not text in its encoding."""
    if data.startswith(b"PK\x03\x04"):
        return Kind.MODEL if _begins_as_model(data) else Kind.ZIP
    for mark, kind in _MARKS.items():
        if data.startswith(mark):
            return kind
    if data[257:262] == b"ustar":
        return Kind.TAR
    if "16" in encoding or "32" in encoding:
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Kind.UTF_16
    return Kind.BINARY if b"\0" in data else None


def _text_kind(data: bytes, encoding: str) -> Kind | None:
    """The kind of a text file."""
    text = data.decode(encoding, errors="replace").removeprefix("\ufeff")
    every = [line.rstrip("\r") for line in text.split("\n")]
    complete = every if len(data) < SAMPLE_BYTES else every[:-1]
    lines = [line for line in complete if line.strip()][:SAMPLE_LINES]
    if not lines:
        return None
    tests: dict[Kind, Callable[[list[str]], bool]] = {
        Kind.FASTA: _is_fasta,
        Kind.TREES: lambda lines: _TREE.match("\n".join(lines)) is not None,
        Kind.CONLLU: _is_conllu,
        Kind.JSON: lambda lines: lines[0].lstrip().startswith(('{"', '["', "[{")),
        Kind.LABEL_TREES: _is_label_trees,
        Kind.CRFSUITE: _is_crfsuite,
        Kind.UNLABELLED_SVMLIGHT: lambda lines: all(map(_UNLABELLED.fullmatch, lines)),
    }
    for kind, test in tests.items():
        if test(lines):
            return kind
    return _svmlight_kind(lines) or _table_kind(lines)


def _is_fasta(lines: list[str]) -> bool:
    """A name behind ``>`` with letters below it, and nothing else."""
    kept = [line.strip() for line in lines if not line.startswith((";", "#"))]
    return (
        len(kept) > 1
        and kept[0].startswith(">")
        and _RESIDUES.fullmatch(kept[1]) is not None
        and all(line.startswith(">") or _RESIDUES.fullmatch("".join(line.split())) for line in kept)
    )


def _is_conllu(lines: list[str]) -> bool:
    """Ten columns between tabs, the first a number, the seventh a head."""
    words = [line.split("\t") for line in lines if not line.startswith("#")]
    return bool(words) and all(
        len(word) == 10
        and _CONLLU_ID.fullmatch(word[0]) is not None
        and (word[6] == "_" or word[6].isdecimal())
        for word in words
    )


def _is_label_trees(lines: list[str]) -> bool:
    """Number, head and label, and index:value pairs behind some of them."""
    nodes = [_NODE.fullmatch(line.strip()) for line in lines if not line.startswith("#")]
    return bool(nodes) and all(nodes) and any(node["pairs"] for node in nodes if node)


def _is_crfsuite(lines: list[str]) -> bool:
    """A label and attributes between tabs, NAME=VALUE on most lines."""
    rows = [line.rstrip("\t").split("\t") for line in lines]
    attributes = [field for row in rows for field in row[1:]]
    return (
        all(row[0] and not {" ", "="} & set(row[0]) for row in rows)
        and 2 * sum(any("=" in field for field in row[1:]) for row in rows) > len(rows)
        and 5 * sum(map(bool, map(_ATTRIBUTE.fullmatch, attributes))) >= 4 * len(attributes)
    )


def _svmlight_kind(lines: list[str]) -> Kind | None:
    """The dialect of an svmlight file; None if it is none."""
    found = [match for line in lines if (match := _SVMLIGHT.fullmatch(line.strip()))]
    comments = sum(line.lstrip().startswith("#") for line in lines)
    if len(found) + comments < len(lines) or not any(match["pairs"].strip() for match in found):
        return None
    if all(match["query"] for match in found):
        notes = [(match["note"] or "").strip() for match in found]
        if any("docid" in note for note in notes):
            return Kind.LETOR
        return Kind.SVM_HMM if all(len(note.split()) == 1 for note in notes) else Kind.QUERIES
    if any(match["query"] for match in found):
        return None  # the reader says which line has none
    if any(_LABELS.fullmatch(match["label"]) for match in found):
        return Kind.MULTILABEL
    return Kind.SVMLIGHT


def _table_kind(lines: list[str]) -> Kind | None:
    """Columns between blanks, or between commas."""
    widths = {len(line.split()) for line in lines}
    with_pairs = sum(_PAIR.search(line) is not None for line in lines)  # svmlight with a bad line
    if len(widths) == 1 and widths != {1} and 2 * with_pairs < len(lines):
        return Kind.COLUMNS
    commas = {line.count(",") for line in lines}
    return Kind.COMMAS if len(commas) == 1 and commas != {0} and len(lines) > 1 else None
