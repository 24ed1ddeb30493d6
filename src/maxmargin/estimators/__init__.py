"""The scikit-learn faces of the library; nothing numeric happens here."""
