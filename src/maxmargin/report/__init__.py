"""Pictures and texts about what was learned."""

from .convergence import plot_convergence
from .trees import plot_tree

__all__ = ["plot_convergence", "plot_tree"]
