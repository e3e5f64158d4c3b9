"""django-sitemapkit: what its cells of docs/comparison.md claim."""

import gzip

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command, get_commands
from django.core.management.base import CommandError
from django.db import connection
from django.http import HttpResponse
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse
from django.utils import timezone
from django.utils.translation import get_language

from django_sitemapkit import Image, News, Route, Section, Video, views
from django_sitemapkit.builds import build
from django_sitemapkit.management.base import Exit
from django_sitemapkit.models import UrlOverride
from django_sitemapkit.sites import all_sites
from tests.builds.storages import Killed
from tests.peers.models import Page
from tests.peers.reading import (
    CONTROL,
    add_many,
    dates,
    edit,
    kill,
    most_alive,
    path_of,
    save,
    xml_of,
)
from tests.peers.storages import Disk
from tests.testapp.serving import locations

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", include("django_sitemapkit.contrib.people.urls")),
    path("robots.txt", views.robots),
    path("pages/<str:slug>/", lambda request, slug: HttpResponse(slug), name="page"),
]
pytestmark = pytest.mark.urls(__name__)


class Pages(Section):
    """Each page, two in a file."""

    queryset = Page.objects.all()
    location = Route("page", slug="slug")
    lastmod = "updated_at"
    limit = 2


@pytest.fixture(autouse=True)
def registered(sections):
    """Register the section."""
    sections.add(Pages)
    return sections


def instead(sections, **options):
    """Register another section in its place."""
    sections.remove("pages")
    sections.add(type("Pages", (Pages,), options))


def run(**options):
    """Build the site."""
    (site,) = all_sites()
    return build(site, **options)


def listed(client):
    """Return the addresses of the index."""
    return [path_of(each) for each in locations(client.get("/sitemap.xml").getvalue())]


def sent(client):
    """Return what readers get at each address of the index: dates."""
    return {address: dates(client.get(address).getvalue()) for address in listed(client)}


def text_of(client):
    """Return the XML of the first page."""
    return xml_of(client.get(listed(client)[0]).getvalue())


def test_the_index_is_xml(client):
    """XML, sent with gzip encoding to readers that accept it."""
    run()
    response = client.get("/sitemap.xml", headers={"accept-encoding": "gzip"})
    assert response["Content-Type"] == "application/xml"
    assert response["Content-Encoding"] == "gzip"
    assert locations(gzip.decompress(response.getvalue()))
    response = client.get("/sitemap.xml")
    assert "Content-Encoding" not in response
    assert response.getvalue().startswith(b"<?xml")


def test_a_kill(client):
    """The previous build, complete."""
    run()
    before = sent(client)
    edit()
    Disk.before["pages-2"] = kill
    with pytest.raises(Killed):
        run()
    assert sent(client) == before


def test_after_a_kill(client):
    """Continues: finished files are kept."""
    Disk.before["pages-2"] = kill
    with pytest.raises(Killed):
        run()
    (finished,) = Disk.saved
    Disk.saved.clear()
    run()
    assert not [name for name in Disk.saved if "pages-1" in name]
    assert sent(client)
    assert "pages-1" in finished


def test_two_runs():
    """The second exits with 4."""
    codes = []

    def second():
        # What is raised here would be taken for an error of the storage, which is tried again.
        with pytest.raises(CommandError) as raised:
            call_command("build_sitemaps", verbosity=0)
        codes.append(raised.value.returncode)

    Disk.before["pages-1"] = second
    run()
    assert codes == [Exit.RUNNING]


def test_nothing_has_changed():
    """Digests all rows, and writes no file."""
    run()
    Disk.saved.clear()
    with CaptureQueriesContext(connection) as captured:
        assert run().status == "unchanged"
    assert [query for query in captured if Page._meta.db_table in query["sql"]]
    assert not Disk.saved


def test_an_update_is_seen(client):
    """Is seen by the next build, and by live pages at once."""
    run()
    edit("a")
    with override_settings(SITEMAPKIT_SERVE_FROM="live"):
        assert "02T12:00" in text_of(client)
    assert "02T12:00" not in text_of(client)
    run()
    assert "02T12:00" in text_of(client)


def test_a_row_is_saved_during_a_run(client):
    """The next build has it."""
    Disk.before["pages-1"] = lambda: save("a")
    run()
    assert "02T12:00" not in text_of(client)
    run()
    assert "02T12:00" in text_of(client)


def test_a_control_character(client, caplog):
    """The row is skipped, and named by the build and the log."""
    Page.objects.filter(slug="a").update(slug=CONTROL)
    (problem,) = [each for file in run().files for each in file.problems]
    assert "e\\x0b" in str(problem)
    assert "e\\x0b" in caplog.text
    assert sorted(slug for each in sent(client).values() for slug in each) == ["b", "c", "d"]


def test_an_exception(client, registered, caplog):
    """The row is skipped, and named by the build and the log."""
    instead(registered, location=None)
    Page.objects.filter(slug="a").update(slug="broken")
    (problem,) = [each for file in run().files for each in file.problems]
    assert "This page has no URL." in str(problem)
    assert "This page has no URL." in caplog.text
    assert sorted(slug for each in sent(client).values() for slug in each) == ["b", "c", "d"]


def test_files_are_split_by_urls_and_bytes(client, registered):
    """URLs and bytes."""
    run()
    assert len(sent(client)) == 2
    instead(registered, limit=None)
    Page.objects.update(slug="x" * 1900)
    with override_settings(SITEMAPKIT_MAX_BYTES=4096):
        run()
        assert len(sent(client)) == 4


def test_languages(client, registered):
    """``i18n`` and ``alternates``, or ``translations`` between rows."""

    def location(section, page):
        return f"/{get_language()}{page.get_absolute_url()}"

    instead(registered, i18n=True, alternates=True, location=location, limit=None)
    run()
    assert text_of(client).count('hreflang="es"') == text_of(client).count("<url>") == 12
    Page.objects.update(translation_key=1)
    Page.objects.filter(slug="b").update(language="es")
    Page.objects.filter(slug="c").delete()
    instead(registered, translations="translation_key", language="language")
    run()
    assert text_of(client).count('hreflang="es"') == 2


def test_images(client, registered):
    """Any combination in each entry."""

    def video(section, page):
        return Video(thumbnail=page.picture, title="a", description="b", content=page.film)

    def news(section, page):
        return News(publication="a", language="en", published=page.updated_at, title="b")

    def images(section, page):
        return [Image(location=page.picture), "/b.png"]

    Page.objects.update(updated_at=timezone.now())  # Older news are not listed.
    instead(registered, images=images, videos=video, news=news)
    run()
    assert all(f"<{each}:{each}>" in text_of(client) for each in ("image", "video", "news"))


def test_overrides(client):
    """Yes, from live and built pages."""
    assert admin.site.is_registered(UrlOverride)
    run()
    assert "/pages/a/" in text_of(client)
    (site,) = all_sites()
    UrlOverride.objects.create(site=site.key, path="/pages/a/", include=False)
    with override_settings(SITEMAPKIT_SERVE_FROM="live"):
        assert "/pages/a/" not in text_of(client)
    run()
    assert "/pages/a/" not in text_of(client)


def test_roll_back(client):
    """``publish_sitemaps --previous``."""
    run()
    before = sent(client)
    edit()
    run()
    assert sent(client) != before
    call_command("publish_sitemaps", "--previous", verbosity=0)
    assert sent(client) == before


def test_memory(registered):
    """None, if the section uses columns; otherwise 4,000."""
    instead(registered, limit=None)
    count = add_many()
    with most_alive() as most:
        assert run().urls == count
    assert most == [0]
    instead(registered, limit=None, location=None)
    with most_alive() as most:
        assert run().urls == count
    assert 4000 <= most[0] <= 4001  # the last one of the rows before


def test_setup():
    """An app with 16 tables; builds also need a command."""
    models = apps.get_app_config("sitemapkit").get_models()
    assert len({model._meta.db_table for model in models}) == 16
    assert "build_sitemaps" in get_commands()


def test_other_files(client):
    """``robots.txt``, a site map for people, audits, crawls, and IndexNow."""
    assert client.get("/robots.txt").status_code == 200
    assert client.get(reverse("sitemapkit_people:html")).status_code == 200
    assert {"audit_sitemaps", "crawl_sitemaps", "submit_sitemaps"} <= get_commands().keys()
