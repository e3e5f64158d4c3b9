"""What projects subclass and name in their declarations: options and hooks, and no more."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.urls import reverse

from django_sitemapkit.sites import SitemapSite

NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
"""What a section's name looks like; it becomes part of addresses and file names."""


class Registered:
    """The base class of what is registered for the sitemap: sections and external sections."""

    #: The name in addresses: ``sitemap-<name>-1.xml``. Lower-case letters, digits, single ``-`` and
    #: ``_``. Default: the class's name, ``CityGuides`` as ``city-guides``.
    name: ClassVar[str | None] = None

    #: Whether it is in the index, and its pages are served.
    enabled: bool = True

    #: The keys of the sites that have it; None for all. A key is one of ``SITEMAPKIT_SITES``, or an
    #: id of the sites framework.
    sites: Collection[Any] | None = None

    def __init__(self, site: SitemapSite) -> None:
        self.site = site

    def __repr__(self) -> str:
        return f"<section {self.get_name()!r} of site {self.site.key!r}>"

    @classmethod
    def get_name(cls) -> str:
        """Return the name that is part of addresses; by default it is made of the class's name."""
        return cls.name if cls.name is not None else section_name_of(cls.__name__)


class BaseSection(Registered):
    """A named part of a site's sitemap.

    Declare one by its children: ``Section`` for a queryset, ``StaticSection`` for a few pages,
    ``ItemSection`` for items of any kind. It holds options and hooks only, so every other name is
    free for your own use. There is one instance for each site and read: it has the site as
    ``self.site``, and what it keeps is gone afterwards.
    """

    #: When a page last changed: a date, a datetime or a string in W3C datetime format, an
    #: expression, or a method that gets the object. In a ``Section`` a string is a field path.
    lastmod: Any = None

    #: How exactly ``lastmod`` is written: ``"second"``, or ``"day"`` for its day in ``TIME_ZONE``.
    lastmod_precision: str = "second"

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
    #: None for nothing. In a ``Section`` a string is a field path.
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

    #: The title of an entry on the site map for people: a field path, an expression, or a method
    #: that gets the object. Default: its path.
    title: Any = None

    #: Promise that the number of a page's rows, or their newest lastmod, changes whenever one of
    #: its entries is added, removed or changed. Live pages then have an ETag, Last-Modified and a
    #: lastmod in the index, at the price of one query on the column.
    trust_lastmod: bool = False


class Section(BaseSection):
    """A section over a queryset, read by key: memory stays constant, whatever the number of rows.

    Only the columns that the options name are read. As soon as one option is a method, or
    ``location`` is left to ``get_absolute_url()``, the objects themselves are read: name the fields
    they need in ``only``.

    ::

        @register
        class Products(Section):
            queryset = Product.objects.filter(public=True)
            location = Route("product", shop="shop__slug", slug="slug")
            lastmod = "updated_at"
            changefreq = "weekly"
    """

    #: The rows. The queryset must not be sliced or combined; its order does not matter.
    queryset: QuerySet[Any] | None = None

    #: A ``Route``, an expression, or a method that gets the object: a path from the root of the
    #: host, or an absolute URL; None for an object without a URL. Default: the object's
    #: ``get_absolute_url()``.
    location: Any = None

    #: In the place of ``location``: a method that gets the object and yields its entries, none, one
    #: or several of them, as paths, absolute URLs or ``Entry`` values.
    entries: Any = None

    #: Where the translations of an object are rows of their own: the field path to what they share,
    #: such as ``"translation_key"``. They link to each other by hreflang, wherever they are listed:
    #: on other pages, in other sections with the same field, on other sites.
    translations: Any = None

    #: With ``translations``: the language code of a row, as a field path or an expression.
    language: Any = None

    #: The field that the pages are cut by: unique, not null, local to the model.
    key: str = "pk"

    #: Where objects have to be read: the fields that the methods need.
    only: Sequence[str] | None = None

    #: Promise that what the methods return follows from these columns alone, given as field paths
    #: or expressions. Builds then reuse a page whose rows have the same values in them. Change
    #: ``version`` when you change a method.
    depends_on: Sequence[Any] | None = None

    def get_queryset(self) -> QuerySet[Any]:
        """Return the rows for ``self.site``; by default ``queryset``."""
        if self.queryset is None:
            raise ImproperlyConfigured(
                f"Section {self.get_name()!r}: set queryset, or override get_queryset()."
            )
        if not hasattr(self.queryset, "all"):
            return self.queryset  # A check says that it is not a queryset.
        return self.queryset.all()

    def why_not_listed(self, obj: Any) -> str:
        """Return why the queryset leaves out an object, in words for editors; "" by default.

        Wherever the package explains why a URL is not in the sitemap, it says so. ::

            def why_not_listed(self, product):
                return "" if product.public else "The product is hidden."
        """
        return ""


class ItemSection(BaseSection):
    """A section over items of any kind; ``location`` makes an item a path or an absolute URL.

    ::

        @register
        class Years(ItemSection):
            items = range(2020, 2027)

            def location(self, item):
                return f"/archive/{item}/"
    """

    #: The items, in a stable order: an iterable that can be read again, such as a
    #: list or a queryset, or a method that returns one.
    items: Any = ()

    def location(self, item: Any) -> str | None:
        """Return the path or absolute URL of an item, or None; by default the item itself."""
        return str(item)


class StaticSection(ItemSection):
    """A section of a few pages, listed by name or path.

    An item is a URL name without arguments, a path from the root of the host, or an absolute URL
    of the site; or an object that has a ``get_absolute_url()``.

    ::

        @register
        class Pages(StaticSection):
            items = ["home", "about", "/press/"]
    """

    def location(self, item: Any) -> str | None:
        """Return the URL of an item; None if its ``get_absolute_url()`` returns none."""
        if hasattr(item, "get_absolute_url"):
            return absolute_url_of(item)
        text = str(item)
        return text if "/" in text else reverse(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """One sitemap or feed for an ``ExternalSection``, with a lastmod of its own.

    ::

        External(location="/press/urls.txt", lastmod=date(2026, 3, 1))
    """

    location: str
    """A URL name without arguments, a path from the root of the host, or an absolute URL."""
    lastmod: Any = None
    """When that file last changed; None for the section's own ``lastmod``."""


class ExternalSection(Registered):
    """Other sitemaps, RSS 2.0 and Atom feeds and text sitemaps that the index lists.

    It has no pages: the index lists its files as they are, after the pages of the site. A sitemap
    index cannot be among them, since indexes do not nest.

    ::

        @register
        class Feeds(ExternalSection):
            sitemaps = ["/blog/feed.xml", "https://cdn.example.com/videos.xml"]
            hosts = ["https://cdn.example.com"]
    """

    #: A list, or a method that returns one, of URL names, paths, absolute URLs and ``External``.
    sitemaps: Any = ()

    #: The origins of other hosts whose sitemaps may be listed: ``"https://cdn.example.com"``. The
    #: robots.txt of the host whose URLs are in such a file has to name it.
    hosts: Collection[str] = ()

    #: When the files last changed: a value for all, or a method that gets the item. None for no
    #: tag.
    lastmod: Any = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One of the entries of an object, from ``Section.entries``.

    A tag that is None is what the section declares for the object. ::

        def entries(self, recipe):
            yield recipe.get_absolute_url()
            if recipe.video:
                yield Entry(recipe.video.get_absolute_url(), lastmod=recipe.video.published_at)
    """

    location: Any
    """A path from the root of the host, or an absolute URL."""
    _: KW_ONLY
    lastmod: Any = None
    """When the page last changed: a date, a datetime or a string in W3C datetime format."""
    changefreq: Any = None
    """How often the page changes, such as ``"weekly"``."""
    priority: Any = None
    """From 0.0 to 1.0."""


class Route:
    """A URL name and the columns that fill its arguments.

    Each argument is a field path, which may cross relations to one object, or an expression;
    ``Value("en")`` is a constant. Positional arguments fill unnamed groups; the two kinds do not
    mix, as in ``reverse()``.

    ::

        location = Route("city", country="country__slug", slug="slug")
    """

    def __init__(self, viewname: str, /, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise TypeError(
                f"Route({viewname!r}): use positional or named arguments, not both,"
                " as reverse() does."
            )
        self.viewname = viewname
        self.args = args
        self.kwargs = kwargs
        self.suffix = ""
        """What a method that is read as a route adds to each URL."""

    def __repr__(self) -> str:
        arguments = [repr(self.viewname), *map(repr, self.args)]
        arguments += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"Route({', '.join(arguments)})"

    @property
    def columns(self) -> tuple[Any, ...]:
        """The field paths and expressions of the arguments, in order."""
        return (*self.args, *self.kwargs.values())


class Translated:
    """A translated field, as an argument of a Route.

    Its value is that of the row in each language. A row whose value is None or empty in a language
    has no version in it. ``Translated("slug")`` reads the columns ``slug_en`` and
    ``slug_fr`` where the model has them, as django-modeltranslation adds them, or the translations
    of django-parler. ``relation`` names any other relation to rows that hold one translation each,
    and ``language`` their column with the code. A path over relations to one object may lead to
    the field: ``Translated("country__slug")``.

    ::

        location = Route("city", slug=Translated("slug"))
    """

    def __init__(
        self, path: str, *, relation: str | None = None, language: str = "language_code"
    ) -> None:
        self.path = path
        self.relation = relation
        self.language = language

    def __repr__(self) -> str:
        relation = "" if self.relation is None else f", relation={self.relation!r}"
        return f"Translated({self.path!r}{relation})"


def absolute_url_of(obj: Any) -> str | None:
    """Return what an object's ``get_absolute_url()`` returns, as text or None."""
    return text_or_none(obj.get_absolute_url())


def text_or_none(url: Any) -> str | None:
    """Return a URL as text, evaluated if it is lazy; None for None."""
    return None if url is None else str(url)


def section_name_of(class_name: str) -> str:
    """Return a section name for a class: "city-guides" for CityGuides or CityGuidesSitemap."""
    stem = re.sub(r"(?<=.)(Sitemap|Section)$", "", class_name).strip("_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", stem).lower()
