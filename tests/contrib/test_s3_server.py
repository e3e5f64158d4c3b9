"""A server of S3's interface: what is stored there, and whatever fails on the way to it."""

import gzip
import http.client
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.files.storage import storages

from django_sitemapkit.exceptions import StorageFailure
from django_sitemapkit.models import Publication
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.signals import sitemaps_published
from tests.builds import ALL, BASE, INDEX, edit_product, fill, in_order, live, run, served

pytestmark = [pytest.mark.s3, pytest.mark.django_db]

ROOT = Path(__file__).resolve().parents[2]
OURS = "django_sitemapkit.contrib.s3.SitemapS3Storage"
THEIRS = "storages.backends.s3.S3Storage"
NAME = "sitemaps/site/page-1.xml.gz"
FORMS = ("xml", "xml.gz", "txt", "txt.gz")
CUT = -1
"""Stands for a connection that breaks off in the place of a status."""


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a server, but those that ``fault`` gives an answer for."""

    daemon_threads = True

    def __init__(self, endpoint):
        super().__init__(("127.0.0.1", 0), Passing)
        self.target = urlsplit(endpoint).netloc
        self.endpoint = "http://{}:{}".format(*self.server_address)
        self.requests = []
        self.fault = lambda method, path: None

    def handle_error(self, request, client_address):
        """Say nothing of a client that is gone."""


class Passing(BaseHTTPRequestHandler):
    """Handles one connection to the proxy."""

    protocol_version = "HTTP/1.1"

    def _pass(self):
        self.server.requests.append((self.command, self.path))
        fault = self.server.fault(self.command, self.path)
        length = int(self.headers["Content-Length"] or 0)
        body = self.rfile.read(length)
        if fault == CUT or len(body) < length:
            self.close_connection = True
            return
        status, headers, answer = (fault, [], b"") if fault else self._ask(body)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                self.send_header(name, value)
        size = dict(headers).get("Content-Length") if self.command == "HEAD" else len(answer)
        self.send_header("Content-Length", str(size or 0))
        self.end_headers()
        self.wfile.write(answer)

    def _ask(self, body):
        connection = http.client.HTTPConnection(self.server.target, timeout=30)
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = _pass  # noqa: N815

    def log_message(self, *_):
        """Say nothing of a request."""


@pytest.fixture
def proxy(s3_endpoint):
    """Give a proxy before a server that has a new bucket for the files and one for the export."""
    from tests.s3 import connect

    proxy = Proxy(s3_endpoint)
    proxy.s3 = connect(s3_endpoint)
    proxy.bucket = f"bucket-{random.getrandbits(64):x}"
    proxy.s3.create_bucket(Bucket=proxy.bucket)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    yield proxy
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def entry(proxy, backend=OURS, **options):
    """Return an entry of STORAGES for the bucket behind the proxy."""
    from tests.s3 import ACCESS, ATTEMPT_ONCE

    options = {"client_config": ATTEMPT_ONCE, **ACCESS, **options}
    options |= {"bucket_name": proxy.bucket, "endpoint_url": proxy.endpoint}
    return {"BACKEND": backend, "OPTIONS": options}


@pytest.fixture
def site(proxy, settings, sections):
    """Let a site have its files and its export behind the proxy."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": entry(proxy, location="builds"),
        "export": entry(proxy, location="export"),
    }
    settings.SITEMAPKIT_EXPORT_STORAGE = "export"
    for section in ALL:
        sections.add(section)
    fill()
    return proxy


def objects(proxy):
    """Return all that is stored, as a client sees it."""
    return {each.key: each.get() for each in proxy.s3.Bucket(proxy.bucket).objects.all()}


def put(storage, data, folder, name=NAME):
    """Store a file of these bytes."""
    path = folder / "file"
    path.write_bytes(data)
    storage.put(name, path)


# What is stored


def test_every_file_is_stored_as_what_it_is(site, settings):
    """Compressed once, and no encoding says so; also where the project compresses other files."""
    settings.AWS_IS_GZIPPED = True
    settings.GZIP_CONTENT_TYPES = ["application/gzip", "application/xml", "text/plain"]
    settings.SITEMAPKIT_EXPORT_TEXT = True
    run()
    stored = objects(site)
    manifest = stored.pop("export/sitemap-manifest.json.gz")
    assert manifest["ContentType"] == "application/gzip"
    assert len(stored) == 8 + 8 + 7  # Seven pages and an index, and the pages as text.
    assert {"export/sitemap.xml", "export/sitemap-products-1.txt.gz"} <= stored.keys()
    for name, answer in stored.items():
        compressed = name.endswith(".gz")
        kind = "application/gzip" if compressed else "application/xml"
        assert answer["ContentType"] == kind, name
        assert answer.get("ContentEncoding") is None, name
        assert answer["CacheControl"] == "max-age=600", name
        body = answer["Body"].read()
        begins = b"https://" if ".txt" in name else b"<?xml"
        assert (gzip.decompress(body) if compressed else body).startswith(begins), name


def test_the_signal_to_purge_names_what_has_changed(site):
    """The addresses of changed files and of the index, once the export has them."""
    run()
    heard = []

    def purge(addresses, **kwargs):
        page = "export/sitemap-products-1.xml.gz"
        body = site.s3.Object(site.bucket, page).get()["Body"].read()
        heard.append((set(addresses), b"2025-01-01" in gzip.decompress(body)))

    sitemaps_published.connect(purge)
    try:
        edit_product()
        run()
    finally:
        sitemaps_published.disconnect(purge)
    page = f"{BASE}/sitemap-products-1"
    assert heard == [({INDEX, *(f"{page}.{form}" for form in FORMS)}, True)]


# What fails


def once(answer, *, method="PUT"):
    """Return a fault of the first request of a method for each address."""
    seen = set()

    def fault(asked, path):
        if asked == method and path not in seen:
            seen.add(path)
            return answer
        return None

    return fault


@pytest.mark.parametrize("answer", [500, 503, CUT])
@pytest.mark.parametrize("method", ["PUT", "HEAD"])
def test_a_failure_that_passes_is_tried_again(proxy, tmp_path, caplog, answer, method):
    """Nobody notices but the log, whether storing a file fails or the question for its size."""
    storage = SitemapStorage(storages.create_storage(entry(proxy)))
    proxy.fault = once(answer, method=method)
    put(storage, b"data", tmp_path)
    with storage.open(NAME) as file:
        assert file.read() == b"data"
    assert caplog.text.count("could not be stored, trying again") == 1


@pytest.mark.parametrize("answer", [503, CUT])
def test_a_server_that_stays_away_ends_the_build(site, client, settings, answer):
    """What was published stays, and the next run publishes the rest."""
    run()
    before, published = in_order(served(client)), Publication.objects.get().build_id
    edit_product()
    site.fault = lambda method, path: answer if method == "PUT" else None
    with pytest.raises(StorageFailure, match="could not be stored"):
        run()
    assert Publication.objects.get().build_id == published
    assert in_order(served(client)) == before
    site.fault = lambda method, path: None
    run()
    assert in_order(served(client)) == in_order(live(client, settings)) != before


def test_a_file_that_cannot_be_exported_is_exported_by_the_next_run(site):
    """The views serve the new build already; the export keeps the index of before."""
    run()
    before = site.s3.Object(site.bucket, "export/sitemap.xml").get()["Body"].read()
    edit_product()
    site.fault = lambda method, path: (
        503 if method == "PUT" and "/export/sitemap-p" in path else None
    )
    with pytest.raises(StorageFailure, match="sitemap-products-1"):
        run()
    assert site.s3.Object(site.bucket, "export/sitemap.xml").get()["Body"].read() == before
    site.fault = lambda method, path: None
    assert run().status == "unchanged"
    assert site.s3.Object(site.bucket, "export/sitemap.xml").get()["Body"].read() != before


# Large files, and many at a time

LARGE = 20 * 1024 * 1024
"""More than boto3 uploads by one request by default."""

UPLOAD = """
import sys
import django
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages

settings.configure(STORAGES={"sitemaps": eval(sys.argv[1])})
django.setup()
storages["sitemaps"].save(sys.argv[2], ContentFile(bytes(int(sys.argv[3]))))
"""


@pytest.mark.parametrize(("backend", "left"), [(OURS, 0), (THEIRS, 1)])
def test_a_killed_upload_leaves_nothing(proxy, backend, left):
    """Where S3Storage itself would leave parts, as it uploads large files in several requests."""
    from tests.s3 import ACCESS

    options = {"bucket_name": proxy.bucket, "endpoint_url": proxy.endpoint, **ACCESS}
    storage = repr({"BACKEND": backend, "OPTIONS": options})
    command = [sys.executable, "-c", UPLOAD, storage, NAME, str(LARGE)]
    uploading = subprocess.Popen(command, cwd=ROOT)

    def kill(method, path):
        if method == "PUT":
            uploading.send_signal(signal.SIGKILL)
            return CUT
        return None

    proxy.fault = kill
    assert uploading.wait(60) == -signal.SIGKILL
    uploads = proxy.s3.meta.client.list_multipart_uploads(Bucket=proxy.bucket)
    assert len(uploads.get("Uploads", ())) == left
    assert objects(proxy) == {}


def test_a_large_file_is_one_request(proxy, tmp_path):
    """To store it, and one more to ask for its size."""
    storage = SitemapStorage(storages.create_storage(entry(proxy)))
    put(storage, bytes(LARGE), tmp_path)
    methods = [method for method, _ in proxy.requests]
    assert methods == ["PUT", "HEAD"]
    assert storage.size(NAME) == LARGE


def test_several_upload_at_a_time(proxy, tmp_path):
    """Threads share a storage as the requests of a server do, and every file is whole."""
    storage = SitemapStorage(storages.create_storage(entry(proxy)))

    def upload(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        for page in range(5):
            data = f"{number} {page}".encode() * 1000
            put(storage, data, folder, name=f"sitemaps/site/page-{number}-{page}.xml.gz")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(upload, range(8)))
    stored = {name: answer["Body"].read() for name, answer in objects(proxy).items()}
    assert stored == {
        f"sitemaps/site/page-{number}-{page}.xml.gz": f"{number} {page}".encode() * 1000
        for number in range(8)
        for page in range(5)
    }
