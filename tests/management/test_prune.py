"""``prune_sitemaps``: what is over goes, and nothing else."""

import datetime as dt
import json
import os
import time

import pytest
from django.utils import timezone

from django_sitemapkit.management.base import count_of
from django_sitemapkit.models import Build, Lease, Place
from tests.management import line_of, names, run
from tests.prepared import once
from tests.testapp.serving import make_products

pytestmark = pytest.mark.django_db


@pytest.fixture
def over(settings, products):
    """Publish two builds, of which the first is over; return the names of its own files."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1

    def make():
        run("build_sitemaps")
        first = {line.name for line in Place.objects.all()}
        make_products("d")
        run("build_sitemaps")
        kept = {line.name for line in Place.objects.filter(build__replaced_at=None)}
        Build.objects.exclude(replaced_at=None).update(
            replaced_at=timezone.now() - dt.timedelta(days=2)
        )
        return sorted(first - kept)

    return once((__name__, "over"), make)


def test_what_is_over_goes(over, storage):
    """Each deleted file is named, and counted; what is published stays whole."""
    before = names(storage)
    assert set(over) < set(before)
    code, out, err = run("prune_sitemaps")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        *over,
        f"Site 'default': {count_of(len(over), 'file')} and 0 orphans deleted.",
    ]
    assert names(storage) == sorted(set(before) - set(over))
    assert run("validate_sitemaps")[0] == 0
    assert "0 files and 0 orphans" in run("prune_sitemaps")[1]


@pytest.mark.slow
def test_json_names_the_files(over):
    """One line for each site, for a dry run too."""
    expected = {"site": "default", "files": over, "orphans": [], "swept": True}
    for options in (["--dry-run"], []):
        code, out, err = run("prune_sitemaps", "--json", *options)
        assert (code, err) == (0, "")
        assert json.loads(out) == {**expected, "dry_run": bool(options)}


def test_dry_run_deletes_nothing(over, storage):
    """It says the same, and leaves files and rows as they are."""
    before, rows = names(storage), Place.objects.count()
    code, out, _ = run("prune_sitemaps", "--dry-run")
    assert code == 0
    assert out.splitlines() == [
        *over,
        f"Site 'default': {count_of(len(over), 'file')} and 0 orphans would be deleted.",
    ]
    assert names(storage) == before
    assert Place.objects.count() == rows
    assert not Build.objects.exclude(pruned_at=None).exists()


def test_orphans_go_when_they_are_old(over, storage):
    """A young file may be one that is just being published."""
    folder = (storage / line_of("products").name).parent
    for name, age in (("old.xml.gz", 2 * 86_400), ("young.xml.gz", 0)):
        (folder / name).write_bytes(b"left")
        os.utime(folder / name, (time.time() - age,) * 2)
    code, out, _ = run("prune_sitemaps")
    assert code == 0
    assert "1 orphan deleted" in out
    assert not (folder / "old.xml.gz").exists()
    assert (folder / "young.xml.gz").exists()


def test_silence(over, storage):
    """With verbosity 0 it deletes and says nothing."""
    assert run("prune_sitemaps", "--verbosity", 0) == (0, "", "")
    assert not set(over) & set(names(storage))


def test_storage_that_cannot_list(over, monkeypatch):
    """Then orphans stay, and the command says so."""

    def listdir(self, path):
        raise NotImplementedError

    monkeypatch.setattr("django.core.files.storage.FileSystemStorage.listdir", listdir)
    code, out, err = run("prune_sitemaps")
    assert code == 0
    assert f"{count_of(len(over), 'file')} and" in out
    assert "cannot list its files" in err


@pytest.mark.slow
def test_while_the_site_is_built(over, storage):
    """Exit 4, and nothing goes."""
    before = names(storage)
    Lease.objects.acquire("build:default", seconds=60, owner="other-host")
    code, out, err = run("prune_sitemaps")
    assert (code, out) == (4, "")
    assert "on other-host since" in err
    assert names(storage) == before


def test_unknown_site(over):
    """Exit 2."""
    assert run("prune_sitemaps", "--site", "nothing")[0] == 2


@pytest.mark.slow
def test_one_site_of_two(settings, two_sites, storage):
    """Another site's files stay, in the same storage."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 10**6
    run("build_sitemaps")
    make_products("d")
    run("build_sitemaps")
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    before = names(storage)
    assert run("prune_sitemaps", "--site", "one")[0] == 0
    gone = set(before) - set(names(storage))
    assert gone
    assert all("/one.example-" in name for name in gone)
    assert run("validate_sitemaps")[0] == 0


def test_a_site_that_is_built_does_not_keep_the_others_waiting(two_sites):
    """Exit 4, with what was deleted of the others."""
    run("build_sitemaps")
    Lease.objects.acquire("build:one", seconds=60)
    code, out, err = run("prune_sitemaps")
    assert code == 4
    assert out.startswith("Site 'two': 0 files")
    assert "of site 'one' is held by" in err
