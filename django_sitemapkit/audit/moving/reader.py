"""Reads what a sitemap says of each URL, with its extensions, in constant memory.

Unlike ``audit.reader`` it judges nothing, and takes whatever its root's namespace is: two sitemaps
may be equally wrong. Values are brought into one form, so that equal ones are equal texts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from xml.parsers import expat

from django_sitemapkit.audit.reader.entries import WHITE_SPACE
from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.audit.reader.streams import Opening, xml_blocks
from django_sitemapkit.exceptions import InvalidSitemap, InvalidValue
from django_sitemapkit.protocol.extensions import IMAGE, NEWS, VIDEO, XHTML
from django_sitemapkit.protocol.locations import normalise_url

MAX_DOCUMENT_BYTES = 200_000_000
"""Bytes of a document, uncompressed. What is to be replaced may be larger than the protocol says,
as one document of several full sections is."""

EntryValues = dict[str, str | list[str]]
"""The values of one URL by tag; of extensions a sorted list of texts."""

_EXTENSIONS = {XHTML: "alternates", IMAGE: "images", VIDEO: "videos", NEWS: "news"}
_OTHER = "elements"

TAGS = ("lastmod", "changefreq", "priority", *_EXTENSIONS.values(), _OTHER)
"""What is read of a URL, by the names of the options of a section."""

_ENTRY_TAGS = {"urlset": "url", "sitemapindex": "sitemap"}
_ENTRY_DEPTH = 2


class EntryReader:
    """Reads one sitemap or index, plain or gzip.

    Example::

        reader = EntryReader()
        with open("sitemap.xml", "rb") as file:
            for url, values in reader.read(file):
                print(url, values.get("lastmod"))
        print(reader.sitemaps)
    """

    def __init__(self) -> None:
        self.sitemaps: list[str] = []
        """The sitemaps that it lists, where it is an index."""
        self._entries: list[tuple[str, EntryValues]] = []
        self._prefix = self._entry_tag = ""
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        """Of each open tag: its name without the root's namespace, its attributes and its text."""
        self._values: dict[str, str] = {}
        self._extensions: defaultdict[str, list[str]] = defaultdict(list)
        self._parts: list[str] = []
        self._parser = parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        # Entities are declared only within a DOCTYPE, so this refuses them too.
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end
        parser.CharacterDataHandler = self._on_text

    def read(self, chunks: Iterable[bytes]) -> Iterator[tuple[str, EntryValues]]:
        """Yield each URL of the document in ``chunks``, as written, with its values.

        Nothing is yielded of an index: ``sitemaps`` then has what it lists. Raises InvalidSitemap
        where the document is not XML, neither a sitemap nor an index, or larger than 200 MB.
        """
        log = FindingLog()
        opening = Opening(log)
        size = 0
        try:
            for block in xml_blocks(chunks, MAX_DOCUMENT_BYTES, log):
                size += len(block)
                if size > MAX_DOCUMENT_BYTES:
                    message = f"File too large: more than {MAX_DOCUMENT_BYTES:,} bytes."
                    raise InvalidSitemap("file-too-large", message)
                self._parser.Parse(block if opening.over else opening.cut(block))
                yield from self._entries
                self._entries.clear()
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            line = opening.lines + error.lineno
            message = f"Parsing error: {expat.ErrorString(error.code)}, line {line}."
            raise InvalidSitemap("parsing-error", message) from error

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open:
            self._on_root(name)
        self._open.append((name.removeprefix(self._prefix), attributes, []))

    def _on_root(self, name: str) -> None:
        namespace, _, tag = name.rpartition(" ")
        if tag not in _ENTRY_TAGS:
            message = f"Parsing error: <{tag[:80]}> is neither <urlset> nor <sitemapindex>."
            raise InvalidSitemap("unknown-root", message)
        self._prefix = f"{namespace} " if namespace else ""
        self._entry_tag = _ENTRY_TAGS[tag]

    def _on_text(self, text: str) -> None:
        self._open[-1][2].append(text)

    def _on_end(self, _name: str) -> None:
        depth = len(self._open)
        name, attributes, parts = self._open.pop()
        text = "".join(parts).strip(WHITE_SPACE)
        if depth > _ENTRY_DEPTH:
            self._end_tag(depth, name, attributes, text)
        elif depth == _ENTRY_DEPTH:
            self._end_entry(name)

    def _end_tag(self, depth: int, name: str, attributes: dict[str, str], text: str) -> None:
        """Take a tag within an entry: a value, or an extension or a part of one."""
        namespace, _, tag = name.rpartition(" ")
        is_part = depth > _ENTRY_DEPTH + 1
        if is_part or namespace:
            self._parts += _parts_of(tag, attributes, text)
        if is_part:
            return
        parts, self._parts = self._parts, []
        if namespace:
            kind = _EXTENSIONS.get(namespace, _OTHER)
            self._extensions[kind].append(", ".join(sorted(parts)) or tag)
        else:
            self._values.setdefault(tag, text)  # The first of several is used.

    def _end_entry(self, name: str) -> None:
        values, self._values = self._values, {}
        extensions, self._extensions = self._extensions, defaultdict(list)
        url = values.get("loc")
        if not url or name != self._entry_tag:
            return
        if self._entry_tag == "sitemap":
            self.sitemaps.append(url)
            return
        found: EntryValues = {
            tag: normal(values[tag]) for tag, normal in _NORMAL_FORMS.items() if values.get(tag)
        }
        for kind, texts in extensions.items():
            found[kind] = sorted(texts)
        self._entries.append((url, found))


def _refuse_doctype(*_: object) -> None:
    raise InvalidSitemap("doctype", "DOCTYPE not allowed: a sitemap has none.")


def _parts_of(tag: str, attributes: dict[str, str], text: str) -> list[str]:
    """Return what an element of an extension says, as texts: a link, or its text and attributes."""
    if "href" in attributes:
        label = attributes.get("hreflang") or attributes.get("media", "")
        return [f"{label.lower()} {_normal_url(attributes['href'])}".lstrip()]
    parts = [f"{tag} {name}={value}" for name, value in attributes.items()]
    if text:
        parts.append(_normal_url(text) if tag == "loc" else f"{tag}={_normal_url(text)}")
    return parts


def _normal_url(text: str) -> str:
    """Return a text in normal form where it is an absolute URL, else as it is."""
    if text.startswith(("http://", "https://")):
        with suppress(InvalidValue):
            return normalise_url(text, "")
    return text


def _number(text: str) -> str:
    """Return a number in one form, so that ``0.5`` equals ``0.50``; another text as it is."""
    with suppress(ValueError):
        return str(float(text))
    return text


_NORMAL_FORMS: dict[str, Callable[[str], str]] = {
    "lastmod": str,
    "changefreq": str.lower,
    "priority": _number,
}
"""How two spellings of the value of a tag are made equal."""
