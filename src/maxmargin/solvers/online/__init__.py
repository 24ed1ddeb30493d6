"""Solvers that visit examples one by one."""
