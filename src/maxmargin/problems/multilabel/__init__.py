"""Sets of labels, on or off, of examples that share one input: independent, in a tree or in pairs."""
