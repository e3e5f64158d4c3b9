"""The sitemap protocol 0.9 in plain Python: usable without Django being configured.

``limits`` has the numbers, ``locations`` normalises or refuses a URL, ``dates`` and ``values``
write the optional tags, ``extensions`` has images, videos, news and hreflang, ``writers`` makes the
documents and ``reader`` reads and checks them.
"""
