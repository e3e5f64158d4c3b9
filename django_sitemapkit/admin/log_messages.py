"""What the log says about actions that are more than a change of fields.

Django's ``LogEntry`` has one text for all readers. It stores one of these sentences in English, so
that entries can be found by it; the page "Activity" translates it. What a user has added is on the
next line.
"""

from collections.abc import Collection

from django.utils.translation import gettext_noop

from django_sitemapkit.models import UrlOverride

EXCLUDED = gettext_noop("Excluded from the sitemap.")
INCLUDED = gettext_noop("Included in the sitemap.")
PUBLISHED = gettext_noop("Published.")
ROLLED_BACK = gettext_noop("Rolled back to this build.")
PAUSED = gettext_noop("Publishing paused.")
"""Its reason is on the next line."""
RESUMED = gettext_noop("Publishing resumed.")
CANCELLED = gettext_noop("Build cancelled.")

REQUESTED = {
    "changed": gettext_noop("Build of changes requested."),
    "full": gettext_noop("Full build requested."),
    "section": gettext_noop("Build of a section requested."),
    "check": gettext_noop("File check requested."),
    "prune": gettext_noop("Cleanup requested."),
}
"""The sentence for each button of the overview."""

SENTENCES = frozenset(
    {EXCLUDED, INCLUDED, PUBLISHED, ROLLED_BACK, PAUSED, RESUMED, CANCELLED, *REQUESTED.values()}
)
"""All sentences; any other message is Django's own."""


def exclusion_message(row: UrlOverride, changed: Collection[str]) -> str:
    """Return ``EXCLUDED`` if a change of these fields excludes the URL, else ""."""
    return EXCLUDED if row.include is False and "include" in changed else ""
