"""From the user's data to packed feature matrices."""

from ..problems.classes.taxonomy import Taxonomy
from .class_features import ClassFeatures
from .crf_templates import CrfTemplates, read_templates
from .dictionary import FeatureDictionary
from .kernel_map import KernelMap
from .packing import PackedSequences, holds_named_features, pack_sequences
from .storing import StoredLabels, StoredSequences
from .substitution import AMINO_ACIDS, blosum62, log_odds_scores
from .templates import chunking_templates, ner_templates, words_templates
from .window import WindowFeatures

__all__ = [
    "AMINO_ACIDS",
    "ClassFeatures",
    "CrfTemplates",
    "FeatureDictionary",
    "KernelMap",
    "PackedSequences",
    "StoredLabels",
    "StoredSequences",
    "Taxonomy",
    "WindowFeatures",
    "blosum62",
    "chunking_templates",
    "holds_named_features",
    "log_odds_scores",
    "ner_templates",
    "pack_sequences",
    "read_templates",
    "words_templates",
]
