"""The XML and text sitemaps of a crawl."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_sitemapkit.conf import settings
from django_sitemapkit.protocol.dates import format_lastmod
from django_sitemapkit.protocol.entries import IndexEntry
from django_sitemapkit.protocol.writers import UrlsetWriter
from django_sitemapkit.reading.keysets import CHUNK
from django_sitemapkit.rendering import write_index
from django_sitemapkit.words import english_of

MAIN = "sitemap.xml"
"""The sitemap, or the index if there are several."""

Row = tuple[str, str | None]
"""A URL and the text of its lastmod."""


def write_sitemaps(pages: Iterable[tuple[str, Any]], made: Path, base: str) -> list[str]:
    """Write URLs with their lastmods as XML and as text; return the names of the files.

    Each text lists the URLs of one XML file, and so keeps the limits too. The index says that the
    files are at ``base``. The names are in the order in which to publish the files: index last.
    """
    count = _write_urlsets(_formatted(pages), made)
    numbers = range(1, count + 1)
    texts = [_text_name(number) for number in numbers]
    if count == 1:
        (made / _xml_name(1)).replace(made / MAIN)
        return [*texts, MAIN]
    names = [_xml_name(number) for number in numbers]
    index = write_index([IndexEntry(location=f"{base}/{name}") for name in names])
    if index is None or index.problem:
        why = english_of(index.problem) if index else "The crawl found no page."
        raise ImproperlyConfigured(why)
    (made / MAIN).write_bytes(index.data)
    return [*names, *texts, MAIN]


def _xml_name(number: int) -> str:
    return f"sitemap-{number}.xml"


def _text_name(number: int) -> str:
    return "urls.txt" if number == 1 else f"urls-{number}.txt"


def _formatted(pages: Iterable[tuple[str, Any]]) -> Iterator[Row]:
    """Yield the rows; a lastmod in the future is not written."""
    now, zone = timezone.now(), timezone.get_default_timezone()
    for url, moment in pages:
        is_past = moment is not None and moment <= now
        yield url, format_lastmod(moment, zone) if is_past else None


def _write_urlsets(rows: Iterator[Row], made: Path) -> int:
    """Write numbered XML files, each with its text; return how many."""
    number = 0
    batch = list(islice(rows, CHUNK))
    while batch:
        number += 1
        batch = _write_urlset(batch, rows, made / _xml_name(number), made / _text_name(number))
    return number


def _write_urlset(batch: list[Row], rows: Iterator[Row], xml: Path, text: Path) -> list[Row]:
    """Write one XML file and its text; return the first rows of the next one."""
    writer = UrlsetWriter(
        max_urls=settings.MAX_URLS,
        max_bytes=settings.MAX_BYTES,
        schema_location=settings.SCHEMA_LOCATION,
    )
    with xml.open("wb") as xml_file, text.open("wb") as text_file:
        xml_file.write(writer.begin())
        while batch:
            urls, lastmods = zip(*batch, strict=True)
            data, count = writer.add(urls, lastmods)
            if not writer.urls:
                raise ImproperlyConfigured(f"SITEMAPKIT_MAX_BYTES is too small for {urls[0]}")
            xml_file.write(data)
            text_file.write("".join(f"{url}\n" for url in urls[:count]).encode())
            if count < len(batch):
                batch = batch[count:]
                break
            batch = list(islice(rows, CHUNK))
        xml_file.write(writer.end())
    return batch
