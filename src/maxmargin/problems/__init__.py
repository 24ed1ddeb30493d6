"""What is learned: one file per structure, with its data tuple, kernels and Problem class."""
