"""How the pages of a build are made: reused, or rendered, compressed, verified and stored."""
