"""A client of the ASGI application, driven by hand."""

import asyncio

from django.core.handlers.asgi import ASGIHandler


class Reader:
    """One client of the ASGI application, which takes messages as slowly as a test wants."""

    def __init__(self, path, method="GET", **headers):
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [
                (b"host", b"www.example.com"),
                *((name.replace("_", "-").encode(), v.encode()) for name, v in headers.items()),
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
        }
        self.messages = []
        self.requested = False
        self.gone = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.has_first_block = asyncio.Event()

    async def receive(self):
        if not self.requested:
            self.requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.messages.append(message)
        if message.get("body"):
            self.has_first_block.set()
            await self.may_go_on.wait()

    async def ask(self):
        await ASGIHandler()(self.scope, self.receive, self.send)

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def ended(self):
        """Whether the server has said that this was all."""
        last = self.messages[-1]
        return last["type"] == "http.response.body" and not last.get("more_body")


async def read(path, method="GET", **headers):
    """Return what a reader that takes everything at once has got."""
    reader = Reader(path, method, **headers)
    reader.may_go_on.set()
    await reader.ask()
    start = reader.messages[0]
    shown = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], shown, reader
