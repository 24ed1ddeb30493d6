"""The scikit-learn faces of the library; nothing numeric happens here."""

from .multiclass import MulticlassSVM
from .sequence import SequenceTagger
from .structural import StructuralSVM

__all__ = ["MulticlassSVM", "SequenceTagger", "StructuralSVM"]
