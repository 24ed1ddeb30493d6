"""Searches to declare: problems of one's own that need features and outputs, but no search."""
