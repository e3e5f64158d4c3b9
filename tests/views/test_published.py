"""The views that serve published files, asked as readers ask them."""

import datetime as dt
import gzip
import logging
import os

import pytest
from django.conf import global_settings
from django.core.files.base import ContentFile
from django.core.handlers.wsgi import WSGIHandler
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import timezone
from django.utils.http import http_date

from django_sitemapkit import Section
from django_sitemapkit.builds import build, publish
from django_sitemapkit.builds.report.published import sections_not_in
from django_sitemapkit.models import Build, Lease, Page, Place, Plan, Publication, StoredPage
from django_sitemapkit.planning import refresh_plan
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import reader_of
from django_sitemapkit.sites import all_sites
from django_sitemapkit.views import published as views
from tests.builds import use_folder
from tests.builds.storages import ON_S3, not_on_s3
from tests.cases import few
from tests.factories import SITE
from tests.prepared import once
from tests.testapp.models import Product, Reading, Token
from tests.testapp.serving import (
    BASE,
    Products,
    Reader,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
    pages,
)
from tests.views.remote import Tokens

pytestmark = pytest.mark.django_db

INDEX = "/sitemap.xml"
PAGE = "/sitemap-products-1.xml"
FILE = f"{PAGE}.gz"
GZIP = {"accept-encoding": "gzip"}
LONG_AGO = dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=dt.UTC)


@pytest.fixture
def client():
    """Give a client that reads to the end."""
    return Reader()


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    """Store sitemaps in a folder of their own."""
    return use_folder(settings, tmp_path)


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    """Let no lost file have been reported: the same build is there in each test."""
    monkeypatch.setattr(views, "reported_builds", {})


@pytest.fixture
def published(sections):
    """Publish a section of two products, then change its rows behind the files' back."""
    declare(sections, Products)

    def make():
        make_products("a", "b")
        build(SITE)
        make_products("c")

    once((__name__, "published"), make)


def line_of(section="", number=1):
    """Return the manifest's line of a published file, the index by default."""
    number = number if section else 0
    return Place.objects.get(
        build=Publication.objects.get(site=SITE.key).build, section=section, number=number
    )


def stored(line):
    """Return a file's bytes as they are in the storage."""
    with SitemapStorage().open(line.name) as file:
        return file.read()


def replace(line, content):
    """Put other bytes in the place of a stored file."""
    storage = SitemapStorage().storage
    storage.delete(line.name)
    storage.save(line.name, ContentFile(content))


def answer(address, headers=None, method="get"):
    """Return the view's own response, of which nothing was read yet."""
    view = resolve(address)
    request = getattr(RequestFactory(), method)(address, headers=headers)
    return view.func(request, **view.kwargs)


def shown(slugs):
    """Return the addresses of products."""
    return [f"{BASE}/products/all/{slug}/" for slug in slugs]


# What is served ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [PAGE, FILE])
@pytest.mark.parametrize(("serve", "slugs"), [("auto", "ab"), ("published", "ab"), ("live", "abc")])
def test_setting_decides_between_file_and_rows(client, settings, published, serve, slugs, form):
    """A published page stays what it is until the next build, unless live pages are asked for."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    assert locations(client.get(form).getvalue()) == shown(slugs)


@pytest.mark.parametrize(("serve", "status"), [("auto", 200), ("live", 200), ("published", 404)])
def test_what_was_never_built(client, settings, sections, serve, status):
    """Before the first build everything is live, or nothing is there where only files may be."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    declare(sections, Products)
    make_products("a")
    for address in (INDEX, PAGE, FILE):
        assert client.get(address).status_code == status


@pytest.mark.slow
def test_addresses_stay_from_build_to_build(client, sections):
    """The names in storage change with the content, the addresses never do."""
    declare(sections, Products)
    make_products("a")
    build(SITE)
    name, listed = line_of("products").name, locations(client.get(INDEX).getvalue())
    make_products("b")
    build(SITE)

    assert line_of("products").name != name
    assert locations(client.get(INDEX).getvalue()) == listed == [f"{BASE}{FILE}"]
    assert locations(client.get(FILE).getvalue()) == shown("ab")


def test_gzip_file_is_the_stored_file(client, published):
    """``.xml.gz`` is what lies in the storage, byte by byte, and no encoding, for every reader."""
    line = line_of("products")
    response = client.get(FILE, headers=GZIP)

    assert response.getvalue() == stored(line)
    assert dict(response.items()) == {
        "Content-Type": "application/gzip",
        "Content-Length": str(line.page.stored_bytes),
        "ETag": f'"{line.page.sha256[:32]}"',
        "Last-Modified": response["Last-Modified"],
        "X-Robots-Tag": "noindex",
        "Cache-Control": "max-age=600",
    }


def test_xml_for_readers_of_gzip_is_the_file_as_it_is(client, published):
    """A reader that accepts gzip gets the stored bytes, called XML in an encoding."""
    line = line_of("products")
    response = client.get(PAGE, headers=GZIP)

    assert response.getvalue() == stored(line)
    assert response["Content-Type"] == "application/xml"
    assert response["Content-Encoding"] == "gzip"
    assert response["Content-Length"] == str(line.page.stored_bytes)
    assert response["ETag"] == f'"{line.page.sha256[:32]}-gzip"'
    assert response["Vary"] == "Accept-Encoding"


@pytest.mark.slow
def test_last_modified_is_when_the_content_changed(client, sections, published):
    """It is the manifest's date, which a build of the same content does not move."""
    StoredPage.objects.update(lastmod=LONG_AGO)
    for address in (INDEX, PAGE, FILE):
        assert client.get(address)["Last-Modified"] == "Thu, 29 Feb 2024 12:30:15 GMT"
    Product.objects.filter(slug="c").delete()
    make_readings([1])
    declare(sections, Readings)
    build(SITE)
    assert client.get(FILE)["Last-Modified"] == "Thu, 29 Feb 2024 12:30:15 GMT"
    assert client.get(INDEX)["Last-Modified"] != "Thu, 29 Feb 2024 12:30:15 GMT"


# Conditions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("middleware", [[], ["django.middleware.http.ConditionalGetMiddleware"]])
@pytest.mark.parametrize("address", [INDEX, PAGE, FILE])
def test_304_by_date_only_where_it_is_the_very_date(
    client, settings, published, address, middleware
):
    """A later date than the file's says nothing: a roll-back brings older files."""
    settings.MIDDLEWARE = middleware
    StoredPage.objects.update(lastmod=LONG_AGO)
    answers = {
        "Thu, 29 Feb 2024 12:30:14 GMT": 200,
        "Thu, 29 Feb 2024 12:30:15 GMT": 304,
        "Thu, 29 Feb 2024 12:30:16 GMT": 200,
        "yesterday": 200,
    }
    for date, status in answers.items():
        response = client.get(address, headers={"if-modified-since": date})
        assert response.status_code == status, date
    both = {"if-modified-since": "Thu, 29 Feb 2024 12:30:15 GMT", "if-none-match": '"other"'}
    assert client.get(address, headers=both).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("address", [INDEX, PAGE, FILE])
def test_rolled_back_file_is_sent_anew(client, settings, sections, monkeypatch, address):
    """The reader that has the newer file does not keep it when the older one is published again."""
    settings.SITEMAPKIT_SERVE_FROM = "published"
    declare(sections, Products)
    make_products("a")
    first = build(SITE).build
    make_products("b")
    declare(sections, Readings)  # So that the index changes too.
    make_readings([1])
    build(SITE)
    newer = client.get(address)
    later = timezone.now() + dt.timedelta(minutes=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    publish(SITE, first)

    conditions = ({"if-none-match": newer["ETag"]}, {"if-modified-since": newer["Last-Modified"]})
    for headers in conditions:
        response = client.get(address, headers=headers)
        assert response.status_code == 200
        assert response["Last-Modified"] == http_date(later.timestamp())
    assert locations(client.get(FILE).getvalue()) == shown("a")


# Generations ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("serve", ["auto", "published"])
def test_page_of_the_former_generation_answers_through_the_grace_period(
    client, settings, sections, serve
):
    """Who has the former index finds all it lists; when the grace period is over it is 404."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    declare(sections, Products, limit=2)
    made = make_products("a", "b", "c", "d")
    build(SITE)
    second = "/sitemap-products-2.xml.gz"
    assert locations(client.get(second).getvalue()) == shown("cd")
    Product.objects.filter(pk__in=[product.pk for product in made[2:]]).delete()
    build(SITE)

    assert locations(client.get(INDEX).getvalue()) == [f"{BASE}{FILE}"]
    assert locations(client.get(second).getvalue()) == shown("cd")

    hour = dt.timedelta(hours=1)
    replaced = Build.objects.filter(replaced_at__isnull=False)
    assert replaced.update(replaced_at=timezone.now() - dt.timedelta(days=1) - hour) == 1
    assert client.get(second).status_code == 404
    assert client.get(FILE).status_code == 200
    replaced.update(replaced_at=timezone.now() - dt.timedelta(days=1) + hour)
    assert client.get(second).status_code == 200
    replaced.update(pruned_at=timezone.now())
    assert client.get(second).status_code == 404


@pytest.mark.slow
def test_grace_period_is_a_setting(client, settings, sections):
    """With none the former generation is gone at once."""
    settings.SITEMAPKIT_KEEP_REPLACED_SECONDS = 0
    declare(sections, Products, limit=1)
    _, last = make_products("a", "b")
    build(SITE)
    last.delete()
    build(SITE)
    assert client.get("/sitemap-products-2.xml.gz").status_code == 404


@pytest.mark.slow
def test_newest_generation_wins(client, sections):
    """Of all that have a page it is the published one, then the one that was replaced last."""
    declare(sections, Products, limit=2)
    make_products("a", "b", "c")
    build(SITE)
    make_products("d")
    build(SITE)
    second = "/sitemap-products-2.xml.gz"
    assert locations(client.get(second).getvalue()) == shown("cd")
    Product.objects.filter(slug__in="cd").delete()
    build(SITE)
    assert locations(client.get(second).getvalue()) == shown("cd")


def test_page_that_the_published_build_never_had_is_404(client, published):
    """A new page of the plan waits for the next build, even where live pages may be served."""
    Page.objects.create(plan=Page.objects.get().plan, number=2)
    for address in ("/sitemap-products-2.xml", "/sitemap-products-9.xml.gz"):
        assert client.get(address).status_code == 404
    assert client.get("/sitemap-nothing-1.xml").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("serve", ["auto", "published"])
def test_section_that_was_never_built(client, settings, published, sections, serve):
    """Beside published sections it is live where it may be, in the index too; else it is 404."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    declare(sections, Readings)
    make_readings([7])
    address = "/sitemap-readings-1.xml.gz"

    if serve == "published":
        assert locations(client.get(INDEX).getvalue()) == [f"{BASE}{FILE}"]
        assert client.get(address).status_code == 404
        return
    assert pages(client) == {
        f"{BASE}{FILE}": shown("ab"),
        f"{BASE}{address}": [f"{BASE}/readings/7/"],
    }
    make_readings([8])
    assert len(locations(client.get(address).getvalue())) == 2


@pytest.mark.parametrize("error", [LookupError("no shops"), DatabaseError("no table")])
def test_sections_that_cannot_be_made_leave_the_published_index(
    client, published, sections, caplog, error
):
    """Whether their own code fails or the function that returns them."""

    def sections_of_shops(site):
        raise error

    sections.add_function(sections_of_shops)
    assert locations(client.get(INDEX).getvalue()) == [f"{BASE}{FILE}"]
    assert client.get(PAGE).status_code == 200
    assert str(error) in caplog.text


@pytest.mark.slow
def test_section_that_was_built_empty_has_no_live_page(client, published, sections):
    """It has been built: its first row is listed by the next build, not before."""
    declare(sections, Readings)
    Product.objects.filter(slug="a").delete()
    build(SITE)
    make_readings([1])
    assert client.get("/sitemap-readings-1.xml").status_code == 404
    assert locations(client.get(INDEX).getvalue()) == [f"{BASE}{FILE}"]


@pytest.mark.slow
@pytest.mark.parametrize("serve", ["auto", "published"])
def test_every_page_of_the_published_index_answers(client, settings, sections, serve):
    """And together they list what the database had when they were built."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    declare(sections, Products, limit=2)
    declare(sections, Readings, limit=7)
    make_products(*"abcde")
    make_readings(range(20))
    build(SITE)
    make_products("late")
    Reading.objects.filter(level=3).delete()

    listed = pages(client)
    assert len(listed) == Place.objects.exclude(section="").count() > 5
    everything = [location for page in listed.values() for location in page]
    assert everything == shown("abcde") + [f"{BASE}/readings/{n}/" for n in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["xml", "xml.gz"])
def test_live_and_published_page_are_the_same_bytes(client, settings, sections, form):
    """One rendering makes both, so they cannot disagree; a stream is only compressed in pieces."""
    declare(
        sections,
        Products,
        limit=3,
        lastmod="updated_at",
        changefreq="daily",
        priority=F("rank"),
    )
    make_products("a&b", "ñ", "c d", updated_at=LONG_AGO, rank="0.35")
    make_products("later")
    build(SITE)
    for number in (1, 2):
        answers = []
        for serve in ("live", "published"):
            settings.SITEMAPKIT_SERVE_FROM = serve
            answers.append(client.get(f"/sitemap-products-{number}.{form}").getvalue())
        live, published = answers
        if form == "xml.gz":
            live, published = gzip.decompress(live), gzip.decompress(published)
        assert live == published
        assert locations(live)


# What can fail ----------------------------------------------------------------------------------


@pytest.mark.parametrize("serve", few(1, ["auto", "published"]))
@pytest.mark.parametrize("address", [PAGE, FILE])
@pytest.mark.parametrize("sendfile", [None, "x-accel-redirect", "x-sendfile"])
def test_lost_file_is_rendered_live_and_logged(
    ask, client, settings, published, caplog, serve, address, sendfile
):
    """Without an ETag, since another server may have the file; the log names it."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    settings.SITEMAPKIT_SENDFILE = sendfile
    line = line_of("products")
    SitemapStorage().delete(line.name)

    answer = ask(address)
    assert answer.status == 200
    assert locations(answer.body) == shown("abc")
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert line.name in errors[0]
    assert not {"ETag", "Last-Modified"} & answer.headers.keys()
    assert client.head(address)["Content-Type"] == answer.headers["Content-Type"]


@pytest.mark.slow
def test_lost_file_of_a_trusted_section_has_no_etag(client, sections):
    """The rows would have one, which is not the file's."""
    declare(sections, Products, lastmod="updated_at", trust_lastmod=True)
    make_products("a", updated_at=LONG_AGO)
    build(SITE)
    SitemapStorage().delete(line_of("products").name)
    assert not {"ETag", "Last-Modified"} & dict(client.get(PAGE).items()).keys()


@pytest.mark.slow
def test_lost_files_are_reported_once_for_each_build(client, sections, published, caplog):
    """However many requests there are, and however many files."""

    def reported():
        SitemapStorage().delete(line_of().name)
        SitemapStorage().delete(line_of("products").name)
        caplog.clear()
        for address in (FILE, PAGE, INDEX, FILE):
            assert client.get(address).status_code == 200
        return [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]

    assert len(reported()) == 1
    assert reported() == []
    build(SITE)
    assert len(reported()) == 1


def test_a_reader_of_the_file_of_another_server_has_it_still(client, published):
    """Which content is published, the database knows, whichever server has the file."""
    etag = client.get(FILE)["ETag"]
    SitemapStorage().delete(line_of("products").name)
    assert client.get(FILE, headers={"if-none-match": etag}).status_code == 304
    assert client.get(FILE, headers={"if-none-match": '"another"'}).status_code == 200


@pytest.mark.parametrize("address", [PAGE, FILE])
@pytest.mark.parametrize("size", [0, 40])
@pytest.mark.parametrize("where", ["disk", "elsewhere"])
def test_file_cut_short_is_rendered_live_and_logged(
    client, sections, caplog, request, address, size, where
):
    """No reader gets half a file for a whole one."""
    if where == "elsewhere":
        request.getfixturevalue("remote")
    request.getfixturevalue("published")
    line = line_of("products")
    replace(line, stored(line)[:size])

    assert locations(client.get(address).getvalue()) == shown("abc")
    assert line.name in caplog.text


@pytest.mark.parametrize("serve", few(1, ["auto", "published"]))
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: None, id="lost"),
        pytest.param(lambda content: content[:-20], id="cut-short"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: content.replace(b"products", b"prodacts"), id="changed"),
    ],
)
def test_damaged_index_is_written_anew_and_logged(
    client, settings, published, caplog, serve, damage
):
    """The manifest knows what the index said: the same bytes come, and the log names the file."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    whole = client.get(INDEX)
    assert caplog.text == ""
    line = line_of()
    content = damage(stored(line))
    if content is None:
        SitemapStorage().delete(line.name)
    else:
        replace(line, content)

    response = client.get(INDEX)
    assert response.status_code == 200
    assert response.content == whole.content
    assert response["ETag"] == whole["ETag"]
    assert line.name in caplog.text


@pytest.mark.parametrize("error", few(1, [OperationalError, InterfaceError]))
@pytest.mark.parametrize("address", [INDEX, PAGE, FILE])
@pytest.mark.parametrize("serve", ["auto", "live", "published"])
def test_database_that_is_down_is_503(ask, settings, published, caplog, serve, address, error):
    """Readers are asked to come back; under DEBUG they see the reason, the log the traceback."""
    settings.DEBUG = True
    settings.SITEMAPKIT_SERVE_FROM = serve

    def down(*args):
        raise error("secret: could not connect")

    with connection.execute_wrapper(down):
        answer = ask(address)

    assert answer.status == 503
    assert answer.headers["Retry-After"] == "30"
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"secret" in answer.body
    assert b"Traceback" not in answer.body
    assert "secret" in caplog.text
    assert "Traceback" in caplog.text


def test_storage_that_is_down_is_no_error(client, published, caplog, monkeypatch):
    """A storage may raise what it likes: the page is rendered live."""

    def down(self, name):
        raise RuntimeError("bucket on fire")

    monkeypatch.setattr(SitemapStorage, "open", down)
    assert locations(client.get(FILE).getvalue()) == shown("abc")
    assert locations(client.get(INDEX).getvalue()) == [f"{BASE}{FILE}"]
    assert caplog.text.count("bucket on fire") == 1


# How it is sent ---------------------------------------------------------------------------------


@not_on_s3("it is not on a disk of the web server")
@pytest.mark.parametrize("headers", [{}, GZIP])
def test_web_server_sends_the_file(client, settings, published, headers):
    """The response to ``.xml.gz`` names the stored file and has no body."""
    address = FILE
    line = line_of("products")
    plain = client.get(address, headers=headers)

    settings.SITEMAPKIT_SENDFILE = "x-accel-redirect"
    response = client.get(address, headers=headers)
    assert response["X-Accel-Redirect"] == f"/sitemapkit/{line.name}"
    assert response.content == b""
    for name in ("Content-Type", "Content-Encoding", "ETag", "Last-Modified", "Vary"):
        assert response.get(name) == plain.get(name)
    settings.SITEMAPKIT_SENDFILE_ROOT = "/files/"
    response = client.head(address, headers=headers)
    assert response["X-Accel-Redirect"] == f"/files/{line.name}"

    settings.SITEMAPKIT_SENDFILE = "x-sendfile"
    response = client.get(address, headers=headers)
    assert response["X-Sendfile"] == str(SitemapStorage().local_path(line.name))
    assert response.content == b""
    assert "X-Accel-Redirect" not in response


@not_on_s3("it is not on a disk of the web server")
def test_web_server_is_given_the_bytes_of_a_path(client, settings, published, monkeypatch):
    """In a folder with letters beyond Latin 1, too: nothing else would be its name."""
    stored = SitemapStorage().local_path(line_of("products").name)
    folder = stored.parent / "łódź"
    folder.mkdir()
    moved = stored.rename(folder / stored.name)
    monkeypatch.setattr(SitemapStorage, "local_path", lambda self, name: moved)
    settings.SITEMAPKIT_SENDFILE = "x-sendfile"
    assert client.get(FILE)["X-Sendfile"].encode("latin-1") == os.fsencode(moved)


@pytest.mark.parametrize("sendfile", ["x-accel-redirect", "x-sendfile"])
def test_web_server_sends_nothing_else(client, settings, published, sendfile):
    """What is unpacked or called an encoding, the index and a 304 come from Django."""
    settings.SITEMAPKIT_SENDFILE = sendfile
    etag = client.get(FILE)["ETag"]
    answers = [
        client.get(PAGE),
        client.get(PAGE, headers=GZIP),
        client.get(INDEX),
        client.get(FILE, headers={"if-none-match": etag}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 304]
    for answer in answers:
        assert "X-Accel-Redirect" not in answer
        assert "X-Sendfile" not in answer
    assert locations(answers[0].getvalue()) == shown("ab")


@pytest.mark.slow
def test_web_server_cannot_send_what_lies_elsewhere(client, settings, remote, sections):
    """A storage without paths is read by Django whatever the setting says."""
    settings.SITEMAPKIT_SENDFILE = "x-sendfile"
    declare(sections, Products)
    make_products("a")
    build(SITE)
    response = client.get(FILE)
    assert "X-Sendfile" not in response
    assert response.getvalue() == stored(line_of("products"))


@pytest.mark.slow
@pytest.mark.parametrize(("form", "headers"), [("xml", {}), ("xml", GZIP), ("xml.gz", {})])
def test_file_is_never_loaded_whole(remote, sections, form, headers):
    """Every read asks for a bounded block, and the file is closed in the end."""
    declare(sections, Tokens)
    Token.objects.bulk_create(Token() for _ in range(400))
    build(SITE)
    line = line_of("tokens")
    assert line.page.stored_bytes > 3 * 65_536
    remote.reads.clear()

    response = answer(f"/sitemap-tokens-1.{form}", headers)
    early = sum(remote.reads)
    assert early <= 65_536
    blocks = list(response.streaming_content)
    response.close()

    assert all(0 < size <= 65_536 for size in remote.reads)
    assert len(remote.reads) >= line.page.stored_bytes / 65_536
    assert remote.open_files == 0
    assert len(blocks) > 3
    assert max(map(len, blocks)) <= 262_144
    assert len(locations(b"".join(blocks))) == 400


@pytest.mark.parametrize("where", ["disk", "database"])
def test_server_may_send_the_file_its_own_way(settings, published, one_connection, where):
    """Under WSGI the open file itself goes to ``wsgi.file_wrapper``, where the server has one.

    Only from a local disk: some servers take nothing else, as uWSGI, which asks for its number.
    """
    if where == "database":
        settings.STORAGES = global_settings.STORAGES
        build(SITE, full=True)
    given = []

    def file_wrapper(file, block_size):
        given.append(file)
        return iter(lambda: file.read(block_size), b"")

    def ask(address):
        environ = RequestFactory().get(address).environ
        environ["wsgi.file_wrapper"] = file_wrapper
        return b"".join(WSGIHandler()(environ, lambda status, headers: None))

    line = line_of("products")
    assert ask(FILE) == stored(line)
    is_sent = where == "disk" and not ON_S3
    assert len(given) == is_sent
    for file in given:
        file.close()
    assert ask(PAGE) == gzip.decompress(stored(line))
    assert len(given) == is_sent


@pytest.mark.slow
@pytest.mark.parametrize("address", few(2, [PAGE, "/sitemap-products-1.txt.gz", FILE]))
def test_page_costs_one_query(client, sections, django_assert_num_queries, address):
    """Whatever the number of pages, sections and builds: what is published, and its row."""
    declare(sections, Products, limit=1)
    declare(sections, Readings, limit=1)
    make_products("a")
    build(SITE)
    with django_assert_num_queries(1):
        client.get(address)
    make_products(*"bcdefgh")
    make_readings(range(8))
    build(SITE)
    with django_assert_num_queries(1):
        client.get(address.replace("-1.", "-8."))
    etag = client.get(address)["ETag"]
    with django_assert_num_queries(1):
        assert client.get(address, headers={"if-none-match": etag}).status_code == 304
    with django_assert_num_queries(3):
        assert client.get("/sitemap-products-99.xml").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("address", [PAGE, FILE])
def test_page_from_the_database_costs_two_queries(
    client, settings, published, django_assert_num_queries, address
):
    """What is published, and all of the file; the index one more than from elsewhere, too."""
    settings.STORAGES = global_settings.STORAGES
    build(SITE, full=True)
    with django_assert_num_queries(2):
        assert locations(client.get(address).getvalue()) == shown("abc")
    with django_assert_num_queries(4):
        assert client.get(INDEX).status_code == 200


@pytest.mark.slow
def test_index_costs_three_queries(client, sections, django_assert_num_queries):
    """However many pages it lists."""
    declare(sections, Products, limit=1)
    make_products("a")
    build(SITE)
    with django_assert_num_queries(3):
        client.get(INDEX)
    make_products(*"bcdefgh")
    build(SITE)
    with django_assert_num_queries(3):
        client.get(INDEX)


# Sites ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sites_never_mix(client, settings, sections):
    """Each host answers from its own publication, though sections and numbers are the same."""
    settings.ALLOWED_HOSTS = ["one.example", "two.example"]
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two": {"BASE_URL": "https://two.example"},
    }
    declare(sections, Products)
    make_products("a")
    one, two = all_sites()
    build(one)
    make_products("b")

    def listed(host):
        response = client.get(FILE, headers={"host": host})
        return locations(response.getvalue()) if response.status_code == 200 else None

    settings.SITEMAPKIT_SERVE_FROM = "published"
    assert listed("one.example") == ["https://one.example/products/all/a/"]
    assert listed("two.example") is None
    assert client.get(INDEX, headers={"host": "two.example"}).status_code == 404
    build(two)
    assert listed("one.example") == ["https://one.example/products/all/a/"]
    assert listed("two.example") == [f"https://two.example/products/all/{s}/" for s in "ab"]
    for host in ("one.example", "two.example"):
        index = client.get(INDEX, headers={"host": host})
        assert locations(index.content) == [f"https://{host}{FILE}"]


@pytest.mark.slow
def test_lost_file_is_rendered_by_its_own_range_though_the_plan_moved_on(
    client, sections, settings
):
    """A reader of the published index counts on the rows that this page had."""
    declare(sections, Readings, limit=4)
    make_readings(range(0, 40, 10))
    build(all_sites()[0])
    before = [locations(client.get(f"/sitemap-readings-{n}.xml").getvalue()) for n in (1, 2)]
    make_readings(range(1, 10))
    section = reader_of(Readings(SITE))
    section.limit = 4
    assert refresh_plan(section).added
    for number, rows in enumerate(before, start=1):
        SitemapStorage().delete(line_of("readings", number).name)
        last_number = Plan.objects.get().last_number
        found = locations(client.get(f"/sitemap-readings-{number}.xml").getvalue())
        assert found[:1] == rows[:1]
        assert Plan.objects.get().last_number == last_number
    assert found == before[1]


@pytest.mark.slow
def test_lost_file_records_no_split(client, sections):
    """Not even where the plan is as it was: the next build stores the file again, and splits."""
    declare(sections, Readings, limit=4)
    make_readings(range(0, 80, 10))
    build(all_sites()[0])
    make_readings(range(1, 10))
    last_number = Plan.objects.get().last_number
    SitemapStorage().delete(line_of("readings", 1).name)
    assert len(locations(client.get("/sitemap-readings-1.xml").getvalue())) == 4
    assert Plan.objects.get().last_number == last_number


@pytest.mark.slow
def test_lost_file_of_a_page_that_was_merged_away_is_rendered(client, sections):
    """The plan has no such page any more; the published index lists it."""
    declare(sections, Readings, limit=4)
    make_readings(range(8))
    build(all_sites()[0])
    Reading.objects.filter(level__in=[1, 2, 4, 5]).delete()
    section = reader_of(Readings(SITE))
    section.limit = 4
    assert refresh_plan(section).retired
    for line in Place.objects.exclude(section=""):
        SitemapStorage().delete(line.name)
    assert sum(map(len, pages(client).values())) == 4


@pytest.mark.slow
@pytest.mark.parametrize("how", ["the section is gone", "it has another key", "its rows are gone"])
def test_lost_file_that_cannot_be_rendered_is_503(client, sections, how):
    """Rather than a page of rows that the index does not mean, or 404, as it lists the page."""
    declare(sections, Readings, limit=2)
    make_readings(range(5))
    build(all_sites()[0])
    line = line_of("readings", 2)
    SitemapStorage().delete(line.name)
    if how == "the section is gone":
        sections.remove("readings")
    elif how == "it has another key":
        Place.objects.filter(pk=line.pk).update(lower="2024-02-29")
    else:
        Reading.objects.all().delete()
    response = client.get("/sitemap-readings-2.xml")
    assert (response.status_code, response["Retry-After"]) == (503, "30")


class Failing(Section):
    """A section whose rows cannot be read."""

    location = "/a/"

    def get_queryset(self):
        raise RuntimeError("no rows today")


@pytest.mark.parametrize("lost", [False, True])
def test_new_section_that_fails_leaves_the_published_index_as_it_is(
    client, sections, published, caplog, lost
):
    """What is published does not depend on what was declared since; the log says why."""
    before = client.get(INDEX).getvalue()
    if lost:
        SitemapStorage().delete(line_of("").name)
    sections.add(Failing)
    assert client.get(INDEX).getvalue() == before
    assert "'failing'" in caplog.text
    assert "no rows today" in caplog.text


def test_new_section_that_is_being_planned_is_not_in_the_published_index(
    client, sections, published, caplog
):
    """The index needs not come back later for it."""
    before = client.get(INDEX).getvalue()
    declare(sections, Readings, limit=2)
    make_readings(range(5))
    lease = Lease.objects.acquire("plan:default:readings", seconds=60)
    assert client.get(INDEX).getvalue() == before
    assert "'readings'" in caplog.text
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    lease.release()
    assert len(locations(client.get(INDEX).getvalue())) > len(locations(before))


def test_index_and_unknown_page_do_not_read_the_whole_manifest(client, sections, published):
    """A look at one line is enough to know that a section was built."""
    declare(sections, Readings)
    make_readings(range(3))
    with CaptureQueriesContext(connection) as queries:
        client.get(INDEX)
        client.get("/sitemap-products-99.xml")
    manifests = [q["sql"] for q in queries if Place._meta.db_table in q["sql"]]
    assert manifests
    assert not [sql for sql in manifests if "DISTINCT" in sql]


def test_many_sections_are_looked_for_some_at_a_time(published, monkeypatch):
    """However many there are."""
    record = Build.objects.get()
    monkeypatch.setattr("django_sitemapkit.builds.report.published.SECTIONS_PER_QUERY", 2)
    names = ["a", "products", "b", "c", "d"]
    assert sections_not_in(record, names) == {"a", "b", "c", "d"}
    assert sections_not_in(record, []) == set()
