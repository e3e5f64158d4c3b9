"""What a crawl found, compared with what the sitemap lists, as findings."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

from django.db.models import QuerySet

from django_sitemapkit.audit.auditing import (
    add_findings,
    delete_in_batches,
    entries_of,
    new_finding,
)
from django_sitemapkit.audit.crawl.frontier import ROWS_PER_QUERY, rows_by_url
from django_sitemapkit.audit.crawl.outcome import CrawlScope, Outcome
from django_sitemapkit.audit.kinds import FindingKind as Kind
from django_sitemapkit.audit.models import (
    AuditFinding,
    AuditRun,
    CrawledLink,
    CrawledUrl,
    SavedPage,
)
from django_sitemapkit.audit.rules import redirects_to_login
from django_sitemapkit.audit.sections import CrawledSection
from django_sitemapkit.audit.web.pages import LINK_ELEMENTS
from django_sitemapkit.audit.web.responses import MAX_REDIRECTS, REDIRECTS
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Build, hash_of
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite

WEB_PAGES = (Outcome.PAGE, Outcome.DUPLICATE, Outcome.NOINDEX)
"""Outcomes of URLs whose links were read."""

_ENDS = {
    Outcome.BLOCKED: "blocked by robots.txt",
    Outcome.DUPLICATE: "another URL is canonical",
    Outcome.NOINDEX: "noindex",
    Outcome.REDIRECT: "redirects",
}
"""What is wrong with URLs that redirects and canonical links lead to."""

_KINDS_OF_ENDS = {Outcome.BROKEN: Kind.BROKEN_LINK, Outcome.UNKNOWN: Kind.UNDETERMINED}
"""The finding kind of a link by what its redirects end at."""


class CrawlComparison:
    """Records findings about a crawl's links and about the entries of the site's sitemap.

    Orphans are judged only if every URL that the crawl met was fetched and could be read, and at
    least one was a web page. If a process is killed meanwhile, the next one starts the comparison
    again. ::

        CrawlComparison(run, site, scope, lease).record_findings()
    """

    def __init__(
        self, run: AuditRun, site: SitemapSite, scope: CrawlScope, lease: BuildLease
    ) -> None:
        self._run = run
        self._site = site
        self._scope = scope
        self._lease = lease
        self._rows = CrawledUrl.objects.filter(run=run)
        self._finding = partial(new_finding, run)

    def record_findings(self) -> None:
        """Compare the crawl with the sitemap, and store what is wrong as findings."""
        self._reset()
        self._record_findings(
            self._rows.filter(outcome=Outcome.BLOCKED, depth=0), self._broken_findings
        )
        self._record_findings(self._rows.filter(outcome=Outcome.BROKEN), self._broken_findings)
        undetermined = self._rows.exclude(outcome=Outcome.BROKEN).exclude(detail="")
        self._record_findings(undetermined, self._undetermined_findings)
        self._record_findings(self._rows.filter(outcome=Outcome.REDIRECT), self._redirect_findings)
        self._compare_entries()
        if self._run.options["compares"]:
            unlisted = self._rows.filter(outcome=Outcome.PAGE, is_listed=False)
            self._record_findings(unlisted, self._missing_findings)
        self._record_findings(
            self._rows.filter(outcome=Outcome.DUPLICATE), self._duplicate_findings
        )

    def _reset(self) -> None:
        """Delete what an interrupted comparison stored; choose the build to compare with.

        Also counts the URLs that the crawl left pending.
        """
        self._published = Build.objects.published(self._site)
        delete_in_batches(AuditFinding.objects.filter(run=self._run))
        with self._lease.fenced_transaction():
            self._rows.filter(is_listed=True).update(is_listed=False)
            self._run.build = None if self._published is None else self._published.pk
            self._run.counts = {}
            self._run.pending = self._rows.filter(outcome=Outcome.PENDING, is_followed=True).count()
            self._run.save(update_fields=["build", "counts", "pending"])

    def _record_findings(
        self,
        rows: QuerySet[CrawledUrl],
        findings_of: Callable[[list[CrawledUrl]], Iterable[AuditFinding]],
    ) -> None:
        """Store the findings that ``findings_of`` yields for the rows, batch by batch."""
        for some in batches_in_crawl_order(rows):
            with self._lease.fenced_transaction():
                add_findings(self._run, list(findings_of(some)))

    def _broken_findings(self, rows: list[CrawledUrl]) -> Iterator[AuditFinding]:
        """Yield a finding for each broken or blocked URL that is linked, or a start."""
        origins = _link_source_texts(rows)
        for row in rows:
            if row.linking_pages or row.depth == 0:
                why = _ENDS.get(Outcome(row.outcome), row.detail)
                yield self._finding(Kind.BROKEN_LINK, row.url, f"{why}; {origins[row.pk]}")

    def _undetermined_findings(self, rows: list[CrawledUrl]) -> Iterator[AuditFinding]:
        """Yield a finding for each URL whose outcome, or links, could not be determined."""
        origins = _link_source_texts(rows)
        for row in rows:
            detail = row.detail
            if row.outcome == Outcome.UNKNOWN:
                detail = f"{detail.removesuffix('.')}; {origins[row.pk]}"
            yield self._finding(Kind.UNDETERMINED, row.url, detail)

    def _redirect_findings(self, rows: list[CrawledUrl]) -> Iterator[AuditFinding]:
        """Yield a finding for each linked URL that redirects, except to a login page."""
        chains = self._chains_by_row(rows)
        origins = _link_source_texts(rows)
        for row in rows:
            chain = chains[row.pk]
            if any(redirects_to_login(redirect.target, redirect.url) for redirect in chain):
                continue  # Visitors are asked to log in: the link is as it should be.
            kind, text = _kind_and_text(chain)
            leads_away = chain[-1].outcome == Outcome.REDIRECT or kind is Kind.BROKEN_LINK
            if row.linking_pages or (row.depth == 0 and leads_away):
                yield self._finding(kind, row.url, f"{text}; {origins[row.pk]}")

    def _chains_by_row(self, rows: list[CrawledUrl]) -> dict[int, list[CrawledUrl]]:
        """Return, by row id, the redirecting row followed by the rows that it leads to."""
        chains = {row.pk: [row] for row in rows}
        growing = list(chains.values())
        while growing:
            targets = rows_by_url(self._run, {chain[-1].target for chain in growing})
            growing = [chain for chain in growing if chain[-1].target in targets]
            for chain in growing:
                chain.append(targets[chain[-1].target])
            growing = [chain for chain in growing if not _has_ended(chain)]
        return chains

    def _compare_entries(self) -> None:
        """Mark crawled URLs that a section lists; record listed URLs that no page links to."""
        judges_orphans = self._can_find_orphans()
        below = self._run.options.get("below", "")
        detail = f"only URLs below {below} were crawled" if below else ""
        listing = compared_section_names(self._site)
        entries = (
            entry
            for entry in entries_of(self._site, self._published)
            if entry.section in listing and self._scope.contains(entry.url)
        )
        while batch := list(islice(entries, ROWS_PER_QUERY)):
            self._lease.heartbeat()
            known = rows_by_url(self._run, {entry.url for entry in batch})
            orphans = [
                self._finding(Kind.ORPHAN, entry.url, detail, entry.section)
                for entry in batch
                if judges_orphans and entry.url not in known
            ]
            if known or orphans:
                with self._lease.fenced_transaction():
                    listed = self._rows.filter(pk__in=[row.pk for row in known.values()])
                    listed.update(is_listed=True)
                    add_findings(self._run, orphans)

    def _can_find_orphans(self) -> bool:
        """Return whether a complete crawl from the home page found web pages."""
        started = f"{self._scope.base}/" in self._run.options["starts"]
        found_pages = self._rows.filter(outcome__in=WEB_PAGES).exists()
        return started and found_pages and self._run.is_complete

    def _missing_findings(self, rows: list[CrawledUrl]) -> Iterator[AuditFinding]:
        """Yield a finding for each page that is not saved and that the sitemap may list."""
        scope = self._site.scope()
        saved = self._saved_page_urls(rows)
        for row in rows:
            with suppress(InvalidValue):  # The sitemap is in a folder, and the URL outside of it.
                scope.check(row.url)
                if row.url not in saved:
                    yield self._finding(Kind.MISSING, row.url, row.title)

    def _saved_page_urls(self, rows: list[CrawledUrl]) -> frozenset[str]:
        """Return the URLs of the given rows that are saved pages of the site."""
        origin = self._site.origin
        hashes = [hash_of(row.url.removeprefix(origin)) for row in rows]
        pages = SavedPage.objects.filter(site=self._site.key, hash__in=hashes)
        return frozenset(origin + path for path in pages.values_list("path", flat=True))

    def _duplicate_findings(self, rows: list[CrawledUrl]) -> Iterator[AuditFinding]:
        """Yield a finding for each page that names another URL as canonical."""
        targets = rows_by_url(self._run, {row.target for row in rows})
        for row in rows:
            target = targets.get(row.target)
            detail = row.target if target is None else _url_text(target)
            yield self._finding(Kind.DUPLICATE, row.url, detail)


def batches_in_crawl_order(rows: QuerySet[CrawledUrl]) -> Iterator[list[CrawledUrl]]:
    """Yield the rows in lists of at most 500, in the order in which the crawl met them."""
    last = 0
    while some := list(rows.filter(pk__gt=last).order_by("pk")[:ROWS_PER_QUERY]):
        yield some
        last = some[-1].pk


def compared_section_names(site: SitemapSite) -> frozenset[str]:
    """Return the names of the sections with which a crawl of the site is compared.

    These are its sections that are switched on, except those that list saved pages. What a crawl
    found itself does not count as listed, nor does what is still published of a section that was
    renamed or switched off.
    """
    return frozenset(
        section.get_name()
        for section in sections_of(site)
        if not isinstance(section.options, CrawledSection)
    )


def _link_source_texts(rows: Sequence[CrawledUrl]) -> dict[int, str]:
    """Return, by row id, a text that says how the crawl came to each URL: its linking pages."""
    shown: defaultdict[int, list[str]] = defaultdict(list)
    links = CrawledLink.objects.filter(target__in=[row.pk for row in rows]).order_by("pk")
    for target, *link in links.values_list("target", "source__url", "text", "element"):
        shown[target].append(_linking_page_text(*link))
    return {row.pk: _link_source_text(row, shown[row.pk]) for row in rows}


def _linking_page_text(url: str, text: str, element: str) -> str:
    """Return the URL of a linking page, with the text of the link or the name of its element."""
    if element not in LINK_ELEMENTS:
        return f"{url} (<{element}>)"
    return f"{url} (“{text}”)" if text else url


def _link_source_text(row: CrawledUrl, links: list[str]) -> str:
    """Return how the crawl came to a URL: linked from pages, redirected, or a start."""
    if not row.linking_pages:
        return "a redirect or canonical link leads there" if row.depth else "the crawl starts there"
    more = ", first" if row.linking_pages > len(links) else ":"
    return f"linked from {count_of(row.linking_pages, 'page')}{more} {', '.join(links)}"


def _has_ended(chain: list[CrawledUrl]) -> bool:
    """Return whether the last URL of a chain does not redirect, repeats, or is one too many."""
    return chain[-1].outcome != Outcome.REDIRECT or _is_loop(chain) or len(chain) > MAX_REDIRECTS


def _is_loop(chain: list[CrawledUrl]) -> bool:
    """Return whether the last URL of a redirect chain is in the chain before."""
    return any(row.pk == chain[-1].pk for row in chain[:-1])


def _kind_and_text(chain: list[CrawledUrl]) -> tuple[Kind, str]:
    """Return the finding kind of a link that leads to a redirect chain, and the chain as text.

    The text has each URL with its status, and how the chain ends.
    """
    *before, last = chain
    redirects = sum(row.outcome == Outcome.REDIRECT for row in chain)
    kind = Kind.REDIRECT_LINK if redirects == 1 else Kind.REDIRECT_CHAIN
    if _is_loop(chain):
        return Kind.BROKEN_LINK, f"{_joined_by_arrows(before)} → {last.url}: redirect loop"
    if last.outcome != Outcome.REDIRECT:
        kind = _KINDS_OF_ENDS.get(Outcome(last.outcome), kind)
        return kind, f"{_joined_by_arrows(before)} → {_url_text(last)}"
    if len(chain) > MAX_REDIRECTS:
        more = f"more than {MAX_REDIRECTS} redirects"
        return Kind.BROKEN_LINK, f"{_joined_by_arrows(chain)}: {more}"
    # Out of the site, or to the login page.
    return kind, f"{_joined_by_arrows(chain)} → {last.target}"


def _joined_by_arrows(chain: list[CrawledUrl]) -> str:
    """Return the URLs of redirects as text, each with its status or "refresh"."""
    return " → ".join(
        f"{row.url} ({row.status if row.status in REDIRECTS else 'refresh'})" for row in chain
    )


def _url_text(row: CrawledUrl) -> str:
    """Return the URL of a row as text, with what is wrong with it in parentheses."""
    has_reason = row.outcome in {Outcome.BROKEN, Outcome.UNKNOWN}
    what = row.detail if has_reason else _ENDS.get(Outcome(row.outcome))
    return f"{row.url} ({what})" if what else row.url
