"""Sitemaps written for ``django.contrib.sitemaps``, as sections."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.sitemaps import Sitemap

from django_sitemapkit import _django
from django_sitemapkit.sections.declarations import ItemSection, name_of


class ContribSection(ItemSection):
    """A section that takes its options from a ``django.contrib.sitemaps.Sitemap``."""

    sitemap: ClassVar[Any]

    @property
    def items(self) -> Any:
        """The sitemap's method that returns them."""
        return self.sitemap.items

    def location(self, item: Any) -> str:
        """Return the location of an item: what the method returns, or the same for all items."""
        location = self.sitemap.location
        return str(location(item) if callable(location) else location)

    @property
    def limit(self) -> int:  # type: ignore[override]
        """The sitemap's URLs in one file."""
        return int(self.sitemap.limit)

    @property
    def i18n(self) -> bool:  # type: ignore[override]
        """Whether the sitemap lists each item in every language."""
        return bool(self.sitemap.i18n)

    @property
    def languages(self) -> Sequence[str]:  # type: ignore[override]
        """The sitemap's languages."""
        return _django.contrib_languages(self.sitemap)

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
