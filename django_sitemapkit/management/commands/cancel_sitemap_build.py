"""Cancel the running build."""

from typing import Any

from django_sitemapkit.builds import cancel_build
from django_sitemapkit.management.base import PublishedCommand, caller


class Command(PublishedCommand):
    """Cancel each site's running build, on whichever machine it runs."""

    help = __doc__ or ""

    def run(self, options: dict[str, Any]) -> None:
        """Cancel the build of each site, and print which one it was."""
        for site in self.sites(options["site"]):
            build = cancel_build(site, by=caller())
            if options["json"]:
                self.write_json({"site": site.key, "build": build.pk if build else None})
            elif options["verbosity"] and build is None:
                self.stdout.write(f"No build of site {site.key!r} is running.")
            elif options["verbosity"] and build is not None:
                self.stdout.write(
                    f"Build {build.pk} of site {site.key!r} is cancelled. What is published stays.",
                    self.style.SUCCESS,
                )
                self.stdout.write("Its process, if it is alive, stops at its next heartbeat.")
