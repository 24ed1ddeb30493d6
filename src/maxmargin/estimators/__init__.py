"""The scikit-learn faces of the library; nothing numeric happens here."""

from .alignment import SequenceAligner
from .grammar import GrammarParser, PCFGParser
from .multiclass import MulticlassSVM
from .sequence import SequenceTagger
from .structural import StructuralSVM

__all__ = [
    "GrammarParser",
    "MulticlassSVM",
    "PCFGParser",
    "SequenceAligner",
    "SequenceTagger",
    "StructuralSVM",
]
