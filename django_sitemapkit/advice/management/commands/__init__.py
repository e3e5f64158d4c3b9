"""Commands of the advice."""
