"""From the user's data to packed feature matrices."""

from typing import TYPE_CHECKING, Any

from ..problems.classes.taxonomy import Taxonomy
from ..problems.dependency.features import ArcTemplates, arc_templates
from .class_features import ClassFeatures
from .dictionary import FeatureDictionary
from .packing import PackedSequences, holds_named_features, pack_sequences
from .storing import StoredLabels, StoredSequences
from .substitution import AMINO_ACIDS, blosum62, log_odds_scores
from .window.features import WindowFeatures
from .window.templates import (
    CrfTemplates,
    chunking_templates,
    ner_templates,
    pos_templates,
    read_templates,
    words_templates,
)

if TYPE_CHECKING:
    from .kernels.map import KernelMap as KernelMap

__all__ = [
    "AMINO_ACIDS",
    "ArcTemplates",
    "ClassFeatures",
    "CrfTemplates",
    "FeatureDictionary",
    "KernelMap",
    "PackedSequences",
    "StoredLabels",
    "StoredSequences",
    "Taxonomy",
    "WindowFeatures",
    "arc_templates",
    "blosum62",
    "chunking_templates",
    "holds_named_features",
    "log_odds_scores",
    "ner_templates",
    "pack_sequences",
    "pos_templates",
    "read_templates",
    "words_templates",
]


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn on first use (PEP 562)."""
    if name == "KernelMap":
        from .kernels.map import KernelMap

        return KernelMap
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
