"""Sections over the pages of Wagtail, and its sites.

::

    # settings.py
    SITEMAPKIT_SITES = "django_sitemapkit.contrib.wagtail.sites"

    # sitemaps.py of an app
    from django_sitemapkit.contrib.wagtail import register_pages

    register_pages()
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Case, CharField, Model, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Concat, Length, Substr
from django.utils import timezone
from django.utils.translation import gettext
from wagtail.coreutils import WAGTAIL_APPEND_SLASH
from wagtail.models import Page, Site

from django_sitemapkit.protocol.locations import DEFAULT_PORTS
from django_sitemapkit.registry import register
from django_sitemapkit.sections import Entry, Section, name_of
from django_sitemapkit.sites import SitemapSite, all_sites

URL_METHODS = ("get_sitemap_urls", "get_url_parts", "get_full_url")
"""What a page model may override to have other URLs than its place in the tree gives."""


def sites() -> dict[str, dict[str, str]]:
    """Return the sites of Wagtail, for ``SITEMAPKIT_SITES``: their ids, each with its base URL.

    A site at port 443 is at ``https://``. So is one at port 80 if the settings say that visitors
    reach the project by TLS: by ``SECURE_SSL_REDIRECT`` or ``SECURE_PROXY_SSL_HEADER``.
    """
    return {str(site.pk): {"BASE_URL": _base_url_of(site)} for site in Site.objects.order_by("pk")}


class Pages(Section):
    """The pages of a Wagtail site that are live, neither private nor expired, read as columns.

    Pages whose model overrides ``get_sitemap_urls()``, ``get_url_parts()`` or ``get_full_url()``
    are not among them: ``register_pages`` lists these by sections of their own. Derive from it to
    set more options, or to list other rows::

        class News(Pages):
            changefreq = "daily"

            def get_queryset(self):
                return super().get_queryset().filter(path__startswith=NEWS_PATH)
    """

    name: ClassVar[str | None] = "pages"
    lastmod: Any = Coalesce("last_published_at", "latest_revision_created_at")
    title = "title"

    #: Whether aliases are listed: pages with the content of another one. Search engines take them
    #: for duplicates.
    lists_aliases: bool = False

    def get_queryset(self) -> QuerySet[Any]:
        """Return the pages of the section that the site lists.

        In a derived class, ``super().get_queryset()`` returns those of each section that
        ``register_pages`` makes of it.
        """
        return self._own_pages()

    def _own_pages(self) -> QuerySet[Any]:
        """Return the pages whose URLs follow from their place in the tree."""
        return self._listed_pages(Page).exclude(
            content_type__in=_content_types(_models_with_own_urls())
        )

    def _listed_pages(self, model: type[Model]) -> QuerySet[Any]:
        """Return the pages of a model that the site lists."""
        unexpired = Q(expire_at=None) | Q(expire_at__gt=timezone.now())
        pages: QuerySet[Any] = model._default_manager.live().public().filter(unexpired)  # type: ignore[attr-defined]
        if not self.lists_aliases:
            pages = pages.filter(alias_of=None)
        return pages.filter(self._site_condition)

    @cached_property
    def wagtail_site(self) -> Site:
        """The site of Wagtail at the host of ``self.site``, else the default one.

        Of several sites at that host it is the one with the same port; 80 is any port, as it is in
        Wagtail. Raises ImproperlyConfigured where there is none; and where there is only the
        default one, but the sitemap has several sites.
        """
        parts = urlsplit(self.site.origin)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        at_host = [one for one in Site.objects.all() if one.hostname.lower() == parts.hostname]

        def fitness(one: Site) -> tuple[bool, bool, bool]:
            # sites() gives one base URL for two sites, at 80 and 443, if the project is behind TLS.
            is_this = (str(one.pk), _base_url_of(one).lower()) == (self.site.key, self.site.origin)
            return is_this, one.port == port, one.port == 80

        found = [one for one in at_host if len(at_host) == 1 or any(fitness(one))]
        if not found and not _has_several_sites():
            found = list(Site.objects.filter(is_default_site=True))
        if not found:
            raise ImproperlyConfigured(
                f"Wagtail has no site at {self.site.origin!r}, and no default one that takes its"
                " place: add it in Wagtail's settings, under Sites."
            )
        return max(found, key=fitness)

    @cached_property
    def _root_paths(self) -> list[tuple[str, str]]:
        """Pairs: the beginning of ``url_path``, and of the URLs' paths; the longest come first.

        The second is "" for the roots of other sites, and for a locale whose URLs are those of the
        site's own root: Wagtail cannot be asked for them.
        """
        roots: dict[str, str] = {}
        own = self.wagtail_site.root_page.url_path
        with self.site.active():
            home = _path_of(own)
            for root in Site.get_site_root_paths():
                path = ""
                if root.site_id == self.wagtail_site.pk:
                    path = _path_of(root.root_path)
                if path and (path != home or root.root_path == own):
                    roots[root.root_path] = path
                else:
                    roots.setdefault(root.root_path, "")
        return sorted(roots.items(), key=lambda root: len(root[0]), reverse=True)

    @cached_property
    def _addresses(self) -> list[str]:
        """The addresses that Wagtail may give the site's pages: those of sites with its roots.

        Without a request, Wagtail takes the first of them.
        """
        own = {root_path for root_path, path in self._root_paths if path}
        return [root.root_url for root in Site.get_site_root_paths() if root.root_path in own]

    @property
    def _site_condition(self) -> Q:
        """The condition that a page's URL belongs to this site."""
        places = Q(pk__in=())
        for root, path in self._root_paths:
            below = Q(url_path__startswith=root)
            for other, _ in self._root_paths:
                if other != root and other.startswith(root):
                    below &= ~Q(url_path__startswith=other)
            if path:
                places |= below
        return places

    def why_not_listed(self, page: Page) -> str:
        """Return why a page is not listed: the first of the reasons that apply."""
        if not page.live:
            return gettext("It is not live.")
        if page.expire_at is not None and page.expire_at <= timezone.now():
            return gettext("It has expired.")
        if page.get_view_restrictions().exists():
            return gettext("It is private.")
        if page.alias_of_id is not None and not self.lists_aliases:
            return gettext("It is an alias of another page.")
        if not Page.objects.filter(self._site_condition, pk=page.pk).exists():
            return gettext("It is listed at another site, whose root page is nearer.")
        return ""

    @cached_property
    def location(self) -> Any:
        """The path of a page: its root's path, then its own path below that root."""
        cases = []
        # Of what is below the root of another site, Wagtail lists the path below this one.
        for root, path in [(root, path) for root, path in self._root_paths if path]:
            rest: Any = Substr("url_path", len(root) + 1)
            if not WAGTAIL_APPEND_SLASH:
                rest = Substr("url_path", len(root) + 1, Length("url_path") - len(root) - 1)
                cases.append(When(url_path=root, then=Value(path)))
                path = path.rstrip("/") + "/"  # noqa: PLW2901
            cases.append(When(url_path__startswith=root, then=Concat(Value(path), rest)))
        return Case(*cases, output_field=CharField())

    @property
    def translations(self) -> str | None:
        """The field that a page's versions in several locales share; None if it has none."""
        return "translation_key" if self._is_translated else None

    @property
    def language(self) -> str | None:
        """The field with the language of a page's locale; None without locales."""
        return "locale__language_code" if self._is_translated else None

    @property
    def _is_translated(self) -> bool:
        return bool(getattr(settings, "WAGTAIL_I18N_ENABLED", False))


class PagesByMethod(Pages):
    """The pages of one model, whose ``get_sitemap_urls()`` yields their entries.

    ``register_pages`` makes one for each model that needs it.
    """

    name = None
    location = None
    lastmod = None  # Each entry has its own, or none: so it is in Wagtail's sitemap.
    trust_lastmod = False
    model: type[Page] = Page

    def _own_pages(self) -> QuerySet[Any]:
        """Return the pages of this very model."""
        return self._listed_pages(self.model).filter(content_type__in=_content_types([self.model]))

    def entries(self, page: Page) -> Iterator[Entry]:
        """Yield the entries of a page, at the address of this site."""
        for found in page.get_sitemap_urls():
            location = found["location"]
            if location is not None:
                tags = {tag: found.get(tag) for tag in ("lastmod", "changefreq", "priority")}
                yield Entry(_path_of_url(self._addresses, location), **tags)


def register_pages(section: type[Pages] = Pages) -> None:
    """Register the pages of the site: those with columns, and each model with methods of its own.

    ``section`` is ``Pages``, or a class derived from it. Call it once, in a module ``sitemaps``.
    """
    register(section)
    for model in _models_with_own_urls():
        name = f"{section.get_name()}-{name_of(model.__name__)}"
        attributes = {"name": name, "model": model, "__module__": section.__module__}
        bases = (PagesByMethod,) if section is Pages else (PagesByMethod, section)
        register(type(f"{model.__name__}Pages", bases, attributes))


def sites_of_page(page: Page) -> list[SitemapSite]:
    """Return the sites of the sitemap that have a page: those whose root is nearest above it.

    Raises ImproperlyConfigured where no site is known without a request.
    """
    roots = [
        root for root in Site.get_site_root_paths() if page.url_path.startswith(root.root_path)
    ]
    nearest = max((len(root.root_path) for root in roots), default=0)
    keys = {root.site_id for root in roots if len(root.root_path) == nearest}
    return [site for site in all_sites() if _has_one_of(site, keys)]


def _has_one_of(site: SitemapSite, keys: Collection[int]) -> bool:
    """Return whether a site of the sitemap is one of these sites of Wagtail, given by id."""
    try:
        return Pages(site).wagtail_site.pk in keys
    except ImproperlyConfigured:
        return False


def _models_with_own_urls() -> list[type[Page]]:
    """Return the models of pages that have URLs of their own making."""
    return [
        model
        for model in apps.get_models()
        if issubclass(model, Page)
        and any(getattr(model, name) is not getattr(Page, name) for name in URL_METHODS)
    ]


def _content_types(models: list[type[Page]]) -> list[int]:
    found = ContentType.objects.get_for_models(*models, for_concrete_models=False)
    return [content_type.pk for content_type in found.values()]


def _path_of(root_path: str) -> str:
    """Return the path of a site's root page, as Wagtail makes it in the root's language.

    Raises ImproperlyConfigured where Wagtail's URLs are not included.
    """
    parts = Page(url_path=root_path).get_url_parts()
    if parts is None or parts[2] is None:
        raise ImproperlyConfigured(
            "Wagtail's pages have no URLs: include wagtail.urls in the URLconf, or write a Section"
            " whose location is that of your front end."
        )
    path: str = parts[2]
    return path


def _path_of_url(addresses: Iterable[str], url: str) -> str:
    """Return the path of a URL that is at one of the addresses; any other URL as it is."""
    for address in addresses:
        if url.startswith(f"{address}/"):
            return url[len(address) :]
    return url


def _base_url_of(site: Site) -> str:
    """Return the base URL of a site of Wagtail, which knows no TLS in front of port 80."""
    behind_tls = settings.SECURE_SSL_REDIRECT or settings.SECURE_PROXY_SSL_HEADER
    scheme = "https" if site.port == 443 or (site.port == 80 and behind_tls) else "http"
    return f"{scheme}://{site.hostname}" + f":{site.port}" * (site.port not in (80, 443))


def _has_several_sites() -> bool:
    """Return whether the sitemap has several sites; live, there may be one for each host."""
    try:
        return len(all_sites()) > 1
    except ImproperlyConfigured:
        return False
