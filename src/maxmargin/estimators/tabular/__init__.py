"""Estimators of rows of a table."""
