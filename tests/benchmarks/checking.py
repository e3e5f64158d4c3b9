"""Whether all contenders have listed the same: a look at their files that no clock sees."""

import gzip
import hashlib
import re
from html import unescape
from urllib.parse import quote

LOC = re.compile(rb"<loc>([^<]*)</loc>")
SAFE = ":/?#[]@!$&'()*+,;=%~"
"""What a URL may hold as it is; whatever else a contender left unquoted is quoted to compare."""


class Listed:
    """How many URLs there are, and a digest that does not depend on their order.

    It is the sum of all URLs' hashes: that of 5,000,000 takes no memory, and one that is missing or
    listed twice changes it.
    """

    def __init__(self):
        self.urls = 0
        self.hints = 0
        """Tags of changefreq and priority."""
        self._sum = 0

    def add(self, xml):
        """Take in the URLs of some whole lines of XML."""
        for found in LOC.findall(xml):
            self.take(unescape(found.decode()))
        self.hints += xml.count(b"<changefreq>") + xml.count(b"<priority>")

    def take(self, url):
        """Take in one URL."""
        hashed = hashlib.blake2b(quote(url, safe=SAFE).encode(), digest_size=16).digest()
        self._sum += int.from_bytes(hashed, "big")
        self.urls += 1

    @property
    def digest(self):
        return f"{self._sum % 2**128:032x}"


def sum_of(*digests):
    """Return the digest of what some digests stand for, all of it together."""
    return f"{sum(int(digest, 16) for digest in digests) % 2**128:032x}"


def listed_in(folder):
    """Return what the gzip files under a folder list, and their bytes; indexes do not count."""
    listed, size = Listed(), 0
    for path in sorted(folder.rglob("*.gz")):
        with gzip.open(path) as file:
            block = file.read(65_536)
            if b"<sitemapindex" in block:
                continue
            size += path.stat().st_size
            rest = b""
            while block:
                whole, mark, tail = (rest + block).rpartition(b"</loc>")
                listed.add(whole + mark)
                rest = tail
                block = file.read(1_048_576)
            listed.add(rest)
    return {
        "urls": listed.urls,
        "bytes": size,
        "digest": listed.digest,
        "hints": listed.hints,
    }
