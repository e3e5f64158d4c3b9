"""Requests to the site without a server: the WSGI application is called in this process."""

import io
import sys
import time

from tests.benchmarks.checking import Listed
from tests.benchmarks.measuring import measured, median_of


class Browser:
    """Asks the site of the settings, as a web server would."""

    def __init__(self):
        from django.core.wsgi import get_wsgi_application

        self.application = get_wsgi_application()

    def get(self, address, take=None):
        """Ask for an address; return the seconds to the first and to the last of its body.

        ``take`` is given each block. Raises RuntimeError for any answer but 200.
        """
        path, _, query = address.partition("?")
        environ = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "www.example.com",
            "SERVER_PORT": "443",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "www.example.com",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        status = []
        first = None
        began, began_cpu = time.perf_counter(), time.process_time()
        response = self.application(environ, lambda *head, **_: status.append(head[0]))
        for block in response:
            first = first or time.perf_counter() - began
            if take is not None:
                take(block)
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        response.close()
        if status != ["200 OK"]:
            raise RuntimeError(f"{address} was answered {status}.")
        return {"seconds": seconds, "first byte": first, "cpu": cpu}

    def measure(self, address):
        """Ask for a page several times, once unmeasured; return the medians and what it lists."""
        self.get(address)
        figures, medians = measured(lambda: median_of(lambda: self.get(address)))
        return figures | medians | self.listed(address)

    def listed(self, address):
        """Return what a page lists, by one more request."""
        blocks = []
        self.get(address, blocks.append)
        body, listed = b"".join(blocks), Listed()
        listed.add(body)
        return {"urls": listed.urls, "bytes": len(body), "digest": listed.digest}
