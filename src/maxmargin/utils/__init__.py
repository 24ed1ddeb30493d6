"""Array types, checks of what users give, schemas of files, tables, warnings."""
