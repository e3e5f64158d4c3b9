"""What the commands share: sites by key, exit codes, a clean end on SIGTERM, lines and bars."""

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    SystemCheckError,
)

from django_sitemapkit.builds import BuildResult, FileResult
from django_sitemapkit.sites import Site, all_sites


class Exit(IntEnum):
    """The exit codes of the commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    HELD = 3
    RUNNING = 4
    PROBLEMS = 5


class SiteCommand(BaseCommand):
    """A command for all sites, or for those named by ``--site``."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--site``."""
        parser.add_argument(
            "--site",
            action="append",
            metavar="KEY",
            help="Only this site: a key of SITEMAPKIT_SITES or an id of the sites framework.",
        )

    def sites(self, keys: list[str] | None) -> list[Site]:
        """Return the sites asked for; raises CommandError where there is none of that key."""
        try:
            known = {site.key: site for site in all_sites()}
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=Exit.USAGE) from error
        for key in keys or ():
            if key not in known:
                names = ", ".join(known)
                raise CommandError(
                    f"There is no site {key!r}; there are: {names}.", returncode=Exit.USAGE
                )
        return [known[key] for key in keys or known]


class PublishedCommand(SiteCommand):
    """A command about what is published: a section that fails does not keep it from running."""

    has_faults = False
    """Whether the system checks have found an error."""

    def check(self, *args: Any, **options: Any) -> None:
        """Report what the system checks find, and go on."""
        try:
            super().check(*args, **options)
        except SystemCheckError as error:
            self.has_faults = True
            self.stderr.write(f"{error}\nThis command needs no section, and goes on.")


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Turn SIGTERM into an ordinary end, so that leases are given back and half files go."""

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # Not in the main thread: whoever runs it there catches signals.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def caller() -> str:
    """Return what a build says of who started it."""
    return f"command on {socket.gethostname()}"


class Progress:
    """Prints a line for each file, or on a terminal a bar below the lines."""

    def __init__(self, command: BaseCommand, verbosity: int) -> None:
        self.command = command
        self.verbosity = verbosity
        self.bar = verbosity == 1 and getattr(command.stdout, "isatty", lambda: False)()

    def __call__(self, result: FileResult, place: int, total: int) -> None:
        """Print what became of a file, the ``place``-th of ``total``."""
        if self.verbosity:
            line = describe(result)
            self.command.stdout.write(f"\r\x1b[K{line}" if self.bar else line)
        for problem in result.problems if self.verbosity > 1 else ():
            self.command.stderr.write(f"  {problem}")
        if self.bar:
            done = round(30 * place / total)
            bar = f"{'█' * done}{'░' * (30 - done)} {place} of {total}"
            self.command.stdout.write(bar, ending="\r" if place < total else "\r\x1b[K")
            self.command.stdout.flush()


def held_back(result: BuildResult) -> str:
    """Return what to do about a build that is held back."""
    return (
        f"Build {result.build} of site {result.site!r} is held back: {result.reason}. What was"
        f" published stays. Look at it with sitemap_status --diff {result.build}, and let it go"
        f" with publish_sitemaps {result.build}."
    )


def files_exported(count: int) -> str:
    """Return a sentence about an export."""
    return f"{count:,} file{'' if count == 1 else 's'} exported."


def describe(result: FileResult) -> str:
    """Return one line about a file."""
    name = f"{result.section or 'index'} {result.number or ''}"
    what = "sitemaps" if not result.section else "URLs"
    line = (
        f"{name:<28} {result.state:<7} {result.urls:>9,} {what:<8} {result.bytes:>12,} bytes"
        f" {result.size:>11,} stored {result.seconds:>7.2f} s"
    )
    if result.skipped:
        line += f"  {result.skipped:,} rows left out"
    return f"{line}, {result.duplicates:,} of them duplicates" if result.duplicates else line
