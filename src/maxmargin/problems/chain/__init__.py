"""First-order chains: one label per token."""
