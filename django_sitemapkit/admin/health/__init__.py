"""The page "Health": items that the package, in ``builds``, and other apps contribute."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from django.db.models import IntegerChoices
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import number_text
from django_sitemapkit.inspection import try_read
from django_sitemapkit.sites import SitemapSite


class Level(IntegerChoices):
    """How much an item matters; the first are shown first."""

    ERROR = 1, _("error")
    WARNING = 2, _("warning")
    NOTE = 3, _("note")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthItem:
    """Something that was found at a site, and what to do about it.

    Example::

        HealthItem(
            site="default",
            title=_("Broken link"),
            found_at=crawl.ended_at,
            found_by=_("Crawl"),
            count=12,
            advice=_("Correct the link, or remove it."),
            url=reverse("admin:shop_brokenlink_changelist"),
        )
    """

    site: str
    """The key of the site."""
    title: Any
    """What kind of thing was found."""
    level: Level = Level.WARNING
    """An error keeps pages out of search engines; a note is only worth knowing."""
    found_at: dt.datetime
    """When it was found last. The newest are shown first; what is found by one look, together."""
    since: dt.datetime | None = None
    """When it was found first, if each look since then has found it; None if not earlier."""
    found_by: Any = ""
    """What found it."""
    count: int | None = None
    """How many there are; None if they are not counted."""
    at_least: bool = False
    """Whether there may be more than ``count``."""
    details: Sequence[Any] = ()
    """What exactly, or examples, a paragraph each."""
    advice: Any = ""
    """What to do about it."""
    url: str = ""
    """The address of the list of what was found, or of the page to act on; "" for none."""

    @property
    def shown_count(self) -> str:
        """The count as text; "" without one."""
        if self.count is None:
            return ""
        text = _("at least %(count)s") if self.at_least else "%(count)s"
        return text % {"count": number_text(self.count)}


Reporter: TypeAlias = Callable[[HttpRequest, Sequence[SitemapSite]], Iterable[HealthItem]]


sources: list[dict[str, Any]] = []
"""What is registered, in the order of registration: ``title``, ``help`` and ``report``."""


def register_health(title: Any, *, help: Any) -> Callable[[Reporter], Reporter]:  # noqa: A002
    """Return a decorator that registers a function whose items the page "Health" shows.

    The function gets the request and some sites, and yields a HealthItem for each thing found that
    the user may see. Read the rows of all sites by the same few queries, and only rows: a function
    that takes long makes the page and the overview slow. ``title`` and ``help`` are translatable;
    ``help`` says on the page what the function finds, and how to make it look. Put the function in
    your app's ``admin.py``. If it raises an exception, the page shows the error as an item.

    Example::

        @register_health(_("Crawlers"), help=_("Errors that crawlers met, from the access log."))
        def crawlers(request, sites):
            for row in CrawlerError.objects.filter(site__in=[site.key for site in sites]):
                yield HealthItem(site=row.site, title=row.text, found_at=row.logged_at)
    """

    def register(report: Reporter) -> Reporter:
        """Register the function, and return it."""
        sources.append({"title": title, "help": help, "report": report})
        return report

    return register


def items_by_site(
    request: HttpRequest, sites: Sequence[SitemapSite]
) -> dict[str, list[HealthItem]]:
    """Return the items of all registered functions by site key, newest first for each site."""
    found: dict[str, list[HealthItem]] = {site.key: [] for site in sites}
    for source in sources:
        read = partial(source["report"], request, sites)
        for item in items_or_failure(
            read, sites, title=_("Cannot be read"), found_by=source["title"]
        ):
            if item.site in found:  # It may be of a site that the settings no longer have.
                found[item.site].append(item)
    return {key: newest_first(items) for key, items in found.items()}


def newest_first(items: Iterable[HealthItem]) -> list[HealthItem]:
    """Return items in the order in which they are shown: newest first.

    Those that were found at once by the same build or audit are sorted by level, then by count.
    """
    return sorted(
        items,
        key=lambda item: (
            *(-item.found_at.timestamp(), str(item.found_by)),
            *(item.level, -(item.count or 0)),
        ),
    )


def attention_context(items: Iterable[HealthItem]) -> dict[str, Any]:
    """Return the errors and warnings among some items, and their numbers; notes are left out."""
    shown = [item for item in items if item.level != Level.NOTE]
    errors = sum(item.level == Level.ERROR for item in shown)
    return {"items": shown, "errors": errors, "warnings": len(shown) - errors}


def items_or_failure(
    read: Callable[[], Iterable[HealthItem]], sites: Sequence[SitemapSite], **failed: Any
) -> Sequence[HealthItem]:
    """Return the items that ``read`` returns; if it raises, an error item for each site.

    The error item gives the reason; ``failed`` are its other fields, such as the title.
    """
    items, reason = try_read(lambda: list(read()))
    if items is not None:
        return items
    failed = {"found_at": timezone.now(), "details": (reason,), **failed}
    return [HealthItem(site=site.key, level=Level.ERROR, **failed) for site in sites]
