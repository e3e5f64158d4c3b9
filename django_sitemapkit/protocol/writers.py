"""Writers of sitemap documents: columns of ready text in, bytes of XML out, limits kept.

A writer takes its entries by column, many at a time: one ``join`` and one ``encode`` a chunk
cost about a tenth of a microsecond a row, an object a row costs more than all the rest.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from xml.sax.saxutils import escape

from django_sitemapkit.protocol.entries import Entry
from django_sitemapkit.protocol.limits import MAX_BYTES, MAX_URLS, NAMESPACE

Column = Sequence[str | None] | str | None
"""The texts of one tag: one for each entry, or the same for all, or None for no tag at all."""

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_QUOTES = {"'": "&apos;", '"': "&quot;"}


class Writer:
    """Writes one document: ``begin()``, any number of ``add()``, ``end()``.

    Use its children ``UrlsetWriter`` and ``IndexWriter``. ``max_urls`` and ``max_bytes`` can
    lower the protocol's limits and never raise them.
    """

    root: str
    item: str

    def __init__(self, *, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES) -> None:
        self.max_urls = min(max_urls, MAX_URLS)
        self.max_bytes = min(max_bytes, MAX_BYTES)
        self.urls = 0
        """Entries written so far."""
        self._tail = f"</{self.root}>\n".encode()
        self.bytes = len(self._tail)
        """Bytes of the document if it ended now, uncompressed, closing tag included."""

    def begin(self) -> bytes:
        """Return the declaration and the opening tag."""
        return self._counted(f'{_DECLARATION}<{self.root} xmlns="{NAMESPACE}">\n'.encode())

    def end(self) -> bytes:
        """Return the closing tag; its bytes are counted from the start."""
        return self._tail

    def _add(self, locations: Sequence[str], *tags: tuple[str, Column]) -> tuple[bytes, int]:
        """Write what fits of the entries; return the bytes, and how many entries they hold."""
        count = min(len(locations), self.max_urls - self.urls)
        parts: list[Iterable[str]] = [repeat(f"<{self.item}><loc>"), escaped(locations[:count])]
        text = "</loc>"
        for tag, column in tags:
            if column is None or isinstance(column, str):
                text += f"<{tag}>{column}</{tag}>" if column else ""
            elif None in column:
                parts += [
                    repeat(text),
                    [f"<{tag}>{value}</{tag}>" if value is not None else "" for value in column],
                ]
                text = ""
            else:
                parts += [repeat(f"{text}<{tag}>"), column]  # type: ignore[list-item]
                text = f"</{tag}>"
        parts.append(repeat(f"{text}</{self.item}>\n"))
        rows = zip(*parts, strict=False)
        data = "".join(chain.from_iterable(rows)).encode()
        if self.bytes + len(data) > self.max_bytes:
            data, count = self._fitting(zip(*parts, strict=False))
        self.urls += count
        return self._counted(data), count

    def _fitting(self, rows: Iterable[tuple[str, ...]]) -> tuple[bytes, int]:
        """Return the bytes of as many rows as the byte limit leaves room for."""
        room = self.max_bytes - self.bytes
        fitting: list[bytes] = []
        for row in rows:
            data = "".join(row).encode()
            if len(data) > room:
                break
            room -= len(data)
            fitting.append(data)
        return b"".join(fitting), len(fitting)

    def _counted(self, data: bytes) -> bytes:
        self.bytes += len(data)
        return data


class UrlsetWriter(Writer):
    """Writes a ``urlset``: at most 50,000 URLs and 52,428,800 bytes."""

    root = "urlset"
    item = "url"

    def add(
        self,
        locations: Sequence[str],
        lastmod: Column = None,
        changefreq: Column = None,
        priority: Column = None,
    ) -> tuple[bytes, int]:
        """Write as many of the entries as fit; return their bytes and their number.

        ``locations`` come from ``Scope.normalise``, the other columns from ``format_lastmod``,
        ``format_changefreq`` and ``format_priority``. A number smaller than ``len(locations)``
        means that the document is full: the first entry that did not fit belongs to the next one.
        """
        return self._add(
            locations, ("lastmod", lastmod), ("changefreq", changefreq), ("priority", priority)
        )


class IndexWriter(Writer):
    """Writes a ``sitemapindex``: at most 50,000 sitemaps and 52,428,800 bytes."""

    root = "sitemapindex"
    item = "sitemap"

    def add(self, locations: Sequence[str], lastmod: Column = None) -> tuple[bytes, int]:
        """Write as many of the sitemaps as fit; return their bytes and their number."""
        return self._add(locations, ("lastmod", lastmod))


def escaped(locations: Sequence[str]) -> Sequence[str]:
    """Return the column with ``& ' " < >`` as entities, once each.

    One search through the joined column spares the work where there is none to do.
    """
    joined = "".join(locations)
    if not any(character in joined for character in "&'\"<>"):
        return locations
    return [escape(location, _QUOTES) for location in locations]


def url_element(entry: Entry) -> str:
    """Return one ``<url>`` as XML, for a document that someone else writes around it."""
    tags = (
        ("lastmod", entry.lastmod),
        ("changefreq", entry.changefreq),
        ("priority", entry.priority),
    )
    values = "".join(f"<{tag}>{text}</{tag}>" for tag, text in tags if text is not None)
    return f"<url><loc>{escaped([entry.location])[0]}</loc>{values}</url>"
