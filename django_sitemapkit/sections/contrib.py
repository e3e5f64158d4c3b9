"""Sitemaps written for ``django.contrib.sitemaps``, as sections."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, partial
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.sitemaps import Sitemap
from django.db.models import QuerySet

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.sections.declarations import ItemSection, section_name_of, text_or_none


class ContribSection(ItemSection):
    """A section that takes its items and options from a ``django.contrib.sitemaps.Sitemap``."""

    new_sitemap: ClassVar[Callable[[], Any]]

    key = "pk"
    only = depends_on = None
    """Options of a ``Section``, as which its items are read if they are rows."""

    @cached_property
    def sitemap(self) -> Any:
        """The contrib sitemap of this read, made when first needed; the next read has another.

        It is not made with the section, so that an error that its class raises is reported as one
        of the section's code.
        """
        return type(self).new_sitemap()

    @property
    def items(self) -> Any:
        """The contrib sitemap's ``items()`` method."""
        return self.sitemap.items

    def location(self, item: Any) -> str | None:
        """Return an item's location by the contrib sitemap's ``location``, a method or a text."""
        location = self.sitemap.location
        return text_or_none(location(item) if callable(location) else location)

    @property
    def limit(self) -> Any:  # type: ignore[override]
        """The contrib sitemap's limit of URLs in a file, but at most that of search engines."""
        limit: Any = self.sitemap.limit
        with suppress(TypeError, ValueError):  # A check reports it.
            limit = min(int(limit), MAX_URLS)
        return limit

    @property
    def i18n(self) -> bool:  # type: ignore[override]
        """Whether the contrib sitemap lists each item in every language."""
        return bool(self.sitemap.i18n)

    @property
    def languages(self) -> Sequence[str]:  # type: ignore[override]
        """The contrib sitemap's languages; all languages if it chooses them for each item."""
        named = _django.contrib_languages(self.sitemap)
        if _is_standard(type(self.sitemap), "get_languages_for_item"):
            return named
        return [*named, *(code for code, _ in settings.LANGUAGES if code not in named)]

    @property
    def alternates(self) -> bool:  # type: ignore[override]
        """Whether the contrib sitemap links an item's URLs in all languages with each other."""
        return bool(self.sitemap.alternates)

    @property
    def x_default(self) -> bool:  # type: ignore[override]
        """Whether the contrib sitemap links a URL without a language too."""
        return bool(self.sitemap.x_default)

    def object_languages(self, item: Any) -> Sequence[str]:
        """Return the languages in which the contrib sitemap lists an item."""
        return self.sitemap.get_languages_for_item(item)  # type: ignore[no-any-return]


def adapt_contrib(
    sitemap: Any, name: str | None = None, new_sitemap: Callable[[], Any] | None = None
) -> type[ContribSection]:
    """Return a section class for a contrib sitemap, which is given as a class or an instance.

    Each read of the section makes its own instance of the sitemap: by ``new_sitemap``, if given,
    else of the class, or as a copy of the instance as it is now.
    """
    # A class that cannot be instantiated fails here, and not at a request.
    instance = sitemap() if isinstance(sitemap, type) else sitemap
    old = type(instance)
    if new_sitemap is None:
        new_sitemap = (
            sitemap if instance is not sitemap else partial(copy_sitemap, copy_sitemap(instance))
        )
    return type(
        old.__name__,
        (ContribSection,),
        {
            "name": name or section_name_of(old.__name__),
            "new_sitemap": staticmethod(new_sitemap),
            "__module__": old.__module__,
            "__doc__": old.__doc__,
        },
    )


def copy_sitemap(sitemap: Any) -> Any:
    """Return a shallow copy of a contrib sitemap with its own lists, dicts, sets and querysets.

    The elements of its lists and sets are shared: there may be many, or the sitemap itself.
    """
    new = copy(sitemap)
    vars(new).update({name: _copied_value(value) for name, value in vars(sitemap).items()})
    return new


def _copied_value(value: Any) -> Any:
    """Return a copy of an attribute's value if it is a queryset, dict, list or set."""
    if isinstance(value, QuerySet):
        return value.all()
    if type(value) is dict:
        return {key: _copied_value(one) for key, one in value.items()}
    return copy(value) if isinstance(value, (dict, list, set)) else value


def is_contrib(candidate: Any) -> bool:
    """Return whether ``candidate`` is a contrib sitemap, as a class or an instance."""
    return isinstance(candidate, Sitemap) or (
        isinstance(candidate, type) and issubclass(candidate, Sitemap)
    )


def overridden_members(sitemap: Any) -> list[str]:
    """Return which of Django's methods that make entries a contrib sitemap has its own version of.

    ``_django.CONTRIB_METHODS`` names them. Django's classes have none, and neither have those of
    this package.
    """
    return [name for name in _django.CONTRIB_METHODS if not _is_standard(type(sitemap), name)]


def _is_standard(kind: type, name: str) -> bool:
    """Return whether a class has a member from a class of Django or of this package."""
    owners = (base.__module__ for base in kind.__mro__ if name in vars(base))
    return next(owners, "").startswith(("django.", "django_sitemapkit."))
