"""What is judged before a build is published: a pause or a gate holds it, doubts only warn."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from django.utils import timezone

from django_sitemapkit.builds.manifest import PageName, page_name_of, page_rows_of
from django_sitemapkit.builds.report.differences import DifferenceKind, differences_between
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import BuildFailed, StorageFailure
from django_sitemapkit.models import Build, Place, Publication, StoredNow
from django_sitemapkit.protocol.dates import moment_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, english_of

MAX_PAUSED_BY = 200
"""Maximum length of ``Pause.by`` as it is stored, in characters."""

MAX_PAUSE = dt.timedelta(days=366)
"""How far away the end of a pause may be; a longer one lasts until someone resumes publishing."""

WARNED_LOSS = Decimal("0.1")
"""The part of its URLs from which on the loss of a section, or of the site, is a warning."""

MAX_LOSS = Decimal("0.5")
"""The part that it may lose before the build is held, unless SITEMAPKIT_MAX_SHRINK is set."""

MAX_LOSS_OF_MANY = Decimal("0.3")
"""The same for one with more than MANY_URLS."""

MANY_URLS = 1_000

SITE = ""
"""Stands for the whole site among the sections."""

LEAST_ALIKE = 10
"""URLs of a section from which on one lastmod is doubted: fewer may have been made together."""

LEAST_OF_NOW = 2
"""URLs of a page from which on they can hardly all have changed while it was made."""

DATE_CHARACTERS = len("YYYY-MM-DD")
"""Characters of a lastmod that is a date, and those of a moment that say its date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused publishing, why, and until when."""

    by: str
    """Who paused it."""
    reason: str
    """Why, in a few words."""
    until: dt.datetime | None = None
    """When it ends; None if it lasts until someone resumes publishing."""
    since: dt.datetime = field(default_factory=timezone.now)
    """When it began."""

    @property
    def text(self) -> str:
        """The pause as part of a sentence, in English: "paused by ann: wrong prices"."""
        return english_of(self.state)

    @property
    def state(self) -> State:
        """The pause as a code and its values."""
        until = {"code": "pause-until", "until": _moment_text(self.until)} if self.until else {}
        return {"code": "pause", "by": self.by, "why": self.reason.rstrip("."), **until}


def is_valid_pause_end(moment: dt.datetime) -> bool:
    """Return whether a pause may end at a moment: later than now, and by a year at most."""
    now = timezone.now()
    return timezone.is_aware(moment) == timezone.is_aware(now) and now < moment <= now + MAX_PAUSE


def pause_publishing(site: SitemapSite, pause: Pause) -> None:
    """Hold the next builds of a site for review, whatever they list; nothing published changes.

    A pause that is in force is replaced. Publishing by hand and `publish_override()` go on working.

    Raises BuildFailed if nothing is published: there is nothing to keep.
    """
    paused = Publication.objects.filter(site=site.key).update(
        pause={
            "by": str(pause.by)[:MAX_PAUSED_BY],
            "reason": pause.reason,
            "since": pause.since.timestamp(),
            "until": pause.until and pause.until.timestamp(),
        }
    )
    if not paused:
        raise BuildFailed(
            f"Site {site.key!r}: nothing is published, so publishing cannot be paused."
        )


def resume_publishing(site: SitemapSite) -> bool:
    """Let the next build be published again; return whether publishing was paused."""
    was_paused = pause_of(site) is not None
    Publication.objects.filter(site=site.key).update(pause={})
    return was_paused


def pause_of(site: SitemapSite) -> Pause | None:
    """Return the pause that is in force at a site now, or None."""
    publication = Publication.objects.filter(site=site.key).annotate(now=StoredNow()).first()
    return pause_at(publication, publication.now) if publication else None


def pause_at(publication: Publication, now: dt.datetime) -> Pause | None:
    """Return the pause of a site that is in force at the time ``now``; None if there is none."""
    if not (values := publication.pause):
        return None
    zone = timezone.now().tzinfo  # None under USE_TZ = False.
    since, until = (
        values[name] and dt.datetime.fromtimestamp(values[name], zone)
        for name in ("since", "until")
    )
    is_over = until is not None and until <= now
    return None if is_over else Pause(**{**values, "since": since, "until": until})


def _moment_text(moment: dt.datetime) -> str:
    """Return a moment as text, to the minute: in the project's time zone if it is aware."""
    if timezone.is_aware(moment):
        moment = timezone.localtime(moment, timezone.get_default_timezone())
    return moment.isoformat(sep=" ", timespec="minutes")


@dataclass(frozen=True, kw_only=True)
class FinishedBuild:
    """A build whose pages are all stored, as a publish gate judges it."""

    site: SitemapSite
    """The site that was built."""
    build: Build
    """The build; it is not published yet."""
    rows: Sequence[Place]
    """The rows of its manifest, with URLs or without; the indexes are not among them."""
    published: Sequence[Place] = ()
    """The pages with URLs that the site serves now."""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """How many URLs of a section are meant to go."""
    may_shrink: Collection[str] = ()
    """The sections of which any number of URLs may go: news articles, which are listed for two
    days, and extra URLs, which editors delete by hand.
    """
    chosen: Collection[str] = ()
    """The sections that were built; empty if all were."""
    strict: bool = False
    """Whether a build in which rows were skipped is held."""
    heartbeat: Callable[[], None] = lambda: None
    """What a gate that takes long has to call between two steps, or the lease expires."""

    @cached_property
    def pages(self) -> list[Place]:
        """Its pages with URLs, in the order of the index."""
        return page_rows_of(self.rows)

    @cached_property
    def _losses(self) -> list["_Loss"]:
        """The losses of sections, then of the whole site, that are a warning or hold the build.

        A URL that another section lists is not lost: to find that out, files are read, and only if
        a section would lose so much. If they cannot be read, all that is missing is lost.
        """
        losses = list(_losses_of(self, None))
        with suppress(StorageFailure):
            losses = losses and list(_losses_of(self, _removed_urls(self)))
        return losses


Gate = Callable[[FinishedBuild], State]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """URLs that a build has lost, compared with the published one."""

    section: str
    """The section's name; "" for the whole site."""
    before: int
    """URLs that are published."""
    after: int
    """URLs of the build."""
    moved: int
    """Missing URLs that other sections list."""
    lost: int
    """URLs that are gone, and not meant to go."""

    @property
    def allowed(self) -> Decimal:
        """The part that may be lost."""
        if settings.MAX_SHRINK is not None:
            return Decimal(str(settings.MAX_SHRINK))  # 0.29 of 100 is 29, and not a little less.
        return MAX_LOSS_OF_MANY if self.before > MANY_URLS else MAX_LOSS

    @property
    def is_too_large(self) -> bool:
        """Whether the loss holds the build for review."""
        return self.lost > self.before * self.allowed


def _losses_of(finished: FinishedBuild, removed: Counter[str] | None) -> Iterator[_Loss]:
    """Yield the losses that are a warning or hold the build: of sections, then of the site.

    ``removed`` has by section how many published URLs the build lists nowhere. Without it, no
    missing URL counts as moved to another section.
    """
    before, after = Counter[str](), Counter[str]()
    for urls, pages in ((before, finished.published), (after, finished.pages)):
        for row in pages:
            urls[row.section] += row.page.urls
    leaving, names = Counter(finished.leaving), sorted(before)
    leaving |= Counter({name: before[name] - after[name] for name in finished.may_shrink})
    for counts in (before, after, leaving, removed or Counter()):
        counts[SITE] = counts.total()
    for name in names if len(names) < 2 else [*names, SITE]:
        missing = before[name] - after[name]
        gone = missing if removed is None else min(missing, removed[name])
        loss = _Loss(
            section=name,
            before=before[name],
            after=after[name],
            moved=missing - gone,
            lost=gone - leaving[name],
        )
        if loss.is_too_large or (loss.lost >= loss.before * WARNED_LOSS and loss.allowed < 1):
            yield loss


def _removed_urls(finished: FinishedBuild) -> Counter[str]:
    """Return by section how many published URLs no page of the build lists."""
    found = differences_between(finished.published, finished.pages)
    return Counter(one.section for one in found if one.kind is DifferenceKind.REMOVED)


def shrinkage(finished: FinishedBuild) -> State:
    """Return a state for the section, or else the site, that loses too many URLs; else "".

    Of several sections, it names the one that loses the most.
    """
    for loss in sorted(finished._losses, key=lambda loss: (not loss.section, -loss.lost)):
        if loss.is_too_large:
            besides = "-besides-moved" if loss.moved else ""
            return {
                "code": f"shrinkage{besides}" if loss.section else "site-shrinkage",
                "section": loss.section,
                "before": loss.before,
                "urls": loss.after,
                "moved": loss.moved,
                "allowed": f"{float(loss.allowed * 100):g}",
            }
    return ""


def skipped_rows(finished: FinishedBuild) -> State:
    """Return a state with the sections that skipped rows, if the build is strict, or ""."""
    if not finished.strict:
        return ""
    counts: Counter[str] = Counter()
    problems: dict[str, str] = {}
    for row in finished.rows:
        if row.skipped and (not finished.chosen or row.section in finished.chosen):
            counts[row.section] += row.skipped
            problems.setdefault(row.section, next(iter(row.problem_examples), ""))
    sections = [
        {"code": "skipped", "section": name, "rows": count, "problem": problems[name]}
        for name, count in sorted(counts.items())
    ]
    return {"code": "skipped-rows", "sections": sections} if sections else ""


_gates: list[Gate] = [shrinkage, skipped_rows]


def register_gate(gate: Gate) -> None:
    """Have builds judged by ``gate`` before they are published.

    It gets a FinishedBuild and returns "" or the reason to hold the build for review: a text that
    is shown as it is. It is called under the lease of the site: if it takes longer than a few
    seconds, it must call ``finished.heartbeat()`` now and then. What it raises fails the build.
    Register it in ``AppConfig.ready()``::

        from django_sitemapkit.builds import FinishedBuild, register_gate


        def keep_the_shop(finished: FinishedBuild) -> str:
            urls = sum(page.urls for page in finished.pages if page.section == "products")
            return "" if urls else "the shop would be gone"


        register_gate(keep_the_shop)
    """
    if gate not in _gates:
        _gates.append(gate)


def reason_to_hold(finished: FinishedBuild) -> State:
    """Return the reason of the first gate that holds a build for review; "" if none does."""
    return next((reason for gate in _gates if (reason := gate(finished))), "")


def warnings_of(finished: FinishedBuild) -> Iterator[State]:
    """Yield warnings about a build, as states.

    They name losses that do not hold it, a roll-back that it undoes, and implausible lastmods.
    """
    for loss in finished._losses:
        if not loss.is_too_large:
            yield {
                "code": "loss" if loss.section else "site-loss",
                "section": loss.section,
                "before": loss.before,
                "lost": loss.lost,
                "percent": f"{100 * loss.lost / loss.before:.0f}",
            }
    yield from _republished_files(finished)
    stored = {page_name_of(row): row for row in finished.published}
    dated = [row for row in finished.pages if row.page.lastmods]
    for _section, section_rows in groupby(dated, attrgetter("section")):
        rows = list(section_rows)
        yield from _identical_lastmods(rows)
        known = [(row, stored.get(page_name_of(row))) for row in rows]
        made = [(row, old) for row, old in known if old is None or old.page.name != row.page.name]
        yield from _current_lastmods([row for row, _old in made], finished.build.started_at)
        for row, old in made:
            if old is not None:
                yield from _older_lastmods(row, old)


def _republished_files(finished: FinishedBuild) -> Iterator[State]:
    """Yield a state if the build publishes files again that a roll-back had taken away."""
    now, new = _file_hashes_by_page(finished.published), _file_hashes_by_page(finished.pages)
    if not now or now == new:
        return
    rolled_back = Build.objects.rolled_back(Build.objects.published(finished.site))
    if rolled_back is None:
        return
    back = _file_hashes_by_page(Place.objects.in_build(rolled_back).pages())
    undone = [name for name in now.keys() | back.keys() if now.get(name) != back.get(name)]
    if files := sum(new.get(name) == back.get(name) for name in undone):
        yield {
            "code": "put-back",
            "build": rolled_back.pk,
            "files": files,
            "before": sum(row.page.urls for row in finished.published),
            "urls": sum(row.page.urls for row in finished.pages),
        }


def _file_hashes_by_page(rows: Iterable[Place]) -> dict[PageName, str]:
    """Return by page the SHA-256 of its file."""
    return {page_name_of(row): row.page.sha256 for row in rows}


def _identical_lastmods(rows: Sequence[Place]) -> Iterator[State]:
    """Yield a warning if all lastmods of a section, of which these are the pages, are the same."""
    known = [row.page.lastmods for row in rows]
    urls = sum([one["count"] for one in known])
    texts = {text for one in known for text in (one["oldest"], one["newest"])}
    if len(texts) == 1 and urls >= LEAST_ALIKE:
        yield {  # Without the number of URLs, or it would be a new warning with each row.
            "code": "lastmods-alike",
            "section": rows[0].section,
            "lastmod": texts.pop(),
            "key": _newest_key_text(rows[0]),
        }


def _current_lastmods(rows: Sequence[Place], started_at: dt.datetime) -> Iterator[State]:
    """Yield a warning if there are pages whose lastmods are all later than the build's start."""
    start = int(started_at.timestamp())  # Under USE_TZ = False it is naive.
    of_now = [
        row
        for row in rows
        if row.page.lastmods["count"] >= LEAST_OF_NOW
        and len(row.page.lastmods["oldest"]) > DATE_CHARACTERS
        and moment_of(row.page.lastmods["oldest"], dt.UTC).timestamp() >= start
    ]
    if of_now:
        yield {
            "code": "lastmods-of-now",
            "section": of_now[0].section,
            "pages": len(of_now),
            "keys": ", ".join(map(_newest_key_text, of_now[:3])),
        }


def _older_lastmods(row: Place, previous: Place) -> Iterator[State]:
    """Yield a warning if a page lists no fewer URLs, but its newest lastmod is older."""
    if not previous.page.lastmods or row.page.urls < previous.page.urls:
        return
    before, after = previous.page.lastmods["newest"], row.page.lastmods["newest"]
    if _is_surely_before(after, before):
        yield {
            "code": "lastmod-backwards",
            "section": row.section,
            "page": row.number,
            "before": before,
            "key_before": _newest_key_text(previous),
            "lastmod": after,
            "key": _newest_key_text(row),
        }


def _is_surely_before(lastmod: str, other: str) -> bool:
    """Return whether a lastmod is surely before the other; a date may be any moment of its day."""
    if DATE_CHARACTERS in (len(lastmod), len(other)):
        return lastmod[:DATE_CHARACTERS] < other[:DATE_CHARACTERS]
    return moment_of(lastmod, dt.UTC) < moment_of(other, dt.UTC)


def _newest_key_text(row: Place) -> str:
    """Return the key of the row that has a page's newest lastmod, as one line."""
    key: str = row.page.lastmods["key"]
    return key if key.isprintable() else repr(key)
