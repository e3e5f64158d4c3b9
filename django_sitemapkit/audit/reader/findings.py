"""What a reader finds wrong, kept in bounded memory."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from django_sitemapkit.printable import printable

Severity = Literal["error", "warning"]

Issue = tuple[str, str]
"""The code and the message of what is wrong."""

MAX_FINDINGS = 1_000
"""Findings that are kept; the others are only counted, so that memory stays bounded."""


WARNING_KINDS = frozenset(
    {
        *("doubtful-hreflang", "duplicate-across-files", "duplicate-url", "escaped-twice"),
        *("future-date", "invalid-feed-date", "long-title", "missing-return-link"),
        *("missing-self-link", "no-entries", "no-schema", "old-news", "short-url"),
        *("uncommon-date", "uncommon-form", "uncompared-links"),
    }
)
"""The codes of warnings: of reading a document, and of validating it."""

ERROR_KINDS = frozenset(
    {
        *("damaged-file", "http-error", "incomplete-answer", "redirect", "schema", "time-limit"),
        *("unreadable", "wrong-name"),
        *("compression-error", "doctype", "duplicate-hreflang", "empty-sitemap", "file-too-large"),
        *("html", "invalid-attribute-value", "invalid-date", "invalid-tag-value", "invalid-url"),
        *("invalid-xml-attribute", "invalid-xml-tag", "leading-whitespace"),
        *("missing-xml-attribute", "missing-xml-tag", "nested-index", "parsing-error"),
        *("stray-text", "too-deep", "too-many-sitemaps", "too-many-tags", "too-many-urls"),
        *("unknown-root", "url-not-allowed", "wrong-encoding", "wrong-namespace"),
        "wrong-tag-order",
    }
)
"""The codes of errors: of reading a document, and of fetching and validating it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One issue of a document, and where it is."""

    code: str
    """A short stable word for the kind of issue (``"invalid-date"``), fit for counting."""
    message: str
    """What is wrong, in the words of Search Console, with the value and how to correct it."""
    line: int | None = None
    """Its line, from 1; for an issue within an entry, the line where the entry begins."""
    location: str | None = None
    """The ``loc`` of its entry, at most 2,048 characters of it."""
    level: Severity = "error"
    """``"error"``: the document breaks the protocol; ``"warning"``: some readers may fail."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class FindingLog:
    """The findings of one document: the first thousand, the first of each kind, and all counts."""

    def __init__(self) -> None:
        self.examples: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def add_uncommon_form(self, why: str, line: int | None = None) -> None:
        """Add the warning that some readers reject the document because of its form."""
        self.add("uncommon-form", f"Uncommon form: {why}; some readers reject the file.", line)

    def add(
        self, code: str, message: str, line: int | None = None, location: str | None = None
    ) -> None:
        """Count an issue; keep it among the first thousand, or as the first of its kind."""
        self.counts[code] += 1
        if self.counts[code] == 1 or len(self.examples) < MAX_FINDINGS:
            self.examples.append(
                Finding(
                    code=code,
                    message=printable(message),
                    line=line,
                    location=location and location[:2_048],
                    level="warning" if code in WARNING_KINDS else "error",
                )
            )
