"""Rankings of the documents of queries; grades by thresholds on the same scores."""
