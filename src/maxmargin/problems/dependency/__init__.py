"""Dependency trees, projective or not."""

from .problem import DependencyProblem

__all__ = ["DependencyProblem"]
