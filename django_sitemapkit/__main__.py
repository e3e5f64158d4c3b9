"""The console script ``sitemapkit``: crawls, audits and validates without a Django project.

Each of its commands runs the management command of the same name, with settings and a database
that are its own. ``python -m django_sitemapkit`` does the same. ::

    sitemapkit crawl https://www.example.com/ --output public
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from django.conf import settings
from django.core.management import CommandError, call_command, load_command_class
from django.db import DatabaseError
from django.urls import include, path
from django.utils import timezone

from django_sitemapkit import __version__, register
from django_sitemapkit.exceptions import (
    BuildRunning,
    InvalidSitemap,
    InvalidValue,
    SitemapKitError,
)
from django_sitemapkit.extras import import_extra
from django_sitemapkit.printable import printable, quoted
from django_sitemapkit.protocol.dates import format_lastmod, moment_of
from django_sitemapkit.protocol.locations import normalise_url, split_origin

APP = "django_sitemapkit.audit"

DATABASE = ".sitemapkit.sqlite3"
"""The file in the output folder that an interrupted crawl leaves, to be continued."""

ROWS_PER_INSERT = 2_000

_FETCHING = (
    ("--rate", "REQUESTS", "maximum requests a second; default: 10"),
    ("--concurrency", "REQUESTS", "requests at a time; default: 4"),
    ("--allow-private", "", "also fetch from private and local addresses"),
)
_REPORTING = (
    ("--fail-on", "KINDS", "exit with 5 if there are findings of these kinds"),
    ("--json", "", "print JSON, for programs"),
)
_OPTIONS = {
    "crawl": (
        ("url", "URL", "the home page of the site or of a folder"),
        ("--output", "FOLDER", "where to write the sitemap and the tables; default: sitemap"),
        ("--below", "FOLDER", "crawl only URLs below this path, such as /products/"),
        ("--external", "", "also check links to other sites; default: files and links of this one"),
        ("--max-urls", "URLS", "end after this many URLs; default: 100000"),
        ("--continue", "", "continue a crawl that was interrupted"),
        *(*_FETCHING, *_REPORTING),
    ),
    "audit": (
        ("url", "URL", "the address of a sitemap or of an index"),
        ("--sample", "URLS", "pages to fetch, spread over the sitemap; default: 200"),
        ("--full", "", "fetch all pages"),
        *(*_FETCHING, *_REPORTING),
    ),
    "validate": (
        ("--schema", "PATH", "also validate against XML schemas in a folder or file"),
        ("--max-seconds", "SECONDS", "time limit for a URL; default: 3600"),
        *_REPORTING,
    ),
}
"""Name, value and help of each command's URL and options: those of the management command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the console script with some arguments, by default those of the process.

    Raises SystemExit with the exit code of the management command, unless that is 0.
    """
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    verb, prepare = options.pop("verb"), options.pop("prepare")
    with TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            command = prepare(options, Path(folder) / DATABASE, stack)
            stack.callback(_delete_finished_database)
            command.interrupted = "Interrupted. Use --continue to continue a crawl."
            command.is_standalone = True
            command.run_from_argv(["sitemapkit", verb, "--skip-checks", *_as_command_line(options)])
        except (DatabaseError, InvalidSitemap) as error:  # The disk may be full.
            parser.exit(1, f"sitemapkit: {printable(error)}\n")
        except (CommandError, SitemapKitError) as error:
            parser.exit(
                4 if isinstance(error, BuildRunning) else 2, f"sitemapkit: {printable(error)}\n"
            )
        except KeyboardInterrupt:
            parser.exit(130, "Interrupted.\n")


def _parser() -> ArgumentParser:
    """Return the parser of the script's arguments, with a subparser for each command."""
    parser = ArgumentParser("sitemapkit", description="Crawls, audits and validates any site.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    verbs.add_parser(
        "crawl", help="write a site's sitemap, and list its broken links"
    ).set_defaults(prepare=_prepare_crawl, live=True, output="sitemap")
    verbs.add_parser("audit", help="check the pages of a sitemap").set_defaults(
        prepare=_prepare_audit, live=True
    )
    validate = verbs.add_parser("validate", help="read sitemaps as search engines do")
    validate.add_argument(
        "sources", metavar="SOURCE", nargs="+", help="a URL, a file, a folder, or - for the input"
    )
    validate.set_defaults(prepare=_prepare_validate)
    for verb, options in _OPTIONS.items():
        for name, value, text in options:
            kind: Any = {"metavar": value} if value else {"action": "store_true"}
            verbs.choices[verb].add_argument(name, help=text, **kind)
    return parser


def _as_command_line(options: dict[str, Any]) -> Iterator[str]:
    """Yield options of a command as arguments: flags, ``--name=value``, and lists after ``--``.

    Options that are false or empty are left out, except lists.
    """
    for name, value in sorted(options.items(), key=lambda each: isinstance(each[1], list)):
        if isinstance(value, list):
            yield from ["--", *value]
        elif value:
            option = f"--{name.replace('_', '-')}"
            yield option if value is True else f"{option}={value}"


def _validated_command(verb: str, options: dict[str, Any]) -> Any:
    """Return the management command for a command of the script, whose options it accepts.

    Raises CommandError if it does not.
    """
    command = load_command_class(APP, f"{verb}_sitemaps")
    command.create_parser("sitemapkit", verb).parse_args(list(_as_command_line(options)))
    return command


def _prepare_crawl(options: dict[str, Any], _: Path, stack: ExitStack) -> Any:
    """Reserve the output folder, make its database ready, and return the management command.

    With ``--continue``, the database is kept as it is. Raises CommandError for an invalid option,
    and SitemapKitError if the URL is invalid, an extra is missing, or the folder cannot be used,
    such as while another process uses it.
    """
    url, continues = _pop_url(options), options.pop("continue")
    folder = Path(options["output"])
    _configure_django(folder / DATABASE, url.partition("?")[0].rpartition("/")[0])
    command = _validated_command("crawl", options)
    import_extra(f"{APP}.web.live", "audit")
    stack.enter_context(import_extra(f"{APP}.crawl.output", "audit").reserved_folder(folder))
    if not continues:
        _delete_database()
    call_command("migrate", verbosity=0)
    from django_sitemapkit.models import Lease  # noqa: PLC0415  needs the settings

    Lease.objects.all().delete()  # Of a crawl that was killed: nobody else is in this folder.
    options["starts"] = [] if options["below"] else [url]
    return command


def _prepare_audit(options: dict[str, Any], database: Path, _: ExitStack) -> Any:
    """Validate the options, store the sitemap's pages, and return the management command.

    Raises CommandError for an invalid option, and SitemapKitError if the URL is invalid, an extra
    is missing, or the sitemap cannot be read or lists no page.
    """
    url = _pop_url(options)
    _configure_django(database, split_origin(url)[0])
    import_extra(f"{APP}.web.live", "audit")
    import_extra(f"{APP}.auditing", "audit")
    command = _validated_command("audit", options)
    command.kinds_to_fail_on({"fail_on": options["fail_on"] or ""})
    call_command("migrate", verbosity=0)
    from django_sitemapkit.audit.models import SavedPage  # noqa: PLC0415  needs the settings
    from django_sitemapkit.audit.sections import CrawledSection  # noqa: PLC0415

    register(CrawledSection)
    pages = _pages_listed_in(url, SavedPage)
    while some := list(islice(pages, ROWS_PER_INSERT)):
        SavedPage.objects.bulk_create(some)
    return command


def _pop_url(options: dict[str, Any]) -> str:
    """Remove the URL from a command's options and normalise it; raises InvalidValue."""
    url: str = options.pop("url")
    if "://" not in url:
        raise InvalidValue("invalid-url", f"{quoted(url)} is no URL: write https://{url}")
    return normalise_url(url, "")


def _prepare_validate(options: dict[str, Any], database: Path, _: ExitStack) -> Any:
    """Return the management command, whose options are valid; raises CommandError."""
    _configure_django(database, None)
    return _validated_command("validate", options)


def _pages_listed_in(sitemap: str, model: Any) -> Iterator[Any]:
    """Yield rows for a sitemap's pages on the first one's host; raises InvalidSitemap if none."""
    from django_sitemapkit.audit.moving.sources import sitemap_source  # noqa: PLC0415
    from django_sitemapkit.models import hash_of  # noqa: PLC0415
    from django_sitemapkit.sites import all_sites  # noqa: PLC0415

    now, origin = timezone.now(), ""
    for written, values in sitemap_source(sitemap, all_sites()[0]).entries():
        with suppress(InvalidValue):
            host, location = split_origin(normalise_url(written, ""))
            origin = settings.SITEMAPKIT_BASE_URL = origin or host
            lastmod = None
            with suppress(InvalidValue):  # A month alone says no day.
                text = format_lastmod(values.get("lastmod")) or ""
                lastmod = moment_of(text, timezone.get_default_timezone())
            if host == origin:
                yield model(
                    site="default",
                    hash=hash_of(location),
                    path=location,
                    lastmod=lastmod,
                    first_seen=now,
                    last_seen=now,
                )
    if not origin:
        raise InvalidSitemap("no-pages", f"{sitemap} lists no page.")


def _configure_django(database: Path, base_url: str | None) -> None:
    """Configure Django for one site, with a database of its own."""
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": database}},
        INSTALLED_APPS=["django_sitemapkit", APP],
        SITEMAPKIT_BASE_URL=base_url,
        TEMPLATES=[
            {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}
        ],
    )
    django.setup()
    settings.ROOT_URLCONF = (path("", include("django_sitemapkit.urls")),)


def _delete_finished_database() -> None:
    """Delete the database file, unless a crawl is unfinished in it: continued later, or running."""
    from django_sitemapkit.audit.models import AuditRun  # noqa: PLC0415  needs the settings

    with suppress(DatabaseError):  # `validate` has no tables.
        if AuditRun.objects.filter(status=AuditRun.Status.RUNNING).exists():
            return
    _delete_database()


def _delete_database() -> None:
    """Delete the database file of the crawl or audit, if possible."""
    database: Any = settings.DATABASES["default"]["NAME"]
    with suppress(OSError):  # Where it cannot be deleted, SQLite says that it cannot be opened.
        database.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
