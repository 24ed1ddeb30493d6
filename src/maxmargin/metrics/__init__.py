"""How good predictions are: labels and chunks, dependency trees, constituents, alignments."""

from .alignments import AlignmentScores, alignment_scores, pair_accuracies
from .attachments import AttachmentScores, attachment_scores
from .brackets import BracketScores, bracket_scores
from .chunks import (
    ChunkScores,
    are_chunk_tags,
    chunk_f1,
    chunk_f1_scorer,
    chunk_scores,
    chunks,
)
from .counts import Averages, TypeScores
from .labels import LabelScores, hamming, label_scores, sequence_accuracy, token_accuracy
from .tagging import tagging_report

__all__ = [
    "AlignmentScores",
    "AttachmentScores",
    "Averages",
    "BracketScores",
    "ChunkScores",
    "LabelScores",
    "TypeScores",
    "alignment_scores",
    "are_chunk_tags",
    "attachment_scores",
    "bracket_scores",
    "chunk_f1",
    "chunk_f1_scorer",
    "chunk_scores",
    "chunks",
    "hamming",
    "label_scores",
    "pair_accuracies",
    "sequence_accuracy",
    "tagging_report",
    "token_accuracy",
]
