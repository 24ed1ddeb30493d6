"""The plane store: working sets of planes and multipliers within a byte budget."""
