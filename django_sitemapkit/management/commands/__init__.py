"""Management commands: they parse, call one function and print."""
