"""Text from elsewhere cannot forge a line of a log or a terminal, or give it orders."""

import logging

import pytest

from django_sitemapkit import ItemSection, checks, exceptions
from django_sitemapkit.printable import printable, printable_lines, quoted, writable
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.publishing import SitemapStorage
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering, ProblemLog
from tests.factories import SITE
from tests.testapp.serving import Products, declare

EVIL = "gone\nERROR forged\r\x1b[2J\x00\u202e\u2028\udc80"
SHOWN = r"gone\nERROR forged\r\x1b[2J\x00\u202e\u2028\udc80"


def test_what_cannot_be_seen_is_escaped():
    """Text of any language and spaces of any width stay as they are."""
    assert printable(EVIL) == SHOWN
    assert printable(OSError(EVIL)) == SHOWN
    fine = "Éclair 日本 \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE} 😀 \\n"
    assert printable(fine) == fine
    assert printable(printable(EVIL)) == SHOWN
    assert printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"


@pytest.mark.parametrize(
    "kind",
    [exceptions.StorageFailure, exceptions.BuildFailed, exceptions.BuildRunning],
)
def test_an_error_is_one_line(kind):
    """Whatever the error of a storage or a database that it tells."""
    assert str(kind(f"It failed: {EVIL}")) == f"It failed: {SHOWN}"
    assert str(exceptions.InvalidValue("invalid-url", EVIL)) == SHOWN


def test_a_problem_is_one_line():
    """So are a row's key and the message."""
    problems = ProblemLog("products")
    problems.add(EVIL, exceptions.InvalidValue("exception", EVIL))
    assert printable(problems.summary()) == problems.summary()
    assert SHOWN in problems.summary()


def test_a_record_of_the_log_is_one_line(caplog):
    """The storage's own words reach it escaped."""

    class Broken:
        def listdir(self, folder):
            raise OSError(EVIL)

    assert SitemapStorage(Broken()).names("sitemaps") is None
    (record,) = caplog.records
    assert record.getMessage() == f"sitemaps could not be listed: {SHOWN}"
    assert "\x1b" not in caplog.text


def test_a_traceback_in_the_log_forges_no_record(caplog):
    """Its lines are indented, so that none looks like a record of its own."""
    log = logging.getLogger("django_sitemapkit")
    for text in (EVIL, "plain"):
        try:
            raise ValueError("outer") from OSError(text)
        except ValueError:
            log.exception("It broke.")
    evil, plain = caplog.text.split("It broke.\n")[1:]
    lines = evil.split("\n")[:-2]  # The last one begins the next record.
    assert "  OSError: gone" in lines
    assert all(line.startswith("  ") and printable(line) == line for line in lines)
    assert plain.startswith("  OSError: plain\n")


def test_notes_groups_and_broken_exceptions_are_logged(caplog):
    """Whatever an exception brings: its notes, those in it, one without a text, one in a circle."""

    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    noted, circle = ValueError("plain"), ValueError("circle")
    noted.add_note(EVIL)
    circle.__cause__ = OSError("other")
    circle.__cause__.__cause__ = circle
    log = logging.getLogger("django_sitemapkit")
    for error in (noted, circle, Silent(), ExceptionGroup("many", [OSError(EVIL)])):
        log.error("It broke.", exc_info=error)
    assert "\x1b" not in caplog.text
    assert caplog.text.count("It broke.") == 4


@pytest.mark.parametrize("error", [ValueError])
def test_a_check_tells_it_in_one_line(sections, error):
    """What a project's code raises is shown by ``manage.py check``."""

    def rows(self):
        raise error(EVIL)

    declare(sections, Products, get_queryset=rows)
    (message,) = checks.declarations.check_declarations()
    assert message.msg.startswith(f"Section 'products': rows() raised ValueError: {SHOWN} (")
    assert message.msg.isprintable()


class Unspeakable:
    """An object whose text cannot be made, such as one of a model that follows an empty key."""

    def __str__(self):
        raise AttributeError("'NoneType' object has no attribute 'name'")

    __repr__ = __str__


def test_what_has_no_text_is_named_by_its_class():
    """It costs its row, and not the page that reports it."""
    assert writable(None) is None
    assert quoted(Unspeakable()) == "'<Unspeakable>'"

    class Things(ItemSection):
        name = "things"
        items = [Unspeakable(), 2]
        location = staticmethod(lambda item: "/2/" if item == 2 else item)
        priority = staticmethod(lambda item: Unspeakable())
        images = staticmethod(lambda item: [Unspeakable()])

    page = PageRendering(reader_of(Things(SITE)), EVERYTHING, Scope(SITE.origin))
    assert b"".join(page).count(b"<url>") == 1
    assert set(page.problems.by_code()) == {"invalid-url", "invalid-tag-value"}
    assert "'<Unspeakable>': Invalid URL: '<Unspeakable>'" in page.problems.summary()
