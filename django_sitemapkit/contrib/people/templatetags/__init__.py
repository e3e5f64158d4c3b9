"""The template tags of the site map for people."""
