"""What the workers of a task queue do besides helping a build: requests and whole builds."""

import logging
from collections.abc import Collection, Mapping

from django.core.management import call_command

from django_sitemapkit.builds import requests
from django_sitemapkit.models import BuildRequest
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import all_sites, site_by_key
from django_sitemapkit.tenants import switched_to_schemas

logger = logging.getLogger("django_sitemapkit")

REQUEST_DELAY_SECONDS = 60
"""Seconds until a worker looks again at a request that waits for another build."""


def process_requests(
    key: str, kinds: Collection[str], schemas: Mapping[str, str] | None = None
) -> None:
    """Do what the admin has requested of a site, by its key.

    What waits for another build is enqueued once more, so that no worker waits.
    """
    with switched_to_schemas(schemas or {}):
        site = site_by_key(all_sites(), key)
        if site is None:
            logger.error("Requests for site %r: this worker's settings have no such site.", key)
            return
        requests.process_requests(site, get_runner, kinds=kinds, wait_seconds=0)
        if BuildRequest.objects.open(site).filter(kind__in=kinds).exists():
            requests.enqueue(site, get_runner(), kinds, delay=REQUEST_DELAY_SECONDS)


def build_sitemaps() -> None:
    """Build all sites, and adopt what a killed process left; for a schedule.

    Does what the command ``build_sitemaps --skip-if-running`` does, and raises what it raises.
    """
    call_command("build_sitemaps", skip_if_running=True, verbosity=0)
