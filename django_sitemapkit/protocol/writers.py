"""Writers of sitemap documents, from columns of formatted text to bytes of XML.

A writer takes entries by column, many at a time: one ``join`` and one ``encode`` a chunk cost about
a tenth of a microsecond a row; creating an object per row would cost more than all the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from xml.sax.saxutils import escape, unescape

from django_sitemapkit.protocol.entries import UrlEntry
from django_sitemapkit.protocol.limits import MAX_BYTES, MAX_URLS, NAMESPACE

TagColumn = Sequence[str | None] | str | None
"""The texts of one tag: one for each entry, one for all, or None for no tag."""

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_QUOTES = {"'": "&apos;", '"': "&quot;"}
_QUOTE_ENTITIES = {entity: quote for quote, entity in _QUOTES.items()}

SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"


class Writer:
    """Writes one document: ``begin()``, any number of ``add()``, ``end()``.

    Use the subclasses ``UrlsetWriter`` and ``IndexWriter``. ``max_urls`` and ``max_bytes`` can
    lower the protocol's limits but not raise them. ``namespaces`` are those of the extensions in
    it, by prefix; with ``schema_location`` the document names its schema.
    """

    root: str
    item: str
    schema: str

    def __init__(
        self,
        *,
        max_urls: int = MAX_URLS,
        max_bytes: int = MAX_BYTES,
        namespaces: Mapping[str, str] | None = None,
        schema_location: bool = False,
    ) -> None:
        self.max_urls = min(max_urls, MAX_URLS)
        self.max_bytes = min(max_bytes, MAX_BYTES)
        attributes = [f'xmlns="{NAMESPACE}"']
        attributes += [
            f'xmlns:{prefix}="{escape(name, _QUOTES)}"'
            for prefix, name in (namespaces or {}).items()
        ]
        if schema_location:
            attributes += [
                f'xmlns:xsi="{SCHEMA_INSTANCE}"',
                f'xsi:schemaLocation="{NAMESPACE} {NAMESPACE}/{self.schema}"',
            ]
        self._head = f"{_DECLARATION}<{self.root} {' '.join(attributes)}>\n".encode()
        self.urls = 0
        """Entries written so far."""
        self._tail = f"</{self.root}>\n".encode()
        self.bytes = len(self._tail)
        """Bytes of the document if it ended here, uncompressed, with the closing tag."""

    def begin(self) -> bytes:
        """Return the declaration and the opening tag."""
        self.bytes += len(self._head)
        return self._head

    def end(self) -> bytes:
        """Return the closing tag; ``bytes`` has counted it from the start."""
        return self._tail

    def add(
        self,
        locations: Sequence[str],
        lastmod: TagColumn = None,
        changefreq: TagColumn = None,
        priority: TagColumn = None,
        extensions: TagColumn = None,
        together: Sequence[int] | None = None,
    ) -> tuple[bytes, int]:
        """Write as many of the entries as fit; return their bytes and their number.

        ``locations`` come from ``Scope.normalise``, the tags from ``format_lastmod``,
        ``format_changefreq`` and ``format_priority``; a sitemap of an index has no tag but lastmod.
        ``extensions`` are elements of the other ``namespaces``, as XML that follows the tags.
        Neighbours with the same number in ``together`` are written together or not at all. A number
        smaller than ``len(locations)`` means that the document is full: the first entry that did
        not fit belongs to the next one.
        """
        count = _count_without_cutting(min(len(locations), self.max_urls - self.urls), together)
        parts: list[Iterable[str]] = [repeat(f"<{self.item}><loc>"), escaped(locations[:count])]
        text = "</loc>"
        tags = (("lastmod", lastmod), ("changefreq", changefreq), ("priority", priority))
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
        if extensions is None or isinstance(extensions, str):
            text += extensions or ""
        else:
            parts += [repeat(text), [xml or "" for xml in extensions]]
            text = ""
        parts.append(repeat(f"{text}</{self.item}>\n"))
        data = "".join(chain.from_iterable(zip(*parts, strict=False))).encode()
        if self.bytes + len(data) > self.max_bytes:
            data, count = self._fitting_rows(zip(*parts, strict=False), together)
        self.count(count, len(data))
        return data, count

    def has_room(self, urls: int, size: int) -> bool:
        """Return whether ``urls`` more entries, of ``size`` bytes together, still fit."""
        return self.urls + urls <= self.max_urls and self.bytes + size <= self.max_bytes

    def count(self, urls: int, size: int) -> None:
        """Count ``urls`` entries, of ``size`` bytes together, that are written by other means."""
        self.urls += urls
        self.bytes += size

    def _fitting_rows(
        self, rows: Iterable[tuple[str, ...]], together: Sequence[int] | None
    ) -> tuple[bytes, int]:
        """Return the bytes of the first rows that fit the byte limit, and the number of these rows.

        ``together`` is that of `add`.
        """
        room = self.max_bytes - self.bytes
        fitting: list[bytes] = []
        for row in rows:
            data = "".join(row).encode()
            if len(data) > room:
                break
            room -= len(data)
            fitting.append(data)
        count = _count_without_cutting(len(fitting), together)
        return b"".join(fitting[:count]), count


class UrlsetWriter(Writer):
    """Writes a ``urlset``: at most 50,000 URLs and 52,428,800 bytes."""

    root = "urlset"
    item = "url"
    schema = "sitemap.xsd"


class IndexWriter(Writer):
    """Writes a ``sitemapindex``: at most 50,000 sitemaps and 52,428,800 bytes."""

    root = "sitemapindex"
    item = "sitemap"
    schema = "siteindex.xsd"


def _count_without_cutting(count: int, together: Sequence[int] | None) -> int:
    """Return how many of the first ``count`` entries to write so that no group is cut.

    Neighbours with the same number in ``together`` are a group. If the first group has more than
    ``count`` entries, the result is 0.
    """
    if together is not None:
        while 0 < count < len(together) and together[count - 1] == together[count]:
            count -= 1
    return count


def escaped(locations: Sequence[str]) -> Sequence[str]:
    """Return the locations with ``& ' " < >`` as XML entities.

    One search through all of them avoids the work if nothing needs escaping.
    """
    joined = "".join(locations)
    if not any(character in joined for character in "&'\"<>"):
        return locations
    return [escape(location, _QUOTES) for location in locations]


def unescaped(text: str) -> str:
    """Return a text with its XML entities decoded: the reverse of `escaped`."""
    return unescape(text, _QUOTE_ENTITIES) if "&" in text else text


def url_element(entry: UrlEntry) -> str:
    """Return one ``<url>`` as XML, for a document written elsewhere, such as by a template."""
    values = "".join(f"<{tag}>{text}</{tag}>" for tag, text in entry.tags.items())
    location = escaped([entry.location])[0]
    return f"<url><loc>{location}</loc>{values}{entry.extensions or ''}</url>"
