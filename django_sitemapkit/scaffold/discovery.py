"""What the models and the URLconf of a project have that a person would list."""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError
from django.db.models import CompositePrimaryKey, Model
from django.urls import (
    NoReverseMatch,
    URLPattern,
    URLResolver,
    get_resolver,
    reverse,
)
from django.utils import translation
from django.views.generic import CreateView, DeleteView, RedirectView, UpdateView, View

from django_sitemapkit.inspection import url_match
from django_sitemapkit.sections import is_contrib
from django_sitemapkit.sections.declarations import NAME
from django_sitemapkit.sites import SitemapSite

ROWS = 20
"""Rows of a model that are asked for their URLs."""

NOT_PAGES = (
    "django.contrib.auth.views",
    "django.contrib.sitemaps",
    "django.contrib.syndication",
    "django.views.i18n",
    "django_sitemapkit.",
    "drf_spectacular.",
    "graphene_django.",
    "oauth2_provider.",
    "rest_framework.",
)
"""How the modules of views begin that answer programs, or one visitor."""

NOT_FOR_SEARCH = re.compile(
    r"""(?<![^\W_])
    ( accounts? | activate | add | ajax | api | auth | autocomplete | basket | callback | cart
    | checkout | compare | complete | confirm | create | dashboard | debug | delete | done
    | download | edit | export | feeds? | graphql | health(check|z)? | inbox | js | json
    | log-?(in|out) | manage | me | messages | metrics | notifications | oauth | orders | password
    | ping | preview | profile | readyz | recover | register | reset | rss | search | settings
    | sign-?(in|out|up) | status | success | test | thanks | txt | unsubscribe | update | upload
    | verify | webhooks? | wishlists? | xml )
    (?![^\W_])""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words in paths of pages that are of use to one visitor, or to none."""

LeftOut = defaultdict[str, set[str]]
"""Names of what is left out, by reason."""


def models_with_pages(
    site: SitemapSite, listed: Collection[object], left_out: LeftOut
) -> Iterator[tuple[type[Model], bool]]:
    """Yield each model that needs a section, and whether each language has its own URL of a row.

    ``listed`` has the models that are in a section already. Models without a section get into
    ``left_out``, by the reason.
    """
    for model in apps.get_models():
        if not hasattr(model, "get_absolute_url"):
            if not is_third_party(sys.modules[model.__module__].__file__):
                left_out["no get_absolute_url()"].add(model._meta.label)
        elif reason := _why_no_section(site, model, listed):
            left_out[reason].add(model._meta.label)
        else:
            yield model, any(_varies_by_language(partial(_url_of, r)) for r in _first_rows(model))


def _why_no_section(site: SitemapSite, model: Any, listed: Collection[object]) -> str:
    """Return why a model with ``get_absolute_url()`` needs no section of its own; "" if it does."""
    if model._meta.concrete_model in listed:
        return "in a section already"
    parents = {*model.__mro__[1:]}.intersection(apps.get_models())
    if any(getattr(each, "get_absolute_url", None) is model.get_absolute_url for each in parents):
        return "the rows of another model"
    if isinstance(model._meta.pk, CompositePrimaryKey):
        return "its key has several fields"
    rows = _first_rows(model)
    urls = [url.removeprefix(site.origin) for url in map(_url_of, rows) if url]
    if len(set(urls)) < len(urls):
        return "several rows with one URL"
    return min(
        (why_no_page_at(site, url) for url in urls),
        default="no URL for the first rows" if rows else "",
    )


def _first_rows(model: type[Model]) -> list[Any]:
    """Return the first rows of a model; none if its table does not exist yet."""
    with suppress(DatabaseError):
        return list(model._default_manager.order_by("pk")[:ROWS])
    return []  # Its table is not there yet.


def _url_of(row: Any) -> str:
    """Return what a row's ``get_absolute_url()`` returns, as text; "" if that fails."""
    with suppress(Exception):
        return str(row.get_absolute_url() or "")
    return ""


def is_third_party(path: str | None) -> bool:
    """Return whether a file is part of an installed package, this one included."""
    place = Path(path or "")
    return place.is_relative_to(Path(__file__).parents[1]) or not {
        "site-packages",
        "dist-packages",
    }.isdisjoint(place.parts)


def static_pages(
    site: SitemapSite, listed: Collection[object], left_out: LeftOut
) -> dict[str, bool]:
    """Return the pages of named URLs without arguments, and whether each language has its own URL.

    They are in the order of the URLconf, as URL names, or as paths if the name has a slash.
    ``listed`` has the names and paths that are in a section already. Other names get into
    ``left_out``, by the reason.
    """
    names: dict[str, str] = {}
    pages: dict[str, bool] = {}
    for name, _ in _named_patterns(get_resolver(site.urlconf)):
        with suppress(NoReverseMatch):  # It takes arguments.
            names.setdefault(reverse(name), name)
    for path, name in names.items():
        not_for_search = "probably not for search engines" if NOT_FOR_SEARCH.search(path) else ""
        if reason := why_no_page_at(site, path) or not_for_search:
            left_out[reason].add(name)
        elif path not in listed and name not in listed:
            pages[path if "/" in name else name] = _varies_by_language(partial(reverse, name))
    return pages


def contrib_sitemaps(site: SitemapSite, taken: set[str], left_out: LeftOut) -> dict[str, type[Any]]:
    """Return the contrib sitemaps in the URLconf by name, without those whose names are ``taken``.

    A class defined in a URLconf is left out: no app may import that while Django starts, since the
    URLs of the admin would lack models. Its name gets into ``left_out``.
    """
    sitemaps = {
        name: sitemap
        for _, pattern in _named_patterns(get_resolver(site.urlconf))
        for name, sitemap in (pattern.default_args.get("sitemaps") or {}).items()
        if name not in taken
    }
    found = {n: each for n, each in sitemaps.items() if NAME.fullmatch(n) and _is_importable(each)}
    left_out["not a class, or one of the URLconf"].update(sitemaps.keys() - found)
    return found


def _is_importable(sitemap: Any) -> bool:
    """Return whether a sitemap is a class that a module, but not a URLconf, defines."""
    home = sys.modules[sitemap.__module__]
    return (
        isinstance(sitemap, type)
        and is_contrib(sitemap)
        and getattr(home, sitemap.__name__, None) is sitemap
        and not hasattr(home, "urlpatterns")
    )


def _named_patterns(resolver: URLResolver, namespace: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Yield the patterns of a URLconf with their full names, without the admin's and ours."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            yield f"{namespace}{pattern.name}", pattern
        elif not (pattern.app_name or "").startswith(("admin", "sitemapkit")):
            yield from _named_patterns(
                pattern, f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            )


def why_no_page_at(site: SitemapSite, path: str) -> str:
    """Return why a path has no page for everyone, as far as code tells; "" if it may have one."""
    match, middleware = url_match(site, path), " ".join(settings.MIDDLEWARE)
    if match is None:
        return (
            ""
            if "FlatpageFallbackMiddleware" in middleware and "#" not in path
            else "URLs that no pattern matches"
        )
    view: Any = match.func
    kind = getattr(view, "view_class", None) or getattr(view, "cls", None) or type(view)
    modules = [getattr(view, "__module__", ""), *(base.__module__ for base in kind.__mro__)]
    if "admin" in match.app_names or any(f"{name}.".startswith(NOT_PAGES) for name in modules):
        return "not a page for readers"
    if (
        # Django's decorators and mixins for a login set this attribute.
        hasattr(view, "login_url")
        or hasattr(kind, "login_url")
        or ("LoginRequiredMiddleware" in middleware and getattr(view, "login_required", True))
    ):
        return "needs a login"
    is_form = issubclass(kind, (CreateView, DeleteView, RedirectView, UpdateView)) or (
        issubclass(kind, View) and not hasattr(kind, "get")
    )
    return "a form or a redirect" if is_form else ""


def _varies_by_language(url: Callable[[], str]) -> bool:
    """Return whether ``url()`` differs between the project's languages."""
    # Django's own LANGUAGES are a hundred that nobody chose.
    languages = settings.LANGUAGES if settings.is_overridden("LANGUAGES") else []  # type: ignore[misc]
    return len({translation.override(code)(url)() for code, _ in languages[:3]}) > 1
