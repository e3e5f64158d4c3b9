"""The processes of a kill loop but the one that kills: ``python -m tests.killloop.roles ROLE``.

Each says what it has done as JSON, on its last line, when it is asked to end by SIGTERM.
"""

import itertools
import json
import os
import random
import signal
import socket
import socketserver
import sys
import time
import traceback
from collections import Counter
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import django
from django.core.management import CommandError, call_command
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError

DATABASE_ERROR = 75
BUG = 70
WORST_PASS = 0.8
"""The part of the grace period that a pass may take: what a slower one misses says nothing."""


class Stop:
    """Tells whether SIGTERM has come."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_):
        self.asked = True

    def __call__(self):
        return self.asked


def say(text):
    """Write one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def builder(_seed):
    """Fork a build for each line, which says how wrong its clock is; say its process and its end.

    Every second build has a helper process, which is not killed, but has to end with it. A child
    stays a zombie until the next line, so that nobody kills what has its number next.
    """
    for workers, line in zip(itertools.cycle([1, 2]), sys.stdin, strict=False):
        child = os.fork()
        if not child:
            os._exit(build_once(int(line), workers))
        say(child)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        say("ended")
        sys.stdin.readline()
        _, status = os.waitpid(child, 0)
        say(os.waitstatus_to_exitcode(status))


def build_once(clock, workers):
    """Do what ``manage.py build_sitemaps`` does by a wrong clock; return the exit code."""
    from tests.killloop.clock import jump

    jump(clock)
    try:
        call_command("build_sitemaps", workers=workers, verbosity=0)
    except CommandError as error:
        return error.returncode
    except DatabaseError:
        traceback.print_exc()
        return DATABASE_ERROR
    except BaseException:  # noqa: BLE001  all that is no defined end is a finding
        traceback.print_exc()
        return BUG
    return 0


class Quiet(WSGIRequestHandler):
    """Logs nothing but errors."""

    def log_request(self, *_):
        """Say nothing of a request."""


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own, on a socket that is open already."""

    daemon_threads = True

    def __init__(self, listener):
        super().__init__(listener.getsockname(), Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self.set_app(get_wsgi_application())


def web(_seed):
    """Serve the site until killed."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Server(socket.socket(fileno=int(os.environ["KILLLOOP_SOCKET"]))).serve_forever()


def writer(seed):
    """Change rows."""
    from tests.killloop.rows import keep_changing

    say(json.dumps({"changes": keep_changing(random.Random(seed), Stop())}))


def crawler(seed):
    """Crawl over HTTP, pass after pass, until the first that breaks the promise."""
    from tests.killloop.crawler import Crawler

    crawl(Crawler, seed)


def reader(seed):
    """Do the same with the exported files alone, without the views and the database."""
    from tests.killloop.crawler import ExportReader

    crawl(ExportReader, seed)


def crawl(kind, seed):
    """Crawl until asked to end."""
    from tests.killloop.crawler import Missed
    from tests.killloop.rows import permanent_paths
    from tests.killloop.settings import FOLDER, GRACE_SECONDS, SITEMAPKIT_BASE_URL

    stop = Stop()
    crawler = kind(SITEMAPKIT_BASE_URL, FOLDER, random.Random(seed))
    permanent = permanent_paths()
    counts = Counter(passes=0, late=0)
    while not stop():
        began = time.monotonic()
        try:
            crawler.check(permanent)
        except Missed:
            if time.monotonic() - began < GRACE_SECONDS * WORST_PASS:
                raise
            counts["late"] += 1
        else:
            counts["passes"] += 1
    say(json.dumps({**counts, "reads": crawler.reads, "generations": len(crawler.generations)}))


if __name__ == "__main__":
    django.setup()
    roles = {each.__name__: each for each in (builder, crawler, reader, web, writer)}
    roles[sys.argv[1]](int(sys.argv[2]))
