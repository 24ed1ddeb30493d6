"""Compiled functions: their decorator, the changes to Numba, the time that compilation takes."""
