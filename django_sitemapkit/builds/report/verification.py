"""Verifying published files: each is read whole and compared with the manifest."""

from collections.abc import Iterator
from dataclasses import dataclass

from django_sitemapkit.builds.stored_files import damage_of
from django_sitemapkit.models import Build, Place
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.rendering import page_address
from django_sitemapkit.sites import SitemapSite


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """A published file, and how it differs from what the manifest records."""

    address: str
    """The URL it is served at."""
    name: str
    """Its name in the storage."""
    section: str
    """The section of its page; "" for an index."""
    fault: str
    """Why it is not intact: lost, unreadable or changed. "" where it is intact."""


def verify_published(site: SitemapSite) -> Iterator[VerifiedFile]:
    """Yield every file that a site has published, indexes first, once it has been read.

    A file is intact if it is stored and its SHA-256 is the recorded one. A page must also be
    complete gzip, well-formed XML, and list the recorded number of URLs.
    """
    build = Build.objects.published(site)
    storage = SitemapStorage()
    files = Place.objects.in_build(build).filter(status=Place.Status.DONE) if build else ()
    for file in sorted(files, key=lambda file: (file.section != "", file.position, file.number)):
        yield VerifiedFile(
            address=page_address(site, file.section, file.number),
            name=file.page.name,
            section=file.section,
            fault=_fault(storage, file),
        )


def _fault(storage: SitemapStorage, file: Place) -> str:
    try:
        with storage.open(file.page.name) as content:
            damage = damage_of(file, content)
    except Exception as error:  # noqa: BLE001  each storage has errors of its own
        return f"{file.page.name} cannot be read: {error}"
    return damage and f"{file.page.name} is damaged: {damage}"
