"""Every error this package raises, the common base first."""

from django_sitemapkit.printable import printable


class SitemapKitError(Exception):
    """The base of all errors raised on purpose by django-sitemapkit.

    Its message is one line, whatever the error of a storage or the value of a row that it tells.
    """

    def __init__(self, *arguments: object) -> None:
        shown = (printable(each) if isinstance(each, str) else each for each in arguments)
        super().__init__(*shown)


class InvalidValue(SitemapKitError, ValueError):
    """One value of one entry breaks the protocol: the entry is left out, the file goes on.

    ``code`` is a short stable word for the kind of fault (``"url-not-allowed"``), fit for
    counting; the message says what is wrong in the words Search Console uses, and the way out.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def named(self, what: str) -> "InvalidValue":
        """Return this error about ``what``: ``Invalid URL: player of a video: ...``."""
        kind, _, why = str(self).partition(": ")
        return InvalidValue(self.code, f"{kind}: {what}: {why}")


class InvalidSitemap(SitemapKitError, ValueError):
    """A document that was read is not a valid sitemap, and reading cannot go on.

    ``code`` is a short stable word for the kind of fault (``"parsing-error"``).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RepeatedRow(SitemapKitError):
    """A section's queryset gives a row more than once, or not in the order of its key.

    Paged so, rows would be listed twice or lost: the page fails.
    """


class NotPlanned(SitemapKitError):
    """A large section has no plan yet, and someone else is making it, or it cannot be stored."""


class BuildRunning(SitemapKitError):
    """Someone else is building the site; the message says who, and since when."""


class LeaseLost(SitemapKitError):
    """This process was silent for so long that another one took its lease: it must stop."""


class StorageFailure(SitemapKitError):
    """A file could not be stored whole; what is published is as it was."""


class BuildFailed(SitemapKitError):
    """A build could not be finished; what is published is as it was, the next run goes on."""


class NothingToPublish(BuildFailed):
    """A build is finished, and not to be published: there is nothing in it.

    The next run begins a new one.
    """


class NotPublished(SitemapKitError):
    """A section is published, and has no such page."""
