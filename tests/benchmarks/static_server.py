"""A server of a folder's files, as ``http.server`` has it, that keeps connections open.

    python -m tests.benchmarks.static_server FOLDER

Serves on a port of 127.0.0.1 that it prints.
"""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Answers quickly, and writes no log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def end_headers(self):
        """Let LinkChecker ask for more than ten URLs a second, for which it wants this header."""
        self.send_header("LinkChecker", "allowed")
        super().end_headers()

    def log_message(self, *args):
        """Write nothing."""


def main(folder):
    """Serve until the process is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
