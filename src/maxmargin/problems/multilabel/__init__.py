"""Sets of labels that share one input: independent, in a tree, or a few with any edges."""
