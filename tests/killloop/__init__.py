"""A project of its own whose builders are killed at random while it is read: see ``__main__``."""
