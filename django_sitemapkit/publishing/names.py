"""Names of files in storage: of an allow-list of characters, and never used twice."""

import hashlib
import re

from django_sitemapkit.sites import SitemapSite

ROOT = "sitemaps"
"""The folder all files of the package are in."""

ALLOWED = re.compile(r"[a-z0-9._/-]+")
"""What a name consists of, so that no storage has to change it."""


def folder_of(site: SitemapSite) -> str:
    """Return the folder of a site's files: ``sitemaps/www.example.com-1a2b3c4d``.

    It follows from key and base URL, so that two sites in one bucket, of one project or of two,
    never share a folder.
    """
    base = site.origin.partition("://")[2] + site.path
    shown = re.sub(r"[^a-z0-9.-]+", "-", base.lower())[:60].strip("-.")
    digest = hashlib.sha256(f"{site.key} {site.origin}{site.path}".encode()).hexdigest()[:8]
    return f"{ROOT}/{shown}-{digest}"


def file_name(site: SitemapSite, stem: str, sha256: str, build: int, extension: str) -> str:
    """Return the name of a file: what it is, a part of its hash, and the build that made it."""
    name = f"{folder_of(site)}/{stem.lower()}-{sha256[:16]}-{build}.{extension}"
    if not ALLOWED.fullmatch(name):
        raise ValueError(f"{name!r} has characters that a storage might change")
    return name
