"""First-order chains: one label per token."""

from .problem import ChainProblem, bio_constraints

__all__ = ["ChainProblem", "bio_constraints"]
