"""Requests that end by a deadline; what uses them is tested with servers that send slowly."""

import pytest

from django_sitemapkit.deadlines import Deadline, open_url
from tests.submission.engines import Dripping, Quiet, serving


class Fine(Quiet):
    """Answers at once."""

    def do_GET(self):  # noqa: N802
        self.answer(200, {})


class Hinting(Fine):
    """Answers with 103 Early Hints first."""

    def do_GET(self):  # noqa: N802
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        super().do_GET()


def get(address, seconds):
    """Return the status of what an address answers within some seconds."""
    with open_url(address, Deadline(seconds), timeout=10) as response:
        return response.status


@pytest.mark.slow
def test_an_answer_in_time():
    """Nothing is cut off."""
    with serving(Fine) as address:
        assert get(address, 60) == 200


@pytest.mark.slow
def test_an_answer_after_an_informational_one():
    """It is the one that counts."""
    with serving(Hinting) as address:
        assert get(address, 60) == 200


@pytest.mark.slow
def test_an_answer_that_comes_slowly():
    """Headers that were cut off are not taken for all."""
    with serving(Dripping) as address, pytest.raises(TimeoutError, match=r"of 0\.2 seconds"):
        get(address, 0.2)


@pytest.mark.slow
def test_no_time_at_all():
    """A deadline that has passed is a time-out, whatever the server does."""
    with serving(Quiet) as address, pytest.raises(TimeoutError, match="of 0 seconds"):
        get(address, 0)


def test_other_errors_are_not_time_outs():
    """They are raised as they are."""
    with pytest.raises(OSError, match="refused"):
        get("http://127.0.0.1:1/", 60)
