"""``validate_sitemaps --schema``: documents before XML schemas, without any network."""

import gzip
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.audit.management.test_validate import NAMESPACE, index, urlset
from tests.management import run

pytestmark = pytest.mark.django_db

SCHEMA = """\
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns="{namespace}"
            targetNamespace="{namespace}" elementFormDefault="qualified">
  {before}
  <xsd:element name="{root}"><xsd:complexType><xsd:sequence>
    <xsd:element name="{item}" maxOccurs="unbounded"><xsd:complexType><xsd:sequence>
      <xsd:element name="loc" type="xsd:anyURI"/>
    </xsd:sequence></xsd:complexType></xsd:element>
  </xsd:sequence></xsd:complexType></xsd:element>
</xsd:schema>
"""
"""A schema as strict as none of sitemaps.org is: it knows no other tag than ``loc``."""


def schema(root, item, before=""):
    """Return a schema for documents of one kind."""
    return SCHEMA.format(namespace=NAMESPACE, root=root, item=item, before=before)


@pytest.fixture
def schemas(tmp_path_factory):
    """Give a folder with both schemas."""
    folder = tmp_path_factory.mktemp("schemas")
    (folder / "sitemap.xsd").write_text(schema("urlset", "url"))
    (folder / "siteindex.xsd").write_text(schema("sitemapindex", "sitemap"))
    return folder


LONELY = "<url>\n<loc>https://www.example.com/a</loc>\n<lastmod>2024-01-01</lastmod></url>"


def invalid(count=1):
    """Return a sitemap that is valid but for the schema, with a lastmod on some lines."""
    return f'<urlset xmlns="{NAMESPACE}">\n{LONELY * count}</urlset>'


def test_what_a_schema_refuses_is_reported_with_its_line(schemas, tmp_path):
    """Beside what the command says by itself."""
    path = tmp_path / "a.xml"
    path.write_text(invalid())
    assert run("validate_sitemaps", path)[0] == 0
    code, out, _ = run("validate_sitemaps", path, "--schema", schemas)
    assert code == 1
    assert "error: line 4: Schema: Element" in out
    assert "lastmod': This element is not expected" in out


def test_each_document_is_checked_by_the_schema_of_its_kind(schemas, tmp_path):
    """Pages and indexes, plain and gzip."""
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "a.xml").write_text(urlset("https://www.example.com/a"))
    (folder / "b.xml.gz").write_bytes(gzip.compress(urlset("https://b.example/b").encode()))
    (folder / "c.xml").write_text(index("https://www.example.com/a.xml"))
    assert run("validate_sitemaps", folder, "--schema", schemas)[0] == 0
    (folder / "b.xml.gz").write_bytes(gzip.compress(invalid().encode()))
    code, out, _ = run("validate_sitemaps", folder, "--schema", schemas)
    assert (code, out.count("INVALID"), out.count("Schema:")) == (1, 1, 1)


@pytest.mark.slow
def test_line_numbers_far_down(schemas, tmp_path):
    """A file may have more lines than 16 bits count."""
    path = tmp_path / "long.xml"
    good = "<url><loc>https://www.example.com/a</loc></url>\n" + "\n" * 9
    path.write_text(f'<urlset xmlns="{NAMESPACE}">\n{good * 7000}{LONELY}</urlset>')
    assert "line 70004: Schema:" in run("validate_sitemaps", path, "--schema", schemas)[1]


def test_one_file_is_for_all_documents(schemas, tmp_path):
    """What it does not know, it refuses."""
    (tmp_path / "a.xml").write_text(urlset("https://www.example.com/a"))
    (tmp_path / "b.xml").write_text(index("https://www.example.com/a.xml"))
    one = schemas / "sitemap.xsd"
    assert run("validate_sitemaps", tmp_path / "a.xml", "--schema", one)[0] == 0
    code, out, _ = run("validate_sitemaps", tmp_path / "b.xml", "--schema", one)
    assert code == 1
    assert "No matching global declaration" in out


def test_a_kind_without_a_schema_is_a_warning(schemas, tmp_path):
    """A folder may have one of the two."""
    (schemas / "siteindex.xsd").unlink()
    (tmp_path / "b.xml").write_text(index("https://www.example.com/a.xml"))
    code, out, _ = run("validate_sitemaps", tmp_path / "b.xml", "--schema", schemas)
    assert code == 0
    assert "warning: There is no schema for a sitemapindex" in out


def test_what_is_published_is_checked_too(products, schemas):
    """By its kind, the index as well."""
    assert run("build_sitemaps")[0] == 0
    code, out, _ = run("validate_sitemaps", "--schema", schemas)
    assert code == 1  # The index has lastmods, which this schema does not know.
    assert (out.count("INVALID"), out.count("Schema:")) == (1, 2)


@pytest.mark.parametrize(
    "document",
    [
        "<html></html>",
        "",
        '<!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + urlset("&a;"),
        urlset("https://www.example.com/")[:-9],
    ],
)
def test_what_cannot_be_read_is_reported_once(schemas, tmp_path, document):
    """No schema is asked about it."""
    (tmp_path / "a.xml").write_text(document)
    code, out, _ = run("validate_sitemaps", tmp_path / "a.xml", "--schema", schemas)
    assert code == 1
    assert "Schema:" not in out
    assert "There is no schema" not in out


@pytest.mark.slow
def test_what_lxml_refuses_is_a_finding(schemas, tmp_path):
    """Its own limits hold, such as 10 MB for a text, and the command goes on."""
    path = tmp_path / "a.xml"
    large = f"</loc><x:a>{'a' * 10_000_001}</x:a>"
    text = urlset("https://www.example.com/").replace("</loc>", large)
    path.write_text(text.replace("<urlset ", '<urlset xmlns:x="urn:x" '))
    assert run("validate_sitemaps", path)[0] == 0
    code, out, _ = run("validate_sitemaps", path, "--schema", schemas)
    assert code == 1
    assert "error: line 1: Schema: " in out


@pytest.fixture
def server():
    """Run a server that notes what it is asked for, and serves schemas."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("word", ["import", "include"])
def test_a_schema_loads_nothing_from_the_network(schemas, tmp_path, server, word):
    """One that would has to be saved first; a file next to it is loaded."""
    address, asked = server
    namespace = 'namespace="urn:b" ' if word == "import" else ""
    part = f'<xsd:{word} {namespace}schemaLocation="{address}/b.xsd"/>'
    (schemas / "sitemap.xsd").write_text(schema("urlset", "url", part))
    (tmp_path / "a.xml").write_text(urlset("https://www.example.com/a"))
    code, _, err = run("validate_sitemaps", tmp_path / "a.xml", "--schema", schemas)
    assert code == 2
    assert "/b.xsd" in err
    assert asked == []
    target = 'targetNamespace="urn:b"' if word == "import" else ""
    (schemas / "b.xsd").write_text(
        f'<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" {target}/>'
    )
    (schemas / "sitemap.xsd").write_text(schema("urlset", "url", part.replace(f"{address}/", "")))
    assert run("validate_sitemaps", tmp_path / "a.xml", "--schema", schemas)[0] == 0


@pytest.mark.parametrize("content", [None, "", "<html/>", "<a></b>"])
def test_a_path_without_a_schema_is_a_wrong_argument(tmp_path, content):
    """Nothing there, an empty folder, a file that is none."""
    path = tmp_path / "a.xsd"
    if content is not None:
        path.write_text(content)
    code, _, err = run("validate_sitemaps", tmp_path / "x.xml", "--schema", path)
    assert code == 2
    assert str(path) in err
    (tmp_path / "empty").mkdir()
    code, _, err = run("validate_sitemaps", tmp_path / "x.xml", "--schema", tmp_path / "empty")
    assert (code, "neither sitemap.xsd nor siteindex.xsd" in err) == (2, True)


def test_without_lxml_the_message_names_the_extra(schemas, monkeypatch):
    """It is an extra, and loaded only here."""
    monkeypatch.delitem(sys.modules, "django_sitemapkit.audit.schemas", raising=False)
    monkeypatch.setitem(sys.modules, "lxml", None)
    code, _, err = run("validate_sitemaps", "--schema", schemas)
    assert (code, 'pip install "django-sitemapkit[schema]"' in err) == (2, True)
    assert run("validate_sitemaps")[0] == 0
