"""Checking documents by XML schemas, with lxml: loaded only where it is asked for.

The network is never used. lxml's own limits of size and depth hold.
"""

import gzip
from pathlib import Path
from typing import IO

from lxml import etree

from django_sitemapkit.protocol.reader import Kind

FILES: dict[Kind, str] = {"urlset": "sitemap.xsd", "sitemapindex": "siteindex.xsd"}
"""The schema of each kind of document, as sitemaps.org names them."""


class Offline(etree.Resolver):  # type: ignore[misc]
    """Keeps a schema from loading parts of it from elsewhere, whatever libxml2 can do."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        """What it was asked for and did not let pass."""

    def resolve(self, url: str, public_id: str, context: object) -> None:
        """Let files pass."""
        scheme, separator, _ = url.partition("://")
        if separator and scheme != "file":
            self.refused.append(url)
            raise OSError(f"{url} is not on this machine; save it and name the file.")


class Schemas:
    """Schemas by the kind of document.

    ``path`` is a folder with ``sitemap.xsd``, ``siteindex.xsd`` or both, or one file, by which all
    documents are checked. Raises ValueError where it has no schema.
    """

    def __init__(self, path: Path) -> None:
        self._schemas: dict[Kind, etree.XMLSchema] = {}
        if path.is_dir():
            for kind, name in FILES.items():
                if (path / name).is_file():
                    self._schemas[kind] = _schema(path / name)
            if not self._schemas:
                raise ValueError(f"{path} has neither {' nor '.join(FILES.values())}")
        else:
            self._schemas = dict.fromkeys(FILES, _schema(path))

    def has(self, kind: Kind | None) -> bool:
        """Return whether there is a schema for that kind of document."""
        return kind in self._schemas

    def faults(self, kind: Kind, file: IO[bytes]) -> list[str]:
        """Return what is wrong with a document, plain or gzip, with the numbers of lines.

        A valid one is never in memory as a whole. Only a tree tells lines: an invalid one is made
        into one, which takes some twenty times as much as the XML.
        """
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        xml = gzip.GzipFile(fileobj=file, mode="rb") if compressed else file
        schema = self._schemas[kind]
        if _is_valid(schema, xml):
            return []
        xml.seek(0)
        try:
            tree = etree.parse(xml, _parser())
        except etree.XMLSyntaxError as error:
            return [f"line {error.lineno}: Schema: {error.msg}"]
        schema.validate(tree)
        return [f"line {error.line}: Schema: {error.message}" for error in schema.error_log]


class _Nothing:
    """Takes what a parser finds, and keeps none of it."""

    def close(self) -> None:
        """End."""


def _is_valid(schema: etree.XMLSchema, xml: IO[bytes] | gzip.GzipFile) -> bool:
    parser = _parser(target=_Nothing(), schema=schema)
    try:
        while block := xml.read(65_536):
            parser.feed(block)
        parser.close()
    except etree.XMLSyntaxError:
        return False
    return not parser.feed_error_log


def _schema(path: Path) -> etree.XMLSchema:
    offline = Offline()
    try:
        schema = etree.XMLSchema(etree.parse(path, _parser(offline)))
    except (OSError, etree.LxmlError) as error:
        raise ValueError(f"{path} is no schema that can be read: {error}") from error
    if (
        offline.refused
    ):  # libxml2 goes on without what is imported, and lxml does not always say so.
        raise ValueError(
            f"{path} needs {offline.refused[0]}, which is not on this machine; save it and name"
            " the file"
        )
    return schema


def _parser(offline: Offline | None = None, **options: object) -> etree.XMLParser:
    parser = etree.XMLParser(no_network=True, resolve_entities=False, huge_tree=False, **options)
    parser.resolvers.add(offline or Offline())
    return parser
