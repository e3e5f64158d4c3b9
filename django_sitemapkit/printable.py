"""Text from elsewhere, made fit for a log, a terminal or a line of a table.

Exceptions, storages, servers and rows may hold line feeds, which forge lines of a log, and escape
sequences, which a terminal obeys. `printable` is the one function for all of them. Every error of
the package, every record of its log and every line that its commands print goes through it.
"""

import logging
import re
import traceback
import unicodedata
from contextlib import suppress

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

logger = logging.getLogger("django_sitemapkit")


def printable(value: object) -> str:
    r"""Return a value as one line of text that does nothing but show itself.

    Control characters, line separators, invisible and undecodable characters become escapes such
    as ``\n`` and ``\x1b``. Spaces of any width stay.
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_escaped_character, text))


def without_controls(text: str) -> str:
    """Escape control characters; line feeds, tabs and what joins letters and emoji stay."""
    return _CONTROLS.sub(lambda found: _escaped_character(found[0]), text)


def writable(value: object) -> object:
    """Return a value, or the name of its class if its ``__str__()`` or ``__repr__()`` raises."""
    with suppress(Exception):  # Such as a model's that follows an empty foreign key.
        if f"{value} {value!r}":
            return value
    return f"<{type(value).__name__}>"


def quoted(value: object) -> str:
    """Return a value as Python writes it, in ASCII, and shortened where it is long."""
    text = ascii(writable(value))
    return text if len(text) <= 120 else f"{text[:100]}...{text[-16:]}"


def printable_lines(value: object) -> str:
    """Return a text of several lines, each made `printable`."""
    return "\n".join(map(printable, str(value).split("\n")))


def count_of(number: int, thing: str) -> str:
    """Return a count with its noun: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _escaped_character(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def _make_printable(record: logging.LogRecord) -> bool:
    """Let every record pass, and rewrite a message and a traceback that hold more than text."""
    with suppress(Exception):  # The handler reports what cannot be written.
        message = record.getMessage()
        if (shown := printable(message)) != message:
            record.msg, record.args = shown, None
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        # Indented, so that no line of an exception's text looks like a record of its own.
        lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
        record.exc_text = "\n".join(f"  {printable(line)}" for line in lines)
    return True


logger.addFilter(_make_printable)
