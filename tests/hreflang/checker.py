"""Reads a site's sitemaps by their addresses, and holds what they say of languages against rules.

It is written from the protocol's text, and uses nothing of the package: a wrong rule of the writer
must not find it right by the same words. What is read goes into a database beside it, so memory
does not grow with the site.
"""

import gzip
import hashlib
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"
LINK = f"{XHTML} link"
ORDER = {
    f"{SITEMAP} {name}": n for n, name in enumerate(("loc", "lastmod", "changefreq", "priority"))
}

MOST_BYTES = 52_428_800
MOST_ENTRIES = 50_000
LONGEST = 2_047

URL = re.compile(r"https?://[^/?#\s]+(/[!$-;=?-~]*)?")
"""An absolute one, without a fragment and what has to be encoded."""

CODE = re.compile(r"([a-z]{2})(-[a-z]{4})?(-[a-z]{2})?", re.IGNORECASE)
"""A language of ISO 639-1, perhaps a script, perhaps a country of two letters."""

ISO_639_1 = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu
cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he
hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko
kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd
ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty
ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
LANGUAGES = frozenset(ISO_639_1.split())

MAX_LISTED_FAULTS = 20
"""How many of the faults are reported; all are counted."""


@dataclass(slots=True)
class Report:
    """What was read, and what is wrong with it."""

    files: int = 0
    """Files that the index lists."""
    urls: int = 0
    """Their URLs."""
    linked: int = 0
    """Those of them that have links to other languages."""
    largest: int = 0
    """Bytes of the largest file, uncompressed."""
    sets: int = 0
    """Different sets of versions: the objects that have any."""
    codes: Counter = field(default_factory=Counter)
    """The sets of codes, and how many URLs have each."""
    faults: list = field(default_factory=list)
    """The first faults, a line each."""
    count: int = 0
    """How many faults there are."""

    def fault(self, text):
        """Note what is wrong."""
        self.count += 1
        if self.count <= MAX_LISTED_FAULTS:
            self.faults.append(text)


def check(index, read, folder, *, default=None, elsewhere=()):
    """Read an index and all that it lists; return a report.

    ``read`` opens the body at an address. ``default`` is what x-default has to be: the code of a
    language, a URL, or None for no such link. ``elsewhere`` are the origins of other hosts that
    have versions, which are not read. ``folder`` gets the database.
    """
    report = Report()
    with closing(sqlite3.connect(Path(folder) / "versions.sqlite3", isolation_level=None)) as store:
        store.execute("PRAGMA synchronous = OFF")
        store.execute("CREATE TABLE listed (loc TEXT, versions BLOB)")
        store.execute("CREATE TABLE members (href TEXT, versions BLOB)")
        store.execute("BEGIN")
        children: list[str] = []
        _Document(index, index, report, "sitemapindex", children.append).read(read)
        for child in children:
            report.files += 1
            site = _Site(index, store, report, default, elsewhere)
            _Document(child, index, report, "urlset", site.add).read(read)
            site.flush()
        store.execute("CREATE INDEX by_loc ON listed (loc, versions)")
        _compare(store, report)
        store.execute("ROLLBACK")
    return report


def _compare(store, report):
    """Hold each version against what the others say."""
    for loc, times in store.execute(
        "SELECT loc, COUNT(*) FROM listed GROUP BY loc HAVING COUNT(*) > 1"
    ):
        report.fault(f"{loc} is listed {times} times")
    for (href,) in store.execute(
        "SELECT DISTINCT href FROM members WHERE href NOT IN (SELECT loc FROM listed)"
    ):
        report.fault(f"{href} is linked to, and not listed")
    for (href,) in store.execute(
        "SELECT DISTINCT href FROM members JOIN listed ON loc = href"
        " WHERE listed.versions IS NOT members.versions"
    ):
        report.fault(f"{href} is linked to, and has not the same links itself")
    (report.sets,) = store.execute("SELECT COUNT(DISTINCT versions) FROM listed").fetchone()


class _Site:
    """Takes the URLs of a file, one by one, with their links."""

    def __init__(self, index, store, report, default, elsewhere):
        self.origin = _origin(index)
        self.store = store
        self.report = report
        self.default = default
        self.elsewhere = set(elsewhere)
        self.listed: list[tuple] = []
        self.members: list[tuple] = []
        self.lately: dict[tuple, bytes] = {}

    def add(self, loc, links=()):
        """Check what a URL says by itself, and keep it."""
        self.report.urls += 1
        versions = None
        if links:
            self.report.linked += 1
            if not any(href == loc and code != "x-default" for code, href in links):
                self.report.fault(f"{loc} does not link to itself")
            versions = self._set(loc, tuple(links))
        self.listed.append((loc, versions))
        if len(self.listed) >= 10_000:
            self.flush()

    def _set(self, loc, links):
        """Return what tells a set from all others; look at it where it was not seen just now."""
        versions = self.lately.get(links)
        if versions is None:
            self._check(loc, links)
            said = "\n".join(sorted(f"{code.lower()} {href}" for code, href in links))
            versions = hashlib.sha256(said.encode()).digest()
            self.members += [(href, versions) for href in self._to_return(links)]
            if len(self.lately) >= 100:
                self.lately.clear()
            self.lately[links] = versions
        self.report.codes[" ".join(sorted([code for code, _ in links]))] += 1
        return versions

    def flush(self):
        """Write what was kept."""
        self.store.executemany("INSERT INTO listed VALUES (?, ?)", self.listed)
        self.store.executemany("INSERT INTO members VALUES (?, ?)", self.members)
        self.listed.clear()
        self.members.clear()

    def _to_return(self, links):
        """Yield those who have to have the same links: the versions on this host."""
        for code, href in links:
            is_page_for_all = code == "x-default" and href == self.default
            if _origin(href) == self.origin and not is_page_for_all:
                yield href

    def _check(self, loc, links):
        codes = [code.lower() for code, _ in links]
        hrefs = dict(zip(codes, (href for _, href in links), strict=True))
        if len(hrefs) < len(links):
            self.report.fault(f"{loc} has a language twice")
        for code, href in hrefs.items():
            found = CODE.fullmatch(code)
            if code != "x-default" and (found is None or found[1] not in LANGUAGES):
                self.report.fault(f"{loc} links to a language {code!r}")
            if not URL.fullmatch(href) or len(href) > LONGEST:
                self.report.fault(f"{loc} links to {href!r}, which is no URL for a sitemap")
            elif _origin(href) != self.origin and _origin(href) not in self.elsewhere:
                self.report.fault(f"{loc} links to {href}, on a host that is not declared")
        is_url = self.default is not None and "/" in self.default
        wanted = self.default if is_url else hrefs.get(self.default)
        if hrefs.get("x-default") != wanted:
            self.report.fault(f"{loc} has as x-default {hrefs.get('x-default')}, not {wanted}")


class _Document:
    """A sitemap or an index, on its way through the parser."""

    def __init__(self, address, index, report, root, take):
        self.address = address
        self.folder = index.rpartition("/")[0] + "/"
        self.report = report
        self.root = f"{SITEMAP} {root}"
        self.entry = f"{SITEMAP} {'url' if root == 'urlset' else 'sitemap'}"
        self.take = take
        self.path: list[str] = []
        self.declared: dict[str, str] = {}
        self.used: set[str] = set()
        self.seen: set[str] = set()
        self.entries = 0
        self.text: list[str] | None = None

    def fault(self, text):
        """Note what is wrong with the file."""
        self.report.fault(f"{self.address}: {text}")

    def read(self, read):
        """Read the body to its end."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = lambda *_: self.fault("it has a DOCTYPE")
        size = 0
        try:
            with read(self.address) as body:
                packed = self.address.endswith(".gz")
                stream = gzip.GzipFile(fileobj=body) if packed else body
                while block := stream.read(65_536):
                    size += len(block)
                    parser.Parse(block)
                parser.Parse(b"", True)
        except (OSError, EOFError, expat.ExpatError) as error:
            self.fault(f"it cannot be read: {error}")
        self._measure(size)

    def _measure(self, size):
        self.report.largest = max(self.report.largest, size)
        if size > MOST_BYTES:
            self.fault(f"it has {size:,} bytes")
        if not 1 <= self.entries <= MOST_ENTRIES:
            self.fault(f"it has {self.entries:,} entries")
        for uri in {*self.declared} - self.used:
            self.fault(f"the namespace {uri} is declared and not used")

    def _declaration(self, version, encoding, standalone):
        if (encoding or "UTF-8").upper() != "UTF-8":
            self.fault(f"its encoding is {encoding}")

    def _declare(self, prefix, uri):
        if self.path:
            self.fault(f"the namespace {uri} is declared below the root")
        elif uri in self.declared:
            self.fault(f"the namespace {uri} is declared twice")
        self.declared[uri] = prefix or ""

    def _start(self, name, attributes):
        depth = len(self.path)
        self.path.append(name)
        if name not in self.seen:
            self.seen.add(name)
            self.used.add(name.rpartition(" ")[0])
        if depth == 0:
            self.used.update(each.rpartition(" ")[0] for each in attributes if " " in each)
            if name != self.root:
                self.fault(f"its root is {name}")
        elif depth == 1:
            self.loc, self.links, self.place = "", [], -1
            self.entries += 1
            if name != self.entry:
                self.fault(f"it has an element {name}")
        elif depth == 2:
            self._start_of_value(name, attributes)
        elif name == LINK or name in ORDER:
            self.fault(f"{name} is inside of {self.path[-2]}")

    def _start_of_value(self, name, attributes):
        place = ORDER.get(name, len(ORDER))
        if place < self.place or (place == self.place and place < len(ORDER)):
            self.fault(f"{name} is out of its order")
        elif place == len(ORDER) and name.startswith(f"{SITEMAP} "):
            self.fault(f"it has an element {name}")
        self.place = place
        if name == LINK:
            if attributes.keys() != {"rel", "hreflang", "href"} or attributes["rel"] != "alternate":
                self.fault(f"a link has the attributes {attributes}")
            else:
                self.links.append((attributes["hreflang"], attributes["href"]))
        self.text = []

    def _characters(self, text):
        if self.text is not None:
            self.text.append(text)
        elif text.strip():
            self.fault(f"text between elements: {text.strip()[:40]!r}")

    def _end(self, name):
        self.path.pop()
        depth = len(self.path)
        if depth == 2:
            said = "".join(self.text or ())
            self.text = None
            if name == f"{SITEMAP} loc":
                self.loc = said.strip()
            elif name == LINK and said.strip():
                self.fault(f"a link has the text {said.strip()[:40]!r}")
        elif depth == 1:
            self._check_location()
            if self.entry.endswith(" url"):
                self.take(self.loc, self.links)
            else:
                self.take(self.loc)

    def _check_location(self):
        if not URL.fullmatch(self.loc) or len(self.loc) > LONGEST:
            self.fault(f"{self.loc!r} is no URL for a sitemap")
        if not self.loc.startswith(self.folder):
            self.fault(f"{self.loc} is outside of {self.folder}")


def _origin(url):
    return "/".join(url.split("/", 3)[:3])
