"""From the user's data to packed feature matrices."""

from maxmargin.features.class_features import ClassFeatures
from maxmargin.features.dictionary import FeatureDictionary
from maxmargin.features.packing import PackedSequences, holds_named_features, pack_sequences
from maxmargin.features.substitution import AMINO_ACIDS, blosum62, log_odds_scores
from maxmargin.features.templates import chunking_templates, ner_templates, words_templates
from maxmargin.features.window import WindowFeatures
from maxmargin.problems.classes.taxonomy import Taxonomy

__all__ = [
    "AMINO_ACIDS",
    "ClassFeatures",
    "FeatureDictionary",
    "PackedSequences",
    "Taxonomy",
    "WindowFeatures",
    "blosum62",
    "chunking_templates",
    "holds_named_features",
    "log_odds_scores",
    "ner_templates",
    "pack_sequences",
    "words_templates",
]
