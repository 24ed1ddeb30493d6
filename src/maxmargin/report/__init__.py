"""Pictures and texts about what was learned."""

from .convergence import plot_convergence

__all__ = ["plot_convergence"]
