"""The publish gate: a build is held for review if too many of its web pages are bad."""

from django.utils import timezone

from django_sitemapkit.audit.auditing import finish, judge_of, judged, record
from django_sitemapkit.audit.entries import entries_of_build
from django_sitemapkit.audit.kinds import BAD_KINDS
from django_sitemapkit.audit.models import AuditRun
from django_sitemapkit.audit.options import audit_options
from django_sitemapkit.builds import FinishedBuild
from django_sitemapkit.words import State


def audit_build(finished: FinishedBuild) -> State:
    """Return why a sample of the build is too bad to be published, or ""; record the findings."""
    options = audit_options()
    allowed = 1 if options.max_bad is None else options.max_bad
    run = AuditRun.objects.create(
        site=finished.site.key,
        build=finished.build.pk,
        sample=options.sample,
        kind=AuditRun.Kind.GATE,
        started_at=timezone.now(),
    )
    entries = entries_of_build(finished.pages, options.sample)
    for verdicts in judged(judge_of(options), entries, finished.heartbeat):
        record(run, verdicts)
    finish(run, timezone.now())
    if run.bad <= allowed * run.checked:
        return ""
    kinds = sorted((-count, kind) for kind, count in run.counts.items() if kind in BAD_KINDS)
    return {
        "code": "bad-pages",
        "bad": run.bad,
        "checked": run.checked,
        "kinds": ", ".join(f"{kind} {-count:,}" for count, kind in kinds),
        "allowed": f"{allowed * 100:g}",
    }
