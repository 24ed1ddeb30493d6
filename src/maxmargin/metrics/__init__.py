"""How good predictions are: labels, chunks, trees, alignments, rankings, probabilities."""

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
from .costs import mean_cost
from .counts import Averages, TypeScores
from .labels import LabelScores, hamming, label_scores, sequence_accuracy, token_accuracy
from .rankings import (
    RankingScores,
    average_precision,
    letor_ndcg,
    mean_swapped_pairs,
    ndcg,
    ranking_scores,
    swapped_pairs,
)
from .reliability import Reliability, reliability
from .segments import (
    SegmentScores,
    segment_f1,
    segment_scores,
    segments_to_tags,
    tags_to_segments,
)
from .tagging import tagging_report

__all__ = [
    "AlignmentScores",
    "AttachmentScores",
    "Averages",
    "BracketScores",
    "ChunkScores",
    "LabelScores",
    "RankingScores",
    "Reliability",
    "SegmentScores",
    "TypeScores",
    "alignment_scores",
    "are_chunk_tags",
    "attachment_scores",
    "average_precision",
    "bracket_scores",
    "chunk_f1",
    "chunk_f1_scorer",
    "chunk_scores",
    "chunks",
    "hamming",
    "label_scores",
    "letor_ndcg",
    "mean_cost",
    "mean_swapped_pairs",
    "ndcg",
    "pair_accuracies",
    "ranking_scores",
    "reliability",
    "segment_f1",
    "segment_scores",
    "segments_to_tags",
    "sequence_accuracy",
    "swapped_pairs",
    "tagging_report",
    "tags_to_segments",
    "token_accuracy",
]
