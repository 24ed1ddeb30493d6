"""Alignments of two sequences, and the homologue among decoys."""
