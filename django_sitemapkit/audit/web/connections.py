"""Which addresses may be fetched from, and connections to checked ones.

These are read by a deadline, and kept for the next page. A socket's timeout is for each read: at
one byte a minute, headers could take forever. Here each read gets no more than what is left of the
page's time.
"""

import io
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from threading import local
from typing import Any
from urllib.parse import SplitResult

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from django_sitemapkit.audit.web.responses import FetchError
from django_sitemapkit.deadlines import FinalResponse
from django_sitemapkit.printable import quoted

MAX_SERVERS = 16
"""Servers to which connections are kept open."""

MAX_IDLE = 64
"""Connections to one server that are kept open."""

Resolve = Callable[[str, int], Sequence[str]]
"""Gives the addresses of a host and port; raises OSError where there are none."""

KNOWN_HOST = "example.com"
"""A host that the public internet has (RFC 2606)."""

_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
"""Errors of a name that does not exist, or not as a host. All others may pass."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")

# The table of `ipaddress` differs between releases of Python. This is IANA's, of IPv4 and IPv6
# special-purpose addresses, of October 2025; without AS112 and AMT relays, which are hosts.
_SPECIAL_NETWORKS = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
    192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
    224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20
"""
_SPECIAL = tuple(map(ip_network, _SPECIAL_NETWORKS.split()))


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the system's order.

    The time limit of a page does not cover this: getaddrinfo() has no time-out, so a look-up takes
    as long as the system's resolver tries (resolv.conf: five seconds, twice, for each name server).
    It could only be cut short in a thread of its own, which would take ten times the CPU time of
    the look-up for each page, and would go on in the background.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def checked_addresses(
    host: str, port: int, resolve: Resolve, *, allow_private: bool
) -> Sequence[str]:
    """Return the addresses of a host; all of them are public, unless ``allow_private`` is set.

    Raises FetchError if it has none, or one of them is not public. The caller connects to one of
    these, not to the host: a second look-up may give another one.
    """
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as error:
        code = "no-such-host" if _means_no_such_host(error, resolve) else "unknown-host"
        raise FetchError(code, f"{quoted(host)} has no address: {error}.") from error
    if not addresses:
        raise FetchError("unknown-host", f"{quoted(host)} has no address.")
    for address in addresses:
        if not allow_private and not is_public(address):
            raise FetchError(
                "refused-address",
                f"{quoted(host)} has the address {address}, which is not public:"
                " --allow-private allows it.",
            )
    return addresses


def _means_no_such_host(error: Exception, resolve: Resolve) -> bool:
    """Return whether a look-up failed because the host does not exist.

    False if another host is not found either: the resolvers of some networks know only their own.
    """
    if isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST:
        with suppress(OSError):
            return bool(resolve(KNOWN_HOST, 80))
    return False


def is_public(address: str) -> bool:
    """Return whether an IP address is a unicast address of the public internet.

    An IPv6 address of a translator or tunnel is as public as the IPv4 address embedded in it.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        from_nat64 = IPv4Address(int(ip) & 0xFFFF_FFFF) if ip in _NAT64 else None
        embedded = from_nat64 or ip.ipv4_mapped or ip.sixtofour
        if embedded is None and ip not in _GLOBAL_UNICAST:
            return False
        ip = embedded or ip
    return not any(ip in network for network in _SPECIAL)


def is_loopback(address: str) -> bool:
    """Return whether an IP address is this machine's own."""
    return ip_address(address).is_loopback


class Stopwatch:
    """Measures the time spent on a page against its limit, without deliberate waits."""

    def __init__(self, limit: float) -> None:
        self._end = time.monotonic() + limit
        self.restart()

    @property
    def left(self) -> float:
        """Seconds left; 0 when the time is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def seconds(self) -> float:
        """Seconds since the start or restart."""
        return time.monotonic() - self._start

    def restart(self) -> None:
        """Count the seconds from zero again; the limit keeps running."""
        self._start = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Subtract seconds that were just waited: they count neither as spent nor for the limit."""
        self._start += seconds
        self._end += seconds


class Budget:
    """The limits of one request and its response: the page's remaining time, and a size."""

    def __init__(self, watch: Stopwatch, timeout: float, max_bytes: int) -> None:
        self._watch = watch
        self._timeout = timeout
        self._room = max_bytes

    @property
    def timeout(self) -> float:
        """Seconds that the next read may take; raises TimeoutError if no time is left."""
        if not (left := self._watch.left):
            raise TimeoutError
        return min(left, self._timeout)

    def spend(self, received: int) -> None:
        """Count received bytes; raise FetchError if they are too many."""
        self._room -= received
        if self._room < 0:
            raise FetchError("too-large", "The server does not stop sending.")


_thread = local()
"""Has the budget of the exchange that a thread makes."""


class _LimitedFile(io.RawIOBase):
    """What a socket receives for one response; reading raises when its budget is spent."""

    def __init__(self, connected: socket.socket, file: io.RawIOBase) -> None:
        self._socket = connected
        self._file = file

    def readable(self) -> bool:
        """Return True, as io.BufferedReader requires."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer within the time and size that the thread's budget allows."""
        self._socket.settimeout(_thread.budget.timeout)
        received = self._file.readinto(buffer)
        _thread.budget.spend(received or 0)
        return received

    def close(self) -> None:
        """Close the file that reads from the socket."""
        self._file.close()
        super().close()


class _LimitedResponse(FinalResponse):
    """A response that is read within the budget of the current thread."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_LimitedFile(sock, self.fp.detach()), 65_536)


class _LimitedConnection(HTTPConnection):
    response_class = _LimitedResponse


class _LimitedTlsConnection(HTTPSConnection):
    response_class = _LimitedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _LimitedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _LimitedTlsConnection


class Connections:
    """Keeps connections to servers open for several threads, by urllib3's pools."""

    def __init__(self) -> None:
        self._pools = PoolManager(MAX_SERVERS, maxsize=MAX_IDLE)
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    @cached_property
    def _tls_context(self) -> ssl.SSLContext:
        """The TLS context that all connections share; loading certificates takes time."""
        return ssl.create_default_context()

    def pool(self, url: SplitResult, address: str) -> HTTPConnectionPool:
        """Return the pool of connections to ``address``, one of the addresses of the URL's host."""
        is_tls = url.scheme == "https"
        # The certificate must be that of the host.
        options = (
            {"ssl_context": self._tls_context, "server_hostname": url.hostname} if is_tls else {}
        )
        return self._pools.connection_from_host(address, url.port, url.scheme, options)

    def request(
        self,
        url: SplitResult,
        address: str,
        headers: dict[str, str],
        budget: Budget,
        method: str,
    ) -> BaseHTTPResponse:
        """Request a URL from the server at ``address``; return the response, still unread.

        This thread must read it, which counts against the budget.
        """
        _thread.budget = budget
        return self.pool(url, address).urlopen(
            method,
            f"{url.path}?{url.query}" if url.query else url.path,
            headers=headers,
            redirect=False,
            retries=False,
            timeout=budget.timeout,
            preload_content=False,
            decode_content=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pools.clear()
