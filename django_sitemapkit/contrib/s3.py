"""An export to S3, by django-storages: of the extra ``s3``."""

from typing import Any

from storages.backends.s3 import S3Storage

from django_sitemapkit.conf import settings


class SitemapS3Storage(S3Storage):  # type: ignore[misc]
    """Stores sitemaps as readers take them: pages as gzip files, the index as XML.

    For a name that ends with ``.gz``, S3Storage guesses ``Content-Encoding: gzip``. A reader would
    undo that on the way, and then find no gzip file. ``Cache-Control`` is that of
    SITEMAPKIT_CACHE_CONTROL, unless ``object_parameters`` say another.
    """

    file_overwrite = True
    gzip = False

    def get_object_parameters(self, name: str) -> dict[str, Any]:
        """Return what a file of that name is stored with."""
        caching = {"CacheControl": settings.CACHE_CONTROL} if settings.CACHE_CONTROL else {}
        # With a content type, S3Storage guesses no encoding.
        kind = "application/gzip" if name.endswith(".gz") else "application/xml"
        return {**caching, **super().get_object_parameters(name), "ContentType": kind}
