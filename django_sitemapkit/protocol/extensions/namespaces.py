"""The namespaces of the extensions, and their prefixes."""

from collections.abc import Mapping
from types import MappingProxyType

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
