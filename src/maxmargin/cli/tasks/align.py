"""Alignments of sequences of FASTA files."""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from ..task import Task

if TYPE_CHECKING:
    from ...formats import FastaRecord
    from ...formats.opening import Source
    from ...utils.types import Ints
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Training

__all__ = ["ALIGN"]

_NO_GAPS = str.maketrans("", "", "-.")


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
        from ...formats import pairs_of_rows

        return pairs_of_rows(self.x.sequence, self.y.sequence)[2]


class AlignTask(Task):
    """Alignments of sequences of FASTA files."""

    name = "align"
    reads = ("FASTA",)
    expects = "FASTA, sequences with - for gaps, a line with # before each alignment"
    description = (
        "Aligns two sequences. Reads aligned FASTA: the sequences below a line that begins with # "
        "are one alignment, of which every two rows are an example. predict needs no gaps in the "
        "sequences."
    )
    writes = "FASTA: the two rows of every pair, below a line with # and their names"
    scores = "precision, recall and F1 of aligned pairs of letters, and exact matches"
    losses = ("pairs", "residues", "zero_one")
    unit = "titled"
    answers = ("k", "scores")
    options = ("mode", "gaps", "symmetric")

    def make(self, arguments: argparse.Namespace) -> Training:
        """An aligner, to be trained on alignments."""
        from ...estimators.sequences.alignment import SequenceAligner
        from ..files import open_input
        from ..training import Examples, Training, say, shared_parameters

        pairs = _read(open_input(arguments.data), arguments, aligned=True)
        titles = {pair.title for pair in pairs}
        say(arguments, f"{len(pairs)} pairs of sequences, {len(titles)} alignments")
        estimator = SequenceAligner(
            mode=arguments.mode or "local",
            gaps=arguments.gaps or "affine",
            symmetric=arguments.symmetric,
            **shared_parameters(arguments, self),
        )
        X, y = [pair.strings for pair in pairs], [pair.alignment for pair in pairs]
        return Training(estimator, Examples(X, y))

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> None:
        """Only models whose letters are characters have files here."""
        if not all(isinstance(letter, str) and len(letter) == 1 for letter in estimator.alphabet_):
            raise ValueError(
                f"{path}: the alphabet of the model has entries that are not single letters; "
                "use it from Python"
            )

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The rows of every pair, below a line with their names."""
        from ..evaluation import answer_line, number_of_answers

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

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of alignments."""
        from ...metrics import alignment_scores
        from ...metrics.tallies import tally_of_alignments
        from ..evaluation import Evaluation
        from ..files import open_input

        pairs = _read(open_input(arguments.data), arguments, aligned=True)
        predicted = model.estimator.predict([pair.strings for pair in pairs])
        scores = alignment_scores([pair.alignment for pair in pairs], predicted)
        report = {"pairs": len(pairs), **scores._asdict()}
        tally = tally_of_alignments([pair.alignment for pair in pairs], predicted)
        return Evaluation(report, f"{len(pairs)} pairs of sequences\n\n{scores}", tally)

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..files import open_input
        from ..training import Examples

        pairs = _read(open_input(arguments.data), arguments, aligned=True)
        return Examples([pair.strings for pair in pairs], [pair.alignment for pair in pairs])


ALIGN = AlignTask()


def _read(source: Source, arguments: argparse.Namespace, aligned: bool) -> list[Pair]:
    """Every two sequences below the same title; ValueError unless their rows fit, if aligned."""
    from ...formats import read_fasta_groups
    from ...formats.fasta import line_of_record
    from ..files import check_kind

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
                f"{place(0)}: {records[0].name:.40} is the only sequence of its alignment, "
                "expected at least two below each line that begins with #"
            )
        pairs += [Pair(title, x, y) for x, y in combinations(records, 2)]
        before += len(records)
    if not pairs:
        raise ValueError(f"{source}: no sequences found, expected '>' and a name before each")
    return pairs


def _written(pair: Pair, alignment: Any, note: str = "") -> str:
    """An alignment as FASTA."""
    from ...formats import gapped_rows

    rows = gapped_rows(*pair.strings, alignment)
    title = f"{pair.title} {pair.x.name} {pair.y.name}".strip()
    return f"# {title}{note}\n>{pair.x.name}\n{rows[0]}\n>{pair.y.name}\n{rows[1]}\n"
