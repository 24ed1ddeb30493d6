"""How good predictions are: labels and chunks, dependency trees, constituents, alignments."""

from .alignments import AlignmentScores, alignment_scores, pair_accuracies
from .brackets import BracketScores, bracket_scores
from .labels import (
    AttachmentScores,
    ChunkScores,
    TypeScores,
    attachment_scores,
    chunk_scores,
    chunks,
    hamming,
    sequence_accuracy,
    token_accuracy,
)

__all__ = [
    "AlignmentScores",
    "AttachmentScores",
    "BracketScores",
    "ChunkScores",
    "TypeScores",
    "alignment_scores",
    "attachment_scores",
    "bracket_scores",
    "chunk_scores",
    "chunks",
    "hamming",
    "pair_accuracies",
    "sequence_accuracy",
    "token_accuracy",
]
