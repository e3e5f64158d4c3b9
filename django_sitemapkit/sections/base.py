"""The options that every section has, wherever its URLs come from."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from django_sitemapkit.sites import SitemapSite

NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
"""What a section's name looks like; it becomes part of addresses and file names."""


class BaseSection:
    """A named part of a site's sitemap.

    Declare one by its children: ``Section`` for a queryset, ``StaticSection`` for a few pages,
    ``ItemSection`` for items of any kind. It holds options and hooks only, so every other name is
    free for your own use. There is one instance for each site, which it has as ``self.site``.
    """

    #: The name in addresses: ``sitemap-<name>-1.xml``. Lower-case letters, digits, single ``-`` and
    #: ``_``. Default: the class's name, ``CityGuides`` as ``city-guides``.
    name: ClassVar[str | None] = None

    #: Whether the section is in the index, and its pages are served.
    enabled: bool = True

    #: The keys of the sites that have the section; None for all. A key is one of
    #: ``SITEMAPKIT_SITES``, or an id of the sites framework.
    sites: Collection[Any] | None = None

    #: When a page last changed: a date, a datetime or a W3C text, an expression, or a method that
    #: gets the object. In a ``Section`` text is a field path.
    lastmod: Any = None

    #: How often a page changes, such as ``"weekly"``: a value, an expression, or a method that gets
    #: the object.
    changefreq: Any = None

    #: From 0.0 to 1.0: a value, an expression, or a method that gets the object.
    priority: Any = None

    #: URLs in one file, at most; None for as many as ``SITEMAPKIT_MAX_URLS`` allows.
    limit: int | None = None

    #: Any text or number. Change it when a method's result changes for a reason that no column
    #: shows, so that caches and builds render the pages again.
    version: str | int = ""

    #: List each object once in every language. Locations are rendered in each of them, so that
    #: ``i18n_patterns()`` and ``get_absolute_url()`` give that of the language.
    i18n: bool = False

    #: The languages of the section: codes of ``settings.LANGUAGES``, None for all of them.
    languages: Sequence[str] | None = None

    #: The languages that each object has: a method that gets the object and returns their codes,
    #: or, in a ``Section``, a field path to them. None where every object has all ``languages``.
    object_languages: Any = None

    #: With ``i18n``: link each version of an object to all of them, by hreflang.
    alternates: bool = False

    #: With ``alternates``, the version for all other languages: the code of a language, the URL of
    #: a page on which people choose, or True for the address without the prefix of
    #: ``LANGUAGE_CODE``.
    x_default: bool | str = False

    #: The base URLs of languages that have a host of their own:
    #: ``{"fr": "https://www.example.fr"}``. Each site then lists its own languages and links to the
    #: others. Name all languages here.
    language_hosts: Mapping[str, str] = {}

    #: Images: a method that gets the object and returns one or several ``Image``, URLs or files;
    #: None for nothing. In a ``Section`` text is a field path.
    images: Any = None

    #: Videos: a method that gets the object and returns one or several ``Video``.
    videos: Any = None

    #: News: a method that gets the object and returns a ``News``.
    news: Any = None

    #: Elements of your own namespaces: a method that gets the object and returns one or several
    #: ``Element``.
    elements: Any = None

    #: The namespaces of ``elements`` by prefix: ``{"shop": "https://www.example.com/ns/shop"}``.
    namespaces: Mapping[str, str] = {}

    #: The title of the section for ``django_sitemapkit.contrib.people``. Default: "City guides" for
    #: ``city-guides``.
    heading: Any = None

    #: The title of an entry there: a field path, an expression, or a method that gets the object.
    #: Default: its path.
    title: Any = None

    #: Promise that the number of a page's rows, or their newest lastmod, changes whenever one of
    #: its entries is added, removed or changed. Live pages then have an ETag, Last-Modified and a
    #: lastmod in the index, at the price of one query on the column.
    trust_lastmod: bool = False

    def __init__(self, site: SitemapSite) -> None:
        self.site = site

    def __repr__(self) -> str:
        return f"<section {self.get_name()!r} of site {self.site.key!r}>"

    @classmethod
    def get_name(cls) -> str:
        """Return the name in addresses."""
        return cls.name if cls.name is not None else name_of(cls.__name__)


def name_of(class_name: str) -> str:
    """Return the section name for a class: "CityGuides" and "CityGuidesSitemap" alike."""
    stem = re.sub(r"(?<=.)(Sitemap|Section)$", "", class_name).strip("_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", stem).lower()
