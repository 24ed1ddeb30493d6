"""Rankings of the documents of queries, with losses of whole rankings."""
