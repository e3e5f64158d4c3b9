"""What every section is, wherever its URLs come from."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, ClassVar, Self

from django.conf import settings as settings_of_django

from django_sitemapkit.conf import settings
from django_sitemapkit.protocol.extensions import NAMESPACES
from django_sitemapkit.protocol.limits import MAX_NEWS
from django_sitemapkit.sections.chunks import Chunk
from django_sitemapkit.sections.keysets import KeyRange, Keyset
from django_sitemapkit.sections.languages import Languages
from django_sitemapkit.sections.objects import label_of
from django_sitemapkit.sections.options import (
    EXTENSIONS,
    PREFIXES,
    TAGS,
    Column,
    Plain,
    Source,
    source_of,
)
from django_sitemapkit.sites import Site

NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
"""What a section's name looks like; it becomes part of addresses and file names."""


class BaseSection:
    """A named part of a site's sitemap; made anew for each site, which it has as ``self.site``.

    Declare one by its children: ``Section`` for a queryset, ``StaticSection`` for a few pages.
    """

    # The name in addresses: sitemap-<name>-1.xml. Lower-case letters, digits, single - and _.
    # Default: the class's name, "CityGuides" as "city-guides".
    name: ClassVar[str | None] = None

    # Whether the section is in the index, and its pages are served.
    enabled: bool = True

    # The keys of the sites that have the section; None for all. A key is one of SITEMAPKIT_SITES,
    # or an id of the sites framework.
    sites: Collection[Any] | None = None

    # The optional tags: a value that holds for all, a column where the section has columns, or a
    # method that gets the object and returns the value, None for no tag.
    lastmod: Any = None
    changefreq: Any = None
    priority: Any = None

    # URLs in one file, at most; None for as many as SITEMAPKIT_MAX_URLS allows.
    limit: int | None = None

    # Any text or number. Change it when a method's result changes for a reason that no column
    # shows, so that caches let go of what they have.
    version: str | int = ""

    # List each object once in every language: locations are asked for in each, so that
    # i18n_patterns() and get_absolute_url() give that of the language.
    i18n: bool = False

    # The languages: codes of settings.LANGUAGES, None for all of them.
    languages: Sequence[str] | None = None

    # A method that gets the object and returns the codes of its own languages.
    get_languages: Callable[[Any], Iterable[str]] | None = None

    # With i18n: link each version of an object to all of them, by hreflang.
    alternates: bool = False

    # With alternates, what is right for all other languages: the code of a language, the URL of a
    # page that lets people choose, or True for the address without the prefix of LANGUAGE_CODE.
    x_default: bool | str = False

    # The base URLs of languages that have a host of their own: {"fr": "https://www.example.fr"}.
    # Each site then lists its own languages and links to the others. Name all languages here.
    language_hosts: Mapping[str, str] = {}

    # What else is said of an entry: methods that get the object and return values of
    # django_sitemapkit, one or several; None for nothing. An image may be a URL or a file, too.
    images: Any = None
    videos: Any = None
    news: Any = None
    elements: Any = None

    # The namespaces of ``elements`` by prefix: {"shop": "https://www.example.com/ns/shop"}.
    namespaces: Mapping[str, str] = {}

    # For django_sitemapkit.contrib.people. The title of the section; default: "City guides" for
    # "city-guides". And the title of an entry: a field path, an expression, or a method that gets
    # the object; default: its path. Sitemaps read neither.
    heading: Any = None
    title: Any = None

    # Promise that the number of a page's rows, or their newest lastmod, moves whenever any of its
    # entries comes, goes or changes. Live pages then carry ETag, Last-Modified and a lastmod in
    # the index, at the price of one look at the column.
    trust_lastmod: bool = False

    # As get_languages, where what kind of section it is tells them.
    _languages_of: Callable[[Any], Iterable[str]] | None = None

    def __init__(self, site: Site) -> None:
        self.site = site
        self.overrides: Any = None
        """What editors set for the site; None where a section is made without it."""
        self.turn: AbstractContextManager[Any] = nullcontext()
        """To be held by who asks the database for anything else, between the rows of a page."""
        self.preset: dict[str, Any] = {}
        """The optional tags that editors set for the section, whatever it declares."""

    def __repr__(self) -> str:
        return f"<section {self.get_name()!r} of site {self.site.key!r}>"

    @classmethod
    def get_name(cls) -> str:
        """Return the name in addresses."""
        return cls.name if cls.name is not None else name_of(cls.__name__)

    @property
    def max_urls(self) -> int:
        """URLs in one of its files: ``limit``, but never above SITEMAPKIT_MAX_URLS.

        Nor above 1,000 where it has news.
        """
        most = min(settings.MAX_URLS, MAX_NEWS) if self.has_news else settings.MAX_URLS
        return min(self.limit or most, most)

    @property
    def has_news(self) -> bool:
        """Whether its entries may be news."""
        return "news" in self.extension_sources

    @property
    def rows_per_page(self) -> int:
        """Rows that make ``max_urls`` URLs."""
        return max(1, self.max_urls // self.urls_per_row)

    @property
    def urls_per_row(self) -> int:
        """URLs each row gives at the most; more than one for rows in several languages."""
        return max(1, len(self.spoken.here)) if self.spoken else 1

    @cached_property
    def spoken(self) -> Languages | None:
        """Its languages; None where it lists each object once."""
        return Languages(self) if self.i18n else None

    @cached_property
    def extension_sources(self) -> dict[str, Source]:
        """The extensions that are declared, by option: where each one's values come from."""
        sources = {option: self._source(option) for option in EXTENSIONS}
        return {option: source for option, source in sources.items() if source != Plain(None)}

    @cached_property
    def used_namespaces(self) -> dict[str, str]:
        """The namespaces that its documents declare, by prefix: those it may use, and no other."""
        used = ["xhtml"] if self.spoken and self.alternates else []
        used += [PREFIXES[option] for option in self.extension_sources if option in PREFIXES]
        found = {prefix: NAMESPACES[prefix] for prefix in used}
        return found | dict(self.namespaces) if "elements" in self.extension_sources else found

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The optional tags that are declared, by name: where each one's values come from."""
        sources = {
            tag: Plain(self.preset[tag]) if tag in self.preset else self._source(tag)
            for tag in TAGS
        }
        return {tag: source for tag, source in sources.items() if source != Plain(None)}

    @property
    def plain(self) -> dict[str, Any]:
        """The optional tags that are the same for all entries."""
        return {tag: s.value for tag, s in self.sources.items() if isinstance(s, Plain)}

    @property
    def label(self) -> str | None:
        """What names the model of its rows; None where they have none, or page by position."""
        return None if self.keyset is None else label_of(self.keyset.queryset.model)

    def narrowed(self, pk: Any) -> Self:
        """Return the section with one row alone; asked where it has a ``label``."""
        raise NotImplementedError

    def identities(self, keys: Sequence[Any]) -> list[str]:
        """Return what names the rows' objects, by their keys; asked where it has a ``label``."""
        assert self.keyset is not None  # noqa: S101  it has a label
        label = self.label
        return [f"{label} {key}" for key in self.keyset.primary_keys(keys)]

    @property
    def keyset(self) -> Keyset | None:
        """How its rows are read by key; None where it can only be counted off by position."""
        return None

    def chunks(self, keys: KeyRange) -> Iterator[Chunk]:
        """Yield the rows of a page in order, some at a time.

        Without a keyset, the bounds of ``keys`` are positions.
        """
        raise NotImplementedError

    def reading(
        self, ahead: Callable[[Iterator[Any]], Iterator[Any]], turn: AbstractContextManager[Any]
    ) -> Self:
        """Return the section with its reads of the database passed through ``ahead``, if it can.

        ``turn`` is what it then has as its own.
        """
        return self

    def size(self) -> int:
        """Return how many rows there are; asked only of a section without a keyset."""
        raise NotImplementedError

    def newest(self, keys: KeyRange) -> tuple[int, Any] | None:
        """Return how many rows a page has and their newest lastmod, or None if it cannot be told.

        Asked only where ``trust_lastmod`` is set.
        """
        return None

    def fingerprints(self, ranges: Sequence[KeyRange]) -> list[tuple[int, str]]:
        """Return for each page how many rows it has, and text that changes when one of them does.

        Where only reading the rows tells, the text is "", and the number means nothing.
        """
        return [(0, "")] * len(ranges)

    def declaration(self) -> str:
        """Return text that changes whenever what is declared here gives other entries."""
        state = (type(self).__qualname__, self.version, self.plain, self.used_namespaces)
        if self.spoken is None:
            return repr(state)
        hosts = {code: site.base for code, site in self.spoken.sites.items()}
        default = self.x_default, settings_of_django.LANGUAGE_CODE
        return repr((state, hosts, self.alternates, default))

    def _source(self, option: str) -> Source:
        return source_of(getattr(self, option))

    @property
    def columns(self) -> dict[str, Any]:
        """The optional tags that the database fills, as expressions."""
        return {tag: s.expression for tag, s in self.sources.items() if isinstance(s, Column)}


def name_of(class_name: str) -> str:
    """Return the section name for a class: "CityGuides" and "CityGuidesSitemap" alike."""
    stem = re.sub(r"(?<=.)(Sitemap|Section)$", "", class_name).strip("_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", stem).lower()
