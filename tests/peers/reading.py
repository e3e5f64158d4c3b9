"""What the tests of all packages ask: what is listed, and how many objects are alive."""

import datetime as dt
import gzip
import re
import weakref
from contextlib import contextmanager

from django.db.models.signals import post_init
from django.utils import timezone
from lxml import etree

from tests.builds.storages import Killed
from tests.peers.models import Page
from tests.testapp.serving import BASE, NAMESPACE

EDITED = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LATER = EDITED + dt.timedelta(days=1)
CONTROL = "e\x0b"
"""A slug that XML has no way to write."""


def xml_of(body):
    """Return a document as text, decompressed."""
    return (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode()


def dates(body):
    """Return the day of each page's lastmod by its slug; the document must be well-formed."""
    urls = etree.fromstring(xml_of(body).encode()).iterfind("s:url", NAMESPACE)
    return {
        slug_of(url.findtext("s:loc", namespaces=NAMESPACE)): int(
            url.findtext("s:lastmod", namespaces=NAMESPACE)[8:10]
        )
        for url in urls
    }


def slug_of(address):
    """Return the slug of a page's URL."""
    return re.search("/pages/(.+)/$", address)[1]


def path_of(address):
    """Return an address without its host."""
    return address.removeprefix(BASE)


def edit(slug=None):
    """Change pages behind the back of signals: all of them, unless one is named."""
    chosen = Page.objects.filter(slug=slug) if slug else Page.objects.all()
    assert chosen.update(updated_at=LATER)


def save(slug):
    """Change a page as the admin does, with signals."""
    page = Page.objects.get(slug=slug)
    page.updated_at = LATER
    page.save()


def add_many(count=12_000):
    """Add pages, more than any package reads at a time."""
    now = timezone.now()
    Page.objects.bulk_create(Page(slug=f"many-{n}", updated_at=now) for n in range(count))
    return Page.objects.count()


def kill():
    """Stand for the end of the process."""
    raise Killed


@contextmanager
def most_alive():
    """Give a list of one number: how many pages were objects at the same time, at most."""
    alive, most = weakref.WeakSet(), [0]

    def count(instance, **kwargs):
        alive.add(instance)
        most[0] = max(most[0], len(alive))

    post_init.connect(count, sender=Page)
    try:
        yield most
    finally:
        post_init.disconnect(count, sender=Page)
