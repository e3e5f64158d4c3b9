"""Can the lastmods be true? What search engines find out is what they stop to believe.

Google uses lastmod only where it is "consistently and verifiably accurate"
(https://developers.google.com/search/docs/crawling-indexing/sitemaps/build-sitemap).
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from django.utils import timezone

from django_sitemapkit.builds.manifest import page_name_of
from django_sitemapkit.models import Place
from django_sitemapkit.protocol.dates import moment_of
from django_sitemapkit.words import State

LEAST_ALIKE = 10
"""URLs of a section from which on one lastmod is doubted: fewer may have been made together."""

LEAST_OF_NOW = 2
"""URLs of a page from which on they can hardly all have changed while it was made."""

DAY = len("YYYY-MM-DD")
"""Characters of a lastmod that is a date, and those of a moment that say its date."""


def doubts(
    pages: Iterable[Place], published: Iterable[Place], started_at: dt.datetime
) -> Iterator[State]:
    """Yield what a build's lastmods say that can hardly be true: section, what, and keys.

    ``pages`` are those of the build, in order, and ``published`` those that are served.
    """
    stored = {page_name_of(row): row for row in published}
    sections: defaultdict[str, list[Place]] = defaultdict(list)
    for row in pages:
        if row.page.lastmods:
            sections[row.section].append(row)
    for rows in sections.values():
        yield from _alike(rows)
        known = [(row, stored.get(page_name_of(row))) for row in rows]
        made = [(row, old) for row, old in known if old is None or old.page.name != row.page.name]
        yield from _of_now([row for row, _old in made], started_at)
        for row, old in made:
            if old is not None:
                yield from _backwards(row, old)


def _alike(rows: Sequence[Place]) -> Iterator[State]:
    known = [row.page.lastmods for row in rows]
    urls = sum(one["count"] for one in known)
    texts = {text for one in known for text in (one["oldest"], one["newest"])}
    if len(texts) == 1 and urls >= LEAST_ALIKE:
        yield {  # Without the number of URLs, or it would be a new warning with each row.
            "code": "lastmods-alike",
            "section": rows[0].section,
            "lastmod": texts.pop(),
            "key": _shown(rows[0]),
        }


def _of_now(rows: Sequence[Place], started_at: dt.datetime) -> Iterator[State]:
    start = _aware(started_at).replace(microsecond=0)
    of_now = [
        row
        for row in rows
        if row.page.lastmods["count"] >= LEAST_OF_NOW
        and len(row.page.lastmods["oldest"]) > DAY
        and moment_of(row.page.lastmods["oldest"], dt.UTC) >= start
    ]
    if of_now:
        yield {
            "code": "lastmods-of-now",
            "section": of_now[0].section,
            "pages": len(of_now),
            "keys": ", ".join(map(_shown, of_now[:3])),
        }


def _backwards(row: Place, previous: Place) -> Iterator[State]:
    """Doubt a page that has as much as it had, and whose newest lastmod is older than it was."""
    if not previous.page.lastmods or row.page.urls < previous.page.urls:
        return
    before, after = previous.page.lastmods["newest"], row.page.lastmods["newest"]
    if _is_before(after, before):
        yield {
            "code": "lastmod-backwards",
            "section": row.section,
            "page": row.number,
            "before": before,
            "key_before": _shown(previous),
            "lastmod": after,
            "key": _shown(row),
        }


def _is_before(text: str, other: str) -> bool:
    """Return whether a lastmod is surely older; a date may be any moment of its day."""
    if DAY in (len(text), len(other)):
        return text[:DAY] < other[:DAY]
    return moment_of(text, dt.UTC) < moment_of(other, dt.UTC)


def _shown(row: Place) -> str:
    """Return the key of a page's newest lastmod, on one row."""
    key: str = row.page.lastmods["key"]
    return key if key.isprintable() else repr(key)


def _aware(moment: dt.datetime) -> dt.datetime:
    zone = timezone.get_default_timezone()
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment, zone)
