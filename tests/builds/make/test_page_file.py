"""Files on local disk: what does not read back as it was written is no file."""

import gzip
import hashlib
import io
import zlib

import pytest

from django_sitemapkit.builds import manifest as stored_files
from django_sitemapkit.builds.make import page_file as files
from django_sitemapkit.builds.make.page_file import compression_thread, make_page
from django_sitemapkit.builds.manifest import decompressed, difference_from_facts
from django_sitemapkit.exceptions import BuildFailed, LeaseLost
from django_sitemapkit.heartbeats import calling_on_heartbeat
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.rendering import PageRendering
from tests.builds import SITE, Products, Readings, fill

XML = b"<urlset>" + b"<url><loc>https://www.example.com/</loc></url>" * 5000 + b"</urlset>"
SHA = hashlib.sha256(XML).hexdigest()
GZ = gzip.compress(XML, mtime=0)


def differs(data, sha256=SHA, urls=5000):
    """Return how a gzip file differs from what it should be."""
    return difference_from_facts(io.BytesIO(data), sha256, urls)


def test_a_whole_file_does_not_differ():
    """However large its blocks."""
    assert differs(GZ) == ""


DAMAGES = {
    "nothing": (b"", "truncated"),
    "half of it": (GZ[: len(GZ) // 2], "truncated"),
    "all but the last byte": (GZ[:-1], "truncated"),
    "another byte": (GZ[:200] + bytes([GZ[200] ^ 255]) + GZ[201:], "gzip data is damaged"),
    "another checksum": (GZ[:-8] + bytes(8), "gzip data is damaged"),
    "something behind it": (GZ + b"x", "there is data after"),
    "a second member": (GZ + GZ, "there is data after"),
    "no gzip": (XML, "gzip data is damaged"),
    "other XML": (gzip.compress(XML.replace(b".com", b".org")), "SHA-256"),
    "an entry less": (gzip.compress(XML.replace(b"<url>", b"<x>", 1)), "not well-formed"),
    "entries gone": (gzip.compress(b"<urlset></urlset>"), "0 entries, not 5,000"),
    "XML that ends early": (gzip.compress(XML[:-9]), "not well-formed"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_told(damage):
    """In words that say what it is."""
    data, words = DAMAGES[damage]
    assert words in differs(data)


def test_entries_are_counted_across_blocks(monkeypatch):
    """An end tag that is cut in two counts once."""
    document = b"<urlset>" + b"<url></url>" * 4 + b"</urlset>"
    for size in range(1, 12):
        blocks = [document[at : at + size] for at in range(0, len(document), size)]
        monkeypatch.setattr(stored_files, "decompressed", lambda file, blocks=blocks: blocks)
        assert differs(b"", hashlib.sha256(document).hexdigest(), 4) == ""


def test_a_small_file_that_is_large_unpacked_comes_in_blocks():
    """Memory does not grow with it."""
    data = gzip.compress(bytes(3_000_000))
    blocks = [len(block) for block in decompressed(io.BytesIO(data))]
    assert sum(blocks) == 3_000_000
    assert max(blocks) <= 262_144


def test_a_damaged_stream_raises():
    """The server must not end it as if it were complete."""
    with pytest.raises(EOFError):
        list(decompressed(io.BytesIO(GZ[:-1])))
    with pytest.raises(zlib.error):
        list(decompressed(io.BytesIO(GZ + b"x")))


def page(tmp_path, section=Readings, keys=EVERYTHING, heartbeat=lambda: None):
    """Make a page."""
    with compression_thread() as press:
        path = tmp_path / "page.xml.gz"
        rendering = PageRendering(reader_of(section(SITE)), keys, SITE.scope())
        with calling_on_heartbeat(heartbeat):
            made = make_page(rendering, path, press)
        made.finish()
        return made


@pytest.mark.django_db
def test_a_page_is_what_is_rendered(tmp_path):
    """All that is reported of it is true of the file."""
    fill()
    made = page(tmp_path, Products, KeyRange(None, None))
    assert made.rendering.split_at is not None  # Five rows where two are allowed.
    fill_two = type("Two", (Products,), {"limit": 50})
    made = page(tmp_path, fill_two)
    xml = gzip.decompress(made.path.read_bytes())
    assert xml == b"".join(PageRendering(reader_of(fill_two(SITE)), EVERYTHING, SITE.scope()))
    assert (made.sha256, made.rendering.urls) == (hashlib.sha256(xml).hexdigest(), 5)
    assert (made.rendering.writer.bytes, made.size) == (len(xml), made.path.stat().st_size)
    assert made.rendering.split_at is None


@pytest.mark.django_db
def test_an_empty_page_has_no_urls(tmp_path):
    """And nothing was written."""
    made = page(tmp_path)
    assert made.rendering.urls == 0
    assert gzip.decompress(made.path.read_bytes()) == b""


@pytest.mark.django_db
def test_a_disk_that_writes_other_bytes_fails_the_page(tmp_path, monkeypatch):
    """Before anyone may have it."""
    fill()

    class Corrupting:
        def compress(self, data):
            return b""

        def flush(self):
            return GZ[:-9] + bytes([GZ[-9] ^ 1]) + GZ[-8:]

    monkeypatch.setattr(files, "gzip_compressor", Corrupting)
    with pytest.raises(BuildFailed, match="was just written is damaged: its gzip data is damaged"):
        page(tmp_path, keys=KeyRange(None, 20))


@pytest.mark.django_db
def test_each_block_is_a_sign_of_life(tmp_path):
    """And a lost lease ends the page at once."""
    fill()
    beats = []
    page(tmp_path, keys=KeyRange(None, 20), heartbeat=lambda: beats.append(1))
    assert beats

    def lost():
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        page(tmp_path, keys=KeyRange(None, 20), heartbeat=lost)
