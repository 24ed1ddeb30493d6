"""Cutting-plane solvers."""
