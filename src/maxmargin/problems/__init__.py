"""What is learned: one folder per structure, with its data tuples, kernels and Problem class."""
