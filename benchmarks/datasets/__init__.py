"""One file per data set: its arrays, the settings that are run, and the figures to be met."""
