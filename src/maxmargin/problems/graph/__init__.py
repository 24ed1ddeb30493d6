"""Graphs with a label at every node: exact inference where it is possible, bounds elsewhere."""
