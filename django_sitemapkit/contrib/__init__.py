"""What goes with other packages; each part is named by its dotted path, and imports its own."""
