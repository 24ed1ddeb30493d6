"""Estimators of trees: parsers, and labels of nodes."""
