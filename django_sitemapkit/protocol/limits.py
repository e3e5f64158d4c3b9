"""The numbers and namespaces of the sitemap protocol 0.9 and its extensions, with their sources."""

import datetime as dt
import re
from collections.abc import Mapping
from types import MappingProxyType

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
"""The namespace of ``urlset`` and ``sitemapindex``; the ``https`` form is invalid (sitemap.xsd)."""

IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"
"""``image:image`` (Google, "Image sitemaps")."""

VIDEO = "http://www.google.com/schemas/sitemap-video/1.1"
"""``video:video`` (Google, "Video sitemaps")."""

NEWS = "http://www.google.com/schemas/sitemap-news/0.9"
"""``news:news`` (Google, "News sitemaps")."""

XHTML = "http://www.w3.org/1999/xhtml"
"""``xhtml:link``, a page's other languages (Google, "Localized versions of your pages")."""

NAMESPACES: Mapping[str, str] = MappingProxyType(
    {"xhtml": XHTML, "image": IMAGE, "video": VIDEO, "news": NEWS}
)
"""The namespace of each prefix, in the order in which their elements are written."""

MAX_URLS = 50_000
"""Entries in one sitemap, and sitemaps in one index (sitemaps.org/protocol.html)."""

MAX_BYTES = 52_428_800
"""Bytes of one file, uncompressed, declaration and closing tag included."""

MAX_LOCATION = 2_047
"""Characters of a ``loc``, percent-encoded, before entity escaping ("less than 2,048")."""

MIN_LOCATION = 12
"""Characters that sitemap.xsd requires of a ``loc``; shorter ones are only a warning."""

CHANGEFREQS = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
"""The values of ``changefreq``; they are case-sensitive."""

ILLEGAL_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML 1.0 forbids, even as ``&#N;`` (production 2, ``Char``)."""

MAX_IMAGES = 1_000
"""Images of one ``url`` (Google, "Image sitemaps")."""

MAX_NEWS = 1_000
"""Articles in one file (Google, "News sitemaps")."""

NEWS_WINDOW = dt.timedelta(days=2)
"""How old an article in a news sitemap may be (Google, "News sitemaps")."""

MAX_TAGS = 32
"""Tags of one video (Google, "Video sitemaps", as those below)."""

MAX_TITLE = 100
"""Characters of a video's title beyond which some readers cut it."""

MAX_DESCRIPTION = 2_048
"""Characters of a video's description, before entity escaping."""

MAX_UPLOADER = 255
"""Characters of the name of a video's uploader, before entity escaping."""

MAX_DURATION = 28_800
"""Seconds of a video: eight hours. The minimum is one."""

MAX_RATING = 5
"""The best rating of a video. The worst is 0."""
