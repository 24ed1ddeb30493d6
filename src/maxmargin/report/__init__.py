"""Pictures and texts about what was learned."""

from .plots import plot_convergence, plot_reliability, plot_tree
from .report import Report, make_report

__all__ = ["Report", "make_report", "plot_convergence", "plot_reliability", "plot_tree"]
