"""Text sitemaps: one absolute URL a line, in UTF-8, and nothing else (sitemaps.org/protocol.html).

They are made from the XML as it streams, so that both list the same URLs in the same order. A text
is never longer than its XML, so it keeps the limits of a file too.
"""

import re
from collections.abc import Iterable, Iterator

from django_sitemapkit.protocol.writers import unescaped

_OPENING = b"<url><loc>"
_CLOSING = b"</loc>"
_LOCATION = re.compile(_OPENING + b"(.*?)" + _CLOSING, re.DOTALL)


def text_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text sitemap with the URLs of a ``urlset``, in blocks.

    ``blocks`` are a document of ``UrlsetWriter``, divided at any bytes. A block of text is yielded
    for each of them in which a location ends, and no more than one is in memory. The ``loc`` of an
    extension, such as an image's, is not listed.
    """
    rest = b""
    for block in blocks:
        rest += block
        if found := _LOCATION.findall(rest):
            lines = b"\n".join(found) + b"\n"
            yield unescaped(lines.decode()).encode()
        opened, closed = rest.rfind(_OPENING), rest.rfind(_CLOSING)
        # A location, or the tag before it, may continue in the next block.
        rest = rest[opened if opened > closed else 1 - len(_OPENING) :]
