"""Pictures and texts about what was learned."""

from .convergence import plot_convergence
from .reliability import plot_reliability
from .report import Report, make_report
from .trees import plot_tree

__all__ = ["Report", "make_report", "plot_convergence", "plot_reliability", "plot_tree"]
