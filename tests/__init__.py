"""The tests mirror the package, room by room."""
