"""Structural SVMs: learn to predict sequences, trees, rankings and other structured outputs."""

__version__ = "0.1.0"
