"""Heartbeats: work that takes long calls ``heartbeat()`` between two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_heard: ContextVar[Callable[[], None] | None] = ContextVar("heard", default=None)


def heartbeat() -> None:
    """Signal that work goes on, to the lease in force; without one, nothing happens.

    Raises what ends the work, such as LeaseLost.
    """
    if (heard := _heard.get()) is not None:
        heard()


@contextmanager
def calling_on_heartbeat(heard: Callable[[], None]) -> Iterator[None]:
    """Have each heartbeat in this block call ``heard``, such as that of a lease.

    What it raises ends the work.
    """
    before = _heard.get()
    _heard.set(heard)
    try:
        yield
    finally:
        _heard.set(before)  # By no token: a generator may be closed in another context.
