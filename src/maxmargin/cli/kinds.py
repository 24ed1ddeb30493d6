"""What to do with a file that is of another kind than the task needs."""

from __future__ import annotations

from collections.abc import Container

from ..formats.opening import Source
from ..formats.recognising import Kind, recognise

__all__ = ["refuse_other_kinds"]

_EXPECTED = {
    "tag": "CoNLL columns, one token on each line",
    "multiclass": "svmlight, a label and index:value pairs on each line",
}
#: Kinds that a task reads; files that are not recognised are left to its reader.
_READ = {
    "tag": {Kind.COLUMNS},
    "multiclass": {Kind.SVMLIGHT},
}
_NO_COMMAND = "there is no command for it yet; in Python,"
_UNPACK = "unpack it first"
_ADVICE = {
    Kind.MODEL: "is the order of the arguments right?",
    Kind.ZIP: _UNPACK,
    Kind.SEVEN_ZIP: _UNPACK,
    Kind.ZSTANDARD: _UNPACK,
    Kind.TAR: _UNPACK,
    Kind.NUMPY: "in Python, numpy.load reads it, and estimators take its arrays",
    Kind.UTF_16: "say --encoding utf-16",
    Kind.BINARY: "",
    Kind.SVMLIGHT: "'maxmargin train multiclass' learns from it",
    Kind.UNLABELLED_SVMLIGHT: "'maxmargin predict' labels it, with a model of 'train multiclass'",
    Kind.MULTILABEL: f"{_NO_COMMAND} sklearn.datasets.load_svmlight_file(path, multilabel=True) "
    "reads it",
    Kind.LETOR: f"{_NO_COMMAND} maxmargin.formats.read_svmlight gives X, y and the queries qid",
    Kind.SVM_HMM: f"{_NO_COMMAND} maxmargin.formats.read_svmlight gives X, y and qid, and rows "
    "with the same qid make a sequence for SequenceTagger",
    Kind.QUERIES: f"{_NO_COMMAND} maxmargin.formats.read_svmlight gives X, y and qid; to do "
    "without the queries, remove the qid: fields",
    Kind.CONLLU: f"{_NO_COMMAND} maxmargin.formats.read_conllu reads it, for DependencyParser",
    Kind.TREES: f"{_NO_COMMAND} maxmargin.formats.read_trees reads it, for GrammarParser",
    Kind.FASTA: f"{_NO_COMMAND} maxmargin.formats.read_fasta reads it, for SequenceAligner",
    Kind.JSON: f"{_NO_COMMAND} json reads it, and estimators take lists",
    Kind.COMMAS: "tabs or spaces have to stand between the fields",
    Kind.COLUMNS: "'maxmargin train tag' learns from it",
}


def refuse_other_kinds(
    source: Source, task: str, encoding: str, allowed: Container[Kind] = ()
) -> Kind | None:
    """Raise ValueError for a file that is known not to be what the task reads.

    The message says what the file is, what was expected, and what can be done with it. Returns
    the kind of other files, None where it is not known.
    """
    kind = recognise(source, encoding)
    if kind is None or kind in _READ[task] or kind in allowed:
        return kind
    advice = f"; {_ADVICE[kind]}" if _ADVICE[kind] else ""
    raise ValueError(f"{source}: this is {kind.value}, expected {_EXPECTED[task]}{advice}")
