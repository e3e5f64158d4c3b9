"""What commands share: ``--site``, ``--json``, exit codes, signals, output, and progress."""

import datetime as dt
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any, ClassVar, TextIO, cast

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    OutputWrapper,
    SystemCheckError,
)
from django.db import DatabaseError, OperationalError
from django.db.models import IntegerChoices
from django.template.defaultfilters import filesizeformat
from django.utils.timesince import timesince
from django.utils.translation import override

from django_sitemapkit.builds import BuildResult, FileResult
from django_sitemapkit.conf import caching_sites
from django_sitemapkit.exceptions import (
    BuildCancelled,
    BuildRunning,
    MissingExtra,
    SitemapKitError,
)
from django_sitemapkit.models import Build
from django_sitemapkit.models.migrated import schema_error_message
from django_sitemapkit.printable import count_of, printable, printable_lines
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.words import findings_of

CLEAR_LINE = "\r\x1b[K"
"""Moves a terminal's cursor to the start of the line, and clears the line."""

BAR_WIDTH = 20
"""Characters of the progress bar; the rest of a line of 80 has the numbers."""

ESTIMATE_SECONDS = 1.0
"""How long files have to be rendered before the rate and the time left are shown."""

MAX_NAMED_URLS = 20
"""URLs that hold a build that a command names; the build's page has more."""


class Exit(IntegerChoices):
    """The exit codes of the commands."""

    DONE = 0, "success"
    FAILED = 1, "failure"
    USAGE = 2, "invalid arguments or settings"
    HELD = 3, "a build is held for review"
    RUNNING = 4, "another process is working on the site"
    PROBLEMS = 5, "problems that an option treats as failures"
    CANCELLED = 6, "the build was cancelled"
    INTERRUPTED = 130, "interrupted"
    OUTPUT_CLOSED = 141, "the output was closed, as by head"


EXIT_CODES: dict[type[Exception], Exit] = {
    BuildCancelled: Exit.CANCELLED,
    BuildRunning: Exit.RUNNING,
    MissingExtra: Exit.USAGE,
}
"""The exit codes of errors; other errors are failures."""


def exit_code_of(error: Exception) -> Exit:
    """Return the exit code of a command that ends with an error."""
    codes = (code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
    return next(codes, Exit.FAILED)


@contextmanager
def exiting_if_output_closed() -> Iterator[None]:
    """Turn the error of an output that its reader has closed, as ``head`` does, into an exit."""
    try:
        yield
    except BrokenPipeError as error:
        raise SystemExit(Exit.OUTPUT_CLOSED) from error


class PrintableOutput(OutputWrapper):
    """A command's output that writes each message as one line, with control characters escaped.

    So are characters that the encoding of the output does not have. With ``is_silent`` it writes
    nothing.
    """

    def __init__(self, out: OutputWrapper, *, is_silent: bool = False) -> None:
        super().__init__(cast("TextIO", out))
        self._command_output = out
        self._is_silent = is_silent

    def write(  # type: ignore[override]
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        """Write a message as one line; ``ending`` and the codes of ``style_func`` are not escaped.

        The ending follows the colour codes: the output of a calling command looks for it there.
        """
        if self._is_silent:
            return
        # As Python writes stderr: a terminal or file may not be in UTF-8.
        encoding = getattr(self._command_output, "encoding", None) or "utf-8"
        text = printable(msg).encode(encoding, "backslashreplace").decode(encoding)
        with exiting_if_output_closed():
            if style_func is None:
                self._command_output.write(text, None, ending)
            else:
                # Without a style of its own, stderr would colour the line once more.
                self._command_output.write(style_func(text), str, ending)


class SiteCommand(BaseCommand):
    """A command for all sites, or for those given by ``--site``.

    A subclass implements `run`, and its module's docstring is its help. Control characters are
    escaped in its output and errors. With ``--json``, only what `write_json` prints reaches the
    output; without it, nothing of that does.
    """

    interrupted = "Interrupted."
    """The message after Ctrl-C."""
    more_exit_codes: ClassVar[tuple[Exit, ...]] = ()
    """The exit codes besides 0, 1, 2 and 130."""
    terminal = False
    """Whether the output is a terminal, and not that of another command."""
    json = False
    """Whether ``--json`` is given."""
    verbosity = 1
    """What ``--verbosity`` is given; 0 with ``--json``."""

    def __init_subclass__(cls) -> None:
        """Make the docstring of the subclass's module its help."""
        cls.help = sys.modules[cls.__module__].__doc__ or ""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command, reading the project's sites once.

        Progress is shown on a terminal only, and not by a command that another one calls.
        """
        nested = isinstance(options.get("stdout"), OutputWrapper)
        out = options.get("stdout") or self.stdout
        self.terminal = not nested and getattr(out, "isatty", lambda: False)()
        with caching_sites():
            return super().execute(*args, **options)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command from a shell: Ctrl-C and a closed output end it without a traceback.

        Without an output, it prints nothing.
        """
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # As with >&- in a shell.
                setattr(self, name, PrintableOutput(OutputWrapper(StringIO()), is_silent=True))
        try:
            try:
                super().run_from_argv(argv)
            except KeyboardInterrupt:
                self.stderr.write(self.interrupted)
                sys.exit(Exit.INTERRUPTED)
            finally:
                with exiting_if_output_closed():
                    if sys.stdout is not None:
                        sys.stdout.flush()
        except SystemExit as ended:
            if ended.code == Exit.OUTPUT_CLOSED:
                # Python would try once more to write what is left, and print the error.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise

    def handle(self, *args: Any, **options: Any) -> None:
        """Call `run`; turn the package's errors into messages and exit codes.

        A database error becomes a message if the database failed, or migrations are not applied.
        """
        out, err = self.stdout, self.stderr
        self.json = options.get("json", False)
        self.verbosity = 0 if self.json else options["verbosity"]
        self.failures: list[tuple[Exit, str]] = []
        """What failed for some sites so far: exit codes and messages."""
        self._first_error: Exception | None = None
        self._output = PrintableOutput(out)
        self.stdout = PrintableOutput(out, is_silent=self.json)
        self.stderr = PrintableOutput(err)
        try:
            self.run(options)
        except CommandError as error:
            error.args = (printable_lines(error),)
            raise
        except (SitemapKitError, ImproperlyConfigured) as error:
            raise CommandError(printable_lines(error), returncode=exit_code_of(error)) from error
        except DatabaseError as error:
            is_down = isinstance(error, OperationalError)  # Or locked: no fault of the code.
            failure = f"The database failed: {error}" if is_down else ""
            if reason := schema_error_message(error) or failure:
                raise CommandError(printable(reason), returncode=Exit.FAILED) from error
            raise
        finally:
            # Those of earlier sites, if another error has ended the command.
            for line in "\n".join(message for _code, message in self.failures).splitlines():
                self.stderr.write(line)
            self.stdout, self.stderr = out, err

    def run(self, options: dict[str, Any]) -> None:
        """Do the work of the command; each subclass implements it."""
        raise NotImplementedError

    @contextmanager
    def collecting_failures(self) -> Iterator[None]:
        """Collect an error of the package for one site, so that the next ones have their turn."""
        try:
            yield
        except (SitemapKitError, ImproperlyConfigured) as error:
            self._first_error = self._first_error or error
            self.failures.append((exit_code_of(error), str(error)))

    def raise_failures(self) -> None:
        """Raise CommandError for what was collected: the worst exit code, and all messages.

        A failure is worse than another process, which may soon have done the work, or a held build.
        """
        failures, self.failures = self.failures, []
        if failures:
            codes, messages = zip(*failures, strict=True)
            code = min(set(codes) - {Exit.HELD}, default=Exit.HELD)
            raise CommandError("\n".join(messages), returncode=code) from self._first_error

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, whose help ends with the exit codes."""
        codes = {Exit.DONE, Exit.FAILED, Exit.USAGE, Exit.INTERRUPTED, *self.more_exit_codes}
        meanings = "; ".join(f"{code.value} {code.label}" for code in sorted(codes))
        return super().create_parser(
            prog_name, subcommand, epilog=f"Exit codes: {meanings}.", **kwargs
        )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--site`` and ``--json``."""
        parser.add_argument(
            "--site",
            action="append",
            metavar="KEY",
            help="Only this site: a key of SITEMAPKIT_SITES or an id of the sites framework.",
        )
        parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")

    def write_json(self, document: Any) -> None:
        """Print a document as JSON on one line if ``--json`` is given, else nothing."""
        if self.json:
            self._output.write(json.dumps(document))

    def say(self, line: str, style: Callable[[str], str] | None = None) -> None:
        """Print a line, optionally styled, unless ``--verbosity 0`` or ``--json`` is given."""
        if self.verbosity:
            self.stdout.write(line, style)

    def replace_progress_line(self, line: str) -> None:
        """Replace the last progress line if the output is a terminal; "" clears the line."""
        if self.terminal:
            self.stdout.write(ending=CLEAR_LINE)
            self.stdout.write(line, ending="\r" if line else "")
            self.stdout.flush()

    def sites(self, keys: list[str] | str | None) -> list[SitemapSite]:
        """Return the sites with these keys, or all; raises CommandError for an unknown key."""
        keys = [keys] if isinstance(keys, str) else keys  # Of call_command().
        try:
            known = {site.key: site for site in all_sites()}
        except ImproperlyConfigured as error:
            raise CommandError(printable(error), returncode=Exit.USAGE) from error
        for key in keys or ():
            if key not in known:
                raise CommandError(
                    f"Site {key!r} does not exist. Known sites: {', '.join(known)}.",
                    returncode=Exit.USAGE,
                )
        return [known[key] for key in keys or known]

    def site_of_build(self, sites: list[SitemapSite], build: int) -> SitemapSite:
        """Return the one of these sites that has a build; raises CommandError if none has."""
        key = Build.objects.filter(pk=build).values_list("site", flat=True).first()
        site = site_by_key(sites, key or "")
        if site is None:
            raise CommandError(f"None of these sites has a build {build}.", returncode=Exit.USAGE)
        return site


class PublishedCommand(SiteCommand):
    """A command about published files, which runs even if system checks find errors."""

    has_faults = False
    """Whether the system checks found errors."""

    def check(self, *args: Any, **options: Any) -> None:
        """Run the system checks, but print their errors instead of ending the command."""
        try:
            super().check(*args, **options)
        except SystemCheckError as error:
            self.has_faults = True
            self.stderr.write(
                f"{error}\nThis command reads what is published despite these errors."
            )


@contextmanager
def exiting_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that leases are released and partial files deleted."""

    def exit_with_signal(number: int, frame: Any) -> None:
        """Exit with the code by which a shell reports a command that a signal has ended."""
        sys.exit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, exit_with_signal)
    except ValueError:  # Not in the main thread, whose owner handles signals.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def started_by_text() -> str:
    """Return who starts a build, for its ``started_by``: "command on" and the name of this host."""
    return f"command on {socket.gethostname()}"


class Progress:
    """Prints a line for each file that changed and, on a terminal, a progress bar below the lines.

    With ``verbosity`` 2 it prints a line for every file and for its problems, and no bar. On exit,
    the context manager always removes the bar.
    """

    def __init__(self, command: SiteCommand) -> None:
        self.command = command
        self.bar = command.verbosity == 1 and command.terminal
        encoding = getattr(command.stdout, "encoding", None) or "utf-8"
        self._blocks = ("█", "░") if encoding.lower().startswith("utf") else ("#", "-")
        self.files: dict[tuple[str, int], FileResult] = {}
        """The last result of each file."""
        self._began: float | None = None
        """When the first file that was rendered was begun."""
        self._rendered = self._urls = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self._clear_bar()

    def __call__(self, result: FileResult, position: int, total: int) -> None:
        """Print the result of a file, number ``position`` of ``total``."""
        self.files[result.section, result.number] = result
        self._clear_bar()
        if self.command.verbosity > 1 or result.state != "same":
            for line in file_lines(result):
                self.command.say(line)
        for problem in result.problems if self.command.verbosity > 1 else ():
            self.command.stderr.write(f"  {problem}")
        if self.bar:
            done = round(BAR_WIDTH * position / total)
            full, empty = self._blocks
            bar = f"{full * done}{empty * (BAR_WIDTH - done)} {position:,} of {total:,}"
            self.command.replace_progress_line(bar + self._estimate(result, total - position))

    def _estimate(self, result: FileResult, files_left: int) -> str:
        """Return the URLs per second and the time left, or "" as long as it is too early."""
        now = time.monotonic()
        if result.seconds:  # Files that are reused come first, and take hardly any time.
            self._began = now - result.seconds if self._began is None else self._began
            self._rendered += 1
            self._urls += result.urls
        if self._began is None or (seconds := now - self._began) < ESTIMATE_SECONDS:
            return ""
        left = dt.timedelta(seconds=round(seconds / self._rendered * files_left))
        return f", {self._urls / seconds:,.0f} URLs/s, {left} left"

    def _clear_bar(self) -> None:
        """Remove the progress bar from the terminal, if there is one."""
        if self.bar:
            self.command.replace_progress_line("")


def held_text(result: BuildResult) -> str:
    """Return several lines: why a build is held for review, and what to do about it."""
    build = result.build
    found = held_findings(result)
    lines = [f"    {url}  {printable(text)}" for url, text in found[:MAX_NAMED_URLS]]
    if len(found) > MAX_NAMED_URLS:
        lines.append(f"    and {len(found) - MAX_NAMED_URLS:,} more; the build's page lists them")
    return "\n".join(
        [
            f"Build {build} of site {result.site!r} is held for review:",
            f"  {printable(result.reason)}.",
            *lines,
            "The site serves what it served before.",
            how_to_review(build),
        ]
    )


def held_findings(result: BuildResult) -> list[tuple[str, str]]:
    """Return the URLs that hold a build for review, each with the reason in English."""
    with override("en"):
        return findings_of(result.cause)


def how_to_review(build: int | None) -> str:
    """Return a sentence with the commands that show and publish a build that is held for review."""
    return f"diff_sitemaps {build} shows the changes, publish_sitemaps {build} publishes them."


def file_lines(result: FileResult) -> Iterator[str]:
    """Yield a line about a file of a build, and one about its skipped rows, if there are any."""
    name = f"{result.section or 'index'} {result.number or ''}"
    what = ("URL" if result.section else "sitemap") + ("" if result.urls == 1 else "s")
    yield (
        f"{name:<20} {result.state:<6} {result.urls:>6,} {what:<8}"
        f" {size_text(result.xml_bytes):>10} {size_text(result.stored_bytes):>10} stored"
        f" {result.seconds:>5.2f} s"
    )
    if result.skipped:
        duplicates = f", {result.duplicates:,} of them duplicates" if result.duplicates else ""
        yield f"  {count_of(result.skipped, 'row')} skipped{duplicates}"


def size_text(count: int) -> str:
    """Return a number of bytes as English text with a unit: ``1.2 MB``."""
    with override(None):
        return filesizeformat(count).replace("\xa0", " ")


def age_text(moment: dt.datetime, now: dt.datetime | None) -> str:
    """Return in English how long before ``now`` a moment was: ``2 hours ago``.

    If ``now`` is None, the clock of this machine counts.
    """
    with override(None):
        words = timesince(moment, now, depth=1).replace("\xa0", " ")
    return "just now" if words == "0 minutes" else f"{words} ago"
