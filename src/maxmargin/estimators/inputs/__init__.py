"""Examples, labels and costs as users give them."""
