"""Only addresses of the public internet are public."""

import socket

import pytest

from django_sitemapkit.audit.web.connections import checked_addresses, is_public, resolve
from django_sitemapkit.audit.web.responses import FetchError

PRIVATE = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.254 127.0.0.1 127.255.255.254 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe 100::1 fc00::1
    fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1 2001::1 2001:db8::1 2002:7f00:1::
    2002:a00:1::1 2002:a9fe:a9fe:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1
    64:ff9b:1::1 64:ff9b:1::808:808 4000::1 192.88.99.1 192.0.0.9 192.0.0.10
    2001:1::1 2001:4:112::1 2001:20::1 2001:30::1 2001:1ff:: 3fff::1 3fff:fff:ffff::1 5f00::1
    100:0:0:1::1 ::ffff:192.88.99.1 64:ff9b::c058:6301 2002:c058:6301:: 2002:e000:1::
    localhost 127.1 0x7f.1
"""
PUBLIC = """
    8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.1 172.32.0.1 2001:4860:4860::8888 2606:4700::1111
    ::ffff:8.8.8.8 2002:808:808:: 64:ff9b::808:808 192.88.98.1 192.0.1.1 223.255.255.254
    192.31.196.1 192.52.193.1 192.175.48.1 2001:200::1 2620:4f:8000::1 3ffe::1 3fff:1000::1
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private(address):
    """Loopback, private, link-local, shared, multicast, reserved, special; in IPv6 as well.

    By a table of the package: releases of Python differ in several of these.
    """
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public(address):
    """An IPv6 address is as public as the IPv4 address in it."""
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "::1"]
)
def test_forms_of_loopback(host):
    """Whatever the system takes for an address is checked as that address."""
    with pytest.raises(FetchError) as raised:
        checked_addresses(host, 80, resolve, allow_private=False)
    assert raised.value.code == "refused-address"
    assert set(checked_addresses(host, 80, resolve, allow_private=True)) <= {"127.0.0.1", "::1"}


def test_one_private_address_is_enough():
    """A host that has both kinds is refused."""
    with pytest.raises(FetchError, match=r"10\.0\.0\.1, which is not public: --allow-private"):
        checked_addresses("a", 80, lambda *a: ["8.8.8.8", "10.0.0.1"], allow_private=False)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "no-such-host"),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "unknown-host"),
        (UnicodeError("label too long"), "unknown-host"),
    ],
)
def test_unknown_hosts(error, code):
    """One that does not exist has another code, if the resolver knows the public internet."""

    def fail(host, port):
        raise error

    def fail_once(host, port):
        return ["8.8.8.8"] if host == "example.com" else fail(host, port)

    for unknown, expected in (
        (fail_once, code),
        (fail, "unknown-host"),
        (lambda *a: [], "unknown-host"),
    ):
        with pytest.raises(FetchError, match="has no address") as raised:
            checked_addresses("a", 80, unknown, allow_private=True)
        assert raised.value.code == expected
