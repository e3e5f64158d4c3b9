"""``rename_city``: change one row, build again, and show what that changed."""

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
        call_command("build_sitemaps", verbosity=verbosity, stdout=self.stdout)
        if verbosity:
            self.stdout.write("\n  The changed URLs, as diff_sitemaps prints them:\n")
            call_command("diff_sitemaps", stdout=self.stdout)
