"""Segmentations of sequences: labelled segments that do not overlap, and tokens outside of them."""
