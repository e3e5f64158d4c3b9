"""A crawler that follows the index, and takes nothing on trust."""

import hashlib
import http.client
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from django_sitemapkit.audit.reader import SitemapReader
from django_sitemapkit.exceptions import InvalidSitemap
from tests.killloop.places import EXPORT, place


class Violation(Exception):
    """The package has broken its promise."""


class Missed(Violation):
    """Something was not found, which is no fault where the reader outstays the grace period."""


class Crawler:
    """Reads index and children over HTTP; raises Violation and keeps the response it was."""

    once = True
    """Whether a URL that one index leads to twice is a fault."""

    def __init__(self, base, folder, chance=None):
        self.base = base
        self.folder = Path(folder)
        self.chance = chance
        self.reads = 0
        self.generations = set()

    def fetch(self, address, *, nested=True):
        """Return the locations of one sitemap, and its bytes."""
        status, headers, body = self._get(address)
        self.reads += 1
        if status != 200:
            kind = Missed if status == 404 else Violation
            self.fail(address, body, f"answered {status}", kind)
        reader = SitemapReader(address, nested=nested)
        try:
            locations = [entry.location for entry in reader.read([body])]
        except InvalidSitemap as error:
            self.fail(address, body, f"cannot be read: {error}")
        faults = [finding.message for finding in reader.findings if finding.level == "error"]
        if faults or not reader.valid:
            self.fail(address, body, f"is not valid: {faults[:3]}")
        if headers["Content-Length"] != str(len(body)):
            self.fail(address, body, f"has Content-Length {headers['Content-Length']}")
        return locations, body

    def crawl(self):
        """Return how often each path is listed, and whether the index stayed the same."""
        children, index = self.fetch(f"{self.base}/sitemap.xml", nested=False)
        self.generations.add(hashlib.sha256(index).hexdigest())
        if self.chance:
            self.chance.shuffle(children)
        found = Counter()
        for child in children:
            if self.chance:  # Now and then long enough for a flip or two.
                time.sleep(self.chance.uniform(0, 0.05))
            found.update(urlsplit(location).path for location in self.fetch(child)[0])
        _, after = self.fetch(f"{self.base}/sitemap.xml", nested=False)
        return found, index == after, index

    def check(self, permanent):
        """Crawl once. What is in all generations must be found, and in one generation once."""
        found, same, index = self.crawl()
        if missing := permanent - found.keys():
            why = f"led to all but {len(missing)}: {sorted(missing)[:5]}"
            self.fail("index", index, why, Missed)
        doubled = [path for path, times in found.items() if times > 1]
        if self.once and same and doubled:
            self.fail("index", index, f"led twice to {doubled[:5]}")

    def fail(self, address, body, why, kind=Violation):
        """Save a response and raise a violation."""
        name = address.rpartition("/")[2]
        saved = self.folder / f"violation-{time.time():.3f}-{name}"
        saved.write_bytes(body)
        raise kind(f"{address} {why} (saved as {saved})")

    def _get(self, address):
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        try:
            connection.request("GET", parts.path)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        except http.client.IncompleteRead as error:
            self.fail(address, error.partial, "was cut short")
        finally:
            connection.close()


class ExportReader(Crawler):
    """Reads the exported files, as a web server or S3 gives them out without Django.

    Each name has one file at a time, so an index may lead to the page that rows came to and to the
    one that they came from.
    """

    once = False

    def _get(self, address):
        body = place().read(EXPORT, urlsplit(address).path.lstrip("/"))
        if body is None:
            return 404, {}, b""
        return 200, {"Content-Length": str(len(body))}, body
