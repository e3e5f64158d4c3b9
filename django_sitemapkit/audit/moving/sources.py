"""Reads another sitemap of a site, with extensions: at a URL, in files, or at a URL name.

An index is followed, and nothing is passed over in silence: what cannot be read ends the
comparison, because a sitemap that was read in part proves nothing. A document is read by the
validator's reader, in constant memory; what that finds wrong does not count here, because two
sitemaps may be equally wrong. Values are brought into one form, so that equal ones are equal texts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.urls import NoReverseMatch, Resolver404, resolve, reverse

from django_sitemapkit import views
from django_sitemapkit.audit.fetching import MAX_SECONDS, Redirected, open_document
from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.audit.reader.extensions import OPTION_OF_NAMESPACE, OTHER_OPTION
from django_sitemapkit.audit.validation import file_blocks, sitemap_paths
from django_sitemapkit.audit.web.in_process import InProcessFetcher
from django_sitemapkit.deadlines import Deadline
from django_sitemapkit.exceptions import InvalidSitemap, InvalidValue
from django_sitemapkit.protocol.entries import IndexEntry, UrlEntry
from django_sitemapkit.protocol.locations import split_origin
from django_sitemapkit.rendering import external_entries
from django_sitemapkit.sites import SitemapSite

MAX_DOCUMENT_BYTES = 200_000_000
"""Bytes of a document, uncompressed. What is to be replaced may be larger than the protocol says,
as one document of several full sections is."""

EntryValues = dict[str, str | list[str]]
"""The values of one URL by tag; of extensions a sorted list of texts."""

VALUE_NAMES = ("lastmod", "changefreq", "priority", *OPTION_OF_NAMESPACE.values(), OTHER_OPTION)
"""What is read of a URL, by the names of the options of a section."""

Content = Callable[[str], AbstractContextManager[Iterator[bytes]]]
"""Opens a document and gives its bytes, in blocks."""


class SitemapSource:
    """Another sitemap: its documents, of which an index leads to the others.

    ``starts`` are the documents to begin with, and ``content`` opens each.

    Example::

        for url, values in sitemap_source("https://old.example.com/sitemap.xml", site).entries():
            print(url, values)
    """

    def __init__(self, site: SitemapSite, starts: Sequence[str], content: Content) -> None:
        self.site = site
        self.starts = starts
        self.content = content

    def address_of(self, sitemap: str) -> str | None:
        """Return the URL at which to open a sitemap that an index lists; None to skip it.

        It is at the host of the first document, whatever host the index names: a copy of a site
        names the host of production, and contrib behind TLS the scheme http. Other hosts are not
        opened, as they may be private. Raises InvalidSitemap if this source does not have the
        sitemap.
        """
        try:
            return split_origin(self.starts[0])[0] + split_origin(sitemap)[1]
        except InvalidValue as error:
            raise InvalidSitemap(error.code, f"The index lists {sitemap!r}. {error}") from error

    def entries(self) -> Iterator[tuple[str, EntryValues]]:
        """Yield the URL and values of each entry, without those of the site's external sections.

        Raises InvalidSitemap, which names the document, if one cannot be read to its end.
        """
        external = {entry.location for entry in external_entries(self.site)}
        for document in self.starts:
            sitemaps: list[str] = []
            yield from self._read_document(document, sitemaps)
            for sitemap in sitemaps:
                if sitemap in external or (listed := self.address_of(sitemap)) is None:
                    continue
                try:
                    yield from self._read_document(listed, [], nested=True)
                except InvalidSitemap as error:
                    named = "" if listed == sitemap else f" (The index names {sitemap}.)"
                    raise InvalidSitemap(error.code, f"{error}{named}") from error

    def _read_document(
        self, document: str, sitemaps: list[str], *, nested: bool = False
    ) -> Iterator[tuple[str, EntryValues]]:
        """Yield the URL and values of each entry of a document.

        What an index lists is added to ``sitemaps``. Whatever goes wrong is raised as
        InvalidSitemap.
        """
        try:
            with self.content(document) as blocks:
                yield from read_entries(blocks, sitemaps, nested=nested)
        except Redirected as redirect:
            raise InvalidSitemap(
                "redirect", f"{document} redirects to {redirect}: give that address."
            ) from redirect
        except InvalidSitemap as error:
            raise InvalidSitemap(error.code, f"{document}: {error}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise InvalidSitemap("http-error", f"{document} cannot be read: {error}") from error


class FileSource(SitemapSource):
    """A sitemap in a file, or all sitemaps in a folder, with all that an index in it lists.

    Example::

        FileSource(site, Path("static/sitemaps"))
    """

    def __init__(self, site: SitemapSite, path: Path) -> None:
        super().__init__(site, [str(each) for each in sitemap_paths(path)], _open_file)

    def address_of(self, sitemap: str) -> str | None:
        """Return None, as all files are read; raise InvalidSitemap if the sitemap is not here."""
        name = unquote(urlsplit(sitemap).path.rpartition("/")[2])
        if name not in {Path(start).name for start in self.starts}:
            raise InvalidSitemap(
                "incomplete-answer",
                f"{sitemap} is listed by an index, but {name} was not given."
                " Give the folder that has all.",
            )
        return None


class UrlNameSource(SitemapSource):
    """The view that a URL name of the project leads to, requested within this process.

    Example::

        UrlNameSource(site, "django.contrib.sitemaps.views.index")
    """

    def __init__(self, site: SitemapSite, name: str) -> None:
        with site.active():
            start = site.origin + reverse(name, site.urlconf)
        super().__init__(site, [start], self._request_document)
        self._fetcher = InProcessFetcher([site], max_bytes=MAX_DOCUMENT_BYTES)

    @contextmanager
    def _request_document(self, document: str) -> Iterator[Iterator[bytes]]:
        """Request a document within this process; give its bytes, as a context manager.

        Raises Redirected, or InvalidSitemap if it has no answer or the package's own view answers.
        """
        self._reject_own_view(document)
        answer = self._fetcher.fetch(document, follow_redirects=False)
        if answer.hops:
            raise Redirected(answer.final_url)
        if answer.failure or answer.status != 200:
            reason = answer.failure or f"the answer has status {answer.status}"
            raise InvalidSitemap("http-error", f"HTTP error: {reason}")
        yield iter([answer.body])

    def _reject_own_view(self, address: str) -> None:
        """Raise InvalidSitemap if a view of this package answers: it is the new sitemap."""
        path = unquote(urlsplit(address).path.removeprefix(self.site.path))
        try:
            with self.site.active():
                match = resolve(path, self.site.urlconf)
        except Resolver404:
            return  # The answer is 404.
        if match.func.__module__ == views.__name__:
            raise InvalidSitemap(
                "wrong-source",
                f"the new sitemap answers at {path}: give the old one a path of its own.",
            )


@contextmanager
def _open_file(document: str) -> Iterator[Iterator[bytes]]:
    """Open a file; give its bytes in blocks, as a context manager."""
    with Path(document).open("rb") as file:
        yield file_blocks(file)


def sitemap_source(source: str, site: SitemapSite) -> SitemapSource:
    """Return the source for a URL, the name of a URL pattern without arguments, or a path.

    Raises ValueError if it is none of these, or a folder without a sitemap.
    """
    if source.startswith(("http://", "https://")):
        # A redirect is an error.
        return SitemapSource(site, [source], partial(open_document, deadline=Deadline(MAX_SECONDS)))
    # A name before a path: a folder "sitemaps" may hold the files of the new sitemap.
    with suppress(NoReverseMatch):
        return UrlNameSource(site, source)
    try:
        path = Path(source)
        if path.exists():
            return FileSource(site, path)
    except OSError as error:
        raise ValueError(f"{source}: {error}") from error
    raise ValueError(
        f"{source!r} is neither a URL, nor the name of a URL pattern without arguments, nor a file"
        " or folder. If the sitemap has an index, give the index."
    )


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
