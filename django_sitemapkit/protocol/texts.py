"""Text sitemaps: one absolute URL a line, in UTF-8, and nothing else (sitemaps.org/protocol.html).

They are made of the XML as it streams, so that both list the same URLs in the same order. A text
is never longer than its XML, so the limits of a file hold for it too.
"""

import re
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import unescape

_OPENING = b"<url><loc>"
_CLOSING = b"</loc>"
_LOCATION = re.compile(_OPENING + b"(.*?)" + _CLOSING, re.DOTALL)
_ENTITIES = {"&apos;": "'", "&quot;": '"'}


def text_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the URLs of a ``urlset`` as text, for a document of ``UrlsetWriter`` in any blocks.

    A block of text for each of XML that ends a location in it; no more is held than one of them.
    The ``loc`` of an extension, as of an image, is none of the page.
    """
    rest = b""
    for block in blocks:
        rest += block
        if found := _LOCATION.findall(rest):
            lines = b"\n".join(found) + b"\n"
            yield unescape(lines.decode(), _ENTITIES).encode() if b"&" in lines else lines
        opened, closed = rest.rfind(_OPENING), rest.rfind(_CLOSING)
        # Either a location goes on in the next block, or the tag before one may.
        rest = rest[opened if opened > closed else 1 - len(_OPENING) :]
