"""What the tests of exports share: storages that overwrite, and reading what was exported."""

from contextlib import suppress

from django.core.files.storage import storages as configured

from django_sitemapkit.audit.reader import SitemapReader
from tests.builds import SITE
from tests.builds.storages import ON_S3, Memory, Wordless
from tests.export_manifest import MANIFEST, aged


class Overwriting(Memory):
    """A storage elsewhere that replaces files, as S3 does."""

    def get_available_name(self, name, max_length=None):
        if ON_S3:  # There by itself, and without a moment in which the file is gone.
            return super().get_available_name(name, max_length)
        with suppress(FileNotFoundError):
            self.delete(name)
        return name


class WordlessOverwriting(Overwriting, Wordless):
    """The same, unable to list its files and to tell their size."""


def export_to(settings, backend, **options):
    """Let the sitemaps be built in memory and exported to ``backend``; return both storages."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": "tests.builds.storages.Memory"},
        "shown": {"BACKEND": backend, "OPTIONS": options},
    }
    settings.SITEMAPKIT_EXPORT_STORAGE = "shown"
    return configured["sitemaps"], configured["shown"]


def exported(shown, site=SITE, folder=""):
    """Return what a reader gets of the files alone: entries by address of their page.

    Each document must be complete and valid at its address.
    """
    contents = shown.contents()

    def read(address, *, nested):
        reader = SitemapReader(address, nested=nested)
        entries = list(reader.read([contents[folder + address.removeprefix(f"{site.origin}/")]]))
        assert reader.valid, (address, reader.findings)
        return [(entry.location, entry.lastmod) for entry in entries]

    listed = [location for location, _ in read(site.address("index"), nested=False)]
    return {address: read(address, nested=True) for address in listed}


def files(shown):
    """Return the names of the exported files, without the manifest."""
    return shown.names() - {MANIFEST}


def saved(shown):
    """Return the names that were copied since the calls were last cleared."""
    return [name for name in shown.saved() if not name.endswith(MANIFEST)]


def age_export(shown, seconds):
    """Let all that the index does not list any more be gone so much longer ago."""
    shown.put(MANIFEST, aged(shown.contents()[MANIFEST], seconds))
