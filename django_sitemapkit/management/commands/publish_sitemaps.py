"""Publish a stored build: one that is held for review, or an earlier one."""

import datetime as dt
from contextlib import suppress
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.forms import DateTimeField

from django_sitemapkit.builds import Pause, publish, resume_publishing
from django_sitemapkit.builds.publication.gates import is_valid_pause_end, pause_of
from django_sitemapkit.conf import settings
from django_sitemapkit.management.base import Exit, PublishedCommand, started_by_text
from django_sitemapkit.models import Build
from django_sitemapkit.printable import count_of
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Publish a build that is held for review, or an earlier one with stored files."""

    more_exit_codes = (Exit.RUNNING,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the build, ``--previous``, ``--resume``, ``--pause`` and ``--until``."""
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "build", type=int, nargs="?", help="The build's id, as sitemap_status shows it."
        )
        which.add_argument(
            "--previous", action="store_true", help="Roll back to the previously published build."
        )
        which.add_argument(
            "--resume",
            action="store_true",
            help="End a pause without publishing anything: the next build is published again.",
        )
        parser.add_argument(
            "--pause",
            metavar="REASON",
            help="Then pause publishing: the next builds are held for review.",
        )
        parser.add_argument(
            "--until",
            metavar="TIME",
            help="The end of the pause, such as 2030-01-31T09:00. Default: until you run --resume.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Publish one build per site; or, with ``--resume``, only end the pause of publishing."""
        sites = self.sites(options["site"])
        pause = _pause_from_options(options)
        if options["resume"]:
            self._end_pause(sites)
            return
        if options["previous"]:
            chosen = [(site, self._previous_build_id(site)) for site in sites]
        else:
            chosen = [(self.site_of_build(sites, options["build"]), options["build"])]
        for site, build in chosen:
            with self.collecting_failures():
                exported = publish(site, build, pause=pause)
                self.write_json({"site": site.key, "build": build, "exported": exported})
                text = f"Site {site.key!r} now serves build {build}."
                if settings.EXPORT_STORAGE:
                    text += f" {count_of(exported, 'file')} exported."
                if paused := pause_of(site):
                    text += f" Publishing {'stays' if pause is None else 'is'} {paused.text}."
                self.say(text, self.style.SUCCESS)
        self.raise_failures()

    def _end_pause(self, sites: list[SitemapSite]) -> None:
        """End the pause of publishing of each site; publish nothing."""
        for site in sites:
            resumed = resume_publishing(site)
            self.write_json({"site": site.key, "resumed": resumed})
            state = "is resumed" if resumed else "was not paused"
            self.say(f"Publishing of site {site.key!r} {state}.")

    def _previous_build_id(self, site: SitemapSite) -> int:
        """Return the id of the build that a site published before its current one.

        Raises CommandError if there is none.
        """
        live = Build.objects.published(site)
        if live is None or live.previous_id is None:
            raise CommandError(
                f"Site {site.key!r} has no earlier published build.", returncode=Exit.FAILED
            )
        return live.previous_id


def _pause_from_options(options: dict[str, Any]) -> Pause | None:
    """Return the pause of publishing that ``--pause`` asks for, or None without that option.

    Raises CommandError if the options do not fit together.
    """
    reason = options["pause"]
    if reason is None:
        if options["until"] is not None:
            raise CommandError("--until requires --pause.", returncode=Exit.USAGE)
        return None
    if options["resume"] or not reason.strip():
        raise CommandError(
            "--pause requires a reason, and cannot be combined with --resume.",
            returncode=Exit.USAGE,
        )
    until = None if options["until"] is None else _end_of_pause(options["until"])
    return Pause(by=started_by_text(), reason=reason.strip(), until=until)


def _end_of_pause(text: str) -> dt.datetime:
    """Return the time that ``--until`` gives; without an offset, it is in TIME_ZONE.

    Raises CommandError unless it is within the next 12 months.
    """
    with suppress(ValidationError):
        moment: dt.datetime = DateTimeField().clean(text)
        if is_valid_pause_end(moment):
            return moment
    raise CommandError(
        f"--until must be a time of the next 12 months, like 2030-01-31T09:00, not {text}.",
        returncode=Exit.USAGE,
    )
