"""Show which URLs a build, or another sitemap, adds, removes and changes."""

from collections import Counter
from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.utils.module_loading import import_string

from django_sitemapkit.builds import differences_of
from django_sitemapkit.management.base import Exit, PublishedCommand
from django_sitemapkit.printable import count_of, printable
from django_sitemapkit.sites import SitemapSite


class Command(PublishedCommand):
    """Print the URLs that a build adds (+), removes (-) and changes (~), one per line.

    With ``--against``, compare the sections' current output with another sitemap.
    """

    more_exit_codes = (Exit.PROBLEMS,)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the build, ``--against`` and ``--ignore``."""
        super().add_arguments(parser)
        parser.add_argument(
            "build",
            type=int,
            nargs="?",
            help="The build's id; default: the build held for review, else the published one.",
        )
        parser.add_argument(
            "--against",
            metavar="SOURCE",
            help="Compare the sections' current output with another sitemap of the site (a URL, the"
            " name of a URL pattern, a file or a folder), and exit with 5 if they differ. Needs the"
            " app django_sitemapkit.audit.",
        )
        parser.add_argument(
            "--ignore",
            default="",
            metavar="TAGS",
            help="With --against: tags to ignore, such as changefreq,priority.",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Compare the build of each site with the previous one, or a site with another sitemap."""
        sites = self.sites(options["site"])
        if options["against"] is not None:
            self._compare_against(sites, options)
        elif options["ignore"]:
            raise CommandError("--ignore needs --against.", returncode=Exit.USAGE)
        else:
            self._print_build_differences(sites, options)

    def _print_build_differences(self, sites: list[SitemapSite], options: dict[str, Any]) -> None:
        """Print the URLs that each site's build adds, removes, changes or lists twice."""
        build = options["build"]
        if build is not None:
            sites = [self.site_of_build(sites, build)]
        for site in sites:
            counts: Counter[str] = Counter()
            duplicates: dict[str, list[str]] = {}
            with self.collecting_failures():
                for difference in differences_of(site, build, duplicates=duplicates):
                    kind = difference.kind.name.lower()
                    counts[kind] += 1
                    self.write_json({"change": kind, "url": difference.location})
                    self._write_difference(str(difference))
                for url, pages in duplicates.items():
                    self.write_json({"change": "duplicate", "url": url, "pages": pages})
                    self._write_difference(f"! {url} is listed more than once: {'; '.join(pages)}")
                found = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
                self.say(f"Site {site.key!r}: {found or 'no differences'}.")
        self.raise_failures()

    def _compare_against(self, sites: list[SitemapSite], options: dict[str, Any]) -> None:
        """Print the differences from another sitemap; raise CommandError if there are any."""
        found = self._comparison_with_other_sitemap(sites, options)
        for difference in found:
            self.write_json(difference.as_dict())
            if self.verbosity:
                self._write_difference(str(difference))
        count = sum(found.counts.values())
        self.write_json(found.as_dict())
        self.say(found.summary(), self.style.WARNING if count else self.style.SUCCESS)
        if count:
            raise CommandError(f"{count_of(count, 'difference')}.", returncode=Exit.PROBLEMS)

    def _write_difference(self, line: str) -> None:
        """Print a line in the colour of its first character, as Django's ``diffsettings`` does."""
        styles = {"+": self.style.SUCCESS, "-": self.style.ERROR, "~": self.style.WARNING}
        self.stdout.write(line, styles.get(line[0]))

    def _comparison_with_other_sitemap(
        self, sites: list[SitemapSite], options: dict[str, Any]
    ) -> Any:
        """Return the comparison of the only site with the sitemap of ``--against``.

        Raises CommandError if the options do not allow it.
        """
        if self.has_faults:
            raise CommandError(
                "--against renders all sections: fix the errors above.", returncode=Exit.FAILED
            )
        if options["build"] is not None:
            raise CommandError(
                "--against compares the sections' current output, not a build.",
                returncode=Exit.USAGE,
            )
        if len(sites) != 1:
            names = ", ".join(site.key for site in sites)
            raise CommandError(
                f"--against compares one site: choose it with --site. Known sites: {names}.",
                returncode=Exit.USAGE,
            )
        ignored = {tag.strip() for tag in options["ignore"].split(",") if tag.strip()}
        try:
            return _comparison_class()(sites[0], str(options["against"]), ignored=ignored)
        except (ValueError, ImproperlyConfigured) as error:
            raise CommandError(printable(error), returncode=Exit.USAGE) from error


def _comparison_class() -> Any:
    """Return the class that compares a site with another sitemap.

    An installed app names it in ``sitemapkit_comparison``; without one, raises CommandError.
    """
    for app in apps.get_app_configs():
        if path := getattr(app, "sitemapkit_comparison", ""):
            return import_string(path)
    raise CommandError(
        '--against needs the app "django_sitemapkit.audit": add it to INSTALLED_APPS.',
        returncode=Exit.USAGE,
    )
