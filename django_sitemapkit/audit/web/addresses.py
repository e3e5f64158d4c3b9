"""Which IP addresses belong to the public internet, and may be fetched from."""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from django_sitemapkit.audit.web.responses import FetchError
from django_sitemapkit.printable import quoted

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
