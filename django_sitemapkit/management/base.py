"""What the commands share: sites by key, exit codes, a clean end on signals, lines and bars."""

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TextIO, cast

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    OutputWrapper,
    SystemCheckError,
)
from django.db import DatabaseError

from django_sitemapkit.builds import BuildResult, FileResult
from django_sitemapkit.models.migrated import unapplied_migrations
from django_sitemapkit.printable import printable, printable_lines
from django_sitemapkit.sites import Site, all_sites

CLEAR_LINE = "\r\x1b[K"
"""What has a terminal go back to the beginning of its line, and empty it."""


class Exit(IntEnum):
    """The exit codes of the commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    HELD = 3
    RUNNING = 4
    PROBLEMS = 5
    INTERRUPTED = 130


class PrintableOutput(OutputWrapper):
    """An output of a command to which everything is one line, and does nothing but show itself."""

    def __init__(self, out: OutputWrapper) -> None:
        super().__init__(cast("TextIO", out))
        self._command_output = out

    def write(  # type: ignore[override]
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        """Write one line; ``style_func`` and ``ending`` are the command's own."""
        self._command_output.write(printable(msg), style_func, ending)


class SiteCommand(BaseCommand):
    """A command for all sites, or for those named by ``--site``.

    A subclass writes `run`. What it prints, and the text of a CommandError, is printable.
    """

    interrupted = "Interrupted."
    """What Ctrl-C is answered with."""
    terminal = False
    """Whether its output is a terminal, and not that of another command."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Through another one's output a bar would leave its traces."""
        nested = isinstance(options.get("stdout"), OutputWrapper)
        out = options.get("stdout") or self.stdout
        self.terminal = not nested and getattr(out, "isatty", lambda: False)()
        return super().execute(*args, **options)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command of a shell, which Ctrl-C ends with one line."""
        try:
            super().run_from_argv(argv)
        except KeyboardInterrupt:
            self.stderr.write(self.interrupted)
            sys.exit(Exit.INTERRUPTED)

    def handle(self, *args: Any, **options: Any) -> None:
        """Call `run`; what stops it because migrations are missing names them."""
        out, err = self.stdout, self.stderr
        self.stdout, self.stderr = PrintableOutput(out), PrintableOutput(err)
        try:
            self.run(options)
        except CommandError as error:
            error.args = (printable_lines(error),)
            raise
        except DatabaseError as error:
            if missing := unapplied_migrations():
                message = f"{printable(error)}. {missing}"
                raise CommandError(message, returncode=Exit.FAILED) from error
            raise
        finally:
            self.stdout, self.stderr = out, err

    def run(self, options: dict[str, Any]) -> None:
        """Do what the command is for."""
        raise NotImplementedError

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
            raise CommandError(printable(error), returncode=Exit.USAGE) from error
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
            self.stderr.write(f"{error}\nThis command goes on all the same.")


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
    """Prints a line for each file, or on a terminal a bar below the lines.

    A context manager: at its end, however that comes, the bar is gone.
    """

    def __init__(self, command: SiteCommand, verbosity: int) -> None:
        self.command = command
        self.verbosity = verbosity
        self.bar = verbosity == 1 and command.terminal
        self.files: dict[tuple[str, int], FileResult] = {}
        """What became of each file, the last time it was made."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def __call__(self, result: FileResult, place: int, total: int) -> None:
        """Print what became of a file, the ``place``-th of ``total``."""
        self.files[result.section, result.number] = result
        self._clear()
        if self.verbosity:
            self.command.stdout.write(describe(result))
        for problem in result.problems if self.verbosity > 1 else ():
            self.command.stderr.write(f"  {problem}")
        if self.bar:
            done = round(30 * place / total)
            bar = f"{'█' * done}{'░' * (30 - done)} {place} of {total}"
            self.command.stdout.write(bar, ending="\r")
            self.command.stdout.flush()

    def _clear(self) -> None:
        """Take the bar away."""
        if self.bar:
            self.command.stdout.write(ending=CLEAR_LINE)
            self.command.stdout.flush()


def held_back(result: BuildResult) -> str:
    """Return what to do about a build that is held back."""
    return (
        f"Build {result.build} of site {result.site!r} is held back: {result.reason}. What was"
        f" published stays. Look at it with diff_sitemaps {result.build}, and let it go"
        f" with publish_sitemaps {result.build}."
    )


def files_exported(count: int) -> str:
    """Return a sentence about an export."""
    return f"{count_of(count, 'file')} exported."


def describe(result: FileResult) -> str:
    """Return one line about a file."""
    name = f"{result.section or 'index'} {result.number or ''}"
    what = "sitemaps" if not result.section else "URLs"
    line = (
        f"{name:<28} {result.state:<7} {result.urls:>9,} {what:<8} {result.bytes:>12,} bytes"
        f" {result.size:>11,} stored {result.seconds:>7.2f} s"
    )
    if result.skipped:
        line += f"  {count_of(result.skipped, 'row')} left out"
    return f"{line}, {result.duplicates:,} of them duplicates" if result.duplicates else line


def count_of(number: int, thing: str) -> str:
    """Return a number of things: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
