"""Which site is it: the base URL, the URLconf and the sections that belong together.

In this order: ``SITEMAPKIT_SITES``, ``SITEMAPKIT_BASE_URL``, the sites framework and, for live
views alone, the host of the request, where nobody can forge it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

from django.apps import apps
from django.conf import LazySettings
from django.conf import settings as django_settings
from django.core.exceptions import DisallowedHost, ImproperlyConfigured, ObjectDoesNotExist
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.http import Http404, HttpRequest
from django.http.request import split_domain_port
from django.middleware.locale import LocaleMiddleware
from django.template import Context
from django.urls import (
    NoReverseMatch,
    URLResolver,
    get_resolver,
    get_script_prefix,
    get_urlconf,
    reverse,
    set_script_prefix,
    set_urlconf,
)
from django.utils import timezone, translation
from django.utils.module_loading import import_string

from django_sitemapkit._django import prefixes_default_language
from django_sitemapkit.conf import SiteSettings, cache_sites_for, has_sites_function, settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.protocol.locations import Scope, normalise_base

DEFAULT_KEY = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapSite:
    """One site, as sections, plans and builds refer to it."""

    key: str
    """Its identity: a key of SITEMAPKIT_SITES, an id of the sites framework."""
    origin: str
    """Scheme, host and port: ``https://www.example.com``."""
    path: str = ""
    """The path it is mounted at, in the place of SCRIPT_NAME, without a slash at its end."""
    sections: tuple[str, ...] | None = None
    """The names of its sections; None for all."""
    urlconf: str | None = None
    """The dotted path of its URLconf; None for ROOT_URLCONF."""
    language: str | None = None
    """The language that it is read in; None for that of LANGUAGE_CODE."""

    @classmethod
    def at(
        cls,
        base_url: str,
        *,
        key: str = DEFAULT_KEY,
        sections: tuple[str, ...] | None = None,
        urlconf: str | None = None,
    ) -> "SitemapSite":
        """Return the site at ``base_url``; raises ImproperlyConfigured if that is not a URL."""
        try:
            origin, path = normalise_base(base_url)
        except InvalidValue as error:
            raise ImproperlyConfigured(f"The base URL of site {key!r}: {error}") from error
        return cls(key=key, origin=origin, path=path, sections=sections, urlconf=urlconf)

    @property
    def base(self) -> str:
        """The absolute URL that its paths begin with, without a slash at its end."""
        return self.origin + self.path

    @property
    def prefix(self) -> str:
        """The decoded path with a slash at its end, as ``reverse()`` puts it before every URL."""
        return f"{unquote(self.path)}/"

    @contextmanager
    def active(
        self, language: str | None = None, *, current: "SitemapSite | None" = None
    ) -> Iterator[None]:
        """Have ``reverse()`` and ``get_absolute_url()`` return URLs of this site, in one language.

        The language is that of the site unless given, and the time zone TIME_ZONE, never the
        visitor's: a file is the same for all. The sites framework's current site is this one, or
        ``current`` if the framework has none of this host.

        Never hold it across a ``yield``: all of these are the thread's.
        """
        prefix, urlconf = get_script_prefix(), get_urlconf()
        set_script_prefix(self.prefix)
        set_urlconf(self.urlconf)
        site_id = _site_id.set(cache(lambda: _framework_site_id(self, current)))
        try:
            with (
                translation.override(language or self.language or self._default_language()),
                timezone.override(timezone.get_default_timezone()),
            ):
                yield
        finally:
            _site_id.reset(site_id)
            set_script_prefix(prefix)
            set_urlconf(urlconf)

    def _default_language(self) -> str:
        """Return the language of a visitor who prefers none.

        It is LANGUAGE_CODE, or what LocaleMiddleware makes of that if addresses begin with it: if
        LANGUAGES has "en" only, there is no page at /en-us/.
        """
        is_prefixed = prefixes_default_language(self.urlconf or django_settings.ROOT_URLCONF)
        if is_prefixed and has_locale_middleware(tuple(django_settings.MIDDLEWARE)):
            return default_language()
        return django_settings.LANGUAGE_CODE

    def address(self, name: str, **kwargs: object) -> str:
        """Return the absolute address of one of the package's own views: "index" or "page".

        ``name`` has no namespace; ``kwargs`` are those of the URL pattern. Raises
        ImproperlyConfigured if the URLconf does not include the views.
        """
        try:
            with self.active():
                return self.origin + reverse(f"sitemapkit:{name}", kwargs=kwargs)
        except NoReverseMatch as error:
            urlconf = self.urlconf or django_settings.ROOT_URLCONF
            raise ImproperlyConfigured(
                f'Site {self.key!r}: add path("", include("django_sitemapkit.urls")) to {urlconf}.'
            ) from error

    def scope(self) -> Scope:
        """Return the folder of the site's sitemaps: they may only list URLs in it.

        Raises ImproperlyConfigured if the URLconf does not include the package's URLs.
        """
        return _scope_of(self, get_resolver(self.urlconf))


@lru_cache(maxsize=256)
def _scope_of(site: SitemapSite, resolver: URLResolver) -> Scope:
    """Return the scope of a site, which is cached for each URL resolver."""
    return Scope.of(site.address("index"))


@lru_cache(maxsize=16)
def has_locale_middleware(middleware: tuple[str, ...]) -> bool:
    """Return whether one of these dotted paths is LocaleMiddleware or a subclass of it."""
    return any(
        isinstance(one, type) and issubclass(one, LocaleMiddleware)
        for one in map(import_string, middleware)
    )


def default_language() -> str:
    """Return LANGUAGE_CODE as LANGUAGES spells it: "en" if that has no "en-us"."""
    with suppress(LookupError):
        return translation.get_supported_language_variant(django_settings.LANGUAGE_CODE)
    return django_settings.LANGUAGE_CODE


def all_sites() -> list[SitemapSite]:
    """Return every site known without a request: from the settings, else django.contrib.sites.

    Raises ImproperlyConfigured if there is none.
    """
    if configured := _configured_sites():
        return list(configured)
    if has_sites_function():
        raise ImproperlyConfigured("The function of SITEMAPKIT_SITES returns no site here.")
    if apps.is_installed("django.contrib.sites"):
        return _framework_sites()
    raise NoSites(
        "No site is known without a request: set SITEMAPKIT_BASE_URL or SITEMAPKIT_SITES, or"
        ' install "django.contrib.sites".'
    )


def sites_including(own: SitemapSite) -> list[SitemapSite]:
    """Return every site known without a request, and ``own`` if none of them has its key."""
    sites: list[SitemapSite] = []
    with suppress(ImproperlyConfigured):  # Without any in the settings, it is the request's only.
        sites = all_sites()
    return sites if site_by_key(sites, own.key) else [*sites, own]


def site_by_key(sites: Iterable[SitemapSite], key: str) -> SitemapSite | None:
    """Return the one of ``sites`` that has a key, or None."""
    return next((site for site in sites if site.key == key), None)


def site_at(base_url: str) -> SitemapSite:
    """Return the site with a base URL: one of the settings, else one made of the URL alone."""
    wanted = SitemapSite.at(base_url, key=base_url)
    return next((site for site in _configured_sites() if site.base == wanted.base), wanted)


def site_for(request: HttpRequest) -> SitemapSite:
    """Return the site that ``request`` is for.

    Raises Http404 if SITEMAPKIT_SITES has none at the request's host and path, and
    ImproperlyConfigured if only a Host header that anyone may write could tell.
    """
    cache_sites_for(request)
    configured = _configured_sites()
    if settings.SITES or has_sites_function():
        return _site_of_host(configured, request)
    if configured:
        return configured[0]
    if apps.is_installed("django.contrib.sites"):
        return _current_framework_site(request)
    return _site_from_host_header(request)


def site_of_context(context: Context) -> SitemapSite:
    """Return the site of a template's request; the first site if there is no request."""
    # The processor that names the request in templates is optional; their context has it anyhow.
    request: Any = getattr(context, "request", None) or context.get("request")
    return all_sites()[0] if request is None else site_for(request)


def _configured_sites() -> tuple[SitemapSite, ...]:
    """Return the sites of SITEMAPKIT_SITES, or that of SITEMAPKIT_BASE_URL; empty without both."""
    if sites := settings.SITES:
        return _sites_of(tuple(sites.items()))
    base_url = None if has_sites_function() else settings.BASE_URL
    return _sites_of(((DEFAULT_KEY, SiteSettings(base_url=base_url)),)) if base_url else ()


@lru_cache(maxsize=1)
def _sites_of(sites: tuple[tuple[str, SiteSettings], ...]) -> tuple[SitemapSite, ...]:
    """Return a site for each key and its settings; cached as long as they are the same."""
    return tuple(
        SitemapSite.at(site.base_url, key=key, sections=site.sections, urlconf=site.urlconf)
        for key, site in sites
    )


@receiver(setting_changed)
def _clear_scope_cache(**changed: Any) -> None:
    """Forget the scopes of sites: after a change of settings, another URLconf may apply."""
    _scope_of.cache_clear()


def _site_of_host(sites: Iterable[SitemapSite], request: HttpRequest) -> SitemapSite:
    """Return the one of ``sites`` that has the request's host and the longest path that matches.

    Raises Http404 if there is none.
    """
    host, schemes = request.get_host(), ("http", "https")  # A proxy may hide the visitor's scheme.
    here = {_site_at_host(each, host, "/").origin.partition("://")[2] for each in schemes}
    for site in sorted(sites, key=lambda site: len(site.path), reverse=True):
        if site.origin.partition("://")[2] in here and request.path.startswith(site.prefix):
            return site
    raise Http404(f"SITEMAPKIT_SITES has no site at {host}{request.path}.")


def _framework_sites() -> list[SitemapSite]:
    """Return the sites of the sites framework; only that of SITE_ID, if it is set.

    Raises ImproperlyConfigured if there is none.
    """
    from django.contrib.sites.models import Site as FrameworkSite  # noqa: PLC0415

    known = FrameworkSite.objects.order_by("pk")
    if site_id := getattr(django_settings, "SITE_ID", None):
        known = known.filter(pk=site_id)
    if sites := [_site_from_framework(site.pk, site.domain) for site in known]:
        return sites
    raise _no_framework_site(site_id)


class NoSites(ImproperlyConfigured):
    """No site is known without a request."""


def _no_framework_site(site_id: object) -> NoSites:
    """Return the error that the sites framework has no site, or not that of SITE_ID."""
    if site_id:
        return NoSites(
            f"SITE_ID is {site_id!r}, and the sites framework has no such site: add it there, or"
            " set SITEMAPKIT_BASE_URL."
        )
    return NoSites("The sites framework has no site: add one there, or set SITEMAPKIT_BASE_URL.")


class NoFrameworkSite(ImproperlyConfigured):
    """A section asked for the current site, and the sites framework has none of this host."""

    def __init__(self, host: str) -> None:
        self.message = (
            "the section asked for the current site of the sites framework, which has no site"
            f" for {host!r}; SITE_ID belongs to another host."
        )
        self.hint = (
            f"Add {host!r} to the sites of the framework, or write a Section that uses self.site."
        )
        super().__init__(f"{self.message} {self.hint}")


_site_id: ContextVar[Callable[[], Any] | None] = ContextVar("sitemapkit_site_id", default=None)
"""What finds the active site's id in the sites framework, of this thread or task."""


class _SiteId:
    """A descriptor for ``settings.SITE_ID``: the active site's id while a site is active.

    ``Site.objects.get_current()``, ``CurrentSiteManager`` and projects read that setting. It is the
    same for all threads, so no other value can be set there for the time of a section.
    """

    def __get__(self, instance: LazySettings | None, owner: type | None = None) -> Any:
        """Return the active site's id; without one, let Django look up the setting."""
        find = _site_id.get()
        found = None if find is None else find()
        if found is None:
            raise AttributeError("SITE_ID")  # LazySettings then looks it up as any other setting.
        return found

    def __set__(self, instance: LazySettings, value: object) -> None:
        """Raise AttributeError: it exists so that ``__get__`` precedes a cached value."""
        raise AttributeError("SITE_ID")  # pragma: no cover  LazySettings stores elsewhere.


def install_active_site_id() -> None:
    """Make ``settings.SITE_ID`` the id of the active site while a site is active."""
    LazySettings.SITE_ID = _SiteId()  # type: ignore[attr-defined]


def _framework_site_id(site: SitemapSite, current: SitemapSite | None = None) -> Any:
    """Return a site's id in the sites framework; None if SITE_ID is right for it.

    Of several sites in the settings, SITE_ID can only be one; the others are found by their domain,
    and so is the host of a language. For a site that the framework does not have, the id of
    ``current`` is returned. Raises NoFrameworkSite if there is no ``current`` either.
    """
    from django.contrib.sites.models import Site as FrameworkSite  # noqa: PLC0415

    several = len(settings.SITES) > 1
    if not several and (settings.SITES or settings.BASE_URL or site.key == DEFAULT_KEY):
        return None
    if not several and "://" not in site.key:
        return FrameworkSite._meta.pk.to_python(site.key)
    host = site.origin.partition("://")[2]
    for domain in (host, split_domain_port(host)[0]):
        known = FrameworkSite.objects.filter(domain__iexact=domain)
        for pk in known.values_list("pk", flat=True):
            return pk
    if current is None or current == site:
        raise NoFrameworkSite(host)
    return _framework_site_id(current)


def _current_framework_site(request: HttpRequest) -> SitemapSite:
    """Return the current site of the sites framework.

    Raises ImproperlyConfigured if SITE_ID names no site, and Http404 if there is none of this host.
    """
    from django.contrib.sites.shortcuts import get_current_site  # noqa: PLC0415

    try:
        site = get_current_site(request)
    except ObjectDoesNotExist as error:
        if site_id := getattr(django_settings, "SITE_ID", None):
            raise _no_framework_site(site_id) from error
        raise Http404(f"The sites framework has no site at {request.get_host()}.") from error
    return _site_from_framework(getattr(site, "pk", DEFAULT_KEY), site.domain)


def _site_from_framework(key: object, domain: str) -> SitemapSite:
    """Return a site of the sites framework, which stores no scheme: it is always https."""
    return SitemapSite.at(f"https://{domain}{get_script_prefix()}", key=str(key))


def _site_from_host_header(request: HttpRequest) -> SitemapSite:
    """Return a site at the request's host.

    Raises ImproperlyConfigured if ALLOWED_HOSTS has wildcards, so that anyone could choose the
    host.
    """
    hosts = django_settings.ALLOWED_HOSTS
    open_to_all = not hosts or any(host.startswith((".", "*")) for host in hosts)
    if open_to_all and not django_settings.DEBUG:
        raise ImproperlyConfigured(
            "Set SITEMAPKIT_BASE_URL: with wildcards in ALLOWED_HOSTS anyone could put another"
            " host into the sitemap."
        )
    host = request.get_host()
    if not django_settings.DEBUG:
        # ALLOWED_HOSTS lets any port pass, and anyone may write one into the header.
        host = split_domain_port(host)[0]
    return _site_at_host(request.scheme, host, get_script_prefix())


@lru_cache(maxsize=256)
def _site_at_host(scheme: str, host: str, prefix: str) -> SitemapSite:
    """Return a site at a host, below a path prefix; raises DisallowedHost if it is not valid."""
    try:
        return SitemapSite.at(f"{scheme}://{host.rstrip('.')}{prefix}")
    except ImproperlyConfigured as error:
        raise DisallowedHost(str(error)) from error
