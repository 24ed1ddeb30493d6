"""Classes, plain or with features of their own."""
