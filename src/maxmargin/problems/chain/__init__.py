"""Chains: one label per token; of first order here, of higher orders in `histories`."""
