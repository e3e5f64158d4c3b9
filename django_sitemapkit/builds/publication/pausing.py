"""Pausing what is published of a site: until it is resumed, builds are held for review."""

import datetime as dt
from dataclasses import dataclass, field

from django.conf import settings
from django.utils import timezone

from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.models import Publication, StoredNow
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import State, english_of

MAX_PAUSED_BY = 200
"""Maximum length of ``Pause.by`` as it is stored, in characters."""

MAX_PAUSE = dt.timedelta(days=366)
"""How far away the end of a pause may be; a longer one lasts until someone resumes publishing."""


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
        values = {"by": self.by, "why": self.reason.rstrip(".")}
        if self.until is None:
            return {"code": "pause", **values}
        return {"code": "pause-until", "until": _in_project_zone(self.until), **values}


def is_possible_end(moment: dt.datetime) -> bool:
    """Return whether a pause may end at a moment: later than now, and by a year at most."""
    now = timezone.now()
    return timezone.is_aware(moment) == timezone.is_aware(now) and now < moment <= now + MAX_PAUSE


def pause_publishing(site: SitemapSite, pause: Pause) -> None:
    """Hold the next builds of a site for review, whatever they list; nothing published changes.

    A pause that is in force is replaced. Publishing by hand and *Exclude now* go on working.

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
    """Return the pause that is in force at a moment; None if there is none, or it has ended."""
    if not (values := publication.pause):
        return None
    zone = dt.UTC if settings.USE_TZ else None
    since, until = (
        values[name] and dt.datetime.fromtimestamp(values[name], zone)
        for name in ("since", "until")
    )
    is_over = until is not None and until <= now
    return None if is_over else Pause(**{**values, "since": since, "until": until})


def _in_project_zone(moment: dt.datetime) -> str:
    """Return a moment to the minute, with its offset if it is aware."""
    if timezone.is_aware(moment):
        moment = timezone.localtime(moment, timezone.get_default_timezone())
    return moment.isoformat(sep=" ", timespec="minutes")
