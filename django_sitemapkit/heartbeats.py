"""Heartbeats: work that takes long calls ``heartbeat()`` between two steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Heard(Protocol):
    """What has to hear that work goes on, such as a lease."""

    def heartbeat(self) -> None:
        """Hear it. Raises an error to end the work."""


_heard: ContextVar[Heard | None] = ContextVar("heard", default=None)


def heartbeat() -> None:
    """Say that work goes on, such as to the lease in force; without one, nothing happens.

    Raises what ends the work, such as LeaseLost.
    """
    if (heard := _heard.get()) is not None:
        heard.heartbeat()


@contextmanager
def heard_by(heard: Heard) -> Iterator[None]:
    """Let heartbeats in this block be heard by a lease, or by what renews one."""
    before = _heard.get()
    _heard.set(heard)
    try:
        yield
    finally:
        _heard.set(before)  # By no token: a generator may be closed in another context.
