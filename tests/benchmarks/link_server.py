"""A fast HTTP server of generated web pages that link to each other, for crawlers.

    python -m tests.benchmarks.link_server PAGES

Serves the pages 0 to PAGES - 1 on a port of 127.0.0.1 that it prints. Each has 10 kB and 50 links:
ten to the pages below it, so that all are found from the first, and the others to anywhere.
"""

import asyncio
import sys

CHILDREN = 10
LINKS = 50
MARK = b"\r\n\r\n"

PARAGRAPH = """\
<div class="text" data-kind="paragraph"><h2>A heading</h2><p>Some <em>text</em> as web pages have
it, with <b>a few</b> tags, <span class="price">1,000&nbsp;€</span> and no link.</p></div>
"""
FILLER = PARAGRAPH * 33

ROBOTS = """\
User-agent: *
Disallow: /cart/
Disallow: /*?sort=
"""


def links_of(number, pages):
    """Return the pages that a page links to."""
    first = number * CHILDREN + 1
    below = range(first, min(first + CHILDREN, pages))
    anywhere = ((number * 7_919 + step * 104_729) % pages for step in range(LINKS - len(below)))
    return [*below, *anywhere]


def page(number, pages):
    """Return a page's HTML."""
    items = "".join(
        f'<li class="item"><a class="link" href="/page/{other}/">Page {other}</a></li>\n'
        for other in links_of(number, pages)
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Page {number}</title>
<meta name="description" content="What page {number} is about"></head>
<body><h1>Page {number}</h1><ul>{items}</ul>{FILLER}</body></html>"""


class LinkServer(asyncio.Protocol):
    """One connection, which is kept open."""

    def __init__(self, pages):
        self.pages = pages
        self.received = b""

    def connection_made(self, transport):
        """Keep the way back."""
        self.transport = transport

    def data_received(self, data):
        """Answer every request that is complete."""
        self.received += data
        while MARK in self.received:
            request, _, self.received = self.received.partition(MARK)
            self.transport.write(self.answer(request.split(b" ", 2)[1].decode()))

    def answer(self, path):
        """Return the response for a path."""
        number = "0" if path == "/" else path.removeprefix("/page/").removesuffix("/")
        status, kind = "200 OK", "text/html; charset=utf-8"
        if path == "/robots.txt":
            text, kind = ROBOTS, "text/plain"
        elif number.isdecimal() and int(number) < self.pages:
            text = page(int(number), self.pages)
        else:
            text, status = "Not found", "404 Not Found"
        body = text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


async def main(pages):
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LinkServer(pages), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
