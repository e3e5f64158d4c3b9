"""Mistakes in the items of sections that are paged by position."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from django.urls import NoReverseMatch

from django_sitemapkit.reading.items import UNORDERED, ItemReader
from django_sitemapkit.reading.validation.common import FindMistake, Mistake, SectionChecks
from django_sitemapkit.reading.validation.options import OptionChecks
from django_sitemapkit.sections import StaticSection

MAX_CHECKED_ITEMS = 1000
"""Items of a section of which a check looks up the URLs."""


class ItemChecks(OptionChecks):
    """The checks of an ``ItemSection``."""

    reader: ItemReader

    def wrong_items(self) -> Mistake | None:
        """Find items that cannot be listed."""
        return wrong_items_of(self.reader, self.options.items)

    @property
    def calls_code(self) -> bool:
        """Whether items is a method."""
        return callable(self.options.items)

    OF_CODE: ClassVar[tuple[str, ...]] = ("sitemapkit.W134", "sitemapkit.W155")

    CHECKS: ClassVar[dict[str, FindMistake]] = OptionChecks.CHECKS | {
        "sitemapkit.E129": SectionChecks.column_without_rows,
    }

    ITEM_CHECKS: ClassVar[dict[str, FindMistake]] = {"sitemapkit.E155": wrong_items}

    PAGEABLE: ClassVar[tuple[FindMistake, ...]] = (SectionChecks.wrong_limit, wrong_items)


class StaticChecks(ItemChecks):
    """The checks of a ``StaticSection``."""

    def unknown_item(self) -> Mistake | None:
        """Find an item that is neither a path, nor a URL name, nor an object."""
        location = type(self.options).location
        if location is not StaticSection.location or self.wrong_items():
            return None
        for item in islice(self.reader.rows, MAX_CHECKED_ITEMS):
            if hasattr(item, "get_absolute_url"):
                continue  # What it raises is the object's own problem.
            try:
                with self.reader.site.active():
                    self.options.location(item)
            except (NoReverseMatch, TypeError) as error:
                if isinstance(item, str):
                    hint = "An item is a URL name without arguments, or a path that begins with /."
                    return Mistake(f"items: {error}", hint)
                return Mistake(
                    f"items: {item!r} is not a string and has no get_absolute_url()",
                    f"Write location(self, item), or give {type(item).__name__} a"
                    " get_absolute_url().",
                )
        return None

    ITEM_CHECKS: ClassVar[dict[str, FindMistake]] = {
        "sitemapkit.E134": unknown_item,
        **ItemChecks.ITEM_CHECKS,
    }


def wrong_items_of(reader: ItemReader, declared: Any) -> Mistake | None:
    """Find items that cannot be listed."""
    if isinstance(declared, Iterator):
        return Mistake(
            f"items is {kind_of(declared)}, which can be read only once",
            "Use a list, or write a method: def items(self).",
        )
    return _unlisted(reader.rows, "items() returned" if callable(declared) else "items is")


def _unlisted(items: Any, said: str) -> Mistake | None:
    """Return why values cannot be listed, or None where they can."""
    if isinstance(items, Mapping):
        hint = "Use a list of its keys or values, such as list(urls.values())."
        return Mistake(f"{said} {kind_of(items)}, which has no order to page by", hint)
    if isinstance(items, UNORDERED):
        hint = "Use a list, such as sorted(items)."
        return Mistake(f"{said} {kind_of(items)}, whose order differs between processes", hint)
    if isinstance(items, (str, bytes)) or not hasattr(items, "__getitem__"):
        return Mistake(f"{said} {items!r}", "Use a list or a QuerySet.")
    return None


def kind_of(value: Any) -> str:
    """Return the type of a value as messages name it."""
    return f"a {type(value).__name__}"
