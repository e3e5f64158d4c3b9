"""Sitemaps written for ``django.contrib.sitemaps``, as sections."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.sitemaps import Sitemap

from django_sitemapkit import _django
from django_sitemapkit.protocol.limits import MAX_URLS
from django_sitemapkit.sections.declarations import ItemSection, name_of


class ContribSection(ItemSection):
    """A section that takes its options from a ``django.contrib.sitemaps.Sitemap``."""

    sitemap: ClassVar[Any]

    @property
    def items(self) -> Any:
        """The sitemap's method that returns them."""
        return self.sitemap.items

    def location(self, item: Any) -> str | None:
        """Return an item's location, or None: the method's result, or one text for all."""
        location = self.sitemap.location
        location = location(item) if callable(location) else location
        return None if location is None else str(location)

    @property
    def limit(self) -> int:  # type: ignore[override]
        """The sitemap's URLs in one file, up to what search engines read."""
        return min(int(self.sitemap.limit), MAX_URLS)

    @property
    def i18n(self) -> bool:  # type: ignore[override]
        """Whether the sitemap lists each item in every language."""
        return bool(self.sitemap.i18n)

    @property
    def languages(self) -> Sequence[str]:  # type: ignore[override]
        """The sitemap's languages; those of the settings, too, if it names those of each item."""
        named = _django.contrib_languages(self.sitemap)
        if _is_standard(type(self.sitemap), "get_languages_for_item"):
            return named
        return [*named, *(code for code, _ in settings.LANGUAGES if code not in named)]

    @property
    def alternates(self) -> bool:  # type: ignore[override]
        """Whether the sitemap links the versions of an item."""
        return bool(self.sitemap.alternates)

    @property
    def x_default(self) -> bool:  # type: ignore[override]
        """Whether the sitemap names the address without a language, too."""
        return bool(self.sitemap.x_default)

    def object_languages(self, item: Any) -> Sequence[str]:
        """Return the languages that the sitemap gives for an item."""
        languages: Sequence[str] = self.sitemap.get_languages_for_item(item)
        return languages


def adapt(sitemap: Any, name: str | None = None) -> type[ContribSection]:
    """Return a section class for a contrib sitemap, which is a class or an instance."""
    instance = sitemap() if isinstance(sitemap, type) else sitemap
    old = type(instance)
    return type(
        old.__name__,
        (ContribSection,),
        {
            "name": name or name_of(old.__name__),
            "sitemap": instance,
            "__module__": old.__module__,
            "__doc__": old.__doc__,
        },
    )


def is_contrib(candidate: Any) -> bool:
    """Return whether ``candidate`` is a contrib sitemap, as a class or an instance."""
    return isinstance(candidate, Sitemap) or (
        isinstance(candidate, type) and issubclass(candidate, Sitemap)
    )


def own_members(sitemap: Any) -> list[str]:
    """Return the members by which a contrib sitemap makes its entries in a way of its own.

    Django's classes have none, and neither have those of this package.
    """
    return [name for name in _django.CONTRIB_METHODS if not _is_standard(type(sitemap), name)]


def _is_standard(kind: type, name: str) -> bool:
    owners = (base.__module__ for base in kind.__mro__ if name in vars(base))
    return next(owners, "").startswith(("django.", "django_sitemapkit."))
