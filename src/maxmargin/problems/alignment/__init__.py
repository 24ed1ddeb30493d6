"""Alignments of two sequences, and the homologue among decoys."""

from .homologues import HomologueProblem
from .problem import AlignmentProblem

__all__ = ["AlignmentProblem", "HomologueProblem"]
