"""Hosts beyond ASCII, by IDNA 2008; imported only for such a host, because it needs ``[idna]``."""

import idna


def to_ascii(host: str) -> str:
    """Return ``host`` in its ASCII form (``bücher.example`` is ``xn--bcher-kva.example``).

    Raises UnicodeError where IDNA 2008 (RFC 5891) does not allow the name.
    """
    return idna.encode(host, uts46=True).decode("ascii")
