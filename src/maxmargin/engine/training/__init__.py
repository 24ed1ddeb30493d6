"""One call of `solve`: limits, history, interrupts, certificate, checkpoints."""
