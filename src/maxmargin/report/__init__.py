"""Pictures and texts about what was learned."""

from .convergence import plot_convergence
from .reliability import plot_reliability
from .trees import plot_tree

__all__ = ["plot_convergence", "plot_reliability", "plot_tree"]
