"""The two hints an entry may carry: ``priority`` and ``changefreq``."""

import re
from decimal import Decimal

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.limits import CHANGEFREQS

_PLAIN_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_XSD_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


def format_priority(value: object) -> str | None:
    """Return ``value`` as the text of a ``priority`` tag, or None for None.

    ``value`` is an int, a float, a Decimal or decimal text from 0.0 to 1.0; at most six decimals
    are kept, so that 0.1 + 0.2 is "0.3". Raises InvalidValue for anything else: NaN, a bool, a
    decimal comma, an exponent in text.
    """
    if value is None:
        return None
    if (isinstance(value, str) and _PLAIN_DECIMAL.fullmatch(value)) or (
        isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    ):
        try:
            number = round(float(value), 6)
        except (OverflowError, ValueError) as error:
            raise _invalid_priority(value) from error
    else:
        raise _invalid_priority(value)
    if not 0 <= number <= 1:  # NaN is neither.
        raise _invalid_priority(value)
    text = f"{abs(number):.6f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def check_priority(text: str) -> None:
    """Raise InvalidValue unless ``text`` is a valid ``priority`` as sitemap.xsd defines it."""
    if not is_decimal(text, 1):
        raise _invalid_priority(text)


def is_decimal(text: str, most: int) -> bool:
    """Return whether ``text`` is a number from 0 to ``most``, as ``xsd:decimal``.

    It may have a sign, as in ``+0.5``, and may lack the digits on one side of its point.
    """
    return _XSD_DECIMAL.fullmatch(text) is not None and 0 <= Decimal(text) <= most


def format_changefreq(value: object) -> str | None:
    """Return ``value`` as the text of a ``changefreq`` tag, or None for None.

    Raises InvalidValue unless ``value`` is one of the seven words of the protocol, in lower case.
    """
    if value is None:
        return None
    if isinstance(value, str) and value in CHANGEFREQS:
        return str.__str__(value)  # The value of a member of an Enum.
    words = "always, hourly, daily, weekly, monthly, yearly, never"
    message = f"Invalid tag value: changefreq {quoted(value)} is not one of {words}."
    raise InvalidValue("invalid-tag-value", message)


def _invalid_priority(value: object) -> InvalidValue:
    return InvalidValue(
        "invalid-tag-value",
        f"Invalid tag value: priority {quoted(value)} is not a decimal number from 0.0 to 1.0.",
    )
