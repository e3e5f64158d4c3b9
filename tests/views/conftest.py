"""What tests of the views share."""

from dataclasses import dataclass

import pytest
from asgiref.sync import async_to_sync
from django.core.signals import request_finished, request_started
from django.db import DatabaseError, close_old_connections

from tests.views.asgi import Reader
from tests.views.remote import Remote


@pytest.fixture
def one_connection():
    """Let a handler driven by hand use the test's own connection, and leave it open."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@pytest.fixture
def remote(settings, monkeypatch):
    """Store sitemaps elsewhere, and give what notes how they are read there."""
    settings.STORAGES = {
        **settings.STORAGES,
        "sitemaps": {"BACKEND": "tests.views.remote.Remote"},
    }
    monkeypatch.setattr(Remote, "reads", [])
    monkeypatch.setattr(Remote, "open_files", 0)
    return Remote


@dataclass
class Answer:
    """What a reader has got, and the error that cut it off."""

    status: int
    headers: dict
    body: bytes
    error: Exception | None = None


def ask_wsgi(client, address):
    """Answer through Django's test client."""
    client.raise_request_exception = False
    response = client.get(address)
    sent, error = [], None
    try:
        sent += response if not response.streaming else response.streaming_content
    except DatabaseError as caught:
        error = caught
    return Answer(response.status_code, dict(response.items()), b"".join(sent), error)


async def ask_asgi(address):
    """Answer through the ASGI handler."""
    reader, error = Reader(address), None
    reader.may_go_on.set()
    try:
        await reader.ask()
    except DatabaseError as caught:
        error = caught
    start = reader.messages[0]
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, reader.body, error)


@pytest.fixture(params=["wsgi", "asgi"])
def ask(request, client):
    """Return what asks for an address, under WSGI and under ASGI."""
    if request.param == "wsgi":
        return lambda address: ask_wsgi(client, address)
    request.getfixturevalue("one_connection")
    return async_to_sync(ask_asgi)
