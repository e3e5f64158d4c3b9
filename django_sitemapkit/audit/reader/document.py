"""Parses one XML document with expat, and checks the structure.

It holds only the current entry, and of a value no more than a valid one can have. All state is in
one object, because expat's calls for each tag are what the reading costs.
"""

from xml.parsers import expat

from django_sitemapkit.audit.reader.entries import MAX_TEXT, WHITE_SPACE, EntryChecker
from django_sitemapkit.audit.reader.extensions import ExtensionChecker, ExtensionContents
from django_sitemapkit.audit.reader.findings import FindingLog
from django_sitemapkit.audit.reader.formats import FEEDS, DocumentKind, Feed
from django_sitemapkit.audit.reader.quick import END, QuickEntries
from django_sitemapkit.audit.reader.streams import html_error
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import NAMESPACE, NEWS

MAX_DEPTH = 32
"""Nested elements; the deepest extension in use needs six."""

MAX_TOKEN = 1_048_576
"""Bytes of one tag or comment, which expat holds until its end."""

MAX_NAMES = 10_000
"""Different names of tags, attributes and namespaces, all of which expat holds."""

_SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance "

_ENTRY_TAGS: dict[str, str] = {"urlset": "url", "sitemapindex": "sitemap"}
# In their required order (xsd:sequence); the position is a tag's rank.
_VALUE_TAGS: dict[str, tuple[str, ...]] = {
    "urlset": ("loc", "lastmod", "changefreq", "priority"),
    "sitemapindex": ("loc", "lastmod"),
}
_NEWS_TAG = f"{NEWS} news"
_NO_EXTENSIONS = {NAMESPACE, _SCHEMA_INSTANCE.rstrip()}
_BLANK = bytes(code if code in b"\r\n" else 32 for code in range(256))
# Ranks of no value: of a tag that has none, before the first value, and after an extension.
_UNKNOWN, _BEFORE_ALL, _AFTER_ALL = -2, -1, 4


class XmlDocument:
    """Parses one XML document: the handlers that expat calls, and their state."""

    def __init__(
        self,
        log: FindingLog,
        checker: EntryChecker,
        extensions: ExtensionChecker | ExtensionContents,
        *,
        nested: bool,
    ) -> None:
        self.kind: DocumentKind | None = None
        self.before = 0
        """Lines removed before the first block."""
        self._log, self._checker, self._nested = log, checker, nested
        self._extensions = extensions
        self._captures = False
        self._fed = self._depth = self._skipped = self._mark = self._entry_line = 0
        self._namespace, self._entry_name = "", ""
        self._namespaces: set[str | None] = set()
        self._tail = b""
        self._quick: QuickEntries | None = None
        self._declared: dict[str | None, str | None] = {}
        self._ranks: dict[str, int] = {}
        self._rank, self._value = _BEFORE_ALL, 0
        self._values: list[str | None] = []
        self._parts: list[str] = []
        self._parser = self._make_parser()

    def _make_parser(self) -> expat.XMLParserType:
        """Return an expat parser that calls the handlers of this document."""
        # With an encoding given, expat never looks up a declared one among Python's codecs.
        parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.XmlDeclHandler = self._on_declaration
        # Entities are declared only within a DOCTYPE, so this refuses them too.
        parser.StartDoctypeDeclHandler = self._on_doctype
        parser.StartNamespaceDeclHandler = self._on_namespace
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end
        parser.CharacterDataHandler = self._parts.append
        return parser

    def feed(self, block: bytes) -> None:
        """Parse one more block; raise InvalidSitemap if reading must end."""
        start = 0
        while start < len(block):
            if self._quick and self._is_between_entries():
                start = self._skip_ordinary(self._quick, block, start)
            end = block.find(END, start) if self._quick or not self.kind else -1
            end = len(block) if end < 0 else end + len(END)
            self._parse(block[start:end])
            start = end
        self._tail = block[-3:]

    def _is_between_entries(self) -> bool:
        """Return whether all that was fed is parsed, and the parser is between two entries."""
        if self._depth != 1 or self._parser.CurrentByteIndex != self._fed:
            return False
        if "".join(self._parts).strip(WHITE_SPACE):
            return False  # The next entry to be parsed reports it.
        self._parts.clear()
        return True

    def _skip_ordinary(self, quick: QuickEntries, block: bytes, start: int) -> int:
        """Skip ordinary valid entries from ``start`` on, unparsed; return the end of the last one.

        The parser gets their line ends, and spaces for what follows the last one, so that its line
        and column stay right.
        """
        end = quick.skip(block, start)
        if end > start:
            skipped = block[start:end]
            if b"\r" in skipped:
                self._parse(skipped.translate(_BLANK))
            else:  # The parser takes longer for spaces than for line ends.
                spaces = len(skipped) - skipped.rfind(b"\n") - 1
                self._parse(b"\n" * skipped.count(b"\n") + b" " * spaces)
        return end

    def _parse(self, block: bytes, *, is_last: bool = False) -> None:
        """Give bytes to the parser.

        Raises InvalidSitemap for what is not well-formed, or would take too much memory.
        """
        self._fed += len(block)
        try:
            self._parser.Parse(block, is_last)
        except expat.ExpatError as error:
            raise self._invalid_sitemap(error, block) from error
        if self._fed - self._parser.CurrentByteIndex > MAX_TOKEN:
            raise _parsing_error(f"a tag or comment has more than {MAX_TOKEN:,} bytes")
        if len(self._parser.intern) > MAX_NAMES:
            raise _parsing_error(f"there are more than {MAX_NAMES:,} different names")
        if len(self._parts) > 8:
            self._shorten_texts()

    def _invalid_sitemap(self, error: expat.ExpatError, block: bytes) -> InvalidSitemap:
        """Return an error of the parser as InvalidSitemap; it may be a byte that is not UTF-8."""
        place = f"line {self.before + error.lineno}, column {error.offset + 1}"
        start = self._parser.ErrorByteIndex - self._fed + len(block) + len(self._tail)
        data = (self._tail + block)[start : start + 4] if block and start >= 0 else b""
        try:
            data.decode()
        except UnicodeDecodeError as wrong:
            if wrong.start == 0:
                message = f"Wrong encoding: {place}: the byte 0x{data[0]:02X} is not UTF-8"
                return InvalidSitemap("wrong-encoding", f"{message}; sitemaps are UTF-8.")
        return _parsing_error(f"{expat.ErrorString(error.code)}, {place}")

    def finish(self) -> None:
        """End the document; raise InvalidSitemap if it is empty or incomplete."""
        if not self._fed:
            raise InvalidSitemap("empty-sitemap", "Empty sitemap: the file has no content.")
        self._parse(b"", is_last=True)
        if not self._checker.urls:
            # Google accepts a news sitemap without news; sitemap.xsd does not.
            may_be_empty = self.kind in FEEDS.values() or (
                self.kind == "urlset" and self._namespaces - _NO_EXTENSIONS == {NEWS}
            )
            self._add_finding(
                "no-entries" if may_be_empty else "empty-sitemap",
                f"Empty sitemap: <{self.kind}> has no entries; return 404 for it and remove it from"
                " the index.",
            )

    def line(self) -> int:
        """Return the current line of the document, from 1."""
        return self.before + self._parser.CurrentLineNumber

    def _shorten_texts(self) -> None:
        """Cut the texts collected so far to the length that is checked.

        A longer text is just as invalid.
        """
        mark = self._mark if self._skipped or self._depth == 3 else len(self._parts)
        self._parts[:] = [_shortened(self._parts[:mark]), _shortened(self._parts[mark:])]
        self._mark = 1

    def _on_declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        """Check the encoding in the XML declaration; raise InvalidSitemap unless it is UTF-8."""
        label = (encoding or "UTF-8").upper()
        if label.replace("_", "") == "UTF8":
            self._log.add_uncommon_form(
                f"the file declares {quoted(encoding)}; write UTF-8", self.line()
            )
        elif label != "UTF-8":
            raise InvalidSitemap(
                "wrong-encoding",
                f"Wrong encoding: the file declares {quoted(encoding)}; sitemaps are UTF-8.",
            )

    def _on_doctype(self, name: str, *_: object) -> None:
        """Raise InvalidSitemap: a sitemap has no DOCTYPE."""
        if name.lower() == "html":
            raise html_error()
        raise InvalidSitemap(
            "doctype", "DOCTYPE not allowed: a sitemap has none, and does not declare entities."
        )

    def _on_namespace(self, prefix: str | None, namespace: str | None) -> None:
        """Remember a namespace that a tag declares."""
        self._namespaces.add(namespace)
        if self.kind is None:
            self._declared[prefix] = namespace

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an entry, a value, an extension or another tag, by its depth and name."""
        self._depth = depth = self._depth + 1
        if self._skipped:
            if depth > MAX_DEPTH:
                raise InvalidSitemap(
                    "too-deep", f"Parsing error: elements are nested more than {MAX_DEPTH} deep."
                )
            if self._captures:
                self._extensions.start_tag(depth - 4, name, attributes, self._take_text())
            return
        if depth == 3:
            self._mark = len(self._parts)
            rank = self._ranks.get(name, _UNKNOWN)
            if rank > self._rank:
                self._rank = self._value = rank
            else:
                self._on_extension_or_misplaced(name, rank, attributes)
        elif depth == 2 and name == self._entry_name:
            self._entry_line = self.line()
            self._values = [None, None, None, None]
            self._rank = _BEFORE_ALL
        else:
            self._on_other_tag(name)
        if attributes and not self._skipped:
            self._check_attributes(name, attributes)

    def _on_end(self, _name: str) -> None:
        """End a tag: store a value, check an entry, or end what is skipped."""
        depth = self._depth
        self._depth = depth - 1
        if self._skipped:
            if depth == self._skipped:
                self._end_skipped()
            elif self._captures:
                self._extensions.end_tag(depth - 4, self._take_text())
        elif depth == 3:
            # What stays in parts is the text between tags; it is checked once an entry.
            parts = self._parts
            text = parts.pop() if len(parts) == self._mark + 1 else self._take_text()
            self._values[self._value] = text
        elif depth == 2:
            self._end_entry()
        else:
            self._check_text_between_tags(self.line())

    def _take_text(self) -> str:
        """Remove and return the text of the open tag, which came in any number of pieces."""
        text = "".join(self._parts[self._mark :])
        del self._parts[self._mark :]
        return text

    def _end_skipped(self) -> None:
        """End a skipped tag; if it is an extension that is read, pass its text on."""
        text = self._take_text() if self._skipped < 4 else ""
        self._skipped = 0
        if self._captures:
            self._captures = False
            self._extensions.end_extension(text)

    def _check_text_between_tags(self, line: int) -> None:
        """Report text between tags since the last check, other than white space; discard it."""
        stray = "".join(self._parts).strip(WHITE_SPACE)
        self._parts.clear()
        if stray:
            self._log.add(
                "stray-text", f"Parsing error: there is text between tags: {quoted(stray)}.", line
            )

    def _on_root(self, name: str) -> None:
        """Determine the kind of document by its root element.

        Raises InvalidSitemap if the root is unknown, or an index in an index.
        """
        namespace, _, tag = name.rpartition(" ")
        if tag.lower() == "html":
            raise html_error()
        if name in FEEDS:
            self._read_as_feed(name)
            return
        if tag not in _ENTRY_TAGS:
            raise InvalidSitemap(
                "unknown-root",
                f"Parsing error: <{tag[:80]}> is neither <urlset> nor <sitemapindex>, nor the root"
                " of an RSS 2.0 or Atom feed.",
            )
        self.kind = "urlset" if tag == "urlset" else "sitemapindex"
        if self._nested and tag == "sitemapindex":
            raise InvalidSitemap(
                "nested-index", "Nested index: an index lists sitemaps, never another index."
            )
        if namespace != NAMESPACE:
            self._add_finding(
                "wrong-namespace",
                f"Wrong namespace: <{tag}> has {quoted(namespace)}; write {NAMESPACE}.",
            )
        # The tags are read in the wrong one, for one finding instead of one for each tag.
        self._namespace = namespace
        prefix = namespace and namespace + " "
        self._entry_name = prefix + _ENTRY_TAGS[tag]
        self._ranks = {prefix + value: rank for rank, value in enumerate(_VALUE_TAGS[tag])}
        is_plain = tag == "urlset" and self._declared.get(None) == NAMESPACE
        if is_plain and not self._checker.keeps_urls:
            self._quick = QuickEntries(self._checker, self._declared)

    def _read_as_feed(self, root: str) -> None:
        """Set the parser's handlers to those of a feed, for the rest of the document."""
        self.kind = FEEDS[root]
        self._checker.duplicates.allow_repetition()
        feed = Feed(root, self._checker, self.line)
        self._parser.StartElementHandler = feed.on_start
        self._parser.EndElementHandler = feed.on_end
        self._parser.CharacterDataHandler = feed.on_text
        self._skip()

    def _end_entry(self) -> None:
        """Count and check the entry that ends, with its extensions."""
        if self._parts:
            self._check_text_between_tags(self._entry_line)
        if self.kind == "urlset":
            extensions = (
                self._extensions.end_entry(self._entry_location())
                if self._rank == _AFTER_ALL
                else ""
            )
            self._checker.count_entry(self.line)
            self._checker.check_url(self._values, self._entry_line, extensions)
        else:
            self._checker.count_entry(self.line, "sitemaps")
            self._checker.check_sitemap(self._values, self._entry_line)

    def _on_other_tag(self, name: str) -> None:
        """Begin the root, or skip a tag that is neither an entry nor a child of one."""
        tag = name.rpartition(" ")[2]
        if self._depth == 1:
            self._on_root(name)
        elif self._depth == 2 and self._is_foreign(name):
            self._skip()
            if self._checker.urls:
                self._add_finding(
                    "wrong-tag-order",
                    f"Wrong tag order: {quoted(name)} is after an entry; extensions of"
                    f" <{self.kind}> come first.",
                )
        elif self._depth == 2 and tag in {"sitemap", "sitemapindex"}:
            self._skip()
            self._add_finding("nested-index", f"Nested index: <{tag}> within <{self.kind}>.")
        else:
            self._reject_tag(name)

    def _entry_location(self) -> str | None:
        """Return the ``loc`` of the entry without white space around it; None if it is missing."""
        text = self._values[0]
        return text and text.strip(WHITE_SPACE)

    def _on_extension_or_misplaced(self, name: str, rank: int, attributes: dict[str, str]) -> None:
        """Begin a tag in an entry that is an extension, unknown, repeated or too late."""
        tag = name.rpartition(" ")[2]
        if rank == _UNKNOWN:
            if self._is_foreign(name):
                self._rank = _AFTER_ALL
                self._skip()
                if self.kind == "urlset":
                    if name == _NEWS_TAG:  # Many programs declare its namespace and list none.
                        self._checker.duplicates.allow_repetition()
                    self._captures = self._extensions.start_extension(
                        name, attributes, self._entry_line, self._entry_location()
                    )
            else:
                self._reject_tag(name)
        elif self._values[rank] is not None:
            self._add_finding(
                "too-many-tags", f"Too many tags: a second <{tag}>; the first one is used."
            )
            self._skip()
        else:
            self._value = rank
            order = ", ".join(f"<{value.rpartition(' ')[2]}>" for value in self._ranks)
            self._add_finding(
                "wrong-tag-order",
                f"Wrong tag order: <{tag}> is too late; write {order}, then extensions.",
            )

    def _reject_tag(self, name: str) -> None:
        """Report that a tag is not allowed, and skip it."""
        tag = name.rpartition(" ")[2]
        self._add_finding("invalid-xml-tag", f"Invalid XML tag: <{tag[:80]}> is not allowed here.")
        self._skip()

    def _skip(self) -> None:
        """Skip the tag that has just begun, with its content."""
        self._skipped = self._depth
        if self._depth < 4:
            self._mark = len(self._parts)

    def _is_foreign(self, name: str) -> bool:
        """Return whether a tag has another namespace than the sitemap, as extensions must have."""
        return " " in name and name.rpartition(" ")[0] != self._namespace

    def _check_attributes(self, name: str, attributes: dict[str, str]) -> None:
        """Report attributes other than those of XMLSchema-instance: sitemap tags have none."""
        for attribute in attributes:
            if not attribute.startswith(_SCHEMA_INSTANCE):
                self._add_finding(
                    "invalid-xml-attribute",
                    f"Invalid XML attribute: <{name.rpartition(' ')[2]}> has no"
                    f" {quoted(attribute)}.",
                )

    def _add_finding(self, code: str, message: str) -> None:
        """Add a finding at the current line."""
        self._log.add(code, message, self.line())


def _parsing_error(why: str) -> InvalidSitemap:
    """Return the error of a document that is not parsed any further."""
    return InvalidSitemap("parsing-error", f"Parsing error: {why}.")


def _shortened(parts: list[str]) -> str:
    """Join the pieces of a text, and cut it one character after the longest that is checked."""
    text = "".join(parts)
    kept = text.lstrip(WHITE_SPACE)
    space = " " if len(kept) < len(text) else ""
    return space + kept[: MAX_TEXT + 1]
