"""Integrations with other packages; each is imported by its dotted path, where it is used."""
