"""A storage elsewhere whose reads are noted, and a section whose file has many blocks."""

import random
from io import BytesIO

from django.core.files.base import File
from django.core.files.storage import InMemoryStorage

from django_sitemapkit import Section
from tests.testapp.models import Token


class Tokens(Section):
    """Rows whose addresses do not compress, so that few of them make a file of many blocks."""

    queryset = Token.objects.all()

    def location(self, token):
        return f"/tokens/{random.Random(token.pk.int).randbytes(800).hex()}/"


class Recorded(File):
    """An open file that notes how much is asked of it at a time, and whether it was closed."""

    def __init__(self, content):
        super().__init__(BytesIO(content))
        Remote.open_files += 1

    def read(self, size=-1, /):
        Remote.reads.append(size)
        return self.file.read(size)

    def close(self):
        if not self.closed:
            Remote.open_files -= 1
        super().close()


class Remote(InMemoryStorage):
    """A storage elsewhere: its files have no path, and every read of them is noted."""

    reads = []
    open_files = 0

    def open(self, name, mode="rb"):
        file = super().open(name, mode)
        return Recorded(file.read()) if mode == "rb" else file
