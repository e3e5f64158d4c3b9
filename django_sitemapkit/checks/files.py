"""Checks of where files are stored, and how they are made and sent."""

from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage, InMemoryStorage, Storage, storages

from django_sitemapkit.checks.asking import value_of
from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.publishing.storage import ADD_ENTRY, ALIAS
from django_sitemapkit.rendering.compression import has_isal

OVERWRITING = ("file_overwrite", "overwrite_files", "allow_overwrite")
"""What the storages of django-storages call it that they replace a file: S3, Azure, FTP."""

S3 = "storages.backends.s3"

LOST_IN_BUILDS = {
    "size": "each file is read back to learn its size",
    "listdir": "files that no build has are never found, and stay",
    "get_modified_time": "files that no build has are never known to be old, and stay",
}
"""What builds do without some methods of the storage that they keep their files in."""

LOST_IN_EXPORT = {
    "size": "each file is read back to learn its size",
    "listdir": "each file is asked for by its name, and files that no build has stay public",
}
"""The same of the storage that they export to."""


@register(Tags.files)
def check_storage(**options: Any) -> list[CheckMessage]:
    """W008: the files go to the static files storage, which others clear, or nowhere."""
    if ALIAS in django_settings.STORAGES or value_of("SERVE_FROM") == "live":
        return []
    source = _sitemap_storage()
    nowhere = source is None or (isinstance(source, FileSystemStorage) and _place(source) is None)
    what = (
        "build_sitemaps has no place for its files."
        if nowhere
        else "sitemaps are stored among the static files, where `collectstatic --clear` deletes"
        " them."
    )
    message = f'STORAGES has no "{ALIAS}": {what}'
    return [checks.Warning(message, hint=ADD_ENTRY, id="sitemapkit.W008")]


@register(Tags.files)
def check_sendfile(**options: Any) -> list[CheckMessage]:
    """E009: the web server is to send files that do not lie on its disk."""
    sendfile = value_of("SENDFILE")
    if sendfile is None or _has_local_path():
        return []
    return [
        Error(
            f"SITEMAPKIT_SENDFILE is {sendfile!r}, but the storage has no path on a local disk.",
            hint=f"Take it out, or let STORAGES[{ALIAS!r}] be a FileSystemStorage.",
            id="sitemapkit.E009",
        )
    ]


@register(Tags.files)
def check_storage_reads_as_stored(**options: Any) -> list[CheckMessage]:
    """E019: the storage of the files would decompress what it reads."""
    if not getattr(_sitemap_storage(), "gzip", False) or value_of("SERVE_FROM") == "live":
        return []
    return [
        Error(
            "The storage of the sitemaps has gzip=True: it decompresses what it reads, and gives"
            " other bytes than it was given.",
            hint="Take gzip out of its OPTIONS: the files are compressed already.",
            id="sitemapkit.E019",
        )
    ]


@register(Tags.files)
def check_export_elsewhere(**options: Any) -> list[CheckMessage]:
    """E016: the files are exported to where they are built."""
    export, source = _export(), _sitemap_storage()
    same = export is source or (_place(export) is not None and _place(export) == _place(source))
    if export is None or not same:
        return []
    return [
        Error(
            f"SITEMAPKIT_EXPORT_STORAGE is {value_of('EXPORT_STORAGE')!r}, where the files are"
            " built already.",
            hint="Export to a storage of its own: another folder, or another bucket.",
            id="sitemapkit.E016",
        )
    ]


@register(Tags.files)
def check_export_overwrites(**options: Any) -> list[CheckMessage]:
    """E017: the storage of the export gives a file another name where one is there already."""
    export = _export()
    forbidden = [name for name in OVERWRITING if getattr(export, name, True) is False]
    if not forbidden and not isinstance(export, InMemoryStorage):
        return []
    hint = f"Set {forbidden[0]} to True in its OPTIONS." if forbidden else "Use another one."
    return [
        Error(
            f"SITEMAPKIT_EXPORT_STORAGE is {value_of('EXPORT_STORAGE')!r}, a storage that does not"
            " overwrite: no file could be replaced.",
            hint=hint,
            id="sitemapkit.E017",
        )
    ]


@register(Tags.files)
def check_export_encodes(**options: Any) -> list[CheckMessage]:
    """W018: the storage of the export says of gzip files that they are encoded."""
    export = _export()
    if export is None or not _encodes(export):
        return []
    message = (
        f"SITEMAPKIT_EXPORT_STORAGE is {value_of('EXPORT_STORAGE')!r}, which stores files with"
        " Content-Encoding: readers would find no gzip file at an address that ends with .gz."
    )
    hint = "Use django_sitemapkit.contrib.s3.SitemapS3Storage, and leave its gzip off."
    return [checks.Warning(message, hint=hint, id="sitemapkit.W018")]


@register(Tags.files)
def check_storage_methods(**options: Any) -> list[CheckMessage]:
    """W045: a storage cannot say something of its files, so that something is lost or slow."""
    if value_of("SERVE_FROM") == "live":
        return []
    messages: list[CheckMessage] = []
    for what, storage, lost in (
        ("The storage of the sitemaps", _sitemap_storage(), LOST_IN_BUILDS),
        (
            f"SITEMAPKIT_EXPORT_STORAGE is {value_of('EXPORT_STORAGE')!r}, which",
            _export(),
            LOST_IN_EXPORT,
        ),
    ):
        without = [name for name in lost if storage is not None and not _has(storage, name)]
        if without:
            methods = ", ".join(f"{name}()" for name in without)
            losses = "; ".join(lost[name] for name in without)
            message = f"{what} has no {methods}: {losses}."
            hint = "Use a storage that has them, or silence this check: builds work even so."
            messages.append(checks.Warning(message, hint=hint, id="sitemapkit.W045"))
    return messages


@register(Tags.files)
def check_codec(**options: Any) -> list[CheckMessage]:
    """E014: the codec asked for is not installed."""
    if value_of("GZIP_BACKEND") != "isal" or has_isal():
        return []
    return [
        Error(
            'SITEMAPKIT_GZIP_BACKEND is "isal", which is not installed.',
            hint='Install django-sitemapkit[fast], or set it to "auto".',
            id="sitemapkit.E014",
        )
    ]


def _export() -> Storage | None:
    alias = value_of("EXPORT_STORAGE")
    try:
        return storages[alias] if alias else None
    except ImproperlyConfigured:
        return None


def _sitemap_storage() -> Storage | None:
    try:
        return SitemapStorage().storage
    except StorageFailure:
        return None


def _place(storage: Storage | None) -> object:
    """Return what is the same for two storages in one place, or None where nothing tells it."""
    if isinstance(storage, FileSystemStorage):
        try:
            return Path(storage.path("")).resolve()
        except ImproperlyConfigured:  # Such as the static files storage without STATIC_ROOT.
            return None
    if bucket := getattr(storage, "bucket_name", None) or getattr(storage, "azure_container", None):
        hosts = (getattr(storage, name, None) for name in ("endpoint_url", "account_name"))
        return bucket, *hosts, (getattr(storage, "location", "") or "").strip("/")
    return None


def _has(storage: Storage, method: str) -> bool:
    """Return whether a storage has a method of its own where Django's base has none.

    One that raises NotImplementedError itself is not seen: it would have to be called.
    """
    return getattr(type(storage), method, None) is not getattr(Storage, method)


def _encodes(storage: Storage) -> bool:
    """Return whether a storage of django-storages adds Content-Encoding to gzip files."""
    if getattr(storage, "gzip", False):
        return True
    if S3 not in {base.__module__ for base in type(storage).__mro__}:
        return False
    parameters = storage.get_object_parameters("sitemap-pages-1.xml.gz")  # type: ignore[attr-defined]
    # Without a content type, it guesses both from the name.
    return "ContentType" not in parameters or bool(parameters.get("ContentEncoding"))


def _has_local_path() -> bool:
    source = _sitemap_storage()
    return isinstance(source, FileSystemStorage) and _place(source) is not None
