"""Commands of the submission."""
