"""What files are stored with on S3; test_export_reading.py of builds reads them by HTTP."""

import os

import pytest

try:
    from boto3.s3.transfer import TransferConfig

    from django_sitemapkit.contrib.s3 import SitemapS3Storage
except ImportError as error:
    if os.environ.get("CI"):
        raise
    pytest.skip(f"needs django-storages[s3]: {error}", allow_module_level=True)

PAGE, INDEX = "a/sitemap-products-1.xml.gz", "a/sitemap.xml"


def stored_with(name, **options):
    """Return what S3 knows of a file."""
    return SitemapS3Storage(bucket_name="shown", **options)._get_write_parameters(name)


def test_a_page_is_a_gzip_file_and_nothing_encodes_it():
    """Where S3Storage would guess an encoding; the index is XML."""
    caching = {"CacheControl": "max-age=600"}
    assert stored_with(PAGE) == {"ContentType": "application/gzip", **caching}
    assert stored_with(INDEX) == {"ContentType": "application/xml", **caching}


@pytest.mark.parametrize("caching", ["max-age=5", ""])
def test_caching_is_that_of_the_setting(settings, caching):
    """An empty one is none."""
    settings.SITEMAPKIT_CACHE_CONTROL = caching
    assert stored_with(INDEX).get("CacheControl", "") == caching


def test_what_the_project_says_comes_first(settings):
    """In the storage's options or in the settings of django-storages; except for what it is."""
    theirs = {"CacheControl": "no-cache", "StorageClass": "STANDARD_IA"}
    assert theirs.items() <= stored_with(PAGE, object_parameters=theirs).items()
    settings.AWS_S3_OBJECT_PARAMETERS = {**theirs, "ContentType": "text/plain"}
    assert stored_with(PAGE) == {**theirs, "ContentType": "application/gzip"}


def test_settings_for_other_files_do_not_matter(settings):
    """Those that would compress, keep what is there, or upload in parts; options do."""
    settings.AWS_IS_GZIPPED = True
    settings.AWS_S3_FILE_OVERWRITE = False
    theirs = settings.AWS_S3_TRANSFER_CONFIG = TransferConfig(multipart_threshold=1)
    storage = SitemapS3Storage(bucket_name="shown")
    assert not storage.gzip
    assert storage.get_available_name(INDEX) == INDEX
    assert storage.transfer_config.multipart_threshold == 5 * 1024**3
    chosen = SitemapS3Storage(bucket_name="shown", transfer_config=theirs)
    assert chosen.transfer_config is theirs
