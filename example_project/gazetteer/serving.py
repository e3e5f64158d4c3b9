"""The project on a port of this machine, for as long as a command needs it."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

HOST = "127.0.0.1"


class _Server(ThreadedWSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name is inherited)
        """Leave the terminal to the command; errors are logged by Django itself."""


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Serve the project over HTTP in a thread, and give the base URL it is served at.

    It is the port of ``SITEMAPKIT_BASE_URL`` if that is free, else any free one. The published
    files say what the setting says, wherever they are served. Only they are: what no build has
    published is not rendered instead.
    """
    server = _listen(preferred_port())
    base_url = f"http://{HOST}:{server.server_port}"
    before = settings.SITEMAPKIT_SERVE_FROM, settings.ALLOWED_HOSTS
    settings.SITEMAPKIT_SERVE_FROM, settings.ALLOWED_HOSTS = "published", [HOST]
    thread = threading.Thread(target=server.serve_forever, name="gazetteer", daemon=True)
    try:
        server.set_app(WSGIHandler())
        thread.start()
        yield base_url
    finally:
        if thread.is_alive():
            server.shutdown()
        server.server_close()
        settings.SITEMAPKIT_SERVE_FROM, settings.ALLOWED_HOSTS = before


def preferred_port() -> int:
    """Return the port that ``SITEMAPKIT_BASE_URL`` names, or 8000."""
    return urlsplit(settings.SITEMAPKIT_BASE_URL).port or 8000


def free_port() -> int:
    """Return the first port from the preferred one on that `runserver` may take now."""
    first = preferred_port()
    for port in range(first, first + 100):
        with contextlib.suppress(OSError):
            _Server((HOST, port), _QuietHandler).server_close()
            return port
    return first


def _listen(port: int) -> _Server:
    try:
        return _Server((HOST, port), _QuietHandler)
    except OSError:  # taken, or not for us to take
        return _Server((HOST, 0), _QuietHandler)
