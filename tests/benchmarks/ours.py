"""What is measured of this package."""

import datetime as dt
import os
import resource
import time
import uuid
from itertools import islice
from pathlib import Path

from django.conf import settings

from tests.benchmarks.browser import Browser
from tests.benchmarks.data import fill_offers
from tests.benchmarks.measuring import Unavailable, measured, median_of, traced

PAGE = 50_000
"""URLs of a full page."""


def rows():
    """Return how many rows the database has, as the parent says."""
    return int(os.environ["BENCHMARKS_ROWS"])


def clear():
    """Forget all plans and builds, as on the day the package came."""
    from django_sitemapkit.models import (
        Build,
        Lease,
        Page,
        Place,
        Plan,
        Publication,
        StoredFile,
        StoredPage,
    )

    _require_codec()
    for model in (Publication, Place, StoredPage, Build, Page, Plan, Lease, StoredFile):
        model.objects.all().delete()


def clear_for_articles():
    """Have as many articles as products, with the same slugs."""
    from django.db import connection

    from tests.benchmarks.models import Article, Product

    clear()
    if Article.objects.count() == rows():
        return
    Article.objects.all().delete()
    articles = (
        Article(
            id=uuid.uuid5(uuid.NAMESPACE_URL, product.slug),
            category=product.category,
            slug=product.slug,
            published_at=product.updated_at - dt.timedelta(days=30),
            updated_at=product.updated_at,
        )
        for product in Product.objects.defer("body").iterator()
    )
    while some := list(islice(articles, 5_000)):
        Article.objects.bulk_create(some)
    with connection.cursor() as cursor:
        vacuum = "" if connection.vendor == "sqlite" else "VACUUM "
        cursor.execute(f"{vacuum}ANALYZE {Article._meta.db_table}")


def clear_for_offers():
    """Have as many offers as products, with the same slugs and categories."""
    clear()
    fill_offers(rows())


def clear_for_overridden():
    """Have one row in ten overridden."""
    from tests.benchmarks.steering import set_overrides

    clear()
    set_overrides(settings.BENCHMARKS_SITE, rows())


def clear_for_reset():
    """Have something set and taken back."""
    from tests.benchmarks.steering import reset

    clear()
    reset(settings.BENCHMARKS_SITE)


def clear_and_plan():
    """Make the plan, which the first request would have to wait for."""
    from django_sitemapkit.planning import refresh_plan
    from django_sitemapkit.registry import registry

    clear()
    for section in registry.enabled_readers(_site()):
        refresh_plan(section)


def clear_and_publish():
    """Have everything published."""
    clear()
    _build()


def clear_and_change():
    """Have a build whose predecessor has the same URLs, with other values."""
    from django_sitemapkit.models import SectionSettings

    site, section = settings.BENCHMARKS_SITE, "products"
    SectionSettings.objects.filter(site=site).delete()
    clear_and_publish()
    SectionSettings.objects.create(site=site, section=section, changefreq="daily")
    _build()


def build(runner=None):
    """Build and publish all files, with a runner if it is not the process alone."""
    figures, result = measured(lambda: _build(runner))
    _require(result, rows())
    if settings.BENCHMARKS_STORAGE == "database":
        _copy_files()
    return figures


def _copy_files():
    """Copy what is in the database into the folder, where all contenders' files are read."""
    from django_sitemapkit.models import StoredFile
    from django_sitemapkit.publishing import DatabaseStorage

    storage = DatabaseStorage()
    for stored in StoredFile.objects.all():
        path = Path(settings.FOLDER, str(stored))
        path.parent.mkdir(parents=True, exist_ok=True)
        with storage.open(str(stored)) as file:
            path.write_bytes(file.read())


def build_overridden():
    """Build and publish what the overrides leave of the files."""
    figures, result = measured(_build)
    return figures | _require_overridden(result)


def build_reset():
    """Build and publish all files of a site for which something was set once."""
    from django_sitemapkit.overrides import overrides_of

    overrides = overrides_of(_site())
    if not overrides.revision or overrides.model_labels:
        raise RuntimeError(f"It has {overrides} with {overrides.model_labels}.")
    return build()


def build_overlapping():
    """Build and publish all files of two sections that have a hundredth of the rows both."""
    figures, result = measured(_build)
    again = rows() // 100
    left_out = again if settings.SITEMAPKIT_DEDUPLICATE else 0
    _require(result, rows() + again - left_out)
    if sum(file.duplicates for file in result.files) != left_out:
        raise RuntimeError("It has left out others than the duplicates.")
    return figures | {"urls": result.urls}


def build_traced():
    """Build and publish all files while Python's allocations are counted."""
    figures, result = traced(_build)
    if settings.BENCHMARKS_SITE:
        promised = _require_overridden(result)
        return figures | {"urls": result.urls, "overrides": promised["overrides"]}
    _require(result, rows())
    return figures | {"urls": result.urls}


def build_in_processes():
    """Build and publish all files with the runner and the workers of the settings."""
    from django_sitemapkit.runners.choosing import get_runner

    runner = get_runner()
    others = runner.workers - 1  # This process makes pages itself.
    figures, result = measured(lambda: _build(runner), workers=others)
    _require(result, rows())
    if rows() > PAGE and not resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss:
        raise RuntimeError("No worker was started.")
    return figures


def rebuild():
    """Build all, then after one row has changed, and once more after none has."""
    from tests.benchmarks.models import Product

    full, result = measured(_build)
    _require(result, rows())
    touched = Product.objects.filter(pk=rows() // 3)
    before = touched.get().updated_at
    touched.update(updated_at=before + dt.timedelta(days=500))
    try:
        figures, result = measured(_build)
        _require(result, rows(), stored=2)  # The index, if it is not of the same second.
    finally:
        touched.update(updated_at=before)
    _build()
    untouched, result = measured(_build)
    _require(result, rows(), status="unchanged", stored=0)
    return figures | {
        "urls": rows(),
        "to full": figures["seconds"] / full["seconds"],
        "untouched to full": untouched["seconds"] / full["seconds"],
    }


def rebuild_sites():
    """Build the sites that have rows, and once more after nothing has changed."""
    from django_sitemapkit import builds
    from django_sitemapkit.sites import all_sites

    def build_all():
        return [builds.build(site) for site in sites]

    sites = all_sites()[: rows() // 20]
    build_all()
    figures, results = measured(build_all)
    for result in results:
        _require(result, 20, status="unchanged", stored=0)
    return figures | {"urls": 20 * len(sites), "each": figures["seconds"] / len(sites)}


def page():
    """Ask for the tenth live page, or the last of fewer."""
    return Browser().measure(f"/sitemap-products-{min(10, -(-rows() // PAGE))}.xml")


def pages():
    """Ask for the first live page and the last full one by turns."""
    browser = Browser()
    first, last = (f"/sitemap-products-{number}.xml" for number in (1, max(1, rows() // PAGE)))

    def both():
        return {
            "first page": browser.get(first)["seconds"],
            "seconds": browser.get(last)["seconds"],
        }

    both()
    figures, medians = measured(lambda: median_of(both, within=600))
    medians["last to first"] = medians["seconds"] / medians["first page"]
    return figures | medians | {"urls": browser.listed(last)["urls"]}


def inspect():
    """Ask what becomes of a URL: in the published files, and with the next build."""
    from django.db import connection

    from django_sitemapkit.builds import search_published
    from django_sitemapkit.inspection import inspect_path
    from tests.benchmarks.models import Product

    site = _site()
    path = Product.objects.get(pk=rows() // 2).get_absolute_url()

    def ask():
        began = time.perf_counter()
        found = inspect_path(site, path)
        search = search_published(
            site, site.origin + path, section=found.section, pk=found.pk, seconds=0.5
        )
        if not (found.listed and search.found):
            raise RuntimeError(f"{path} is listed, but was not found.")
        return {"seconds": time.perf_counter() - began}

    connection.ensure_connection()
    figures, medians = measured(lambda: median_of(ask))
    return figures | medians | {"urls": 1}


def compare():
    """Compare a build with the one before it, as the page of its changes has it done."""
    from django_sitemapkit.builds.report.differences import (
        kept_differences,
        store_differences,
    )
    from django_sitemapkit.builds.requests import record_request
    from django_sitemapkit.models import Build

    build, site = Build.objects.published(_site()), _site()
    began = time.perf_counter()
    record_request(site, "compare", about=build, before=build.previous)
    answered = time.perf_counter() - began
    figures, stored = measured(lambda: store_differences(site, build, build.previous))
    began = time.perf_counter()
    shown = sum(1 for _ in kept_differences(stored))
    if stored.count("~") != rows() or not shown:
        raise RuntimeError(f"{stored.count('~'):,} URLs differ.")
    shown_in = time.perf_counter() - began
    return figures | {"urls": rows(), "first answer": answered, "shown": shown_in}


def index():
    """Ask for the index."""
    browser = Browser()
    address = "/sitemap.xml"
    browser.get(address)
    figures, medians = measured(lambda: median_of(lambda: browser.get(address)))
    return figures | medians | {"urls": browser.listed(address)["urls"]}


def _site():
    from django_sitemapkit.sites import all_sites

    return all_sites()[0]


def _build(runner=None):
    from django_sitemapkit import builds

    return builds.build(_site(), runner=runner)


def _require(result, urls, *, status="published", stored=None):
    """Raise RuntimeError unless a build ended so, with so many URLs, and stored no more files."""
    if result.status != status or result.urls != urls:
        raise RuntimeError(f"The build is {result.status} with {result.urls:,} URLs.")
    if stored is not None and result.stored > stored:
        raise RuntimeError(f"The build has stored {result.stored} files, not {stored}.")


def _require_overridden(result):
    """Return what the files of an overridden site have to show, if the build says so too."""
    from tests.benchmarks.steering import ONE_IN, promised

    promise = promised()
    _require(result, rows() - promise["left out"])
    return {"promised": promise, "overrides": rows() // ONE_IN}


def _require_codec():
    from django_sitemapkit.rendering.compression import is_codec_installed

    if not is_codec_installed(settings.CODEC):
        raise Unavailable(f"{settings.CODEC} is not installed")
