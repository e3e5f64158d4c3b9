"""Sections over the pages of Wagtail, and its sites.

::

    # settings.py
    SITEMAPKIT_SITES = "django_sitemapkit.contrib.wagtail.sites"

    # sitemaps.py of an app
    from django_sitemapkit.contrib.wagtail import register_pages

    register_pages()
"""

from collections.abc import Collection, Iterator
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
from django_sitemapkit.sections import Entry, Section, section_name_of
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
        return self._section_pages()

    def _section_pages(self) -> QuerySet[Any]:
        """Return the listed pages whose models leave URL_METHODS as they are."""
        return self._listed_pages(Page).exclude(
            content_type__in=_content_type_ids(_models_with_own_urls())
        )

    def _listed_pages(self, model: type[Model]) -> QuerySet[Any]:
        """Return the pages of a model that are live, neither private nor expired, on this site."""
        unexpired = Q(expire_at=None) | Q(expire_at__gt=timezone.now())
        pages: QuerySet[Any] = model._default_manager.live().public().filter(unexpired)  # type: ignore[attr-defined]
        if not self.lists_aliases:
            pages = pages.filter(alias_of=None)
        return pages.filter(self._site_condition)

    @cached_property
    def wagtail_site(self) -> Site:
        """The Wagtail site at the host of ``self.site``, else Wagtail's default site.

        Of several sites at that host it is the one with the same port; port 80 matches any port, as
        in Wagtail. Raises ImproperlyConfigured if there is none, or only the default site although
        the sitemap has several sites.
        """
        parts = urlsplit(self.site.origin)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        at_host = [one for one in Site.objects.all() if one.hostname.lower() == parts.hostname]

        def fitness(one: Site) -> tuple[bool, bool, bool]:
            """Return a sort key for candidates: this very site, the same port, port 80."""
            # sites() gives one base URL for two sites, at 80 and 443, if the project is behind TLS.
            is_this = (str(one.pk), _base_url_of(one).lower()) == (self.site.key, self.site.origin)
            return is_this, one.port == port, one.port == 80

        found = [one for one in at_host if len(at_host) == 1 or any(fitness(one))]
        if not found and not _has_several_sitemap_sites():
            found = list(Site.objects.filter(is_default_site=True))
        if not found:
            raise ImproperlyConfigured(
                f"Wagtail has no site at {self.site.origin!r}, and no default one that takes its"
                " place: add it in Wagtail's settings, under Sites."
            )
        return max(found, key=fitness)

    @cached_property
    def _url_paths_of_roots(self) -> list[tuple[str, str]]:
        """Pairs of the ``url_path`` of a root page and the path of its URL, longest first.

        The path is "" for the roots of other sites, and for a root in another locale that has the
        path of the site's own root: Wagtail cannot give its URLs.
        """
        roots: dict[str, str] = {}
        own = self.wagtail_site.root_page.url_path
        with self.site.active():
            home = _root_page_path(own)
            for root in Site.get_site_root_paths():
                is_own = root.site_id == self.wagtail_site.pk
                path = _root_page_path(root.root_path) if is_own else ""
                if path and (path != home or root.root_path == own):
                    roots[root.root_path] = path
                else:
                    roots.setdefault(root.root_path, "")
        return sorted(roots.items(), key=lambda root: len(root[0]), reverse=True)

    @cached_property
    def _base_urls(self) -> list[str]:
        """The base URLs with which Wagtail may begin the URLs of the site's pages.

        Several sites may have the same root page. Without a request, Wagtail uses the first.
        """
        own = {root_path for root_path, path in self._url_paths_of_roots if path}
        return [root.root_url for root in Site.get_site_root_paths() if root.root_path in own]

    @property
    def _site_condition(self) -> Q:
        """The condition that the nearest root page at or above a page is one of this site."""
        condition = Q(pk__in=())
        for root, path in self._url_paths_of_roots:
            below = Q(url_path__startswith=root)
            for other, _ in self._url_paths_of_roots:
                if other != root and other.startswith(root):
                    below &= ~Q(url_path__startswith=other)
            if path:
                condition |= below
        return condition

    def why_not_listed(self, page: Page) -> str:
        """Return the first reason why a page is not listed; "" if there is none."""
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
        """An expression for the path of a page: its root's path, then its own path below that."""
        cases = []
        # Of what is below the root of another site, Wagtail lists the path below this one.
        for root, path in [(root, path) for root, path in self._url_paths_of_roots if path]:
            rest: Any = Substr("url_path", len(root) + 1)
            if not WAGTAIL_APPEND_SLASH:
                rest = Substr("url_path", len(root) + 1, Length("url_path") - len(root) - 1)
                cases.append(When(url_path=root, then=Value(path)))
                path = path.rstrip("/") + "/"  # noqa: PLW2901
            cases.append(When(url_path__startswith=root, then=Concat(Value(path), rest)))
        return Case(*cases, output_field=CharField())

    @property
    def translations(self) -> str | None:
        """The field that a page's versions in several locales share; None without locales."""
        return "translation_key" if self._is_i18n_enabled else None

    @property
    def language(self) -> str | None:
        """The field with the language of a page's locale; None without locales."""
        return "locale__language_code" if self._is_i18n_enabled else None

    @property
    def _is_i18n_enabled(self) -> bool:
        """Whether WAGTAIL_I18N_ENABLED is set, so that pages have locales."""
        return bool(getattr(settings, "WAGTAIL_I18N_ENABLED", False))


class PagesByMethod(Pages):
    """The pages of one model, whose ``get_sitemap_urls()`` returns their entries.

    ``register_pages`` makes a subclass for each model that overrides one of URL_METHODS.
    """

    name = None
    location = None
    lastmod = None  # Each entry has its own, or none: so it is in Wagtail's sitemap.
    trust_lastmod = False
    model: type[Page] = Page

    def _section_pages(self) -> QuerySet[Any]:
        """Return the listed pages of exactly this section's model, without its subclasses."""
        return self._listed_pages(self.model).filter(
            content_type__in=_content_type_ids([self.model])
        )

    def entries(self, page: Page) -> Iterator[Entry]:
        """Yield the entries of a page, with paths instead of URLs that are on this site."""
        for found in page.get_sitemap_urls():
            location = found["location"]
            if location is not None:
                here = (base for base in self._base_urls if location.startswith(f"{base}/"))
                tags = {tag: found.get(tag) for tag in ("lastmod", "changefreq", "priority")}
                yield Entry(location.removeprefix(next(here, "")), **tags)


def register_pages(section: type[Pages] = Pages) -> None:
    """Register the sections of a site's pages: one for all, and one for each special model.

    A model is special if it overrides one of URL_METHODS. ``section`` is ``Pages``, or a class
    derived from it. Call it once, in a module ``sitemaps``.
    """
    register(section)
    for model in _models_with_own_urls():
        name = f"{section.get_name()}-{section_name_of(model.__name__)}"
        attributes = {"name": name, "model": model, "__module__": section.__module__}
        bases = (PagesByMethod,) if section is Pages else (PagesByMethod, section)
        register(type(f"{model.__name__}Pages", bases, attributes))


def sites_of_page(page: Page) -> list[SitemapSite]:
    """Return the sites of the sitemap that may list a page: those of its nearest root page.

    Raises ImproperlyConfigured if no site is known without a request.
    """
    roots = [
        root for root in Site.get_site_root_paths() if page.url_path.startswith(root.root_path)
    ]
    nearest = max((len(root.root_path) for root in roots), default=0)
    wagtail_site_ids = {root.site_id for root in roots if len(root.root_path) == nearest}
    return [site for site in all_sites() if _is_for_wagtail_sites(site, wagtail_site_ids)]


def _is_for_wagtail_sites(site: SitemapSite, wagtail_site_ids: Collection[int]) -> bool:
    """Return whether the Wagtail site that a site stands for has one of these primary keys.

    False if it stands for none.
    """
    try:
        return Pages(site).wagtail_site.pk in wagtail_site_ids
    except ImproperlyConfigured:
        return False


def _models_with_own_urls() -> list[type[Page]]:
    """Return the page models that override one of URL_METHODS."""
    return [
        model
        for model in apps.get_models()
        if issubclass(model, Page)
        and any(getattr(model, name) is not getattr(Page, name) for name in URL_METHODS)
    ]


def _content_type_ids(models: list[type[Page]]) -> list[int]:
    """Return the ids of the content types of some models."""
    found = ContentType.objects.get_for_models(*models, for_concrete_models=False)
    return [content_type.pk for content_type in found.values()]


def _root_page_path(root_path: str) -> str:
    """Return the path of the URL of a root page, given by its ``url_path``, in its language.

    Raises ImproperlyConfigured if the URLconf does not include Wagtail's URLs.
    """
    parts = Page(url_path=root_path).get_url_parts()
    if parts is None or parts[2] is None:
        raise ImproperlyConfigured(
            "Wagtail's pages have no URLs: include wagtail.urls in the URLconf, or write a Section"
            " whose location is that of your front end."
        )
    return str(parts[2])


def _base_url_of(site: Site) -> str:
    """Return the base URL of a Wagtail site; https for port 443, and for port 80 behind TLS."""
    behind_tls = settings.SECURE_SSL_REDIRECT or settings.SECURE_PROXY_SSL_HEADER
    scheme = "https" if site.port == 443 or (site.port == 80 and behind_tls) else "http"
    return f"{scheme}://{site.hostname}" + f":{site.port}" * (site.port not in (80, 443))


def _has_several_sitemap_sites() -> bool:
    """Return whether the settings have several sites; False if only requests tell the site."""
    try:
        return len(all_sites()) > 1
    except ImproperlyConfigured:
        return False
