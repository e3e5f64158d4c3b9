"""Storages for tests: one elsewhere, one on disk, and both failing at any call one likes.

The one elsewhere is in memory. Under ``TEST_STORAGE=s3`` it is on S3, on a server that the run
starts.
"""

import datetime as dt
import errno
import os
from contextlib import contextmanager

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, InMemoryStorage

from django_sitemapkit.publishing import DatabaseStorage

ON_S3 = os.environ.get("TEST_STORAGE") == "s3"
"""Whether this run stores on S3 what others store elsewhere."""

if ON_S3:
    from tests.s3 import Bucket as Elsewhere
else:
    Elsewhere = InMemoryStorage


def not_on_s3(reason):
    """Return the mark of tests that mean nothing where files are on S3."""
    return pytest.mark.skipif(ON_S3, reason=f"not on S3: {reason}")


LONG_AGO = dt.datetime(2020, 2, 29, tzinfo=dt.UTC)


class Killed(BaseException):
    """What stands for the end of a process: nothing in the package catches it."""


class Recording:
    """Counts the calls made from outside, and lets ``on_call`` do anything before or after one."""

    on_call = None
    aged = ()
    """The names of files that were stored long ago; None for all."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []
        self._inside = False

    @contextmanager
    def inside(self):
        """Let calls be none from outside."""
        before, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = before

    def _called(self, method, name, *args):
        def proceed(*changed):
            with self.inside():
                return getattr(super(Recording, self), method)(*(changed or (name, *args)))

        if self._inside:
            return proceed()
        self.calls.append((method, name))
        if self.on_call is None:
            return proceed()
        return self.on_call(len(self.calls) - 1, method, name, args, proceed)

    def save(self, name, content, max_length=None):
        return self._called("save", name, content)

    def size(self, name):
        return self._called("size", name)

    def exists(self, name):
        return self._called("exists", name)

    def open(self, name, mode="rb"):
        return self._called("open", name, mode)

    def delete(self, name):
        return self._called("delete", name)

    def listdir(self, path):
        return self._called("listdir", path)

    def get_modified_time(self, name):
        stored_at = self._called("get_modified_time", name)
        return LONG_AGO if self.aged is None or name in self.aged else stored_at

    def names(self, folder=""):
        """Return the names of all files."""
        with self.inside():
            try:
                folders, files = self.listdir(folder)
            except FileNotFoundError:
                return set()
            inner = {name for each in folders for name in self.names(f"{folder}{each}/")}
            return inner | {f"{folder}{name}" for name in files}

    def contents(self):
        """Return the bytes of all files by name."""
        with self.inside():
            found = {}
            for name in self.names():
                with self.open(name) as file:
                    found[name] = file.read()
            return found

    def put(self, name, data):
        """Store bytes under just that name."""
        with self.inside():
            if self.exists(name):
                self.delete(name)
            assert self.save(name, ContentFile(data)) == name

    def reset(self, contents):
        """Hold these files and no others; forget all calls and faults."""
        for name in self.names() - contents.keys():
            with self.inside():
                self.delete(name)
        for name in contents.keys() - self.names():
            self.put(name, contents[name])
        self.calls.clear()
        self.on_call = None

    def saved(self):
        """Return the names that were stored since the calls were last cleared."""
        return [name for method, name in self.calls if method == "save"]


class Memory(Recording, Elsewhere):
    """A storage elsewhere: it has no paths. In memory it never overwrites; on S3 it does."""


class Disk(Recording, FileSystemStorage):
    """A storage on the local disk."""


class Database(Recording, DatabaseStorage):
    """The default storage. A test that uses it needs the database."""


class Wordless(Memory):
    """A storage that cannot list its files nor tell their size, as some are."""

    def listdir(self, path):
        if self._inside:
            return super().listdir(path)
        raise NotImplementedError("This backend doesn't support listing.")

    def size(self, name):
        raise NotImplementedError("This backend doesn't provide a size() method.")


def failing(error=None, *, after=False):
    """Return a fault: the call fails, before it did anything, or after it did it."""

    def fault(method, name, args, proceed):
        if after:
            proceed()
        raise error or OSError(errno.EIO, "Input/output error")

    return fault


def truncating(method, name, args, proceed):
    """Take half of a file, or give half of it."""
    if method == "save":
        data = args[0].read()
        return proceed(name, ContentFile(data[: len(data) // 2]))
    if method == "size":
        return proceed() // 2
    return proceed()


def renaming(method, name, args, proceed):
    """Store a file under another name than was asked for."""
    return proceed(name + "_1", *args) if method == "save" else proceed()
