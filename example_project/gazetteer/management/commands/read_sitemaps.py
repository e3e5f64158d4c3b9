"""``read_sitemaps``: serve what is published, read it back, hold it against the database."""

import shlex
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from ...progress import ProgressLine
from ...reading import Reading, read_everything
from ...serving import HOST, free_port, preferred_port, served

ROW = "  {:<12}{:>7}{:>11}{:>14}{:>10}{:>12}"


class Command(BaseCommand):
    help = "Serve the published sitemaps and read them back: is every page listed, and correctly?"

    def handle(self, *args: Any, verbosity: int, **options: Any) -> None:
        port = preferred_port()
        with served() as base_url:
            if verbosity:
                taken = "" if base_url.endswith(f":{port}") else f" (port {port} is not free)"
                self.stdout.write(f"  serving at {base_url}{taken}")
                self.stdout.flush()
            reading = read_everything(
                settings.SITEMAPKIT_BASE_URL,
                base_url,
                ProgressLine(self.stdout, quiet=verbosity == 0),
            )
        if verbosity:
            self._table(reading)
        for text in reading.warnings:
            self.stdout.write(self.style.WARNING(f"  warning: {text}"))
        if reading.problem_count:
            for text in reading.problems:
                self.stderr.write(f"  {text}")
            raise CommandError(f"{reading.problem_count:,} problems; the first ones are above.")
        if verbosity:
            self.stdout.write(
                self.style.SUCCESS(
                    f"All published files are valid, and list exactly the {reading.expected:,}"
                    " pages of the database."
                )
            )
            self._way_in()

    def _table(self, reading: Reading) -> None:
        self.stdout.write("")
        self.stdout.write(ROW.format("section", "pages", "URLs", "bytes", "time", "URLs/s"))
        totals = [0, 0, 0, 0.0]
        for section in reading.sections.values():
            values = [section.pages, section.urls, section.bytes, section.seconds]
            totals = [total + value for total, value in zip(totals, values, strict=True)]
            self.stdout.write(_row(section.name, *values))
        self.stdout.write(_row("total", *totals))
        self.stdout.write("")

    def _way_in(self) -> None:
        here = Path.cwd()
        manage = Path(__file__).resolve().parents[3] / "manage.py"
        # Not resolved: the Python of an environment is a link to one that lacks its packages.
        python, script = (_shortest(path, here) for path in (Path(sys.executable), manage))
        port = free_port()
        base_url = f"http://{HOST}:{port}"
        serve = shlex.join([python, script, "runserver", str(port)])
        self.stdout.write("")
        self.stdout.write("To look at it in a browser, run")
        self.stdout.write(f"  {serve}")
        self.stdout.write(f"and open {base_url}/ or {base_url}/sitemap.xml")
        if port != preferred_port():
            self.stdout.write(
                f"(Port {preferred_port()} is taken. The sitemaps list addresses of"
                f" {settings.SITEMAPKIT_BASE_URL} all the same: they were built for it.)"
            )
        if not get_user_model().objects.filter(is_superuser=True, is_active=True).exists():
            self.stdout.write("")
            self.stdout.write("To use the admin, create a user first:")
            self.stdout.write(f"  {shlex.join([python, script, 'createsuperuser'])}")
            self.stdout.write(f"and open {base_url}/admin/sitemapkit/")
        else:
            self.stdout.write(f"or, for the admin, {base_url}/admin/sitemapkit/")


def _row(name: str, pages: float, urls: float, size: float, seconds: float) -> str:
    speed = urls / seconds if seconds else 0
    return ROW.format(
        name, f"{pages:,}", f"{urls:,}", f"{size:,}", f"{seconds:.2f} s", f"{speed:,.0f}"
    )


def _shortest(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
