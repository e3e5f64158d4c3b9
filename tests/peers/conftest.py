"""What the tests of all packages share: rows, and a disk to store files on."""

import pytest

from tests.peers.storages import Disk


@pytest.fixture(autouse=True)
def disk(settings, tmp_path, monkeypatch):
    """Store all files below a temporary folder, which is the current one."""
    backend = f"{Disk.__module__}.{Disk.__qualname__}"
    settings.STORAGES = {
        alias: {"BACKEND": backend, "OPTIONS": {"location": tmp_path / alias}}
        for alias in ("default", "sitemaps")
    }
    monkeypatch.chdir(tmp_path)
    yield Disk
    missed = dict(Disk.before)
    Disk.before.clear()
    Disk.saved.clear()
    assert not missed, "This file was never saved."


@pytest.fixture(autouse=True)
def pages(db):
    """Four pages, "a" to "d"."""
    from tests.peers.models import Page
    from tests.peers.reading import EDITED

    return [Page.objects.create(slug=slug, updated_at=EDITED) for slug in "abcd"]
