"""Submitting in the background each time a build has been published."""

from collections.abc import Mapping
from threading import Thread
from typing import Any

from django.db import connections
from django.dispatch import receiver

from django_sitemapkit.exceptions import BuildRunning
from django_sitemapkit.printable import logger
from django_sitemapkit.signals import sitemaps_published
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.submission.options import submit_options
from django_sitemapkit.submission.submit import submit
from django_sitemapkit.tenants import current_tenants, switch_tenants


@receiver(sitemaps_published, dispatch_uid="sitemapkit_submission")
def submit_after_publishing(*, site: str, **kwargs: Any) -> None:
    """Submit a site that has just been published, if the option ``after_publishing`` is set.

    ``site`` is its key. The build does not wait: a thread submits the site. A process that ends
    waits for its threads, so a command submits before it exits. What is not sent, for any reason,
    stays in the ledger for the next run.
    """
    if submit_options().after_publishing and (found := site_by_key(all_sites(), site)):
        args = found, current_tenants()
        Thread(target=_submit_in_thread, args=args, name=f"sitemapkit-submit-{site}").start()


def _submit_in_thread(site: SitemapSite, tenants: Mapping[str, Any]) -> None:
    """Submit a site, with its tenants set in this thread; log problems and errors.

    Google is not asked about single URLs.
    """
    try:
        switch_tenants(tenants)
        for problem in submit(site, inspect=False).problems:
            logger.warning("Site %r: %s", site.key, problem)
    except BuildRunning as error:  # The other process may have begun before this build.
        logger.info("Site %r: %s", site.key, error)
    except Exception:
        logger.exception("Site %r: the build could not be submitted.", site.key)
    finally:
        connections.close_all()
