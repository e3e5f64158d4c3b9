"""The tests of overrides."""
