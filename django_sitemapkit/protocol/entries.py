"""The entries of a sitemap as values: one ``<url>`` or one ``<sitemap>``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlEntry:
    """One ``<url>`` of a urlset; entities are decoded and surrounding white space is removed."""

    location: str
    """The absolute URL of the page, percent-encoded (``loc``)."""
    lastmod: str | None = None
    """When the page last changed, a W3C datetime."""
    changefreq: str | None = None
    """How often the page changes: one of the seven words of the protocol."""
    priority: str | None = None
    """The page's weight within its site, a decimal number from 0.0 to 1.0."""
    extensions: str | None = None
    """Elements of other namespaces as XML; the document declares their prefixes."""

    @property
    def tags(self) -> dict[str, str]:
        """The texts of the optional tags that the entry has, by tag, in the protocol's order."""
        texts = {"lastmod": self.lastmod, "changefreq": self.changefreq, "priority": self.priority}
        return {tag: text for tag, text in texts.items() if text is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One ``<sitemap>`` of a sitemapindex."""

    location: str
    """The absolute URL of the sitemap, percent-encoded (``loc``)."""
    lastmod: str | None = None
    """When that file (not a page in it) last changed, a W3C datetime."""
