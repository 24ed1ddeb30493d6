"""Tags and segments of the sequences of column files."""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..console import UsageError
from ..task import Task

if TYPE_CHECKING:
    from ...estimators.sequences.sequence import SequenceTagger
    from ...formats.opening import Source
    from ..columns import Columns, Templates, Tokens
    from ..evaluation import Evaluation
    from ..files import Model
    from ..training import Examples, Plan, Training

__all__ = ["SEGMENT", "TAG"]


class TagTask(Task):
    """Labels of the tokens of column files."""

    name = "tag"
    reads = ("COLUMNS", "CRFSUITE")
    expects = "CoNLL columns, one token on each line"
    description = (
        "Labels each token of a sequence, with its part of speech, say. Reads CoNLL columns: one "
        "token per line, its fields separated by white space, an empty line between sequences. "
        "One column holds the labels (the last, unless --label-column says otherwise), the others "
        "make the features. Also reads data files of CRFsuite: on each line a label and its "
        "attributes, separated by tabs."
    )
    writes = (
        "the columns of the file and one more with the predicted labels; for CRFsuite's data the "
        "labels only"
    )
    scores = (
        "accuracy, the most frequent confusions, precision, recall and F1 of every label and, for "
        "labels such as B-NP, I-NP and O, of the chunks"
    )
    losses = ("hamming", "normalized_hamming", "zero_one")
    unit = "block"
    answers = ("k", "scores", "confidence")
    options = (
        "fit_intercept",
        "features",
        "format",
        "label_column",
        "min_count",
        "constraints",
        "on_violation",
        "boundary_weights",
        "order",
        "separator",
        "probability",
    )
    streams = True
    violations = ("raise", "drop", "repair")
    option_help = MappingProxyType(
        {
            "on_violation": "what to do with training sequences that break the constraints: end "
            "with an error (raise), leave them out (drop), or change I-X to B-X where no X comes "
            "before it (repair, the default)"
        }
    )

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """How to train."""
        from ..columns import check_can_stream, read_template_option
        from ..training import Plan

        if arguments.on_violation and not arguments.constraints:
            raise UsageError("--on-violation requires --constraints")
        files, templates = read_template_option(arguments)
        check_can_stream(arguments, templates)
        return Plan(files, partial(_make_tagger, arguments, templates))

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> Columns | str:
        """What the column files of a tagger look like, or that it knows attributes."""
        from ..columns import ATTRIBUTES, knows_attributes, load_column_schema

        return (
            ATTRIBUTES
            if knows_attributes(estimator)
            else load_column_schema(path, estimator, extra)
        )

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """The columns of the file, with one more; for attributes the labels alone."""
        from ..columns import (
            ATTRIBUTES,
            read_tokens,
            write_labels,
            write_ranked_tokens,
            write_tokens,
        )
        from ..evaluation import confidence_of, number_of_answers

        if model.files == ATTRIBUTES:
            if arguments.k or arguments.scores or arguments.confidence:
                raise UsageError(
                    "--k, --scores and --confidence are for models trained on columns, not on "
                    "CRFsuite's data; 'maxmargin crfsuite tag -i' writes the probability of each "
                    "label, if the model was trained with --probability"
                )
            return write_labels(
                model.estimator.predict(_read_known(model, source, arguments).inputs)
            )
        tokens = read_tokens(model, source, arguments)
        k = number_of_answers(arguments)
        if k is not None:
            ranked = model.estimator.predict_k(tokens.inputs, k)
            return write_ranked_tokens(model, arguments, tokens, ranked)
        found = model.estimator.predict(tokens.inputs)
        if not arguments.confidence:
            return write_tokens(model, arguments, tokens, found)
        flat = [y for ys in found for y in ys]
        sure = confidence_of(model.estimator, tokens.inputs, flat)
        return write_tokens(model, arguments, tokens, found, sure)

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores of a tagger, and tables of them."""
        from ...metrics import (
            are_chunk_tags,
            chunk_scores,
            label_scores,
            sequence_accuracy,
            tagging_report,
        )
        from ...metrics.tallies import tally_of_tags
        from ..evaluation import Evaluation, as_json, confusions, count_unknown, error_lines

        tokens, gold = _read_labelled(model, arguments)
        known = {str(label) for label in model.estimator.classes_.tolist()}
        predicted = [[str(y) for y in ys] for ys in model.estimator.predict(tokens.inputs)]
        flat_gold = [y for ys in gold for y in ys]
        labels = label_scores(gold, predicted)
        report: dict[str, Any] = {
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
        text = "\n".join([tagging_report(gold, predicted), *error_lines(report)])
        return Evaluation(report, text, tally_of_tags(gold, predicted, {*known, *flat_gold}))

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file for a model."""
        from ..training import Examples

        tokens, gold = _read_labelled(model, arguments)
        return Examples(tokens.inputs, gold)


TAG = TagTask()


def _make_tagger(arguments: argparse.Namespace, templates: Templates) -> Training:
    """A tagger, to be trained on a column file, or on attributes."""
    from ..columns import (
        are_attributes,
        attribute_features,
        extra_of_columns,
        read_training_tokens,
        window_features,
    )
    from ..files import check_several_labels, open_input
    from ..training import Examples, Training

    features: Any
    if arguments.stream:
        return _make_streaming_tagger(arguments, templates)
    if are_attributes(arguments):
        features, pairs = attribute_features(arguments), None
        tokens, extra = _read_attributes(open_input(arguments.data), arguments), {}
        check_several_labels(arguments.data, {y for ys in tokens.labels or () for y in ys})
    else:
        features, pairs = window_features(arguments, templates)
        tokens, label_column = read_training_tokens(arguments, TAG)
        extra = extra_of_columns(arguments, tokens, label_column)
    _say_size(arguments, tokens.columns.n_sequences, tokens.columns.n_tokens)
    estimator = _tagger(arguments, features, pairs)

    return Training(estimator, Examples(tokens.inputs, tokens.labels), extra, tokens.located)


def _make_streaming_tagger(arguments: argparse.Namespace, templates: Templates) -> Training:
    """A tagger, to be trained on a column file that stays on the disk."""
    from ..columns import are_attributes, extra_of_columns, stored_tokens, window_features
    from ..training import Examples, Training

    if are_attributes(arguments):
        raise UsageError(
            f"--stream is for column files, and {arguments.data} is read as CRFsuite's data"
        )
    features, _ = window_features(arguments, templates)
    stored, fitted, tokens, label_column = stored_tokens(arguments, TAG, features)
    extra = extra_of_columns(arguments, tokens, label_column)
    n_sequences, n_tokens = len(stored.offsets) - 1, int(stored.offsets[-1])
    _say_size(arguments, n_sequences, n_tokens)
    estimator = _tagger(arguments, fitted, None)

    def fit() -> None:
        estimator.fit(stored)
        if arguments.compact is None:  # the model has them in features_; no need to save them twice
            estimator.set_params(features=features)

    return Training(estimator, Examples(stored, stored.labels), extra, fit_with=fit)


def _say_size(arguments: argparse.Namespace, n_sequences: int, n_tokens: int) -> None:
    """Say what was read; all tokens in one sequence are hardly what was meant."""
    from ..console import warn
    from ..training import say

    if n_sequences == 1:
        warn(f"{arguments.data}: all {n_tokens} tokens are one sequence: an empty line ends one")
    noun = "sequence" if n_sequences == 1 else "sequences"
    say(arguments, f"{n_sequences} {noun}, {n_tokens} tokens")


def _tagger(arguments: argparse.Namespace, features: Any, pairs: Any) -> SequenceTagger:
    """A tagger with the parameters of the options."""
    from ...estimators.sequences.sequence import SequenceTagger
    from ..training import shared_parameters

    return SequenceTagger(
        features=features,
        transition_features=pairs,
        boundary_weights=arguments.boundary_weights,
        order=arguments.order or 1,
        constraints=arguments.constraints,
        on_violation=arguments.on_violation or ("raise" if arguments.stream else "repair"),
        probability=arguments.probability,
        **shared_parameters(arguments, TAG),
    )


def _read_labelled(model: Model, arguments: argparse.Namespace) -> tuple[Tokens, list[list[str]]]:
    """Read a file with labels, of whatever kind the model knows."""
    from ..columns import ATTRIBUTES, read_labelled_tokens
    from ..files import open_input

    if model.files != ATTRIBUTES:
        return read_labelled_tokens(model, arguments)
    tokens = _read_known(model, open_input(arguments.data), arguments)
    return tokens, tokens.labels or []


def _read_known(model: Model, source: Source, arguments: argparse.Namespace) -> Tokens:
    """Read a data file of CRFsuite for a model, which knows some of its attributes."""
    from ..columns import check_some_known

    tokens = _read_attributes(source, arguments)
    check_some_known(model.estimator, tokens.columns, source)
    return tokens


def _read_attributes(source: Source, arguments: argparse.Namespace) -> Tokens:
    """Read a data file of CRFsuite."""
    from ...formats import read_crfsuite
    from ..columns import Tokens

    data = read_crfsuite(source, encoding=arguments.encoding)
    return Tokens(data, data.X, data.y)


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
        return Plan(files, partial(_make_segmenter, arguments, templates))

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


SEGMENT = SegmentTask()


def _make_segmenter(arguments: argparse.Namespace, templates: Templates) -> Training:
    """A segmenter, to be trained on a column file."""
    from ...estimators.sequences.segments import SequenceSegmenter
    from ...metrics import tags_to_segments
    from ..columns import extra_of_columns, read_training_tokens, window_features
    from ..training import Examples, Training, say, shared_parameters

    tokens, label_column = read_training_tokens(arguments, SEGMENT)
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
        **shared_parameters(arguments, SEGMENT),
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
