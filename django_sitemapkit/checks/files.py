"""Checks of where files are stored, and how they are made and sent."""

import os
from pathlib import Path

from django.conf import settings as django_settings
from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage, InMemoryStorage, Storage, storages

from django_sitemapkit.builds.manifest import SiteBuilds
from django_sitemapkit.builds.report.due import files_missing_here
from django_sitemapkit.checks.base import Found, check, setting_value, sites_with_urlconf
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.extras import how_to_install
from django_sitemapkit.publishing import ALIAS, DatabaseStorage, SitemapStorage
from django_sitemapkit.reading.validation import Mistake, closest_option
from django_sitemapkit.rendering.compression import CODECS, is_codec_installed
from django_sitemapkit.words import english_of

OVERWRITING = ("file_overwrite", "overwrite_files", "allow_overwrite")
"""The options of django-storages' backends (S3, Azure, FTP) that let them replace a file."""

S3 = "storages.backends.s3"

LOST_IN_BUILDS = {
    "size": "each file is read back to get its size",
    "listdir": "files without a build are never found, and stay",
    "get_modified_time": "files without a build are never recognised as old, and stay",
}
"""What builds lack without some methods of the storage of their files."""

LOST_IN_EXPORT = {
    "size": "each file is read back to get its size",
    "listdir": "each file is looked up by its name",
}
"""The same for the storage of the export."""


@check(Tags.files)
def check_misspelt_alias() -> Found:
    """Report a misspelt alias in STORAGES: without "sitemaps", the database stores the files."""
    others = set(django_settings.STORAGES) - {setting_value("EXPORT_STORAGE")}
    close = closest_option(ALIAS, others)
    if ALIAS not in others and close:
        yield Mistake(
            "sitemapkit.W008",
            f"STORAGES has {close!r} and no {ALIAS!r}: the database stores the sitemaps.",
            f"Did you mean {ALIAS!r}?",
        )


@check(Tags.files, deploy=True)
def check_folder_is_writable() -> Found:
    """Report that this process may not write to the folder of the files, as builds must."""
    place = _storage_location(_sitemap_storage()) if setting_value("SERVE_FROM") != "live" else None
    if isinstance(place, Path):
        folder = next(each for each in (place, *place.parents) if os.access(each, os.F_OK))
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield Mistake(
                "sitemapkit.W037",
                f"STORAGES[{ALIAS!r}] stores its files in {place}: {folder} is not writable.",
                "Change its location, or let the user of builds write there.",
            )


@check(Tags.files, deploy=True)
def check_published_files() -> Found:
    """Report published files that this server does not have."""
    for site in sites_with_urlconf() if setting_value("SERVE_FROM") != "live" else ():
        if missing := files_missing_here(SiteBuilds(site)):
            yield Mistake(
                "sitemapkit.W048",
                f"Site {site.key!r}: {english_of(missing)}",
                "Until then their pages are rendered from the database, or answer 503.",
            )


@check(Tags.files)
def check_sendfile() -> Found:
    """Report SITEMAPKIT_SENDFILE if the files are not on a local disk, to be sent from there."""
    sendfile, source = setting_value("SENDFILE"), _sitemap_storage()
    is_local = isinstance(source, FileSystemStorage) and _storage_location(source) is not None
    if sendfile is not None and not is_local:
        yield Mistake(
            "sitemapkit.E009",
            f"SITEMAPKIT_SENDFILE is {sendfile!r}, but the storage has no path on a local disk.",
            f"Remove it, or let STORAGES[{ALIAS!r}] be a FileSystemStorage.",
        )


@check(Tags.files)
def check_storage_reads_as_stored() -> Found:
    """Report that the storage of the files decompresses what it reads."""
    if getattr(_sitemap_storage(), "gzip", False) and setting_value("SERVE_FROM") != "live":
        yield Mistake(
            "sitemapkit.E019",
            "The storage of the sitemaps has gzip=True: it decompresses files when it reads"
            " them, so they differ from what was stored.",
            "Remove gzip from its OPTIONS: the files are compressed already.",
        )


@check(Tags.files)
def check_export() -> Found:
    """Report an export storage that is also the builds' storage, or that cannot replace files."""
    export, source = _export_storage(), _sitemap_storage()
    if export is None:
        return
    setting = f"SITEMAPKIT_EXPORT_STORAGE is {setting_value('EXPORT_STORAGE')!r}"
    if export is source or (
        _storage_location(export) is not None
        and _storage_location(export) == _storage_location(source)
    ):
        yield Mistake(
            "sitemapkit.E016",
            f"{setting}, where the files are built already.",
            "Export to a storage of its own: another folder, or another bucket.",
        )
    forbidden = [name for name in OVERWRITING if getattr(export, name, True) is False]
    if forbidden or isinstance(export, InMemoryStorage | DatabaseStorage):
        yield Mistake(
            "sitemapkit.E017",
            f"{setting}, a storage that does not overwrite: no file could be replaced.",
            f"Set {forbidden[0]} to True in its OPTIONS." if forbidden else "Use another one.",
        )


@check(Tags.files)
def check_export_encoding() -> Found:
    """Report that the export storage stores gzip files with Content-Encoding."""
    export = _export_storage()
    if export is not None and _adds_content_encoding(export):
        yield Mistake(
            "sitemapkit.W018",
            f"SITEMAPKIT_EXPORT_STORAGE is {setting_value('EXPORT_STORAGE')!r}, which stores files"
            " with Content-Encoding: readers would find no gzip file at an address that ends with"
            " .gz.",
            "Use django_sitemapkit.contrib.s3.SitemapS3Storage, and leave its gzip off.",
        )


@check(Tags.files)
def check_storage_methods() -> Found:
    """Report a storage that lacks methods, and what is lost or slow without them."""
    if setting_value("SERVE_FROM") == "live":
        return
    export = f"SITEMAPKIT_EXPORT_STORAGE is {setting_value('EXPORT_STORAGE')!r}, which"
    for what, storage, lost in (
        ("The storage of the sitemaps", _sitemap_storage(), LOST_IN_BUILDS),
        (export, _export_storage(), LOST_IN_EXPORT),
    ):
        # A method that only raises NotImplementedError counts too: only a call would show that.
        without = [
            name
            for name in lost
            if storage is not None and getattr(type(storage), name, None) is getattr(Storage, name)
        ]
        if without:
            methods = ", ".join(f"{name}()" for name in without)
            losses = "; ".join(lost[name] for name in without)
            yield Mistake(
                "sitemapkit.W045",
                f"{what} has no {methods}: {losses}.",
                "Use a storage that has them, or silence this check: builds work without them.",
            )


@check(Tags.files)
def check_codec() -> Found:
    """Report that the compression library of SITEMAPKIT_GZIP_BACKEND is not installed."""
    codec = setting_value("GZIP_BACKEND")
    if codec in CODECS and not is_codec_installed(codec):
        yield Mistake(
            "sitemapkit.E014",
            f'SITEMAPKIT_GZIP_BACKEND is "{codec}", which is not installed.',
            f'Install the extra: {how_to_install(CODECS[codec][2])}, or set it to "auto".',
        )


def _export_storage() -> Storage | None:
    """Return the storage that builds are exported to; None without one."""
    alias = setting_value("EXPORT_STORAGE")
    try:
        return storages[alias] if alias else None
    except ImproperlyConfigured:
        return None


def _sitemap_storage() -> Storage | None:
    """Return the storage of the files of builds; None if it cannot be loaded."""
    try:
        return SitemapStorage().storage
    except StorageFailure:
        return None


def _storage_location(storage: Storage | None) -> object:
    """Return a value that is the same for storages of one place; None if it is not known."""
    if isinstance(storage, FileSystemStorage):
        try:
            return Path(storage.path("")).resolve()
        except ImproperlyConfigured:  # Such as a static files storage without STATIC_ROOT.
            return None
    if bucket := getattr(storage, "bucket_name", None) or getattr(storage, "azure_container", None):
        hosts = (getattr(storage, name, None) for name in ("endpoint_url", "account_name"))
        return bucket, *hosts, (getattr(storage, "location", "") or "").strip("/")
    return None


def _adds_content_encoding(storage: Storage) -> bool:
    """Return whether a storage of django-storages adds Content-Encoding to gzip files."""
    if getattr(storage, "gzip", False):
        return True
    if S3 not in {base.__module__ for base in type(storage).__mro__}:
        return False
    parameters = storage.get_object_parameters("sitemap-pages-1.xml.gz")  # type: ignore[attr-defined]
    # Without a content type, it guesses both from the name.
    return "ContentType" not in parameters or bool(parameters.get("ContentEncoding"))
