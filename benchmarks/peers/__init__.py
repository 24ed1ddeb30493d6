"""Other people's libraries, installed from the package index, one file each."""
