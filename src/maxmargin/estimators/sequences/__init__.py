"""Estimators of sequences: taggers, segmenters, aligners."""
