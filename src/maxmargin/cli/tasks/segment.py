"""Segments of the sequences of column files, written as B-, I- and O tags."""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...formats.opening import Source
    from ..columns import Columns, Templates, Tokens
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["TASK"]


class SegmentTask(Task):
    """Segments of the sequences of column files, written as B-, I- and O tags."""

    name = "segment"
    reads = ("COLUMNS",)
    expects = "CoNLL columns, one token on each line"
    description = (
        "Finds labelled segments in a sequence, such as names, and scores them as a whole, with "
        "their lengths. Reads columns as tag does, with labels that mark segments: O, B-TYPE and "
        "I-TYPE (or IOBES)."
    )
    writes = "the columns of the file and one more with the predicted B-, I- and O tags"
    scores = "precision, recall and F1 of the segments of every type, as conlleval computes them"
    losses = ("segments", "hamming", "f1", "zero_one")
    unit = "block"
    answers = ("k", "scores")
    options = (
        "fit_intercept",
        "features",
        "label_column",
        "min_count",
        "max_segment_length",
        "on_violation",
        "separator",
    )
    violations = ("raise", "drop")
    option_help = MappingProxyType(
        {
            "on_violation": "what to do with training sequences that have segments longer than "
            "--max-segment-length: end with an error (raise) or leave them out (drop, the default)"
        }
    )

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> Columns:
        """What the column files of a model look like."""
        from ..columns import load_column_schema

        return load_column_schema(path, estimator, extra)

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ..columns import read_template_option
        from ..training import Plan

        files, templates = read_template_option(arguments)
        if templates.of_pairs:
            raise UsageError(
                f"--features {arguments.features}: templates for pairs of labels (B) are for "
                "the task tag only"
            )
        if arguments.on_violation and arguments.max_segment_length is None:
            raise UsageError("--on-violation requires --max-segment-length")
        return Plan(files, partial(_make, arguments, templates))

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The columns of the file, with one more."""
        from ...metrics import segments_to_tags
        from ..columns import read_tokens, write_ranked_tokens, write_tokens
        from ..evaluation import number_of_answers

        tokens = read_tokens(model, source, arguments)
        k = number_of_answers(arguments)
        if k is None:
            return write_tokens(model, arguments, tokens, _predicted_tags(model, tokens))
        ranked = [
            [(segments_to_tags([segments], [length])[0], score) for segments, score in own]
            for own, length in zip(
                model.estimator.predict_k(tokens.inputs, k), _lengths(tokens), strict=True
            )
        ]
        return write_ranked_tokens(model, arguments, tokens, ranked)

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of a segmenter as conlleval has them, and tables of them."""
        from ...metrics import chunk_scores, segments_to_tags, sequence_accuracy, tags_to_segments
        from ...metrics.tallies import tally_of_segments
        from ...utils.tables import named_values, percent
        from ..columns import read_labelled_tokens
        from ..evaluation import Evaluation, as_json, count_unknown, error_lines

        tokens, labels = read_labelled_tokens(model, arguments)
        # Tags of another scheme, such as IOBES, are compared as what they say.
        segments = tags_to_segments(_checked_tags(tokens, labels))
        gold = segments_to_tags(segments, [len(own) for own in labels])
        predicted = _predicted_tags(model, tokens)
        scores = chunk_scores(gold, predicted)
        known = {str(label) for label in model.estimator.classes_.tolist()}
        report = {
            "sequences": tokens.columns.n_sequences,
            "tokens": tokens.columns.n_tokens,
            "accuracy": scores.accuracy,
            "sequence_accuracy": sequence_accuracy(gold, predicted),
            "unknown_labels": count_unknown(
                (label for own in segments for *_, label in own), known
            ),
            "confusions": [],
            "chunks": {
                "precision": scores.precision,
                "recall": scores.recall,
                "f1": scores.f1,
                "per_type": as_json(scores.per_type),
            },
        }
        head = named_values(
            [
                ("sequences", str(tokens.columns.n_sequences)),
                ("tokens", str(tokens.columns.n_tokens)),
                ("token accuracy", f"{percent(scores.accuracy)} %"),
                ("sequences all right", f"{percent(sequence_accuracy(gold, predicted))} %"),
            ]
        )
        text = "\n".join([f"{head}\n\n{scores.table()}", *error_lines(report)])
        return Evaluation(report, text, tally_of_segments(segments, tags_to_segments(predicted)))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ...metrics import tags_to_segments
        from ..columns import read_labelled_tokens
        from ..training import Examples

        tokens, labels = read_labelled_tokens(model, arguments)
        return Examples(tokens.inputs, tags_to_segments(_checked_tags(tokens, labels)))


TASK = SegmentTask()


def _make(arguments: argparse.Namespace, templates: Templates) -> Training:
    """A segmenter, to be trained on a column file."""
    from ...estimators.sequences.segments import SequenceSegmenter
    from ...metrics import tags_to_segments
    from ..columns import extra_of_columns, read_training_tokens, window_features
    from ..training import Examples, Training, say, shared_parameters

    tokens, label_column = read_training_tokens(arguments, TASK)
    segments = tags_to_segments(_checked_tags(tokens, tokens.labels or []))
    n_segments = sum(map(len, segments))
    say(
        arguments,
        f"{tokens.columns.n_sequences} sequences, {tokens.columns.n_tokens} tokens, "
        f"{n_segments} segments",
    )
    estimator = SequenceSegmenter(
        features=window_features(arguments, templates)[0],
        max_segment_length=arguments.max_segment_length,
        on_violation=arguments.on_violation or "drop",
        **shared_parameters(arguments, TASK),
    )

    extra = extra_of_columns(arguments, tokens, label_column)
    return Training(estimator, Examples(tokens.inputs, segments), extra, tokens.located)


def _checked_tags(tokens: Tokens, labels: list[list[str]]) -> list[list[str]]:
    """Tags of segments; ValueError that names the line of a label that is none."""
    from ...metrics.chunks import is_chunk_tag

    flat = (label for own in labels for label in own)
    for token, label in enumerate(flat):
        if not is_chunk_tag(label):
            raise ValueError(
                f"{tokens.columns.source}:{tokens.line(token)}: the label is {label!r:.40}, "
                "expected O, or B, I, E or S with -type"
            )
    return labels


def _predicted_tags(model: Model, tokens: Tokens) -> list[list[str]]:
    """Tags of the segments found."""
    from ...metrics import segments_to_tags

    return segments_to_tags(model.estimator.predict(tokens.inputs), _lengths(tokens))


def _lengths(tokens: Tokens) -> list[int]:
    """Number of tokens of each sequence."""
    return [stop - start for start, stop in pairwise(tokens.columns.offsets.tolist())]
