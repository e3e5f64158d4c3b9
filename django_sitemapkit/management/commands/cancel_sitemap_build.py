"""Cancel the running build."""

from typing import Any

from django_sitemapkit.builds import cancel_build
from django_sitemapkit.management.base import PublishedCommand, started_by_text


class Command(PublishedCommand):
    """Cancel each site's running build, on any machine."""

    def run(self, options: dict[str, Any]) -> None:
        """Cancel the build of each site, and print which one it was."""
        for site in self.sites(options["site"]):
            build = cancel_build(site, by=started_by_text())
            self.write_json({"site": site.key, "build": build and build.pk})
            if build is None:
                self.say(f"No build of site {site.key!r} is running.")
                continue
            self.say(
                f"Build {build.pk} of site {site.key!r} is cancelled. What is published stays.",
                self.style.SUCCESS,
            )
            self.say("Its process, if it is alive, stops at its next heartbeat.")
