"""The scikit-learn faces of the library; nothing numeric happens here."""

from .alignment import SequenceAligner
from .dependency import DependencyParser
from .grammar import GrammarParser, PCFGParser
from .multiclass import MulticlassSVM
from .sequence import SequenceTagger
from .structural import StructuralSVM
from .tree import TreeLabeler

__all__ = [
    "DependencyParser",
    "GrammarParser",
    "MulticlassSVM",
    "PCFGParser",
    "SequenceAligner",
    "SequenceTagger",
    "StructuralSVM",
    "TreeLabeler",
]
