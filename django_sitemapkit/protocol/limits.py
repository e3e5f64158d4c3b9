"""The numbers of the sitemap protocol 0.9, each with its source."""

import re

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
"""The namespace of ``urlset`` and ``sitemapindex``; the ``https`` form is invalid (sitemap.xsd)."""

MAX_URLS = 50_000
"""Entries in one sitemap, and sitemaps in one index (sitemaps.org/protocol.html)."""

MAX_BYTES = 52_428_800
"""Bytes of one file, uncompressed, declaration and closing tag included."""

MAX_LOCATION = 2_047
"""Characters of a ``loc``, percent-encoded, before entity escaping ("less than 2,048")."""

MIN_LOCATION = 12
"""Characters that sitemap.xsd asks of a ``loc``; shorter ones are only warned about."""

CHANGEFREQS = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
"""The values of ``changefreq``; they are case-sensitive."""

ILLEGAL_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character XML 1.0 forbids, even written as ``&#N;`` (production 2, ``Char``)."""
