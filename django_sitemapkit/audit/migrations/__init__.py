"""The migrations of the app."""
