"""Keeps which language versions the entries of a document link to, to find who links back."""

from collections.abc import Iterator, Mapping


class LanguageVersions(dict[bytes, frozenset[bytes]]):
    """The language versions that each entry of a document links to, itself included, by its URL.

    URLs are in normal form. The versions of a page usually link to the same ones, which are kept as
    one set, so that all take less memory than the document is long.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_complete = True
        """Whether the links of each entry were added."""
        self._sets: dict[frozenset[bytes], frozenset[bytes]] = {}

    def add(self, entries: Mapping[bytes, frozenset[bytes]]) -> None:
        """Add the versions of some entries; for a URL that has some, they are joined."""
        for url, versions in entries.items():
            every = versions | self[url] if url in self else versions
            self[url] = self._sets.setdefault(every, every)

    def one_way_links(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (URL, version) for each link to a version that does not link back here."""
        for versions in self._sets:
            others = [url for url in versions if self.get(url) is not versions]
            # In most files all versions list the same ones.
            for page in sorted(versions.difference(others)) if others else ():
                for version in sorted(others):
                    if page not in self.get(version, ()):
                        yield page, version
