"""Reads a site's sitemaps by their addresses, and holds what they say of languages against rules.

It is written from the protocol's text, and uses nothing of the package: a wrong rule of the writer
must not find it right by the same words. What is read goes into a database beside it, so memory
does not grow with the site. Whether the documents follow their schema, tests/test_schema.py says.
"""

import gzip
import hashlib
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
XHTML = "{http://www.w3.org/1999/xhtml}"
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
        for child, _ in list(_entries(index, read, report)):
            report.files += 1
            site = _Site(index, store, report, default, elsewhere)
            for loc, links in _entries(child, read, report):
                site.add(loc, links)
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


def _entries(address, read, report):
    """Yield the locations of a document, each with its links: code and address."""
    with read(address) as body:
        stream = gzip.GzipFile(fileobj=body) if address.endswith(".gz") else body
        try:
            for _, element in ET.iterparse(stream):
                if element.tag in {f"{SITEMAP}url", f"{SITEMAP}sitemap"}:
                    loc = element.findtext(f"{SITEMAP}loc", "").strip()
                    if not URL.fullmatch(loc) or len(loc) > LONGEST:
                        report.fault(f"{loc!r} is no URL for a sitemap")
                    links = element.iter(f"{XHTML}link")
                    yield loc, [(link.get("hreflang"), link.get("href")) for link in links]
                    element.clear()
        except (OSError, EOFError, ET.ParseError) as error:
            report.fault(f"{address}: it cannot be read: {error}")


def _origin(url):
    return "/".join(url.split("/", 3)[:3])
