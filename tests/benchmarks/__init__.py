"""The package against its peers and against the limit, on the same rows: see ``__main__``."""
