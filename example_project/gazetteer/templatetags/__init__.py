"""Template tags of the gazetteer."""
