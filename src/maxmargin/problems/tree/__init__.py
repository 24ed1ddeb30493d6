"""Labels of the nodes of a tree, and positions of parts in an image."""
