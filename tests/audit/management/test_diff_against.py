"""``diff_sitemaps --against``: another sitemap, compared with what the sections give now."""

import json

import pytest
from django.core.management import call_command

from django_sitemapkit.audit.apps import AuditConfig
from django_sitemapkit.models import Plan
from tests.audit.moving.documents import urlset
from tests.management import run
from tests.management.test_broken_section import FAULT, broken, checked
from tests.testapp.serving import BASE, Products, declare

pytestmark = pytest.mark.django_db

URLS = [f"{BASE}/products/all/{slug}/" for slug in "abc"]


@pytest.fixture
def old(tmp_path):
    """Write another sitemap, and return its path."""

    def written(*urls):
        file = tmp_path / "old-sitemap.xml"
        file.write_text(urlset(*urls))
        return file

    return written


def against(source, *options):
    """Compare with another sitemap."""
    return run("diff_sitemaps", "--against", source, *options)


def test_equal_sitemaps(products, old):
    """Exit 0, and the number of URLs says that something was compared; no plan is stored."""
    code, out, err = against(old(*URLS))
    assert (code, out, err) == (0, "3 URLs before, 3 now: no differences.\n", "")
    assert against(old(*URLS), "--verbosity", 0) == (0, "", "")
    call_command("diff_sitemaps", against=old(*URLS), verbosity=0)  # A Path.
    assert not Plan.objects.exists()


def test_differences(products, old):
    """Exit 5, after a line for each."""
    file = old(*URLS[:2], f"{BASE}/gone/")
    code, out, err = against(file)
    first, second, summary = out.splitlines()
    assert (code, err) == (5, "2 differences.")
    assert first.startswith(f"- {BASE}/gone/  ")
    assert "No section lists this URL" in first
    assert second == f"+ {URLS[2]}  section products"
    assert summary == "3 URLs before, 3 now: 1 added, 1 removed."
    assert against(file, "--verbosity", 0) == (5, "", err)


def test_tags_may_be_ignored(products, old):
    """Those that are named, by commas."""
    tags = "<changefreq>daily</changefreq><priority>0.3</priority>"
    file = old(*(f"<loc>{url}</loc>{tags}" for url in URLS))
    assert against(file)[0] == 5
    assert against(file, "--ignore", "priority")[2] == "3 differences."
    assert against(file, "--ignore", "priority, changefreq,")[0] == 0
    code, out, err = against(file, "--ignore", "colour")
    assert (code, out) == (2, "")
    assert err.startswith("Unknown tags: colour. Known tags: lastmod, changefreq, ")


def test_json(products, old):
    """An object for each line, and the last one has the numbers."""
    code, out, err = against(old(*URLS[1:]), "--json")
    difference, numbers = map(json.loads, out.splitlines())
    assert (code, err) == (5, "1 difference.")
    assert (difference["change"], difference["url"]) == ("added", URLS[0])
    assert (numbers["before"], numbers["after"], numbers["added"]) == (2, 3, 1)


def test_a_sitemap_that_cannot_be_read(products, old):
    """Exit 1 with the reason, and no line that would be wrong."""
    file = old("<loc>")
    code, out, err = against(file)
    assert (code, out) == (1, "")
    assert err.startswith(f"{file}: Parsing error: ")


def test_wrong_calls(products, two_sites, old, settings):
    """Exit 2: what is no source, several sites, a build, and an option that would do nothing."""
    file = old(*URLS)
    for arguments, message in (
        (["--against", "nowhere.xml", "--site", "one"], "'nowhere.xml' is neither a URL, nor"),
        (["--against", file], "choose it with --site. Known sites: one, two."),
        (["7", "--against", file], "not a build"),
        (["--ignore", "lastmod"], "--ignore needs --against."),
    ):
        code, out, err = run("diff_sitemaps", *arguments)
        assert (code, out) == (2, ""), arguments
        assert message in err


def test_one_of_several_sites(two_sites, old):
    """It is compared alone."""
    file = old(*URLS)
    file.write_text(file.read_text().replace(BASE, "https://two.example"))
    assert against(file, "--site", "two")[0] == 0


def test_urls_that_are_not_included(products, old, settings):
    """Exit 2, as for any wrong setting."""
    settings.ROOT_URLCONF = "tests.urls_without"
    code, _, err = against(old(*URLS))
    assert code == 2
    assert 'include("django_sitemapkit.urls")' in err


def test_without_the_app(products, old, monkeypatch):
    """Exit 2, with the app that is needed."""
    monkeypatch.setattr(AuditConfig, "sitemapkit_comparison", "")
    code, _, err = against(old(*URLS))
    assert code == 2
    assert err == '--against needs the app "django_sitemapkit.audit": add it to INSTALLED_APPS.'


def test_a_section_that_fails(sections, old):
    """It is reported as the checks report it: its URLs would seem to be removed."""
    declare(sections, Products, get_queryset=broken)
    code, out, err = checked("diff_sitemaps", "--against", old(*URLS))
    assert (code, out) == (1, "")
    assert FAULT in err
