"""Management of the app: its commands."""
