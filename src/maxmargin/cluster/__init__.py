"""Training on a cluster: parts of the examples on workers, their answers combined by a driver.

Dask is imported by `dask_team` alone, when a training begins.
"""

from .solver import ClusterSolver

__all__ = ["ClusterSolver"]
