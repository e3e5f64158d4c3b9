"""Where another sitemap may be, and that what is not read to its end proves nothing."""

import gzip
import logging

import pytest
from django.test import override_settings

from django_sitemapkit import ExternalSection
from django_sitemapkit.audit.moving.sources import sitemap_source
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.sites import all_sites
from tests.audit.moving import urls
from tests.audit.moving.documents import index, urlset
from tests.audit.web.servers import serving
from tests.factories import EPOCH, SITE
from tests.testapp.serving import Products, make_products

pytestmark = pytest.mark.django_db


def found_in(source, site=SITE):
    """Return the URLs of another sitemap, in order."""
    return [url for url, _ in sitemap_source(str(source), site).entries()]


def failure(source, site=SITE):
    """Return why another sitemap cannot be read."""
    with pytest.raises(InvalidSitemap) as raised:
        found_in(source, site)
    return str(raised.value)


class Elsewhere(ExternalSection):
    """A sitemap of another program, which the new index lists as well."""

    sitemaps = ["/blog.xml"]


# At a URL


@pytest.fixture
def server():
    """Serve documents; gives the base URL and the answers by path."""
    with serving() as (base, answers):
        yield base, answers


@pytest.mark.slow
def test_a_sitemap_at_a_url(server):
    """Plain or gzip."""
    base, answers = server
    answers["/a.xml"] = [(200, {}, urlset("/a/", "/b/").encode())]
    answers["/b.xml.gz"] = [(200, {}, gzip.compress(urlset("/c/").encode()))]
    assert found_in(f"{base}/a.xml") == ["/a/", "/b/"]
    assert found_in(f"{base}/b.xml.gz") == ["/c/"]


@pytest.mark.slow
def test_an_index_at_a_url_is_followed(server):
    """To all that it lists, in order."""
    base, answers = server
    listed = index(f"{base}/b.xml?p=1", f"{base}/b.xml?p=2")
    answers["/sitemap.xml"] = [(200, {}, listed.encode())]
    answers["/b.xml?p=1"] = [(200, {}, urlset("/a/").encode())]
    answers["/b.xml?p=2"] = [(200, {}, urlset("/b/").encode())]
    assert found_in(f"{base}/sitemap.xml") == ["/a/", "/b/"]


def test_external_sitemaps_are_left_out(server, sections):
    """The new index lists them too, and no section has their URLs."""
    base, answers = server
    sections.add(Elsewhere)
    answers["/sitemap.xml"] = [(200, {}, index("https://www.example.com/blog.xml").encode())]
    assert found_in(f"{base}/sitemap.xml") == []
    assert [path for path, *_ in answers.asked] == ["/sitemap.xml"]


@pytest.mark.slow
@pytest.mark.parametrize("host", ["https://www.example.com", "http://127.0.0.1:1"])
def test_an_index_that_names_another_host(server, host):
    """A copy of a site names that of production. What it lists is fetched from the copy alone."""
    base, answers = server
    answers["/sitemap.xml"] = [(200, {}, index(f"{host}/a.xml?p=1").encode())]
    assert failure(f"{base}/sitemap.xml") == (
        f"{base}/a.xml?p=1 cannot be read: HTTP Error 404: Not Found"
        f" (The index names {host}/a.xml?p=1.)"
    )
    answers["/a.xml?p=1"] = [(200, {}, urlset("/a/").encode())]
    assert found_in(f"{base}/sitemap.xml") == ["/a/"]


def test_an_index_that_lists_a_path(server):
    """The protocol wants whole URLs."""
    base, answers = server
    answers["/sitemap.xml"] = [(200, {}, index("/a.xml").encode())]
    assert failure(f"{base}/sitemap.xml").startswith("The index lists '/a.xml'. Invalid URL")


@pytest.mark.slow
def test_what_a_server_does_not_send(server):
    """Each failure names the document."""
    base, answers = server
    answers["/moved.xml"] = [(301, {"Location": f"{base}/a.xml"}, b"")]
    answers["/cut.xml"] = [(200, {}, urlset("/a/").encode()[:-5])]
    answers["/sitemap.xml"] = [(200, {}, index(f"{base}/none.xml").encode())]
    answers["/nested.xml"] = [(200, {}, index(f"{base}/sitemap.xml").encode())]
    assert failure(f"{base}/moved.xml") == (
        f"{base}/moved.xml redirects to {base}/a.xml: give that address."
    )
    assert failure(f"{base}/cut.xml").startswith(f"{base}/cut.xml: Parsing error: ")
    expected = f"{base}/none.xml cannot be read: HTTP Error 404: Not Found"
    assert failure(f"{base}/none.xml") == failure(f"{base}/sitemap.xml") == expected
    assert failure(f"{base}/nested.xml").startswith(f"{base}/sitemap.xml: Nested index: ")


# Files


def test_a_file(tmp_path):
    """Plain or gzip."""
    file = tmp_path / "a.xml"
    file.write_text(urlset("/a/"))
    assert found_in(file) == ["/a/"]
    file.write_bytes(gzip.compress(urlset("/b/").encode()))
    assert found_in(file) == ["/b/"]
    file.write_text("<urlset>")
    assert failure(file) == f"{file}: Parsing error: no element found, line 1, column 9."


def test_a_folder(tmp_path):
    """Each file once, though an index lists them too; others than sitemaps are no matter."""
    (tmp_path / "below").mkdir()
    (tmp_path / "notes.txt").write_text("not a sitemap")
    (tmp_path / "a b.xml").write_text(urlset("/a/"))
    (tmp_path / "below" / "c.xml.gz").write_bytes(gzip.compress(urlset("/c/").encode()))
    listed = ("https://cdn.example/maps/a%20b.xml", "https://cdn.example/maps/c.xml.gz?v=1")
    (tmp_path / "sitemap.xml").write_text(index(*listed))
    assert found_in(tmp_path) == ["/a/", "/c/"]


def test_a_folder_that_is_not_complete(tmp_path):
    """An index lists more than there is; alone, it lists nothing that there is."""
    file = tmp_path / "sitemap.xml"
    file.write_text(index("https://www.example.com/a.xml"))
    for source in (tmp_path, file):
        assert failure(source) == (
            "https://www.example.com/a.xml is listed by an index, but a.xml was not given. Give"
            " the folder that has all."
        )


@pytest.mark.parametrize("source", ["nowhere.xml", "no:where", "x" * 300, "product"])
def test_what_is_nothing_at_all(source):
    """The message has what there may be; a name whose URL needs arguments is none."""
    with pytest.raises(ValueError, match=r"is neither a URL, nor|File name too long"):
        sitemap_source(source, SITE)


def test_a_folder_without_a_sitemap(tmp_path):
    """It is a mistake, and no empty sitemap."""
    with pytest.raises(ValueError, match="there is no"):
        sitemap_source(str(tmp_path), SITE)


# A URL name


@pytest.fixture
def project(settings, sections):
    """Use a project with both sitemaps, and three products."""
    urls.asked.clear()
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    settings.ROOT_URLCONF = "tests.audit.moving.urls"
    sections.add(Products)
    make_products("a", "b", "c", updated_at=EPOCH)
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("django.request").setLevel(logging.NOTSET)


ALL = [f"https://www.example.com/products/all/{slug}/" for slug in "abc"]


@pytest.mark.parametrize(("name", "expected"), [("old-sitemap", ALL[:2]), ("old-index", ALL)])
def test_a_view_of_the_project(project, name, expected):
    """An index is followed, to pages in the query string too."""
    assert found_in(name) == expected


def test_a_view_is_requested_on_the_site(project):
    """By its scheme and host; what an index lists is, too, whatever host it names."""
    address = "https://www.example.com/nothing.xml"
    assert failure("listing").startswith(f"{address}: HTTP error: the answer has status 404")
    assert urls.asked == [("/listing.xml", "https", "www.example.com")]


def test_a_view_fails(project):
    """The reason is given, and a redirect is not followed."""
    base = SITE.origin
    assert failure("broken") == (
        f"{base}/broken.xml: HTTP error: The view raises RuntimeError: no such shelf"
    )
    assert (
        failure("moved") == f"{base}/moved.xml redirects to {base}/listing.xml: give that address."
    )
    assert urls.asked == []
    assert failure("nested").startswith(f"{base}/listing.xml: Nested index: ")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sitemapkit:index", "/sitemap.xml"),
        ("old-address", "/old.xml"),
        ("circular", "/sitemap-products-1.xml"),
    ],
)
def test_the_new_sitemap_is_not_compared_with_itself(project, name, path):
    """Neither by its own name, nor by one that leads to it: that would prove nothing."""
    assert failure(name) == (
        f"https://www.example.com{path}: the new sitemap answers at {path}: give the old one a path"
        " of its own."
    )


def test_a_name_goes_before_a_folder(project, tmp_path, monkeypatch):
    """The folder may have the files of the new sitemap."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old-index").mkdir()
    assert found_in("old-index") == ALL


def test_a_site_with_a_path(project):
    """It is mounted there, and the view is found below."""
    sites = {"a": {"BASE_URL": "https://www.example.com/app"}}
    with override_settings(SITEMAPKIT_SITES=sites):
        (site,) = all_sites()
        assert failure("sitemapkit:index", site).endswith("give the old one a path of its own.")
        assert found_in("old-index", site) == ALL
