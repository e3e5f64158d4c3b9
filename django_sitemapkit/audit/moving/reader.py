"""Reads what a sitemap says of each URL, with its extensions, in constant memory.

The document is read by the validator's reader; what that finds wrong does not count here, because
two sitemaps may be equally wrong. Values are brought into one form, so that equal ones are equal
texts.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.audit.reader.extensions import OPTION_OF_NAMESPACE, OTHER_OPTION
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry

MAX_DOCUMENT_BYTES = 200_000_000
"""Bytes of a document, uncompressed. What is to be replaced may be larger than the protocol says,
as one document of several full sections is."""

EntryValues = dict[str, str | list[str]]
"""The values of one URL by tag; of extensions a sorted list of texts."""

VALUE_NAMES = ("lastmod", "changefreq", "priority", *OPTION_OF_NAMESPACE.values(), OTHER_OPTION)
"""What is read of a URL, by the names of the options of a section."""


def read_entries(
    chunks: Iterable[bytes], sitemaps: list[str], *, nested: bool = False
) -> Iterator[tuple[str, EntryValues]]:
    """Yield each URL of the document in ``chunks``, as written, with its values.

    Nothing is yielded of an index: what it lists is added to ``sitemaps``. Raises InvalidSitemap if
    the document cannot be read to its end, is larger than 200 MB, or is an index although it is
    ``nested`` in one.

    Example::

        sitemaps = []
        with open("sitemap.xml", "rb") as file:
            for url, values in read_entries(file, sitemaps):
                print(url, values.get("lastmod"))
    """
    reader = SitemapReader(max_bytes=MAX_DOCUMENT_BYTES, nested=nested, extensions_as_text=True)
    for entry in reader.read(chunks):
        if isinstance(entry, IndexEntry):
            sitemaps.append(entry.location)
        elif entry.location:
            yield entry.location, _values_of(entry)


def _values_of(entry: UrlEntry) -> EntryValues:
    """Return the values and extensions of an entry by tag; empty ones are left out."""
    found: EntryValues = {
        tag: normal(text) for tag, normal in _NORMAL_FORMS.items() if (text := getattr(entry, tag))
    }
    texts: dict[str, list[str]] = {}
    for line in entry.extensions.split("\n") if entry.extensions else ():
        kind, _, text = line.partition(" ")
        texts.setdefault(kind, []).append(text)
    return found | texts


def _normal_number(text: str) -> str:
    """Return a number in one form, so that ``0.5`` equals ``0.50``; another text as it is."""
    with suppress(ValueError):
        return str(float(text))
    return text


_NORMAL_FORMS: dict[str, Callable[[str], str]] = {
    "lastmod": str,
    "changefreq": str.lower,
    "priority": _normal_number,
}
"""How two spellings of the value of a tag are made equal."""
