"""``inspect_sitemap_url``: where a URL is published, and what the next build does with it."""

import json

import pytest
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.utils.translation import override

from django_sitemapkit import Section
from django_sitemapkit.models import ExclusionRule, UrlOverride
from tests.factories import SITE
from tests.management import line_of, run
from tests.overrides.setting import by_object
from tests.prepared import once
from tests.testapp.models import Product
from tests.testapp.serving import BASE, make_products

pytestmark = pytest.mark.django_db

FIRST, SECOND = (f"{BASE}/sitemap-products-{n}.xml.gz" for n in (1, 2))


@pytest.fixture
def built(products):
    """Build a section of three products on two pages."""
    code, *_ = once((__name__, "built"), lambda: run("build_sitemaps"))
    assert code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("/products/all/a/", FIRST),
        (f"{BASE}/products/all/c/", SECOND),
        ("HTTPS://WWW.Example.com:443/products/all/c/", SECOND),
        ("/products/all/ñ p/", SECOND),
        ("/products/all/%C3%B1%20p/", SECOND),
        (f"{BASE}/products/all/%c3%b1%20p/", SECOND),
    ],
)
def test_tells_the_file(products, url, address):
    """By path or URL, percent-encoded or not, it is the address of the page that lists it."""
    make_products("ñ p")
    run("build_sitemaps")
    code, out, err = run("inspect_sitemap_url", url)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == f"  published in {address}"


def test_of_what_is_not_listed(built):
    """Exit 1, though it is in the database by now."""
    make_products("late")
    code, out, err = run("inspect_sitemap_url", "/products/all/late/")
    assert code == 1
    assert "  not published\n  next build: listed by section 'products'\n" in out
    assert err == (
        "No published file lists /products/all/late/. The next build lists it: run build_sitemaps."
    )


@pytest.mark.parametrize(
    ("serve_from", "state"),
    [("auto", "served live, not from a published file"), ("published", "not published")],
)
def test_before_the_first_build(products, settings, serve_from, state):
    """No file lists anything; the section is served live unless only files are."""
    settings.SITEMAPKIT_SERVE_FROM = serve_from
    code, out, _err = run("inspect_sitemap_url", "/products/all/a/")
    assert (code, out.splitlines()[1]) == (1, f"  {state}")


@pytest.mark.parametrize(
    "url", ["https://evil.example/a/", "javascript:alert(1)", "ftp://x/", "//"]
)
def test_of_what_cannot_be_listed(built, url):
    """A URL that is none of the site's is an error in one line."""
    code, out, err = run("inspect_sitemap_url", url)
    assert code == 2
    assert out == ""
    assert url in err


@pytest.mark.slow
def test_looks_at_every_site(two_sites):
    """A URL of one site is foreign to the other, and found all the same."""
    run("build_sitemaps")
    for host in ("one", "two"):
        found = run("inspect_sitemap_url", f"https://{host}.example/products/all/a/")
        assert found[0] == 0
        assert f"  published in https://{host}.example/sitemap-products-1.xml.gz\n" in found[1]
    code, _, err = run("inspect_sitemap_url", "https://three.example/")
    assert code == 2
    assert "https://three.example/" in err


def test_takes_no_part_of_a_url_for_the_whole(built):
    """Only the very URL counts, with its characters as XML has them."""
    make_products("c&d")
    run("build_sitemaps")
    for part in ("/products/all/", "/products/all/c/x", "/products/all/c"):
        assert run("inspect_sitemap_url", part)[0] == 1
    assert run("inspect_sitemap_url", "/products/all/c&d/")[0] == 0


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_where_a_file_is_lost(built, storage, harm):
    """The way out is named in one line, and no file that is there is overlooked."""
    path = storage / line_of("products", 1).name
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
    code, out, _ = run("inspect_sitemap_url", "/products/all/c/")
    assert (code, f"  published in {SECOND}\n" in out) == (0, True)
    code, _, err = run("inspect_sitemap_url", "/products/all/zzz/")
    assert code == 1
    assert "--repair" in err


def test_the_next_build_is_told_too(built):
    """An exclusion counts for the next build; the published file lists the URL still."""
    ExclusionRule.objects.create(site=SITE.key, pattern="/products/all/a/")
    UrlOverride.objects.create(site=SITE.key, path="/products/all/c/", priority="0.9")
    code, out, _ = run("inspect_sitemap_url", "/products/all/a/")
    assert code == 0
    assert f"  published in {FIRST}\n  next build: not listed: " in out
    assert "/products/all/a/" in out.splitlines()[-1]
    assert "    priority: 0.9 (URL override)\n" in run("inspect_sitemap_url", "/products/all/c/")[1]


def test_all_is_in_english(products):
    """Reasons and origins as well, in whichever language the project is."""
    ExclusionRule.objects.create(site=SITE.key, pattern="/products/all/a/")
    UrlOverride.objects.create(site=SITE.key, path="/products/all/c/", priority="0.9")
    with override("fr"):
        out = run("inspect_sitemap_url", "/products/all/a/")[1]
        assert "not listed: The exclusion rule /products/all/a/ excludes it." in out
        out = run("inspect_sitemap_url", "/products/all/c/")[1]
        assert "priority: 0.9 (URL override)" in out


def test_json_has_the_same(built):
    """A program gets a list of the sites that may list the URL."""
    (report,) = json.loads(run("inspect_sitemap_url", "/products/all/a/", "--json")[1])
    (published,) = report["published"]
    assert (published["file"], published["values"]) == (FIRST, {})
    assert published["changed_at"]
    assert (report["site"], report["url"]) == (SITE.key, f"{BASE}/products/all/a/")
    assert report["next_build"] | {"values": {}} == {
        "listed": True,
        "section": "products",
        "problems": [],
        "reason": "",
        "values": {},
        "also": [],
    }


def test_a_url_that_no_section_produces(built):
    """The reason is given, and the exit code is 1."""
    code, out, err = run("inspect_sitemap_url", "/nowhere/")
    assert code == 1
    assert "  next build: not listed: " in out
    assert err == "No published file lists /nowhere/."


def test_published_values_are_told(built):
    """Those of the file, whatever the next build sets."""
    UrlOverride.objects.create(site=SITE.key, path="/products/all/a/", priority="0.9")
    run("build_sitemaps")
    UrlOverride.objects.update(priority="0.8")
    out = run("inspect_sitemap_url", "/products/all/a/")[1]
    assert f"  published in {FIRST}\n    priority: 0.9\n  next build: listed by" in out
    assert "    priority: 0.8 (URL override)\n" in out


def test_a_listed_url_that_differs_by_a_slash_is_told(built):
    """It is what was meant, most often."""
    out = run("inspect_sitemap_url", "/products/all/a")[1]
    assert "  /products/all/a/ is listed\n" in out
    assert "is listed" not in run("inspect_sitemap_url", "/products/all/b/")[1]


class Again(Section):
    """Rows that another section lists, too."""

    name = "again"
    queryset = Product.objects.filter(slug__in="ab")
    location = Concat(Value("/products/all/"), F("slug"), Value("/"))


@pytest.mark.slow
def test_a_url_that_is_listed_twice_is_told_with_all_places(products, sections):
    """The published files, and the sections that the next build lists it in."""
    sections.add(Again)
    run("build_sitemaps")
    code, out, _ = run("inspect_sitemap_url", "/products/all/a/")
    again = f"{BASE}/sitemap-again-1.xml.gz"
    assert code == 0
    assert f"  published in {FIRST}\n" in out
    assert f"  published in {again}\n" in out
    row = Product.objects.get(slug="a")
    assert f"also listed by section 'again' (row {row.pk}), in {BASE}/sitemap-again-1.xml" in out
    (report,) = json.loads(run("inspect_sitemap_url", "/products/all/a/", "--json")[1])
    (also,) = report["next_build"]["also"]
    assert (also["section"], also["row"]) == ("again", str(row.pk))
    assert [each["times"] for each in report["published"]] == [1, 1]


def test_two_rows_of_one_section_are_told(products, sections):
    """A file that lists a URL twice says so."""
    Product.objects.filter(slug="b").update(note="/same/")
    Product.objects.filter(slug="a").update(note="/same/")
    noted = Product.objects.exclude(note="")
    sections.add(type("Noted", (Section,), {"queryset": noted, "location": F("note")}))
    run("build_sitemaps")
    (report,) = json.loads(run("inspect_sitemap_url", "/same/", "--json")[1])
    assert [each["times"] for each in report["published"]] == [2]
    assert [each["section"] for each in report["next_build"]["also"]] == ["noted"]


@pytest.mark.slow
def test_the_section_that_leaves_a_url_out_is_told(products, sections, settings):
    """With deduplication it is listed once, by the first one."""
    settings.SITEMAPKIT_DEDUPLICATE = True
    sections.add(Again)
    run("build_sitemaps")
    out = run("inspect_sitemap_url", "/products/all/a/")[1]
    assert out.count("published in") == 1
    assert "listed by section 'products'" in out
    assert "left out by section 'again'" in out
    assert "also listed" not in out


def test_a_url_that_is_excluded_from_one_section_is_listed_by_the_other(products, sections):
    """The first section that lists it counts, not the first that has a row."""
    sections.add(Again)
    row = Product.objects.get(slug="a")
    by_object(row, include=False)
    Product.objects.filter(pk=row.pk).update(slug="z")
    other = Product.objects.create(shop=row.shop, slug="x", note="/products/all/z/")
    noted = Product.objects.filter(pk=other.pk)
    sections.add(type("Noted", (Section,), {"queryset": noted, "location": F("note")}))
    (report,) = json.loads(run("inspect_sitemap_url", "/products/all/z/", "--json")[1])
    assert (report["next_build"]["listed"], report["next_build"]["section"]) == (True, "noted")
