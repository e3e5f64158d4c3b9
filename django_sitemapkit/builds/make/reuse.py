"""Whether a page keeps the file that is stored, or why not: asked by builds and by the status."""

from collections.abc import Callable

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.builds.make.fingerprints import Fingerprints, code_in
from django_sitemapkit.builds.make.override_changes import OverrideChanges
from django_sitemapkit.models import BuildFile
from django_sitemapkit.reading import SectionReader


class Reason(TextChoices):
    """Why pages are rendered again or removed."""

    NEVER = "never built", _("never built")
    NEW = "new pages", _("new pages")
    GONE = "pages removed", _("pages removed")
    LOST = "stored files missing", _("stored files missing")
    CODE = "code or settings changed", _("code or settings changed")
    DATE = "a lastmod is no longer in the future", _("a lastmod is no longer in the future")
    METHODS = "rendered by every build", _("rendered by every build")
    ROWS = "rows changed", _("rows changed")
    OVERRIDES = "overrides changed", _("overrides changed")
    SOMEWHERE = "may be affected by changed overrides", _("may be affected by changed overrides")
    DUPLICATES = "may be affected by changed duplicates", _("may be affected by changed duplicates")
    AGAIN = "deduplication was switched off", _("deduplication was switched off")
    BROKEN = "cannot be read", _("cannot be read")


class Reuse:
    """Decides for the pages of a site whether they keep their stored files."""

    def __init__(
        self,
        fingerprints: Fingerprints,
        changes: OverrideChanges,
        is_stored: Callable[[BuildFile], bool],
        *,
        deduplicate: bool = False,
    ) -> None:
        self._fingerprints = fingerprints
        self._changes = changes
        self._is_stored = is_stored
        self.deduplicate = deduplicate
        """Whether each URL is listed once."""

    def why_not(
        self, section: SectionReader, previous: BuildFile, fingerprint: Callable[[], str] | None
    ) -> Reason | None:
        """Return why a page cannot keep a stored file; None where it can.

        ``previous`` is its row in the published manifest, or in that of a build held for review.
        ``fingerprint`` returns the page's fingerprint as its rows are now; without it, no row is
        read. What pages before it list is not judged here.
        """
        if previous.status != BuildFile.Status.EMPTY and not self._is_stored(previous):
            return Reason.LOST
        code = code_in(previous.fingerprint)
        if code and code != self._fingerprints.code_of(section):
            return Reason.CODE
        if previous.changes_at is not None and previous.changes_at <= timezone.now():
            return Reason.DATE
        if reason := _rows_differ(previous, fingerprint):
            return reason
        look = fingerprint is not None
        if self._changes.affects(section, previous, look=look):
            return Reason.OVERRIDES if look else Reason.SOMEWHERE
        return Reason.AGAIN if previous.duplicates and not self.deduplicate else None


def _rows_differ(previous: BuildFile, fingerprint: Callable[[], str] | None) -> Reason | None:
    if fingerprint is None:
        return None if previous.fingerprint else Reason.METHODS
    now = fingerprint()
    if not now:
        return Reason.METHODS
    return Reason.ROWS if now != previous.fingerprint else None
