"""``rename_city``: change one row, build again, and show what that changed."""

from io import StringIO
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from ...models import City

ADDED = "-renamed"


class Command(BaseCommand):
    help = "Rename a city, or give it its name back, and build: one page is rendered again."

    def handle(self, *args: Any, verbosity: int, **options: Any) -> None:
        city = City.objects.order_by("pk")[0]
        old = city.slug_en
        new = old.removesuffix(ADDED) if old.endswith(ADDED) else old + ADDED
        # update() sends no signal; the build sees it all the same.
        City.objects.filter(pk=city.pk).update(slug_en=new)
        if verbosity:
            self.stdout.write(f"  {city}: {old} is now {new}, in English only\n\n")
        said = StringIO()
        call_command("build_sitemaps", verbosity=verbosity, stdout=said)
        for line in _in_order(said.getvalue().splitlines()):
            self.stdout.write(line)
        if verbosity:
            self.stdout.write("\n  The changed URLs, as diff_sitemaps prints them:\n")
            call_command("diff_sitemaps", stdout=self.stdout)


def _in_order(lines: list[str]) -> list[str]:
    """Return a build's lines in the order of the index: files that are reused are done first."""

    def place(line: str) -> tuple[int, str, int]:
        name, number, *_ = f"{line} - -".split()
        kind = ("index", "Build").index(name) + 1 if name in ("index", "Build") else 0
        return kind, name, int(number) if number.isdecimal() else 0

    return sorted(lines, key=place)
