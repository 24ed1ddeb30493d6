"""Outputs drawn as what they are, for pages: truth and what was found, mistakes marked."""

from .alignments import alignment
from .arcs import dependency_tree
from .images import parts_of_image
from .rankings import ranking
from .sentences import tagged_sentence
from .trees import parse_tree

__all__ = [
    "alignment",
    "dependency_tree",
    "parse_tree",
    "parts_of_image",
    "ranking",
    "tagged_sentence",
]
