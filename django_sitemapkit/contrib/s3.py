"""Stores sitemaps on S3 by django-storages, which the extra ``s3`` installs."""

from typing import Any

from django_sitemapkit.conf import settings
from django_sitemapkit.extras import import_extra

# Django reports the error of the import, which names the extra.
_TransferConfig: Any = import_extra("boto3.s3.transfer", "s3").TransferConfig
_S3Storage: Any = import_extra("storages.backends.s3", "s3").S3Storage


class SitemapS3Storage(_S3Storage):  # type: ignore[misc]
    """Stores sitemaps as readers take them: pages as gzip files, the index as XML.

    For a name that ends with ``.gz``, S3Storage guesses ``Content-Encoding: gzip``. A reader would
    undo that on the way, and then find no gzip file. ``Cache-Control`` is that of
    SITEMAPKIT_CACHE_CONTROL, unless ``object_parameters`` sets another.

    Each file is uploaded by one request, so S3 stores all of it or nothing. The multipart upload of
    a killed process would stay, and cost money, until someone aborts it::

        STORAGES = {
            ...,
            "sitemaps": {
                "BACKEND": "django_sitemapkit.contrib.s3.SitemapS3Storage",
                "OPTIONS": {"bucket_name": "shop-sitemaps", "default_acl": "private"},
            },
        }

    It takes all options of S3Storage. Of the ``AWS_…`` settings it ignores those that are meant
    for other files: AWS_S3_FILE_OVERWRITE, AWS_IS_GZIPPED and AWS_S3_TRANSFER_CONFIG.
    """

    file_overwrite = True
    gzip = False
    # S3 takes up to 5 GB by one request. A sitemap has at most 50 MB before it is compressed, so
    # threads would gain nothing either.
    transfer_config = _TransferConfig(multipart_threshold=5 * 1024**3, use_threads=False)

    def get_object_parameters(self, name: str) -> dict[str, Any]:
        """Return the parameters of a file's upload: those of S3Storage, with a content type."""
        caching = {"CacheControl": settings.CACHE_CONTROL} if settings.CACHE_CONTROL else {}
        # With a content type, S3Storage guesses no encoding.
        kind = "application/gzip" if name.endswith(".gz") else "application/xml"
        return {**caching, **super().get_object_parameters(name), "ContentType": kind}
