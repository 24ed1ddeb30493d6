"""What several estimators can do: confidences, explanations, kernels, partially known labels."""
