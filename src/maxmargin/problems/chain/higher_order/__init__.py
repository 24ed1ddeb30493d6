"""Chains that remember more than one label: higher orders, and features of the input on pairs."""
