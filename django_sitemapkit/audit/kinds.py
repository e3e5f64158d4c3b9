"""The kinds of findings of audits and crawls, and what to do about each."""

from collections.abc import Mapping
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class FindingKind(TextChoices):
    """The kinds of findings of audits and crawls."""

    NOT_FOUND = "not-found", _("Not found")
    GONE = "gone", _("Gone")
    CLIENT_ERROR = "client-error", _("Client error")
    SERVER_ERROR = "server-error", _("Server error")
    NO_ANSWER = "no-answer", _("No answer")
    LOGIN = "login", _("Login required")
    REDIRECT = "redirect", _("Redirect")
    REDIRECT_LOOP = "redirect-loop", _("Redirect loop")
    REFRESH = "refresh", _("Meta refresh to another page")
    NOINDEX = "noindex", _("noindex")
    CANONICAL = "canonical", _("Canonical is another URL")
    ROBOTS = "robots", _("Blocked by robots.txt")
    SOFT_404 = "soft-404", _("Soft 404")
    CANONICAL_CONFLICT = "canonical-conflict", _("Several canonical URLs")
    HREFLANG = "hreflang", _("Language links differ")
    HREFLANG_CODE = "hreflang-code", _("Invalid language code")
    HREFLANG_SELF = "hreflang-self", _("Language links without the page itself")
    HREFLANG_TARGET = "hreflang-target", _("Language link to a page that is not indexed")
    HREFLANG_RETURN = "hreflang-return", _("No return link between languages")
    TITLE_MISSING = "title-missing", _("Title missing")
    TITLE_REPEATED = "title-repeated", _("Title repeated")
    UNDETERMINED = "undetermined", _("Could not be determined")
    SLOW = "slow", _("Slow")
    LASTMOD = "lastmod", _("lastmod differs from Last-Modified")
    BROKEN_LINK = "broken-link", _("Broken link")
    REDIRECT_LINK = "redirect-link", _("Link to a redirect")
    REDIRECT_CHAIN = "redirect-chain", _("Link to a chain of redirects")
    ORPHAN = "orphan", _("In the sitemap, but no crawled page links to it")
    MISSING = "missing", _("Linked, but not in the sitemap")
    DUPLICATE = "duplicate", _("Linked, but its canonical is another URL")


_Kind = FindingKind

CRAWL_KINDS = (
    *(_Kind.BROKEN_LINK, _Kind.UNDETERMINED, _Kind.REDIRECT_LINK, _Kind.REDIRECT_CHAIN),
    *(_Kind.ORPHAN, _Kind.MISSING, _Kind.DUPLICATE),
)
"""What crawls find, in the order in which they report it."""

AUDIT_KINDS = tuple(
    kind for kind in FindingKind if kind not in CRAWL_KINDS or kind is _Kind.UNDETERMINED
)
"""What audits find."""

BAD_KINDS = frozenset(
    {
        *(_Kind.NOT_FOUND, _Kind.GONE, _Kind.CLIENT_ERROR, _Kind.SERVER_ERROR, _Kind.NO_ANSWER),
        *(_Kind.LOGIN, _Kind.REDIRECT, _Kind.REDIRECT_LOOP, _Kind.REFRESH),
        *(_Kind.NOINDEX, _Kind.CANONICAL, _Kind.ROBOTS, _Kind.SOFT_404),
        _Kind.BROKEN_LINK,
    }
)
"""What a search engine does not index: such a URL should not be in a sitemap, or linked."""

ADVICE: Mapping[str, Any] = {
    _Kind.NOT_FOUND: _("Exclude the URL, or correct what the section lists."),
    _Kind.GONE: _("Exclude the URL, or correct what the section lists."),
    _Kind.CLIENT_ERROR: _("Find out why the page refuses a plain GET request."),
    _Kind.SERVER_ERROR: _("Correct the error in the view."),
    _Kind.NO_ANSWER: _("Check the server and its time limits."),
    _Kind.LOGIN: _("Exclude pages that visitors cannot see without logging in."),
    _Kind.REDIRECT: _("List the target of the redirect instead."),
    _Kind.REDIRECT_LOOP: _("Correct the redirects, or exclude the URL."),
    _Kind.REFRESH: _("List the target of the refresh instead."),
    _Kind.NOINDEX: _("Remove noindex, or exclude the URL."),
    _Kind.CANONICAL: _("List the canonical URL instead, or correct the canonical link."),
    _Kind.ROBOTS: _("Allow the URL in robots.txt, or exclude it."),
    _Kind.SOFT_404: _("Answer with 404, or exclude the URL."),
    _Kind.CANONICAL_CONFLICT: _("Name one canonical URL: Google ignores several."),
    _Kind.HREFLANG: _("Give the sitemap and the head of the page the same language links."),
    _Kind.HREFLANG_CODE: _("Write a code that Google understands, such as en, en-GB or x-default."),
    _Kind.HREFLANG_SELF: _("Let each language version link to itself, too."),
    _Kind.HREFLANG_TARGET: _("Link to pages that answer with 200 and may be indexed."),
    _Kind.HREFLANG_RETURN: _("Let each language version link to all others."),
    _Kind.TITLE_MISSING: _("Give the page a title."),
    _Kind.TITLE_REPEATED: _("Give each page a title of its own."),
    _Kind.UNDETERMINED: _("Remove the cause, and run the command again."),
    _Kind.SLOW: _("Make the page faster: search engines crawl slow sites less."),
    _Kind.LASTMOD: _("Take lastmod from what the page takes Last-Modified from."),
    _Kind.BROKEN_LINK: _("Correct or remove the links, or repair the page."),
    _Kind.REDIRECT_LINK: _("Link to the target of the redirect instead."),
    _Kind.REDIRECT_CHAIN: _("Link to the last target, and let each URL redirect straight to it."),
    _Kind.ORPHAN: _("Link to the page from another page, or exclude the URL."),
    _Kind.MISSING: _("List the page in a section, or mark it noindex."),
    _Kind.DUPLICATE: _("Link to the canonical URL instead."),
}
"""What to do about each kind."""
