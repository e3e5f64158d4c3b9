"""What a submission did."""

import datetime as dt
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class SubmissionResult:
    """What `submit` did for one site."""

    site: str
    """The key of the site."""
    changes: dict[str, int] = field(default_factory=dict)
    """URLs that were "added", "changed" and "removed" since the last submission."""
    requests: int = 0
    """Requests sent to IndexNow; in a dry run, those that would be sent for these changes."""
    accepted: int = 0
    """URLs that IndexNow accepted."""
    rejected: int = 0
    """URLs that IndexNow rejected, or that were given up."""
    pending: int = 0
    """URLs that wait to be sent."""
    wait_until: dt.datetime | None = None
    """When IndexNow may be asked again."""
    sitemaps: int = 0
    """Sitemap indexes submitted to Search Console."""
    problems: list[str] = field(default_factory=list)
    """What went wrong, a line each."""
    notes: list[str] = field(default_factory=list)
    """What is worth knowing but not wrong, a line each."""
