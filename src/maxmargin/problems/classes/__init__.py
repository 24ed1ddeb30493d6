"""Classes, plain or with features of their own."""

from .class_features import ClassFeatureProblem
from .multiclass import MulticlassProblem

__all__ = ["ClassFeatureProblem", "MulticlassProblem"]
