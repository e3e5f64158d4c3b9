"""Every error this package raises, the common base first."""

from django_sitemapkit.printable import printable


class SitemapKitError(Exception):
    """The base of all errors raised on purpose by django-sitemapkit.

    Its message is one line, whatever it quotes of a storage's error or a row's value.
    """

    def __init__(self, *arguments: object) -> None:
        shown = (printable(each) if isinstance(each, str) else each for each in arguments)
        super().__init__(*shown)


class InvalidValue(SitemapKitError, ValueError):
    """One value of one entry breaks the protocol: the value is left out, or the row.

    ``code`` is a short stable word for the kind of fault (``"url-not-allowed"``), fit for
    counting; the message says what is wrong in the words Search Console uses, and the way out. It
    begins with the ``title``, if there is one, such as ``"Invalid URL"``.
    """

    def __init__(self, code: str, message: str, title: str = "") -> None:
        super().__init__(f"{title}: {message}" if title else message)
        self.code, self._message, self._title = code, message, title

    def named(self, what: str) -> "InvalidValue":
        """Return this error about ``what``: ``Invalid URL: player of a video: ...``."""
        return InvalidValue(self.code, f"{what}: {self._message}", self._title)


class InvalidSitemap(SitemapKitError, ValueError):
    """A document that was read is not a valid sitemap, and reading cannot go on.

    ``code`` is a short stable word for the kind of fault (``"parsing-error"``).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class MissingExtra(SitemapKitError, ImportError):
    """A requested feature needs an extra that is not installed; the message names it."""


class RepeatedRow(SitemapKitError):
    """A section's queryset gives a row more than once, or not in the order of its key.

    With keyset pagination such rows would be listed twice or lost, so the page fails.
    """


class NotPlanned(SitemapKitError):
    """A large section has no plan yet, and another process is making it, or it cannot be stored."""


class BuildRunning(SitemapKitError):
    """Another process is building the site; the message says which one, and since when."""


class LeaseLost(SitemapKitError):
    """This process sent no heartbeat for too long, and another one has its lease: it must stop."""


class BuildCancelled(LeaseLost):
    """Someone has cancelled the build: its lease is gone, and this process must stop.

    ``by`` says who.
    """

    def __init__(self, *arguments: object, by: str = "") -> None:
        super().__init__(*arguments)
        self.by = by


class RobotsUnavailable(SitemapKitError):
    """A site's robots.txt cannot be read, so none of its pages may be crawled."""


class StorageFailure(SitemapKitError):
    """A file could not be stored completely; the published files are unchanged."""


class BuildFailed(SitemapKitError):
    """A build could not be finished; what is published stays, and the next run adopts its pages."""


class QueueDown(BuildFailed):
    """A task queue takes no page of a build; the next run may have any other runner."""


class NothingToPublish(BuildFailed):
    """A build is finished, but not published, because it lists nothing, or too many sitemaps.

    The next run starts a new build.
    """


class NotPublished(SitemapKitError):
    """A section is published, but has no such page."""


class FileLost(NotPublished):
    """A published file is missing or damaged: its page is rendered from the database, or waits."""
