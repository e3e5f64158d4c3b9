"""What all answers have in common: live and published, of the index and of pages in each form."""

import gzip

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from django_sitemapkit.builds import build
from tests.builds import use_folder
from tests.cases import few
from tests.factories import SITE
from tests.prepared import once
from tests.testapp.serving import (
    Products,
    Reader,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
)
from tests.views.asgi import read

# Python 3.11's temporary file of a request that is driven by hand warns when it goes.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

INDEX = "/sitemap.xml"
SMALL = "/sitemap-products-1"
LARGE = "/sitemap-readings-1"
FORMS = ("xml", "xml.gz", "txt", "txt.gz")
ADDRESSES = [INDEX, *(f"{page}.{form}" for page in (SMALL, LARGE) for form in FORMS)]
LIVE, PUBLISHED = "live", "published"
ENCODINGS = ("identity", "gzip")


@pytest.fixture
def client():
    """Give a client that reads to the end."""
    return Reader()


@pytest.fixture(params=[LIVE, PUBLISHED])
def served(request, settings, sections, tmp_path):
    """Serve a section that is known as a whole at once and one of many blocks."""
    use_folder(settings, tmp_path)
    declare(sections, Products)
    declare(sections, Readings)
    settings.SITEMAPKIT_SERVE_FROM = request.param

    def make():
        make_products("a", "it's & <b>", "ñ")
        make_readings(range(1200))
        if request.param == PUBLISHED:
            build(SITE)

    once((__name__, request.param), make)
    return request.param


def plain_of(body):
    """Return a document as it is without gzip."""
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def tagged(served):
    """Return the addresses whose answers have an ETag: a stream of rows has none."""
    return [each for each in ADDRESSES if served == PUBLISHED or not each.startswith(LARGE)]


@pytest.mark.slow
def test_each_form_is_the_same_document_every_time(client, served):
    """Neither a time nor a name stands in a gzip header; text lists what the XML lists."""
    for page in (SMALL, LARGE):
        bodies = {form: client.get(f"{page}.{form}").getvalue() for form in FORMS}
        assert bodies == {form: client.get(f"{page}.{form}").getvalue() for form in FORMS}
        for form in ("xml", "txt"):
            assert gzip.decompress(bodies[f"{form}.gz"]) == bodies[form]
            if served == LIVE:  # A stored file is what the compression of builds has made.
                assert bodies[f"{form}.gz"][:8] == b"\x1f\x8b\x08\x00" + bytes(4)
        listed = locations(bodies["xml"])
        assert bodies["txt"].decode() == "".join(f"{location}\n" for location in listed)
        assert len(listed) in {3, 1200}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "is_accepted"),
    few(
        3,
        [
            ("gzip", True),
            (None, False),
            ("br, *;q=0.5", True),
            ("identity", False),
            ("x-gzip", True),
            ("gzip;q=0", False),
        ],
    ),
)
def test_documents_are_encoded_where_the_reader_asks(client, served, header, is_accepted):
    """An encoded document is XML or text with Content-Encoding; a ``.gz`` file is no encoding."""
    for address in ADDRESSES:
        response = client.get(address, headers=header and {"accept-encoding": header})
        is_file = address.endswith(".gz")
        is_encoded = is_accepted and not is_file
        body = response.getvalue()
        assert response.get("Vary") == (None if is_file else "Accept-Encoding")
        assert response.get("Content-Encoding") == ("gzip" if is_encoded else None)
        assert (body[:2] == b"\x1f\x8b") == (is_encoded or is_file)
        assert plain_of(body) == plain_of(client.get(address).getvalue())
        plain = "application/xml" if ".xml" in address else "text/plain; charset=utf-8"
        assert response["Content-Type"] == ("application/gzip" if is_file else plain)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "middleware",
    few(
        1,
        [
            [
                "django.middleware.gzip.GZipMiddleware",
                "django.middleware.http.ConditionalGetMiddleware",
                "django.middleware.common.CommonMiddleware",
            ],
            [],
        ],
    ),
)
def test_head_tells_what_get_tells(client, settings, served, encoding, middleware):
    """Every header of GET, whatever middleware the project has; a length that is sent is right."""
    settings.MIDDLEWARE = middleware
    headers = {"accept-encoding": encoding}
    for address in ADDRESSES:
        got, head = client.get(address, headers=headers), client.head(address, headers=headers)
        assert got.status_code == head.status_code == 200
        assert dict(head.items()) == dict(got.items())
        size = str(len(got.getvalue()))
        assert got.get("Content-Length", size) == size
        is_whole = not address.startswith(LARGE) or ("xml" in address and served == PUBLISHED)
        assert "Content-Length" in got or not is_whole or "txt" in address


@pytest.mark.slow
def test_head_has_no_body_of_its_own(served):
    """The package itself sends none, also where no server or client would cut it off."""
    for address in ADDRESSES:
        found = resolve(address)
        response = found.func(RequestFactory().head(address), **found.kwargs)
        assert response.status_code == 200
        assert response.getvalue() == b""


def test_other_methods_are_refused(client, served):
    """Only GET and HEAD are allowed, and the answer says so."""
    for method in ("post", "put", "patch", "delete", "options"):
        for address in ADDRESSES:
            response = getattr(client, method)(address)
            assert response.status_code == 405
            assert response["Allow"] == "GET, HEAD"


@pytest.mark.slow
def test_caches_may_keep_it_and_no_search_lists_it(client, settings, served):
    """The cache's header is a setting; "" sends none."""
    for value, sent in ((None, "max-age=600"), ("public, s-maxage=9",) * 2, ("", None)):
        if value is not None:
            settings.SITEMAPKIT_CACHE_CONTROL = value
        for address in ADDRESSES:
            response = client.get(address)
            assert response.get("Cache-Control") == sent
            assert response["X-Robots-Tag"] == "noindex"


@pytest.mark.slow
def test_no_visitor_makes_a_difference(client, settings, served):
    """Neither a login nor a query string nor a forged host; no cookie is set and none is read."""
    settings.USE_X_FORWARDED_HOST = True
    before = [client.get(address) for address in ADDRESSES]
    bodies = [response.getvalue() for response in before]
    client.force_login(User.objects.create(username="editor"))
    evil = {"host": "evil.example"}
    others = (
        ("", {}),
        ("?p=2&page=%E0%A5%A7&x=%00&y[]=<script>", {}),
        ("", evil),
        ("", {"host": "www.example.com", "x-forwarded-host": "evil.example"}),
    )
    for address, first, body in zip(ADDRESSES, before, bodies, strict=True):
        for query, headers in others:
            with CaptureQueriesContext(connection) as queries:
                response = client.get(f"{address}{query}", headers=headers)
            assert response.getvalue() == body
            assert dict(response.items()) == dict(first.items())
            assert not response.cookies
            assert "Cookie" not in response.get("Vary", "")
            assert not [each for each in queries if "session" in each["sql"]]


@pytest.mark.slow
def test_sitemaps_need_no_login(client, settings, served):
    """LoginRequiredMiddleware lets them pass, and stops other views."""
    middleware = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, middleware]
    assert {client.get(address).status_code for address in ADDRESSES} == {200}
    assert client.get("/about/").status_code == 302


@pytest.mark.slow
@pytest.mark.parametrize("method", ["get", "head"])
def test_unchanged_document_is_304(client, served, method):
    """A 304 repeats what a cache keeps by, and has neither body nor type nor encoding.

    The bytes of each form and encoding have an ETag of their own, which validates no other.
    """
    kept = {"ETag", "Last-Modified", "Vary", "Cache-Control", "X-Robots-Tag"}
    tags = set()
    for address in tagged(served):
        for encoding in ENCODINGS:
            headers = {"accept-encoding": encoding}
            full = client.get(address, headers=headers)
            crossed = {**headers, "if-none-match": ", ".join({'"other"', *tags})}
            if address.endswith(".gz"):  # It is the same file with both.
                crossed["if-none-match"] = '"other"'
            assert client.get(address, headers=crossed).status_code == 200
            tags.add(full["ETag"])
            known = {**headers, "if-none-match": full["ETag"]}
            response = getattr(client, method)(address, headers=known)
            assert response.status_code == 304
            assert response.getvalue() == b""
            assert dict(response.items()) == {k: v for k, v in full.items() if k in kept}


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("{etag}", 304),
        ("W/{etag}", 304),
        ('"other", W/"third",{etag}', 304),
        ("*", 304),
        ('"other"', 200),
        ('W/"other"', 200),
        ("", 200),
        ("nonsense", 200),
    ],
)
def test_if_none_match_in_all_its_forms(client, served, condition, status):
    """Weak tags, lists and ``*`` count; another tag does not."""
    for address in (INDEX, f"{SMALL}.xml"):
        etag = client.get(address)["ETag"]
        response = client.get(address, headers={"if-none-match": condition.format(etag=etag)})
        assert response.status_code == status


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_async_and_sync_answers_are_equal(client, served, request, encoding):
    """The same status, headers and bytes, HEAD and 304 included."""
    answers = [client.get(each, headers={"accept-encoding": encoding}) for each in ADDRESSES]
    request.getfixturevalue("one_connection")  # Not before: the client sets the signals again.

    def ask(*arguments, **headers):
        status, shown, reader = async_to_sync(read)(*arguments, accept_encoding=encoding, **headers)
        assert reader.ended
        return status, shown, reader.body

    for address, answer in zip(ADDRESSES, answers, strict=True):
        headers = dict(answer.items())
        assert ask(address) == (200, headers, answer.getvalue())
        assert ask(address, "HEAD") == (200, headers, b"")
        if address in tagged(served):
            status, _headers, body = ask(address, if_none_match=answer["ETag"])
            assert (status, body) == (304, b"")
    assert ask("/sitemap-readings-9.xml")[0] == 404
