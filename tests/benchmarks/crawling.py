"""What is measured of crawls: over HTTP against Scrapy, and of many pages within the process."""

import subprocess
import sys
from contextlib import contextmanager

from django.core.management import call_command

from tests.benchmarks.data import path_of
from tests.benchmarks.measuring import Unavailable, measured
from tests.benchmarks.web_pages import pages, served

CONCURRENCY = 8
"""Requests at the same time."""

LINKED_PAGES = 4_000
"""Pages that are crawled over HTTP, where there are as many."""


def linked_pages():
    """Return how many pages are crawled over HTTP."""
    return min(LINKED_PAGES, pages())


@contextmanager
def link_server():
    """Start a server of linked pages; yield its base URL."""
    command = [sys.executable, "-m", "tests.benchmarks.link_server", str(linked_pages())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def clear():
    """Forget all crawls, and what other contenders have published."""
    from tests.benchmarks import ours

    _clear_crawls()
    ours.clear()


def clear_and_publish():
    """Forget all crawls, and publish what they are compared with."""
    from tests.benchmarks import ours

    _clear_crawls()
    ours.clear_and_publish()


def _clear_crawls():
    from django_sitemapkit.audit.models import AuditRun, CrawledLink, CrawledUrl

    call_command("migrate", verbosity=0)
    for model in (CrawledLink, CrawledUrl, AuditRun):
        model.objects.all().delete()


def crawl_live():
    """Crawl the server."""
    from django_sitemapkit.audit.crawl import crawl
    from django_sitemapkit.audit.web.live import LiveFetcher
    from django_sitemapkit.sites import SitemapSite

    with link_server() as base, LiveFetcher(allow_private=True) as fetcher:
        site = SitemapSite.at(base)
        figures, run = measured(lambda: crawl(site, fetch=fetcher.fetch, concurrency=CONCURRENCY))
    found = run.crawled.filter(outcome="page", title__startswith="Page ").count()
    _require(found)
    return figures | {"urls": found}


def require_scrapy():
    """Raise Unavailable where Scrapy is missing."""
    try:
        import scrapy  # noqa: F401
    except ImportError as error:
        raise Unavailable("Scrapy is not installed") from error


def crawl_by_scrapy():
    """Crawl the server by Scrapy, which does nothing else with what it finds than count it."""
    from scrapy.crawler import CrawlerProcess

    from tests.benchmarks.spider import LinkSpider, found

    settings = {
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
    }
    with link_server() as base:
        process = CrawlerProcess(settings)
        process.crawl(LinkSpider, base=base)
        figures, _ = measured(process.start)
    _require(len(found))
    return figures | {"urls": len(found)}


def crawl_many():
    """Crawl small pages within the process."""
    from django_sitemapkit.audit.crawl import crawl
    from django_sitemapkit.sites import all_sites

    starts = [path_of(number) for number in range(1, 10)]  # Those below no other.
    site = all_sites()[0]
    figures, run = measured(lambda: crawl(site, starts=starts, max_urls=2 * pages()))
    if served.pages != pages() or run.counts:
        raise RuntimeError(f"It found {served.pages:,} of {pages():,} pages, and {run.counts}.")
    return figures | served.figures


def _require(found):
    # The home page is page 0, which has another URL besides.
    if found not in {linked_pages(), linked_pages() + 1}:
        raise RuntimeError(f"It found {found:,} of {linked_pages():,} pages.")
