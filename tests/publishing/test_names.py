"""Names of files: no storage has to change them, and no two files have the same."""

import re

import pytest

from django_sitemapkit.publishing import ALLOWED, file_name, folder_of
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE

SHA = "0123456789abcdef" * 4

BASES = (
    "https://www.example.com",
    "http://www.example.com",
    "https://www.example.com:8443",
    "https://www.example.com/a",
    "https://www.example.com/a/b",
    "https://www.example.com/a-b",
    "https://bücher.example",
    "https://www.example.com/Ünï%20c",
    f"https://{'x' * 60}.example.com",
    f"https://{'x' * 60}.example.org",
    "https://[::1]:8000",
)


def test_each_site_has_a_folder_of_its_own():
    """By its key and by its base URL."""
    sites = [SitemapSite.at(base, key=key) for base in BASES for key in ("default", "other")]
    folders = [folder_of(site) for site in sites]
    assert len(set(folders)) == len(sites)
    assert not any(
        one != other and other.startswith(f"{one}/") for one in folders for other in folders
    )


@pytest.mark.parametrize("base", BASES)
def test_a_name_is_of_characters_that_all_storages_take(base):
    """And no longer than its column."""
    site = SitemapSite.at(base)
    name = file_name(site, f"{'s' * 80}-4294967295", SHA, 2**63, 2**63, "xml.gz")
    assert ALLOWED.fullmatch(name)
    assert len(name) <= 250
    assert ".." not in name
    assert "//" not in name


def test_a_name_tells_what_it_is():
    """Folder, section, page, a part of the hash, and the build."""
    name = file_name(SITE, "products-1", SHA, 7, 3, "xml.gz")
    folder, _, file = name.rpartition("/")
    assert folder == folder_of(SITE)
    assert folder.startswith("sitemaps/www.example.com-")
    assert re.fullmatch(r"products-1-0123456789abcdef-7\.3-[0-9a-f]{6}\.xml\.gz", file)


def test_the_same_file_gets_another_name_each_time():
    """So that a process that was killed leaves no file that another one overwrites."""
    same = {file_name(SITE, "a-1", SHA, 1, 1, "xml.gz") for _ in range(2)}
    assert len(same) == 2


def test_another_hash_build_or_attempt_is_another_name(monkeypatch):
    """A name never stands for two contents, whatever its random part."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "00" * size)
    names = {
        file_name(SITE, "a-1", SHA, 1, 1, "xml.gz"),
        file_name(SITE, "a-1", SHA[::-1], 1, 1, "xml.gz"),
        file_name(SITE, "a-1", SHA, 2, 1, "xml.gz"),
        file_name(SITE, "a-1", SHA, 1, 2, "xml.gz"),
        file_name(SITE, "a-2", SHA, 1, 1, "xml.gz"),
    }
    assert len(names) == 5


@pytest.mark.parametrize("stem", ["a b", "é", "a\\b", "a:b", "a?b"])
def test_a_name_with_other_characters_is_refused(stem):
    """Rather than changed by a storage."""
    with pytest.raises(ValueError, match="characters that a storage might change"):
        file_name(SITE, stem, SHA, 1, 1, "xml")
