"""A checker of what sitemaps say of languages, and the proof that it can fail."""
