"""The audit before publishing: it holds a build for review if a section has too many bad pages.

Of each section a sample is audited, another one for each build, with the URLs that are new or
changed in the build first. What is decided without fetching a page comes first, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any

from django.utils import timezone

from django_sitemapkit.audit.auditing import (
    entries_of_places,
    entries_with_urls,
    finish_run,
    make_judge,
    record_verdicts,
    verdict_batches,
)
from django_sitemapkit.audit.judge import SitemapEntry, Verdict
from django_sitemapkit.audit.kinds import BAD_KINDS, FindingKind
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.audit.options import audit_options
from django_sitemapkit.builds import FinishedBuild
from django_sitemapkit.builds.report.differences import DifferenceKind, differences_between
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.intervals import share_interval
from django_sitemapkit.printable import printable
from django_sitemapkit.words import State

HOLDING_KINDS = BAD_KINDS | {FindingKind.UNDETERMINED}
"""What holds a build: of what was not seen, nobody knows that it is good."""

MAX_NAMED = 100
"""URLs that a held build names; its audit lists all of them."""

MAX_SHOWN_DETAIL = 200
"""Characters of a detail that a held build names."""


@dataclass(slots=True, kw_only=True)
class SectionAudit:
    """The audit of a sample of one section, with the first fault of each bad URL."""

    section: str
    """The name of the section."""
    urls: int
    """URLs of the section."""
    changed: int
    """Those that are new or changed, if the section is published and can be compared."""
    entries: list[SitemapEntry]
    """The sample; those that are new or changed come first."""
    chosen_changes: int
    """How many of these there are in the sample."""
    faults: dict[str, tuple[FindingKind, str]] = field(default_factory=dict)
    """The first fault of each URL that has one for which builds are held."""

    def add_verdict(self, verdict: Verdict) -> None:
        """Store the first fault of a verdict for which builds are held, if it has one."""
        fault = next((fault for fault in verdict.faults if fault[0] in HOLDING_KINDS), None)
        if fault is not None:
            self.faults[verdict.entry.url] = fault

    def holding_reason(self, allowed: float) -> State:
        """Return why to hold the build, if the share of bad URLs is above ``allowed``, else ""."""
        bad, checked = len(self.faults), len(self.entries)
        if bad <= allowed * checked:
            return ""
        counts = Counter(kind for kind, _detail in self.faults.values())
        state: dict[str, Any] = {
            "code": "bad-section",
            "section": self.section,
            "bad": bad,
            "checked": checked,
            "kinds": ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common()),
            "share": _percent(bad / checked),
        }
        if checked == self.urls:
            return state
        least, greatest, total = self._bad_share_interval()
        return state | {
            "code": "bad-section-sampled" if total == self.urls else "bad-changes-sampled",
            "least": _percent(least),
            "greatest": _percent(greatest),
            "urls": total,
        }

    def _bad_share_interval(self) -> tuple[float, float, int]:
        """Return the bounds of the likely share of bad URLs, and the number of URLs it refers to.

        If only new or changed URLs fit into the sample, it is a random sample of these, and the
        share is theirs. Otherwise the sample has all of them and a random sample of the others, and
        the share is that of the section.
        """
        if self.changed > self.chosen_changes:
            return *share_interval(len(self.faults), len(self.entries), self.changed), self.changed
        known = {entry.url for entry in self.entries[: self.chosen_changes]}
        bad_changes = sum(url in known for url in self.faults)
        others = self.urls - self.changed
        interval = share_interval(
            len(self.faults) - bad_changes, len(self.entries) - len(known), others
        )
        least, greatest = ((bad_changes + others * share) / self.urls for share in interval)
        return least, greatest, self.urls


def audit_build(finished: FinishedBuild) -> State:
    """Audit a sample of each section of a build; return the reason to hold the build, or "".

    Records the audit as a run, with its findings.
    """
    options = audit_options()
    allowed = 1 if options.max_bad is None else options.max_bad
    run = AuditRun.objects.create(
        site=finished.site.key,
        build=finished.build.pk,
        sample=options.sample,
        kind=AuditRun.Kind.GATE,
        started_at=timezone.now(),
    )
    judge = make_judge(options)
    audits = list(_sampled_sections(finished, options.sample))
    by_section = {audit.section: audit for audit in audits}

    def record(verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            by_section[verdict.entry.section].add_verdict(verdict)
        record_verdicts(run, verdicts)

    blocked, others = [], []
    for entry in (entry for audit in audits for entry in audit.entries):
        if fault := judge.robots_fault(entry.url):
            blocked.append(Verdict(entry, (fault,)))
        else:
            others.append(entry)
    record(blocked)
    if not _holding_reasons(
        audits, allowed
    ):  # Else it is held already, and no page needs to be fetched.
        for verdicts in verdict_batches(judge, iter(others), finished.heartbeat):
            record(verdicts)
    finish_run(run, timezone.now())
    reasons = _holding_reasons(audits, allowed)
    if not reasons:
        return ""
    return {
        "code": "bad-pages",
        "sections": list(reasons.values()),
        "allowed": f"{allowed * 100:g}",
        "findings": list(_bad_url_states([audit for audit in audits if audit.section in reasons])),
    }


def _holding_reasons(audits: Iterable[SectionAudit], allowed: float) -> dict[str, State]:
    """Return the reason to hold the build for each section that has too many bad URLs."""
    reasons = ((audit.section, audit.holding_reason(allowed)) for audit in audits)
    return {section: reason for section, reason in reasons if reason}


def _bad_url_states(audits: Sequence[SectionAudit]) -> Iterator[dict[str, Any]]:
    """Yield bad URLs as states for messages, each with its fault and advice.

    There are about 100 at most: the first of each section.
    """
    for audit in audits:
        for url, (kind, detail) in [*audit.faults.items()][: -(-MAX_NAMED // len(audits))]:
            shown = printable(detail)[:MAX_SHOWN_DETAIL]
            yield {
                "code": "bad-page",
                "url": url,
                "kind": {"code": f"finding-{kind}"},
                "detail": shown and f": {shown}",
                "advice": {"code": f"advice-{kind}"},
            }


def _sampled_sections(finished: FinishedBuild, sample: int) -> Iterator[SectionAudit]:
    """Yield the audit of each section of a build, with its sample and no faults yet."""
    counts, changes = _sampled_changes(finished, sample)
    for section, group in groupby(finished.pages, key=lambda page: page.section):
        pages = list(group)
        changed = set(changes[section])
        entries = list(entries_with_urls(pages, changed)) if changed else []
        chosen = len(entries)
        others = entries_of_places(pages, sample - chosen)
        entries += [entry for entry in others if entry.url not in changed]
        yield SectionAudit(
            section=section,
            urls=sum(page.urls for page in pages),
            changed=counts[section],
            entries=entries,
            chosen_changes=chosen,
        )


def _sampled_changes(
    finished: FinishedBuild, sample: int
) -> tuple[Counter[str], defaultdict[str, list[str]]]:
    """Return, by section, how many URLs are new or changed, and a random sample of these.

    Sections that are not published yet are left out: all of their URLs are new. Both are empty if a
    published file is lost.
    """
    counts: Counter[str] = Counter()
    chosen: defaultdict[str, list[str]] = defaultdict(list)
    known = {page.section for page in finished.published}
    pages = [page for page in finished.pages if page.section in known]
    chance = Random(finished.build.pk)  # noqa: S311  no secret
    try:
        for change in differences_between(finished.published, pages):
            if change.kind is DifferenceKind.REMOVED:
                continue
            urls = chosen[change.section]
            counts[change.section] += 1
            if len(urls) < sample:
                urls.append(change.location)
            elif (place := chance.randrange(counts[change.section])) < sample:
                urls[place] = change.location
    except StorageFailure:  # A published file is lost: what changed is not known.
        return Counter(), defaultdict(list)
    return counts, chosen


def _percent(share: float) -> str:
    """Return a share as a percentage, with one decimal unless it is 0, and without the sign."""
    return f"{share * 100:.1f}".removesuffix(".0")
