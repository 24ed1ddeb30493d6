"""Labels of the nodes of a tree, and positions of parts in an image."""

from .grid_parts import GridPartsProblem
from .labels import LabelTreeProblem

__all__ = ["GridPartsProblem", "LabelTreeProblem"]
