"""How the number of URLs has changed since the build before, and what roll-backs leave to come."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_sitemapkit.models import Build, Place
from django_sitemapkit.words import Count

LOSS = 0.05
"""The share of its URLs that a site or section may lose before that is marked."""

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class UrlChange:
    """A number of URLs, and the number in the build before.

    Example::

        UrlChange(after=1330, before=1000).text  # "+330 (+33 %)"
    """

    after: int
    """How many there are."""
    before: int | None
    """How many there were; None if there is no build before."""

    @property
    def count(self) -> str:
        """How many there are, as text."""
        return str(Count(self.after))

    @property
    def text(self) -> str:
        """The difference, with its share if that is a percent or more; "" if there is none."""
        if self.before is None or self.after == self.before:
            return ""
        more = self.after - self.before
        text = _signed(more)
        percent = round(100 * more / self.before) if self.before else 0
        if not percent:
            return text
        return _("%(change)s (%(percent)s %%)") % {"change": text, "percent": _signed(percent)}

    @property
    def is_loss(self) -> bool:
        """Whether more than LOSS of the URLs are gone, so that somebody should look."""
        return bool(self.before) and self.before - self.after > LOSS * self.before  # type: ignore[operator]

    def __str__(self) -> str:
        """Return the number and the difference as HTML."""
        if not self.text:
            return self.count
        kind = "sitemapkit-loss" if self.is_loss else "quiet"
        return format_html('{} <span class="{}" dir="ltr">{}</span>', self.count, kind, self.text)


def _signed(value: int) -> str:
    """Return a number with its sign and with thousands separators."""
    return f"{'+' if value > 0 else MINUS}{Count(abs(value))}"


def is_complete(build: Build) -> bool:
    """Return whether a build made all its files: it was published, or is held for review."""
    return build.published_at is not None or build.status == Build.Status.HELD


def rollback_states(states: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the sites' states whose next build undoes a roll-back, each with what comes back.

    What comes back is a state with the code "returning" and the id of the build that was rolled
    back, and with the URL counts of the live build and of that one.
    """
    rolled_back = [each for each in states if each.rolled_back]
    wanted = {pk for each in rolled_back for pk in (each.build, each.rolled_back.pk)}
    places = Place.objects.filter(build__in=wanted)
    urls = {total["build"]: total["urls"] for total in places.totals("build")} if wanted else {}
    for each in rolled_back:
        counts = {"before": urls.get(each.build, 0), "urls": urls.get(each.rolled_back.pk, 0)}
        yield each, {"code": "returning", "build": each.rolled_back.pk, **counts}
