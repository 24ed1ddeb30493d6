"""Solvers that ascend the dual block by block."""
