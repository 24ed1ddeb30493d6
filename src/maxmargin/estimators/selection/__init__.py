"""Choice of a model: paths of C, early stopping, cross-validation."""
