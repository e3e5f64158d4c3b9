"""The page of a stored file: its URLs, with a search."""

import pytest

from django_sitemapkit.admin import builds
from django_sitemapkit.builds import build
from django_sitemapkit.models import ExtraUrl, Place
from tests.admin.operating import page, person, text_of
from tests.builds import SITE

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(built):
    """Publish a site with URLs of its editors, and return their file."""
    for path, priority in (("/café/", "0.9"), ("/a&b/", None), ("/tea/", None)):
        ExtraUrl.objects.create(site=SITE.key, path=path, priority=priority)
    result = build(SITE)
    return Place.objects.get(build=result.build, section="extra-urls")


def shown(file, **query):
    """Return the page of a file."""
    return text_of(person("viewer").get(page("file", file.build_id, file.pk), query))


@pytest.mark.slow
def test_the_urls_are_read_in_the_admin(file):
    """Decoded, with their values, and linked to what becomes of them."""
    text = shown(file)
    assert "3 URLs" in text
    assert ">https://www.example.com/café/</a>" in text
    assert "?site=default&amp;url=https%3A%2F%2Fwww.example.com%2Fcaf%25C3%25A9%2F" in text
    assert ">https://www.example.com/a&amp;b/</a>" in text
    assert "<td>0.9</td>" in text
    address = page("file", file.build_id, file.pk)
    text = text_of(person("viewer").get(page("change", file.build_id), {"section": ""}))
    assert f'<a href="{address}">extra-urls 1</a>' in text
    assert 'aria-label="Download extra-urls 1"' in text


@pytest.mark.slow
@pytest.mark.parametrize("query", ["café", "CAF%C3%A9", "/caf"])
def test_a_part_of_a_url_is_searched(file, query):
    """Percent-encoded or not, in capitals or not."""
    text = shown(file, q=query)
    assert "1 URL<" in text
    assert "/tea/" not in text
    assert "No URLs found." in shown(file, q="coffee")


@pytest.mark.slow
def test_a_long_file_has_pages(file, monkeypatch):
    """With the search kept."""
    monkeypatch.setattr(builds, "URLS_PER_PAGE", 2)
    assert 'href="?q=example&amp;p=2"' in shown(file, q="example")
    assert "/tea/" not in shown(file, q="example")
    assert "/tea/" in shown(file, q="example", p="2")


@pytest.mark.slow
def test_a_file_that_is_gone_is_an_error_on_the_page(file, built):
    """Not of the server."""
    built.delete(file.name)
    assert "cannot be read" in shown(file)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["anonymous", "staff"])
def test_who_may_not_view_builds_sees_no_file(file, name):
    """As on all screens of builds."""
    response = person(name).get(page("file", file.build_id, file.pk))
    assert response.status_code in {302, 403}


@pytest.mark.slow
def test_an_index_has_its_file_and_no_urls(file):
    """It has no URLs of web pages, and a name in the storage."""
    index = Place.objects.get(build=file.build, section="")
    assert index.name in shown(index)
    assert "/tea/" not in shown(index)


@pytest.mark.slow
def test_a_file_of_another_build_is_not_found(file):
    """Nor is anything changed by its page."""
    client = person("viewer")
    assert client.get(page("file", file.build_id + 1, file.pk)).status_code == 404
    assert client.post(page("file", file.build_id, file.pk)).status_code == 405
