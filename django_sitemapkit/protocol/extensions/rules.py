"""What the tags of images, videos and news may contain: one table, for writing and validating.

The writers of ``elements`` and the validator both check each text by the rule of its tag, so that
what is written is valid. The limits are Google's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted
from django_sitemapkit.protocol.dates import parse_w3c
from django_sitemapkit.protocol.limits import (
    MAX_DESCRIPTION,
    MAX_DURATION,
    MAX_RATING,
    MAX_UPLOADER,
)
from django_sitemapkit.protocol.locations import check_url
from django_sitemapkit.protocol.values import is_decimal

_SECONDS = re.compile("[0-9]{1,18}")

Check = Callable[[str], object]
"""Raises InvalidValue where a text is not valid."""


@dataclass(frozen=True, slots=True)
class TagRule:
    """What one tag of an extension may contain."""

    name: str
    """The tag with its prefix: ``video:view_count``."""
    field: str
    """The name for projects: ``views of a video``."""
    check: Check
    """Raises InvalidValue where a text, without white space around it, is not valid."""
    required: bool = False
    """Whether the extension must have it, and not empty."""


def on_same_host(url: str, page: str) -> bool:
    """Return whether two URLs have the same host; scheme and port may differ."""
    try:
        return urlsplit(url).hostname == urlsplit(page).hostname
    except ValueError:
        return False


def _accept_any_text(_text: str) -> None:
    """Accept every text: the check of a tag whose text is free."""


def _check_pattern(pattern: re.Pattern[str], why: str, text: str) -> None:
    """Raise InvalidValue, with the reason ``why``, unless all of a text matches a pattern."""
    if not pattern.fullmatch(text):
        raise invalid_text(text, why)


def _check_length(most: int, text: str) -> None:
    """Raise InvalidValue if a text has more than ``most`` characters."""
    if len(text) > most:
        raise invalid_text(text, f"has {len(text):,} characters, {most:,} at most")


def _check_words(check: Check, text: str) -> None:
    """Raise InvalidValue if a text has no word, or one that does not pass ``check``."""
    words = text.split()
    if not words:
        raise invalid_text(text, "is empty")
    for word in words:
        check(word)


def _check_duration(text: str) -> None:
    """Raise InvalidValue unless a text is a number of seconds that a video may have."""
    if not _SECONDS.fullmatch(text) or not 1 <= int(text) <= MAX_DURATION:
        raise invalid_text(text, f"is not from 1 to {MAX_DURATION:,} whole seconds")


def _check_rating(text: str) -> None:
    """Raise InvalidValue unless a text is a decimal number from 0 to 5."""
    if not is_decimal(text, MAX_RATING):
        raise invalid_text(text, f"is not a decimal number from 0.0 to {MAX_RATING}.0")


def invalid_text(text: object, why: str) -> InvalidValue:
    """Return the error for a text that a tag must not have; ``why`` follows the quoted text."""
    return InvalidValue("invalid-tag-value", f"{quoted(text)} {why}.", "Invalid tag value")


check_country = partial(
    _check_pattern,
    re.compile("[A-Z]{2}"),
    "is not a country of ISO 3166-1: two capital letters",
)
"""Raises InvalidValue unless a text has the form of a country's code."""
check_platform = partial(
    _check_pattern, re.compile("web|mobile|tv"), "is not one of web, mobile, tv"
)
"""Raises InvalidValue unless a text is a platform."""
_check_views = partial(_check_pattern, re.compile("[0-9]+"), "is not a whole number, 0 or more")
_check_yes_or_no = partial(_check_pattern, re.compile("(?ai:yes|no)"), "is neither yes nor no")
_check_news_language = partial(
    _check_pattern,
    re.compile("(?ai:[a-z]{2,3}|zh-cn|zh-tw)"),
    "is neither a code of ISO 639, two or three letters, nor zh-cn or zh-tw",
)

# Google's pages do not require an order of a video's tags; this is that of sitemap-video.xsd.
# Other tags are ignored: Google has dropped many of them, and ignores them silently.
RULES: Mapping[str, Mapping[str, TagRule]] = {
    "image": {"loc": TagRule("image:loc", "location of an image", check_url, required=True)},
    "video": {
        tag: TagRule(f"video:{tag}", f"{field} of a video", check, required)
        for tag, field, check, required in (
            ("thumbnail_loc", "thumbnail", check_url, True),
            ("title", "title", _accept_any_text, True),
            ("description", "description", partial(_check_length, MAX_DESCRIPTION), True),
            ("content_loc", "content", check_url, False),
            ("player_loc", "player", check_url, False),
            ("duration", "duration", _check_duration, False),
            ("expiration_date", "expires", parse_w3c, False),
            ("rating", "rating", _check_rating, False),
            ("view_count", "views", _check_views, False),
            ("publication_date", "published", parse_w3c, False),
            ("tag", "tag", _accept_any_text, False),
            ("family_friendly", "family_friendly", _check_yes_or_no, False),
            ("restriction", "restriction", partial(_check_words, check_country), False),
            ("requires_subscription", "requires_subscription", _check_yes_or_no, False),
            ("uploader", "uploader", partial(_check_length, MAX_UPLOADER), False),
            (
                "platform",
                "platform",
                partial(_check_words, lambda word: check_platform(word.lower())),
                False,
            ),
            ("live", "live", _check_yes_or_no, False),
        )
    },
    "news": {
        "publication": TagRule("news:publication", "", _accept_any_text),
        "publication/name": TagRule(
            "news:name", "publication of news", _accept_any_text, required=True
        ),
        "publication/language": TagRule(
            "news:language", "language of news", _check_news_language, required=True
        ),
        "publication_date": TagRule(
            "news:publication_date", "published of news", parse_w3c, required=True
        ),
        "title": TagRule("news:title", "title of news", _accept_any_text, required=True),
    },
}
"""The rule of each tag by its extension, and by its path within the extension's element."""
