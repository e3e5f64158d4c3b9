"""Where the files of a run are: in folders, in the database, or on a server of S3's interface.

Each place has a part for the files of the builds and one for the export.
"""

import datetime as dt
import os
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

STORAGE, EXPORT = PARTS = ("storage", "export")

LONG_AGO = 2 * 86_400
"""Seconds after which everything left by killed builders is deleted."""


class Folders:
    """On a local disk, with the hidden folders of builders at work."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def create(self):
        """Make the parts."""
        for part in PARTS:
            (self.folder / part).mkdir()

    def backend(self, part):
        """Return the entry of STORAGES for a part."""
        return {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(self.folder / part)},
        }

    def read(self, part, name):
        """Return the bytes of a file as a web server gives them out, None if there is none."""
        try:
            return (self.folder / part / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, part, name, data):
        """Replace a file."""
        (self.folder / part / name).write_bytes(data)

    def names(self, part):
        """Return the names of all files."""
        root = self.folder / part
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

    @contextmanager
    def aged(self):
        """Let everything have been there since long ago."""
        then = time.time() - LONG_AGO
        for part in PARTS:
            for path in (self.folder / part).rglob("*"):
                os.utime(path, (then, then))
        yield

    def leftovers(self):
        """Return what killed builders left besides files."""
        parts = [(self.folder / part).rglob(".*") for part in PARTS]
        return [str(path) for found in parts for path in found if path.is_dir()]


class Rows(Folders):
    """The files of the builds in the database, and the export in a folder."""

    def backend(self, part):
        """Return the entry of STORAGES for a part."""
        if part == EXPORT:
            return super().backend(part)
        return {"BACKEND": "django_sitemapkit.publishing.DatabaseStorage"}

    def read(self, part, name):
        """Return the bytes of a file, None if there is none."""
        from django.core.files.storage import storages

        if part == EXPORT:
            return super().read(part, name)
        with storages["sitemaps"].open(name) as file:
            return file.read()

    def names(self, part):
        """Return the names of all files, of which some may be half stored."""
        from django_sitemapkit.models import StoredFile

        return super().names(part) if part == EXPORT else set(map(str, StoredFile.objects.all()))

    @contextmanager
    def aged(self):
        """Let everything have been there since long ago."""
        from django.db.models import F

        from django_sitemapkit.models import StoredFile

        age = dt.timedelta(seconds=LONG_AGO)
        StoredFile.objects.update(stored_at=F("stored_at") - age)
        with super().aged():
            yield


class Buckets:
    """On a server of S3's interface; everyone may read."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def create(self):
        """Make the parts."""
        for part in PARTS:
            self._connection().create_bucket(Bucket=part)

    def _connection(self):
        from tests.s3 import connect

        return connect(self.endpoint)

    def backend(self, part):
        """Return the entry of STORAGES for a part."""
        from tests.s3 import ACCESS

        return {
            "BACKEND": "django_sitemapkit.contrib.s3.SitemapS3Storage",
            "OPTIONS": {
                "bucket_name": part,
                "endpoint_url": self.endpoint,
                "default_acl": "public-read",
                **ACCESS,
            },
        }

    def read(self, part, name):
        """Return the bytes of a file as a client over HTTP gets them, None if there is none."""
        address = f"{self.endpoint}/{part}/{name}"
        try:
            with urllib.request.urlopen(address, timeout=30) as response:
                if encoding := response.headers["Content-Encoding"]:
                    raise ValueError(f"{address} has Content-Encoding {encoding}")
                return response.read()
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise

    def write(self, part, name, data):
        """Replace a file."""
        self._connection().Object(part, name).put(Body=data, ACL="public-read")

    def names(self, part):
        """Return the names of all files."""
        return {each.key for each in self._connection().Bucket(part).objects.all()}

    @contextmanager
    def aged(self):
        """Let everything have been there since long ago."""
        from django_sitemapkit.contrib.s3 import SitemapS3Storage

        stored_at = SitemapS3Storage.get_modified_time

        def aged(storage, name):
            return stored_at(storage, name) - dt.timedelta(seconds=LONG_AGO)

        with patch.object(SitemapS3Storage, "get_modified_time", aged):
            yield

    def leftovers(self):
        """Return what killed builders left besides files: uploads of parts."""
        client = self._connection().meta.client
        answers = [client.list_multipart_uploads(Bucket=part) for part in PARTS]
        return [each["Key"] for answer in answers for each in answer.get("Uploads", ())]


def place():
    """Return where this run's files are, as the environment says."""
    if endpoint := os.environ.get("KILLLOOP_S3"):
        return Buckets(endpoint)
    kind = Rows if os.environ.get("KILLLOOP_STORAGE") == "database" else Folders
    return kind(os.environ["KILLLOOP_FOLDER"])
