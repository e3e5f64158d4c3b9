"""The stored queue of a crawl: URLs in the order in which the crawl met them.

The order of the rows is that of a breadth-first search, whatever the size of the batches: URLs
that a page links to come after those of the pages before it. So a crawl that continues does what
an undisturbed one does.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db import connections, router
from django.db.models import Count, F

from django_sitemapkit.audit.crawl.outcome import FoundLink, Outcome, UrlOutcome
from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl
from django_sitemapkit.audit.web.responses import MAX_REDIRECTS
from django_sitemapkit.models import hash_of

ROWS_PER_QUERY = 500
"""Rows that one query reads, or names by their key or hash."""

MAX_KEPT_LINKS = 5
"""Links to one URL that are kept, to say which web pages hold them; the others are counted."""

MAX_REMEMBERED = 20_000
"""URLs that are remembered as fetched, so that menus cost no query on each page."""

OPEN_OUTCOMES = frozenset({Outcome.PENDING, Outcome.REDIRECT, Outcome.BROKEN, Outcome.UNKNOWN})
"""Outcomes of URLs whose links are kept."""

_RECORDED = ["outcome", "status", "target", "detail", "title", "lastmod"]


@dataclass(slots=True)
class _FoundUrl:
    """What a batch of outcomes says of one URL to which links, redirects or canonicals lead."""

    depth: int
    hops: int
    is_followed: bool = True
    is_asked: bool = True
    links: list[tuple[int, FoundLink]] = field(default_factory=list)
    """The key of each page that links to it, and the link."""


class Frontier:
    """The queue of one crawl: its stored URLs that are still to be fetched, in order.

    With ``follows`` it gives the URLs whose links are followed, else those that are only checked.
    The latter come at the end of a crawl, when it is known which of them links lead to as well.

    At most ``max_urls`` URLs are fetched, and one more is stored, whose row shows that the crawl is
    not complete. The limit applies to the followed, the checked and the blocked URLs, each for
    themselves; those that only ``nofollow`` links lead to count as blocked.
    """

    def __init__(
        self,
        run: AuditRun,
        is_blocked: Callable[[str], bool],
        *,
        max_urls: int,
        max_depth: int | None = None,
        follows: bool = True,
    ) -> None:
        self._run = run
        self._is_blocked = is_blocked
        self._max_depth = max_depth
        rows = CrawledUrl.objects.filter(run=run)
        blocked = rows.filter(outcome=Outcome.BLOCKED).count()
        others = rows.exclude(outcome=Outcome.BLOCKED).values_list("is_followed")
        stored: dict[bool, int] = dict(others.annotate(Count("pk")).order_by())
        self._room: dict[bool | None, int] = {
            True: max_urls + 1 - stored.get(True, 0),
            False: max_urls + 1 - stored.get(False, 0),
            None: max_urls - blocked,
        }
        """How many more URLs are stored of those that are followed, checked and blocked."""
        self._left = max_urls - (run.checked if follows else run.others_checked)
        self.follows = follows
        self._queue: deque[CrawledUrl] = deque()
        self._last = 0
        self._is_exhausted = False
        """Whether no stored URL is left to read, until more are stored."""
        self._remembered: set[str] = set()

    def add_starts(self, urls: Iterable[str]) -> None:
        """Store the URLs at which the crawl starts."""
        self._store_new({url: _FoundUrl(depth=0, hops=0) for url in urls})

    def next(self) -> CrawledUrl | None:
        """Remove and return the next URL to fetch.

        None if a limit is reached, or if no URL is known until more outcomes are recorded.
        """
        if self._left <= 0:
            return None
        if not self._queue and not self._is_exhausted:
            pending = CrawledUrl.objects.filter(run=self._run, outcome=Outcome.PENDING)
            rows = pending.filter(is_followed=self.follows, pk__gt=self._last).order_by("pk")
            self._queue.extend(rows[:ROWS_PER_QUERY])
            self._is_exhausted = not self._queue
        row = self._queue[0] if self._queue else None
        if row is None or (self._max_depth is not None and row.depth > self._max_depth):
            return None  # Those behind it are at least as deep.
        self._left -= 1
        self._last = row.pk
        return self._queue.popleft()

    @property
    def max_waiting(self) -> int:
        """The number of stored URLs that are still to be fetched, or a few more.

        It is an estimate without a query, and limits nothing.
        """
        return self._left - max(self._room[self.follows], 0) + 1

    def record_and_enqueue(self, batch: Sequence[tuple[CrawledUrl, UrlOutcome]]) -> None:
        """Store the outcomes of URLs, in the order of ``next()``; add the URLs they lead to.

        The links to these are stored; links to URLs that turned out to be fine are deleted.
        """
        for row, outcome in batch:
            for name in _RECORDED:
                setattr(row, name, getattr(outcome, name))
        _update_rows([row for row, _ in batch])
        found = self._urls_found(batch)
        known = self._known_rows(found)
        new = {
            url: leading
            for url, leading in found.items()
            if url not in known or leading.is_followed > known[url].is_followed
        }
        stored = self._store_new(new)
        for url in known.keys() & stored.keys():
            _move_links_and_delete(known[url], stored[url])
        known |= stored
        _store_links(self._run, found, known, new)
        fine = [row.pk for row, _ in batch if row.outcome not in OPEN_OUTCOMES]
        CrawledLink.objects.filter(target__in=fine).delete()

    def _urls_found(self, batch: Sequence[tuple[CrawledUrl, UrlOutcome]]) -> dict[str, _FoundUrl]:
        """Return, by URL, what a batch says of the URLs it leads to, in the order of the links.

        URLs that are remembered as fetched are left out, unless a redirect or canonical leads
        there.
        """
        found: dict[str, _FoundUrl] = {}
        for row, outcome in batch:
            depth = row.depth + 1
            if target := outcome.next:
                hops = row.hops + 1 if row.outcome == Outcome.REDIRECT else 0
                if hops <= MAX_REDIRECTS:
                    leading = found.setdefault(target, _FoundUrl(depth, hops))
                    leading.is_followed = leading.is_asked = True
            for link in outcome.links:
                if link.url not in self._remembered:
                    new = _FoundUrl(depth, 0, link.is_followed, link.is_asked)
                    leading = found.setdefault(link.url, new)
                    leading.is_followed |= link.is_followed
                    leading.is_asked |= link.is_asked
                    leading.links.append((row.pk, link))
        return found

    def _known_rows(self, urls: Collection[str]) -> dict[str, CrawledUrl]:
        """Return, by URL, the stored rows of the given URLs; remember those that are done."""
        known = rows_by_url(self._run, urls)
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered.update(
            url
            for url, row in known.items()
            if row.is_followed and row.outcome not in OPEN_OUTCOMES
        )
        return known

    def _store_new(self, found: dict[str, _FoundUrl]) -> dict[str, CrawledUrl]:
        """Store found URLs as pending or blocked, up to the limits; return their rows by URL."""
        new = list(self._new_rows(found))
        CrawledUrl.objects.bulk_create(new, batch_size=ROWS_PER_QUERY)
        self._is_exhausted = False
        if new and new[0].pk is None:  # MySQL returns no keys.
            return rows_by_url(self._run, [row.url for row in new])
        return {row.url: row for row in new}

    def _new_rows(self, found: dict[str, _FoundUrl]) -> Iterator[CrawledUrl]:
        """Yield an unsaved row for each found URL, until the limit for its kind is reached."""
        for url, leading in found.items():
            is_blocked = not leading.is_asked or self._is_blocked(url)
            kind = None if is_blocked else leading.is_followed
            self._room[kind] -= 1
            if self._room[kind] >= 0:
                yield CrawledUrl(
                    run_id=self._run.pk,
                    hash=hash_of(url),
                    url=url,
                    is_followed=leading.is_followed,
                    depth=leading.depth,
                    hops=leading.hops,
                    outcome=Outcome.BLOCKED if is_blocked else Outcome.PENDING,
                    linking_pages=len(leading.links),
                )


def _move_links_and_delete(old: CrawledUrl, new: CrawledUrl) -> None:
    """Move the links to a URL from its row ``old``, and delete that; ``new`` is stored already."""
    CrawledLink.objects.filter(target=old).update(target=new)
    new.linking_pages += old.linking_pages
    new.save(update_fields=["linking_pages"])
    old.delete()


def _update_rows(rows: Sequence[CrawledUrl]) -> None:
    """Store the outcomes of existing rows in one query.

    The query is an insert that updates on conflict: ``bulk_update()`` takes ten times as long.
    """
    features = connections[router.db_for_write(CrawledUrl)].features
    CrawledUrl.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=_RECORDED,
        unique_fields=["id"] if features.supports_update_conflicts_with_target else None,
    )


def _store_links(
    run: AuditRun,
    found: dict[str, _FoundUrl],
    known: dict[str, CrawledUrl],
    new: Collection[str],
) -> None:
    """Store the first links to each URL that is not known to be fine, and count all of them.

    ``known`` has the rows of the ``found`` URLs; those in ``new`` have been counted already.
    """
    kept: list[CrawledLink] = []
    counted: defaultdict[int, list[int]] = defaultdict(list)
    for url, leading in found.items():
        row = known.get(url)
        if row is None or row.outcome not in OPEN_OUTCOMES or not leading.links:
            continue
        before = 0
        if url not in new:
            before = row.linking_pages
            counted[len(leading.links)].append(row.pk)
        kept += (
            CrawledLink(
                run_id=run.pk,
                source_id=source,
                target_id=row.pk,
                text=link.text,
                element=link.element,
            )
            for source, link in leading.links[: max(0, MAX_KEPT_LINKS - before)]
        )
    CrawledLink.objects.bulk_create(kept, batch_size=ROWS_PER_QUERY)
    for count, keys in counted.items():
        for start in range(0, len(keys), ROWS_PER_QUERY):
            rows = CrawledUrl.objects.filter(pk__in=keys[start : start + ROWS_PER_QUERY])
            rows.update(linking_pages=F("linking_pages") + count)


def rows_by_url(run: AuditRun, urls: Collection[str], **filters: object) -> dict[str, CrawledUrl]:
    """Return, by URL, the rows of a crawl with these URLs that match ``filters``."""
    found: dict[str, CrawledUrl] = {}
    wanted = frozenset(urls)
    hashes = [hash_of(url) for url in wanted]
    for start in range(0, len(hashes), ROWS_PER_QUERY):
        candidates = CrawledUrl.objects.filter(
            run=run, hash__in=hashes[start : start + ROWS_PER_QUERY], **filters
        )
        # The texts are compared here: hashes may be equal, and so may texts to a collation.
        found.update((row.url, row) for row in candidates.order_by("pk") if row.url in wanted)
    return found
