"""Measures of a whole sample: labels or a ranking of all rows are one output."""
