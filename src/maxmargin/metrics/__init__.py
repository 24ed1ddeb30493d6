"""How good predictions are: labels, chunks, trees, alignments, rankings, probabilities."""

from .alignments import AlignmentScores, alignment_scores, pair_accuracies
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
from .labels import (
    GradeScores,
    LabelScores,
    Reliability,
    grade_scores,
    hamming,
    label_scores,
    reliability,
    sequence_accuracy,
    tagging_report,
    token_accuracy,
)
from .rankings import (
    RankingScores,
    average_precision,
    letor_ndcg,
    mean_swapped_pairs,
    ndcg,
    ranking_scores,
    swapped_pairs,
)
from .scoring import Averages, TypeScores
from .segments import (
    SegmentScores,
    segment_f1,
    segment_scores,
    segments_to_tags,
    tags_to_segments,
)
from .sets import SetScores, set_scores
from .tallies import Comparison, Interval, Ratio, bootstrap_intervals, paired_comparison
from .trees import (
    AttachmentScores,
    BracketScores,
    RelationScores,
    attachment_scores,
    bracket_scores,
    relation_scores,
)

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
