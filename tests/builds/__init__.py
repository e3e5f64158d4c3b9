"""What the tests of builds share: small sections, and reading all that is served."""

import datetime as dt
import gzip

from django.core.files.storage import storages as configured

from django_sitemapkit import Route, Section
from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.builds import build
from django_sitemapkit.models import Build, Lease, Place, Publication
from django_sitemapkit.planning import PlanChange, all_pages
from tests.builds.storages import ON_S3
from tests.factories import SITE
from tests.testapp.models import Article, Product, Reading, Shop

BASE = "https://www.example.com"
INDEX = f"{BASE}/sitemap.xml"
LEASE = "build:default"


class Products(Section):
    """Rows whose entry has a value of its own: a change of a row changes its page."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    limit = 2


class Readings(Section):
    """Rows with a key of their own, which come anywhere."""

    queryset = Reading.objects.all()
    location = Route("reading", level="pk")
    limit = 2


class Articles(Section):
    """Rows that fit on one page."""

    queryset = Article.objects.all()
    location = Route("article", pk="pk")


ALL = (Products, Readings, Articles)


def fill(products=5, readings=3):
    """Make the rows of three sections: three pages, three pages and one, unless given."""
    shop = Shop.objects.create(slug="all")
    Product.objects.bulk_create(Product(shop=shop, slug=f"p{n}") for n in range(products))
    Reading.objects.bulk_create(Reading(level=level * 10) for level in range(readings))
    Article.objects.create(title="One", edited_at=dt.datetime(2024, 2, 29, tzinfo=dt.UTC))


def edit_product(slug="p0", day=1):
    """Change what the page of one product says."""
    moment = dt.datetime(2025, 1, day, 12, tzinfo=dt.UTC)
    assert Product.objects.filter(slug=slug).update(updated_at=moment)


def use_storage(settings, backend, **options):
    """Let the sitemaps be stored by ``backend``, and return that storage, new and empty."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": f"tests.builds.storages.{backend}", "OPTIONS": options},
    }
    return configured["sitemaps"]


def use_folder(settings, path):
    """Let the sitemaps be stored in a folder, or on S3 where the tests run on it."""
    if ON_S3:
        return use_storage(settings, "Memory")
    return use_storage(settings, "Disk", location=path)


def served(client):
    """Return what a reader gets who follows the index: entries by address of their page.

    Each document must be complete and valid at its address.
    """
    pages = {}
    for location, _ in read(client.get("/sitemap.xml"), INDEX):
        pages[location] = read(client.get(location.removeprefix(BASE)), location, nested=True)
    return pages


def read(response, address, *, nested=False):
    """Return the locations and lastmods of a response, which must be valid."""
    assert response.status_code == 200, address
    reader = SitemapReader(address, nested=nested)
    entries = list(reader.read([response.getvalue()]))
    assert reader.valid, (address, reader.findings)
    return [(entry.location, entry.lastmod) for entry in entries]


def live(client, settings):
    """Return what the live views give."""
    settings.SITEMAPKIT_SERVE_FROM = "live"
    try:
        return served(client)
    finally:
        settings.SITEMAPKIT_SERVE_FROM = "auto"


def in_order(pages):
    """Return all entries, sorted: a URL that is missed or doubled makes another list."""
    return sorted(entry for entries in pages.values() for entry in entries)


def states(result):
    """Return what became of each file, by section and number."""
    return {(file.section, file.number): file.state for file in result.files}


def manifest(build_id=None):
    """Return the lines of a build, of the published one unless given, by section and number."""
    build_id = build_id or Publication.objects.get(site=SITE.key).build_id
    lines = Place.objects.in_build(build_id)
    return {(line.section, line.number): line for line in lines}


def problems_of(*texts):
    """Return problems of one kind as a place has them."""
    examples = [[place, text, text] for place, text in enumerate(texts)]
    return {"no-url": {"count": len(texts), "examples": examples}}


def sha256_of(line):
    """Return the hash of a page's XML; "" if it lists nothing."""
    return line.page.sha256 if line.page else ""


def named(lines):
    """Return the names of all files that lines of manifests name."""
    return {line.name for line in lines if line.name}


def xml(storage, line):
    """Return the XML of a stored page."""
    with storage.open(line.name) as file:
        return gzip.decompress(file.read())


def run(**options):
    """Build the tests' site."""
    return build(SITE, **options)


def leave_plan(section, **options):
    """Leave a plan as it is, in the place of ``refresh``: rows have come since it was made."""
    pages = tuple(all_pages(section))
    return PlanChange(planned=pages)


def take_lease(name=LEASE):
    """Take the lease from its holder, as after a pause that was too long."""
    age_lease(name)
    lease = Lease.objects.acquire(name, seconds=60, owner="elsewhere")
    assert lease is not None
    return lease


def age_lease(name=LEASE, seconds=3600):
    """Let the last sign of a lease's holder be long ago."""
    lease = Lease.objects.get(name=name)
    Lease.objects.filter(name=name).update(
        heartbeat=lease.heartbeat - dt.timedelta(seconds=seconds)
    )


def let_time_pass(seconds):
    """Let all builds have been replaced so much longer ago."""
    for record in Build.objects.exclude(replaced_at=None):
        record.replaced_at -= dt.timedelta(seconds=seconds)
        record.save()
