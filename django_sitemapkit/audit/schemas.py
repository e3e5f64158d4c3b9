"""Checks documents by XML schemas with lxml; imported only where a schema is given.

It never uses the network, and lxml's own limits of size and depth apply.
"""

import gzip
from pathlib import Path
from typing import IO

from lxml import etree

from django_sitemapkit.audit.reader import DocumentKind, Finding

SCHEMA_FILES: dict[DocumentKind, str] = {"urlset": "sitemap.xsd", "sitemapindex": "siteindex.xsd"}
"""The schema of each kind of document, as sitemaps.org names them."""


class OfflineResolver(etree.Resolver):  # type: ignore[misc]
    """Resolver that keeps lxml from loading parts of a schema over the network."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        """URLs that it did not load."""

    def resolve(self, url: str, public_id: str, context: object) -> None:
        """Raise OSError unless ``url`` is a local file."""
        scheme, separator, _ = url.partition("://")
        if separator and scheme != "file":
            self.refused.append(url)
            raise OSError(f"{url} is not a local file; save it and name the file.")


class Schemas:
    """The XML schemas against which documents of each kind are validated.

    ``path`` is a folder with ``sitemap.xsd``, ``siteindex.xsd`` or both, or one file for all
    documents. Raises ValueError if there is no schema.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            files = {kind: path / name for kind, name in SCHEMA_FILES.items()}
            self._schemas = {
                kind: _load_schema(file) for kind, file in files.items() if file.is_file()
            }
            if not self._schemas:
                raise ValueError(f"{path} has neither {' nor '.join(SCHEMA_FILES.values())}")
        else:
            self._schemas = dict.fromkeys(SCHEMA_FILES, _load_schema(path))

    def findings(self, kind: DocumentKind | None, file: IO[bytes]) -> list[Finding]:
        """Return the schema errors of a document, plain or gzip, or a warning if it has no schema.

        A valid document is never in memory as a whole. Line numbers need a tree: an invalid one is
        parsed into one, which takes about twenty times as much memory as the XML.
        """
        if kind is None or kind not in self._schemas:
            return [
                Finding(
                    code="no-schema",
                    message=f"There is no schema for a {kind}, so it was not checked.",
                    level="warning",
                )
            ]
        file.seek(0)
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        xml = gzip.GzipFile(fileobj=file, mode="rb") if compressed else file
        schema = self._schemas[kind]
        if _is_valid(schema, xml):
            return []
        xml.seek(0)
        try:
            tree = etree.parse(xml, _offline_parser())
        except etree.XMLSyntaxError as error:
            return [Finding(code="schema", message=f"Schema: {error.msg}", line=error.lineno)]
        schema.validate(tree)
        return [
            Finding(code="schema", message=f"Schema: {error.message}", line=error.line)
            for error in schema.error_log
        ]


class _DiscardingTarget:
    """A parser target that builds no tree."""

    def close(self) -> None:
        """Return None at the end of the document, as there is no tree."""


def _is_valid(schema: etree.XMLSchema, xml: IO[bytes] | gzip.GzipFile) -> bool:
    """Return whether a document is valid by a schema; it is read in blocks."""
    parser = _offline_parser(target=_DiscardingTarget(), schema=schema)
    try:
        while block := xml.read(65_536):
            parser.feed(block)
        parser.close()
    except etree.XMLSyntaxError:
        return False
    return not parser.feed_error_log


def _load_schema(path: Path) -> etree.XMLSchema:
    """Read a schema; raise ValueError if it is not readable, or needs a file over the network."""
    offline = OfflineResolver()
    try:
        schema = etree.XMLSchema(etree.parse(path, _offline_parser(offline)))
    except (OSError, etree.LxmlError) as error:
        raise ValueError(f"{path} is not a readable schema: {error}") from error
    # libxml2 goes on without what it cannot import, and lxml does not always report it.
    if offline.refused:
        raise ValueError(
            f"{path} needs {offline.refused[0]}, which is not a local file; save it and name the"
            " file"
        )
    return schema


def _offline_parser(offline: OfflineResolver | None = None, **options: object) -> etree.XMLParser:
    """Return an XML parser that loads nothing over the network and expands no entities."""
    parser = etree.XMLParser(no_network=True, resolve_entities=False, huge_tree=False, **options)
    parser.resolvers.add(offline or OfflineResolver())
    return parser
