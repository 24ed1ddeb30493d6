"""How good predictions are: labels, chunks, trees, alignments, rankings, probabilities."""

from .alignments import AlignmentScores, alignment_scores, pair_accuracies
from .attachments import (
    AttachmentScores,
    RelationScores,
    attachment_scores,
    relation_scores,
)
from .brackets import BracketScores, bracket_scores
from .chunks import (
    ChunkScores,
    are_chunk_tags,
    chunk_counts,
    chunk_f1,
    chunk_f1_scorer,
    chunk_scores,
    chunks,
)
from .costs import mean_cost
from .counts import Averages, TypeScores
from .grades import GradeScores, grade_scores
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
from .resampling import (
    Comparison,
    Interval,
    Ratio,
    bootstrap_intervals,
    paired_comparison,
)
from .segments import (
    SegmentScores,
    segment_f1,
    segment_scores,
    segments_to_tags,
    tags_to_segments,
)
from .sets import SetScores, set_scores
from .tagging import tagging_report

__all__ = [
    "AlignmentScores",
    "AttachmentScores",
    "Averages",
    "BracketScores",
    "ChunkScores",
    "Comparison",
    "GradeScores",
    "Interval",
    "LabelScores",
    "RankingScores",
    "Ratio",
    "RelationScores",
    "Reliability",
    "SegmentScores",
    "SetScores",
    "TypeScores",
    "alignment_scores",
    "are_chunk_tags",
    "attachment_scores",
    "average_precision",
    "bootstrap_intervals",
    "bracket_scores",
    "chunk_counts",
    "chunk_f1",
    "chunk_f1_scorer",
    "chunk_scores",
    "chunks",
    "grade_scores",
    "hamming",
    "label_scores",
    "letor_ndcg",
    "mean_cost",
    "mean_swapped_pairs",
    "ndcg",
    "pair_accuracies",
    "paired_comparison",
    "ranking_scores",
    "relation_scores",
    "reliability",
    "segment_f1",
    "segment_scores",
    "segments_to_tags",
    "sequence_accuracy",
    "set_scores",
    "swapped_pairs",
    "tagging_report",
    "tags_to_segments",
    "token_accuracy",
]
