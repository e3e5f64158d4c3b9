"""What is published, what is due, what goes on, and what a build changes."""
