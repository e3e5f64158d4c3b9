"""robots.txt: what may be crawled, by Google's rules (RFC 9309), which protego implements.

The one module that needs protego, of the extra ``audit``.
"""

import re
from dataclasses import replace

from protego import Protego

from django_sitemapkit.audit.web.responses import Fetched

ROBOT = "django-sitemapkit"
"""The name by which other sites may forbid something to us."""

MAX_ROBOTS_BYTES = 512_000
"""How much of a robots.txt counts: 500 KiB."""

_VERSIONED = re.compile(
    r"(?<![^\r\n])([ \t]*+user-agent[ \t]*+:[ \t]*+[a-z_-]++)[/ ][^#\r\n]*+", re.IGNORECASE
)
"""A user agent with its version, such as Googlebot/2.1: Google and RFC 9309 read only the name."""

_NOTHING = "User-agent: *\nDisallow: /"


class RobotsRules:
    """The rules of one origin's robots.txt."""

    def __init__(
        self, text: str = "", *, unavailable: str = "", answer: Fetched | None = None
    ) -> None:
        # A byte order mark is no part of the first line (RFC 9309, 2.3).
        counted = text.encode("utf-8", "replace")[:MAX_ROBOTS_BYTES].decode("utf-8", "ignore")
        self._rules = Protego.parse(_VERSIONED.sub(r"\1", counted.removeprefix("\ufeff")))
        self.unavailable = unavailable
        """Why the file could not be read, so that nothing may be fetched for now."""
        self.answer = answer
        """The answer for a file that could not be read, without its body."""

    @classmethod
    def of(cls, fetched: Fetched) -> "RobotsRules":
        """Return the rules of a robots.txt, given the result of fetching it.

        If the file does not exist (4xx), everything is allowed. While the server fails (5xx, 429,
        no response, or a part of the file), nothing is (RFC 9309, 2.3.1).
        """
        status = fetched.status
        is_cut = fetched.failure and fetched.failure_code != "too-large"
        if status is None or status >= 500 or status == 429 or (200 <= status < 300 and is_cut):
            why = f"{fetched.url} cannot be read, so nothing may be crawled: {fetched.status_text}"
            return cls(_NOTHING, unavailable=why, answer=replace(fetched, body=b""))
        if not 200 <= status < 300:
            return cls()
        return cls(fetched.body[:MAX_ROBOTS_BYTES].decode("utf-8", "replace"))

    def allows(self, url: str, user_agent: str = "Googlebot") -> bool:
        """Return whether a crawler may fetch an absolute URL of this origin."""
        return self._rules.can_fetch(url, user_agent)

    def crawl_delay(self, user_agent: str = "Googlebot") -> float:
        """Return the ``Crawl-delay`` in seconds; 0 if there is none.

        It is the longer one of those for ``user_agent`` and for ``django-sitemapkit``.
        """
        return max(self._rules.crawl_delay(agent) or 0.0 for agent in (user_agent, ROBOT))
