"""Management commands of the gazetteer."""
