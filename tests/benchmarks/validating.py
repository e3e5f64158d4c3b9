"""What validating takes: three kinds of sitemaps as our writer writes them, and the floor.

The floor is inflating the same files and parsing them with expat, with handlers that do nothing.
"""

import os
import time
import zlib
from pathlib import Path
from xml.parsers import expat

from tests.benchmarks.measuring import measured

ADDRESS = "https://www.example.com/sitemap.xml"
ORIGIN = "https://www.example.com"
LANGUAGES = ("en", "de", "fr", "es", "x-default")
PAGE = 50_000
BLOCK_BYTES = 65_536


def prepare_plain():
    """Write files of URLs with lastmod."""
    _prepare(lambda number, url: "")


def prepare_hreflang():
    """Write files of URLs with lastmod and links to five languages."""
    from django_sitemapkit.protocol.extensions import alternate_elements

    _prepare(
        lambda number, url: alternate_elements(
            [(code, _url(number - number % 5 + place)) for place, code in enumerate(LANGUAGES)]
        )
    )


def prepare_images():
    """Write files of URLs with lastmod and an image."""
    from django_sitemapkit.protocol.extensions import image_element
    from django_sitemapkit.protocol.extensions.values import Image
    from django_sitemapkit.protocol.locations import Scope

    scope = Scope(ORIGIN)
    _prepare(lambda number, url: image_element(Image(location=f"/media/{number}.jpg"), scope))


def validate():
    """Validate the files."""
    from django_sitemapkit.audit.reader import validate as validate_document

    def work():
        for path in _files():
            with path.open("rb") as file:
                report = validate_document(_blocks(file), ADDRESS)
            if not report.valid or report.findings:
                raise RuntimeError(f"{path.name} is not valid: {report.findings[:1]}")
            yield report.urls, report.bytes

    return _measured(work)


def parse():
    """Inflate the files, and parse them."""

    def work():
        for path in _files():
            parser = expat.ParserCreate("utf-8", " ")
            parser.buffer_text = True
            starts = []
            parser.StartElementHandler = lambda name, _, add=starts.append: add(name)
            parser.EndElementHandler = lambda name: None
            parser.CharacterDataHandler = lambda text: None
            size = 0
            for block in _inflated(path):
                size += len(block)
                parser.Parse(block)
            parser.Parse(b"", True)
            yield sum(name.endswith(" url") for name in starts), size

    figures = _measured(work)
    began = time.process_time()
    for path in _files():
        for _ in _inflated(path):
            pass
    return figures | {"inflating": time.process_time() - began}


def _measured(work):
    began = time.process_time()
    figures, done = measured(lambda: list(work()))
    cpu = time.process_time() - began
    megabytes = sum(size for _, size in done) / 1_000_000
    return figures | {
        "urls": sum(urls for urls, _ in done),
        "cpu": cpu,
        "xml": megabytes,
        "rate": megabytes / cpu,
    }


def _prepare(extensions):
    from django_sitemapkit.protocol.limits import NAMESPACES
    from django_sitemapkit.protocol.writers import UrlsetWriter

    urls = int(os.environ["BENCHMARKS_ROWS"])
    for first in range(0, urls, PAGE):
        numbers = range(first, min(first + PAGE, urls))
        locations = [_url(number) for number in numbers]
        writer = UrlsetWriter(namespaces=NAMESPACES)
        begin = writer.begin()
        entries, _ = writer.add(
            locations,
            [
                f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}T10:20:30+00:00"
                for number in numbers
            ],
            extensions=list(map(extensions, numbers, locations)),
        )
        packer = zlib.compressobj(6, wbits=31)
        data = packer.compress(begin + entries + writer.end()) + packer.flush()
        _folder().joinpath(f"{first}.xml.gz").write_bytes(data)


def _url(number):
    language = LANGUAGES[number % 5]
    slug = "gr%C3%B6%C3%9Fe-f%C3%BCr-alle" if number % 100 < 5 else "something-to-buy"
    return f"{ORIGIN}/{language}/c{number % 100:02}/{slug}-{number // 5}/"


def _files():
    return sorted(_folder().glob("*.xml.gz"))


def _folder():
    return Path(os.environ["BENCHMARKS_FOLDER"])


def _blocks(file):
    return iter(lambda: file.read(BLOCK_BYTES), b"")


def _inflated(path):
    unpacker = zlib.decompressobj(31)
    with path.open("rb") as file:
        for block in _blocks(file):
            data = block
            while data:
                yield unpacker.decompress(data, BLOCK_BYTES)
                data = unpacker.unconsumed_tail
