"""The scikit-learn faces of the library; nothing numeric happens here."""

from .grammar import GrammarParser, PCFGParser
from .multiclass import MulticlassSVM
from .sequence import SequenceTagger
from .structural import StructuralSVM

__all__ = ["GrammarParser", "MulticlassSVM", "PCFGParser", "SequenceTagger", "StructuralSVM"]
