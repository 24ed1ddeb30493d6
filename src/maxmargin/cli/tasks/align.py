"""Alignments of sequences of FASTA files."""

from __future__ import annotations

import argparse
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from ...estimators.alignment import SequenceAligner
from ...formats import FastaRecord, gapped_rows, pairs_of_rows, read_fasta_groups
from ...formats.fasta import GAPS, line_of_record
from ...formats.opening import Source
from ...metrics import alignment_scores
from ...metrics.tallies import tally_of_alignments
from ...registry import ALIGN
from ...types import Ints
from ..evaluation import Evaluation, answer_line, number_of_answers
from ..files import Model, check_kind, open_input
from ..training import Examples, Plan, Training, say, shared_parameters

__all__ = ["evaluate", "examples", "load_schema", "plan", "predict"]

_NO_GAPS = str.maketrans("", "", GAPS)


class Pair(NamedTuple):
    """Two rows of an alignment, and the title that they stand below."""

    title: str
    x: FastaRecord
    y: FastaRecord

    @property
    def strings(self) -> tuple[str, str]:
        """The sequences without gaps."""
        return self.x.sequence.translate(_NO_GAPS), self.y.sequence.translate(_NO_GAPS)

    @property
    def alignment(self) -> Ints:
        """Paired positions."""
        return pairs_of_rows(self.x.sequence, self.y.sequence)[2]


def plan(arguments: argparse.Namespace) -> Plan:
    """How to train; see `maxmargin.cli.tasks`."""
    return Plan([], partial(_make, arguments))


def _make(arguments: argparse.Namespace) -> Training:
    """An aligner, to be trained on alignments."""
    pairs = _read(open_input(arguments.data), arguments, aligned=True)
    titles = {pair.title for pair in pairs}
    say(arguments, f"{len(pairs)} pairs of sequences, {len(titles)} alignments")
    estimator = SequenceAligner(
        mode=arguments.mode or "local",
        gaps=arguments.gaps or "affine",
        symmetric=arguments.symmetric,
        **shared_parameters(arguments, ALIGN),
    )
    X, y = [pair.strings for pair in pairs], [pair.alignment for pair in pairs]
    return Training(lambda: estimator.fit(X, y), estimator, {"task": ALIGN.name}, Examples(X, y))


def load_schema(path: str, estimator: Any, extra: dict[str, Any]) -> None:
    """Only models that align have files here."""
    if estimator.task != "align":
        raise ValueError(
            f"{path}: the model chooses among candidates (task={estimator.task!r}), which FASTA "
            "files do not tell; use it from Python"
        )
    if not all(isinstance(letter, str) and len(letter) == 1 for letter in estimator.alphabet_):
        raise ValueError(f"{path}: the alphabet is not one of letters; use it from Python")


def predict(model: Model, source: Source, arguments: argparse.Namespace) -> str:
    """The rows of every pair, below a line with their names."""
    pairs = _read(source, arguments, aligned=False)
    inputs = [pair.strings for pair in pairs]
    k = number_of_answers(arguments)
    if k is None:
        found = model.estimator.predict(inputs)
        return "".join(_written(pair, one) for pair, one in zip(pairs, found, strict=True))
    ranked = model.estimator.predict_k(inputs, k)
    return "".join(
        _written(pair, alignment, answer_line(number, score).removeprefix("#"))
        for pair, own in zip(pairs, ranked, strict=True)
        for number, (alignment, score) in enumerate(own, 1)
    )


def evaluate(model: Model, arguments: argparse.Namespace) -> Evaluation:
    """Scores of alignments."""
    pairs = _read(open_input(arguments.data), arguments, aligned=True)
    predicted = model.estimator.predict([pair.strings for pair in pairs])
    scores = alignment_scores([pair.alignment for pair in pairs], predicted)
    report = {"task": model.task.name, "pairs": len(pairs), **scores._asdict()}
    tally = tally_of_alignments([pair.alignment for pair in pairs], predicted)
    return Evaluation(report, f"{len(pairs)} pairs of sequences\n\n{scores}", tally)


def examples(model: Model, arguments: argparse.Namespace) -> Examples:
    """A labelled file for a model; see `maxmargin.cli.tasks`."""
    pairs = _read(open_input(arguments.data), arguments, aligned=True)
    return Examples([pair.strings for pair in pairs], [pair.alignment for pair in pairs])


def _read(source: Source, arguments: argparse.Namespace, aligned: bool) -> list[Pair]:
    """Every two sequences below the same title; ValueError unless their rows fit, if aligned."""
    check_kind(source, ALIGN, arguments.encoding)
    pairs: list[Pair] = []
    before = 0  # records of earlier groups
    for title, records in read_fasta_groups(
        source, encoding=arguments.encoding, keep_empty=not aligned
    ):

        def place(j: int, before: int = before) -> str:
            line = line_of_record(source, before + j, encoding=arguments.encoding)
            return f"{source}:{line}"

        for j, record in enumerate(records):
            if aligned and not record.sequence.translate(_NO_GAPS):
                raise ValueError(f"{place(j)}: {record.name:.40} has no letters, only gaps")
            if aligned and len(record.sequence) != len(records[0].sequence):
                raise ValueError(
                    f"{place(j)}: {record.name:.40} has {len(record.sequence)} columns, but "
                    f"{records[0].name:.40} has {len(records[0].sequence)}; expected aligned rows"
                )
        if len(records) < 2:
            raise ValueError(
                f"{place(0)}: {records[0].name:.40} stands alone, expected two sequences or more "
                "below each line with #"
            )
        pairs += [Pair(title, x, y) for x, y in combinations(records, 2)]
        before += len(records)
    if not pairs:
        raise ValueError(f"{source}: no sequences found, expected '>' and a name before each")
    return pairs


def _written(pair: Pair, alignment: Any, note: str = "") -> str:
    """An alignment as FASTA."""
    rows = gapped_rows(*pair.strings, alignment)
    title = f"{pair.title} {pair.x.name} {pair.y.name}".strip()
    return f"# {title}{note}\n>{pair.x.name}\n{rows[0]}\n>{pair.y.name}\n{rows[1]}\n"
