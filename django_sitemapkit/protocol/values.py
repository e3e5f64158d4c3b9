"""The two hints an entry may carry: ``priority`` and ``changefreq``."""

import re
from decimal import Decimal

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.protocol.limits import CHANGEFREQS

_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def format_priority(value: object) -> str | None:
    """Return ``value`` as the text of a ``priority`` tag, or None for None.

    ``value`` is an int, a float, a Decimal or decimal text from 0.0 to 1.0; six decimals are kept
    at most, so that 0.1 + 0.2 is "0.3". Raises RefusedValue for anything else: NaN, a bool, a
    decimal comma, an exponent in text.
    """
    if value is None:
        return None
    if (isinstance(value, str) and _DECIMAL.fullmatch(value)) or (
        isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    ):
        try:
            number = round(float(value), 6)
        except (OverflowError, ValueError) as error:
            raise _refused_priority(value) from error
    else:
        raise _refused_priority(value)
    if not 0 <= number <= 1:  # as NaN is not
        raise _refused_priority(value)
    text = f"{abs(number):.6f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def format_changefreq(value: object) -> str | None:
    """Return ``value`` as the text of a ``changefreq`` tag, or None for None.

    Raises RefusedValue unless ``value`` is one of the seven words of the protocol, in lower case.
    """
    if value is None:
        return None
    if isinstance(value, str) and value in CHANGEFREQS:
        return str.__str__(value)  # the word itself, also of a member of an Enum
    words = "always, hourly, daily, weekly, monthly, yearly, never"
    raise RefusedValue(
        "invalid-tag-value", f"Invalid tag value: changefreq {value!r} is not one of {words}."
    )


def _refused_priority(value: object) -> RefusedValue:
    return RefusedValue(
        "invalid-tag-value",
        f"Invalid tag value: priority {value!r} is not a decimal number from 0.0 to 1.0.",
    )
