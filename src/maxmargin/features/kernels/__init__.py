"""Kernels as explicit features."""
