"""What searches of several structures share: bounded search, lazy k best, limits."""
