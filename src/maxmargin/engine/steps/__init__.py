"""Ascent steps: inside one block, of online solvers, on the planes of all blocks at once."""
