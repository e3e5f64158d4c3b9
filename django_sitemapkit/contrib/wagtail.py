"""Sections over the pages of Wagtail, and its sites.

::

    # settings.py
    SITEMAPKIT_SITES = "django_sitemapkit.contrib.wagtail.sites"

    # sitemaps.py of an app
    from django_sitemapkit.contrib.wagtail import register_pages

    register_pages()
"""

from collections.abc import Iterator
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
from wagtail.coreutils import WAGTAIL_APPEND_SLASH
from wagtail.models import Page, Site

from django_sitemapkit.registry import register
from django_sitemapkit.sections import Entry, Section, name_of

URL_METHODS = ("get_sitemap_urls", "get_url_parts", "get_full_url")
"""What a page model may override to have other URLs than its place in the tree gives."""


def sites() -> dict[str, dict[str, str]]:
    """Return the sites of Wagtail, for ``SITEMAPKIT_SITES``: their ids, each with its base URL.

    A site at port 443 is at ``https://``. So is one at port 80 if the settings say that visitors
    reach the project by TLS: by ``SECURE_SSL_REDIRECT`` or ``SECURE_PROXY_SSL_HEADER``.
    """
    behind_tls = settings.SECURE_SSL_REDIRECT or settings.SECURE_PROXY_SSL_HEADER
    found = {}
    for pk, host, port in Site.objects.order_by("pk").values_list("pk", "hostname", "port"):
        scheme = "https" if port == 443 or (port == 80 and behind_tls) else "http"
        found[str(pk)] = {"BASE_URL": f"{scheme}://{host}" + f":{port}" * (port not in (80, 443))}
    return found


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
        """Return the pages whose URLs follow from their place in the tree."""
        return self._listed(Page).exclude(content_type__in=_content_types(_by_method()))

    def _listed(self, model: type[Model]) -> QuerySet[Any]:
        """Return the pages of a model that the site lists."""
        unexpired = Q(expire_at=None) | Q(expire_at__gt=timezone.now())
        pages: QuerySet[Any] = model._default_manager.live().public().filter(unexpired)  # type: ignore[attr-defined]
        if not self.lists_aliases:
            pages = pages.filter(alias_of=None)
        return pages.filter(self._places)

    @cached_property
    def wagtail_site(self) -> Site:
        """The site of Wagtail at the host of ``self.site``, else the default one.

        Raises ImproperlyConfigured where there is neither.
        """
        parts = urlsplit(self.site.origin)
        at_host = [site for site in Site.objects.all() if site.hostname == parts.hostname]
        at_port = [site for site in at_host if site.port == parts.port]
        default = Site.objects.filter(is_default_site=True)
        for site in (*at_port, *at_host, *default):
            return site
        raise ImproperlyConfigured(
            f"Wagtail has no site at {parts.hostname!r}, and none is the default one: add it in"
            " Wagtail's settings, under Sites."
        )

    @cached_property
    def _roots(self) -> list[tuple[str, str]]:
        """The beginnings of ``url_path`` in this site and in others, each with that of its URLs.

        Those of others, which are roots of their own, have "", and so has a locale whose URLs are
        those of the site's own root: Wagtail cannot be asked for them. The longest come first.
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

    @property
    def _places(self) -> Q:
        """The condition that a page's URL is on this site."""
        places = Q(pk__in=())
        for root, path in self._roots:
            below = Q(url_path__startswith=root)
            for other, _ in self._roots:
                if other != root and other.startswith(root):
                    below &= ~Q(url_path__startswith=other)
            if path:
                places |= below
        return places

    @cached_property
    def location(self) -> Any:
        """The path of a page: that of its root, and what comes behind it in the tree."""
        cases = []
        for root, path in self._roots:
            rest: Any = Substr("url_path", len(root) + 1)
            if not WAGTAIL_APPEND_SLASH:
                rest = Substr("url_path", len(root) + 1, Length("url_path") - len(root) - 1)
                cases.append(When(url_path=root, then=Value(path)))
                path = path.rstrip("/") + "/"  # noqa: PLW2901
            cases.append(When(url_path__startswith=root, then=Concat(Value(path), rest)))
        return Case(*cases, output_field=CharField())

    @property
    def translations(self) -> str | None:
        """What the versions of a page in several locales share."""
        return "translation_key" if self._is_translated else None

    @property
    def language(self) -> str | None:
        """The language of a page's locale."""
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

    def get_queryset(self) -> QuerySet[Any]:
        """Return the pages of this very model."""
        return self._listed(self.model).filter(content_type__in=_content_types([self.model]))

    def entries(self, page: Page) -> Iterator[Entry]:
        """Yield what the page lists, at the address of this site."""
        root = self.wagtail_site.root_url
        for found in page.get_sitemap_urls():
            location = found["location"]
            if location is not None:
                tags = {tag: found.get(tag) for tag in ("lastmod", "changefreq", "priority")}
                yield Entry(_below(root, location), **tags)


def register_pages(section: type[Pages] = Pages) -> None:
    """Register the pages of the site: those with columns, and each model with methods of its own.

    ``section`` is ``Pages``, or a class derived from it. Call it once, in a module ``sitemaps``.
    """
    register(section)
    for model in _by_method():
        name = f"{section.get_name()}-{name_of(model.__name__)}"
        attributes = {"name": name, "model": model, "__module__": section.__module__}
        bases = (PagesByMethod,) if section is Pages else (PagesByMethod, section)
        register(type(f"{model.__name__}Pages", bases, attributes))


def _by_method() -> list[type[Page]]:
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


def _below(root: str, url: str) -> str:
    """Return a URL as a path of the site, if it is at Wagtail's idea of the site's address."""
    return url[len(root) :] if url.startswith(f"{root}/") else url
