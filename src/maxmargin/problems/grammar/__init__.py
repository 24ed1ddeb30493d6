"""Parse trees of weighted context-free grammars."""
