"""A server of S3's interface for tests, in a process of its own, and storages in its buckets.

Under ``TEST_STORAGE=s3`` ``tests.builds.storages`` stores there what is in memory otherwise.
"""

import atexit
import io
import os
import subprocess
import sys
import threading
import uuid
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from django_sitemapkit.contrib.s3 import SitemapS3Storage

ACCESS = {"access_key": "nobody", "secret_key": "nothing", "region_name": "us-east-1"}
BUCKET = "sitemaps"

ATTEMPT_ONCE = Config(retries={"total_max_attempts": 1})
"""Leaves retries to the package, so that no test waits for those of boto3."""


def start_server() -> tuple[subprocess.Popen[str], str]:
    """Start a server; return its process, which ends with this one, and its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.s3"],
        cwd=Path(__file__).resolve().parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    endpoint = server.stdout.readline().strip()
    assert endpoint, "no server of S3's interface has started"
    return server, endpoint


@cache
def shared_endpoint() -> str:
    """Return the address of a server for the rest of this process, with a bucket."""
    server, endpoint = start_server()
    atexit.register(server.communicate)
    connect(endpoint).create_bucket(Bucket=BUCKET)
    return endpoint


class Bucket(SitemapS3Storage):  # type: ignore[misc]
    """A place of its own in the bucket of the shared server, empty at first."""

    def __init__(self, **options: Any) -> None:
        options = {
            "bucket_name": BUCKET,
            "endpoint_url": shared_endpoint(),
            "location": uuid.uuid4().hex,
            "client_config": ATTEMPT_ONCE,
            **ACCESS,
            **options,
        }
        super().__init__(**options)

    @property
    def connection(self) -> Any:
        """A connection that all these storages share: to make one takes long, and much memory."""
        return _connection(threading.get_ident(), self.endpoint_url)


def connect(endpoint: str) -> Any:
    """Return boto3's interface to a server."""
    return boto3.resource(
        "s3",
        endpoint_url=endpoint,
        region_name=ACCESS["region_name"],
        aws_access_key_id=ACCESS["access_key"],
        aws_secret_access_key=ACCESS["secret_key"],
        config=ATTEMPT_ONCE,
    )


@cache
def _connection(_thread: int, endpoint: str) -> Any:
    return connect(endpoint)


def serve() -> None:
    """Serve until the process that asked for it is gone, and say where."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    moto, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def application(environ: Any, start_response: Any) -> Any:
        # S3 stores nothing of a file that a killed process has sent in part, and a reader gets an
        # object as it was before or after it is replaced. moto does neither.
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        if len(body) < length:
            start_response("400 Bad Request", [])
            return [b""]
        environ["wsgi.input"] = io.BytesIO(body)
        with lock:
            return list(moto(environ, start_response))

    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(f"http://127.0.0.1:{server.port}", flush=True)  # noqa: T201
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve()
