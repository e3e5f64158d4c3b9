"""System checks: each mistake has its own, with an id, a message and the way out."""
