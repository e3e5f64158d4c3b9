"""A contender: one way to do one thing, which is compared with others."""

from dataclasses import dataclass

OURS = ("django_sitemapkit",)
AUDIT = (*OURS, "django_sitemapkit.audit")
DROP_IN = (*OURS, "django_sitemapkit.contrib.sitemaps")
CONTRIB = ("django.contrib.sites", "django.contrib.sitemaps")
REGISTERED = (*OURS, CONTRIB[-1])
"""Ours, and the classes of Django's own package as they are."""
ICV = ("django.contrib.auth", "django.contrib.contenttypes", "icv_sitemaps")
BOTH = ("postgresql", "sqlite")
"""The databases that are measured by default."""
ALL = (*BOTH, "mariadb")
"""Those that can be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do one thing."""

    name: str
    """What it is called in options and tables."""
    title: str
    """What it does, for people."""
    kind: str
    """What it makes: those of a kind are compared."""
    run: str
    """The function that is measured, as module.function."""
    prepare: str | None = None
    """The function that comes before it, in another process."""
    apps: tuple[str, ...] = ()
    """Its apps."""
    declared: str = ""
    """Which sections it has."""
    page: str = ""
    """Which web page its products have; "" for one of no interest."""
    codec: str = "zlib"
    """SITEMAPKIT_GZIP_BACKEND."""
    runner: str = "inline"
    """SITEMAPKIT_RUNNER."""
    workers: int = 2
    """Worker processes, where the runner has any."""
    storage: str = "disk"
    """Where its files are: "database" for the storage of a project that has set none."""
    serve: str = "auto"
    """SITEMAPKIT_SERVE_FROM."""
    by_rows: bool = False
    """Whether values are checked one by one, as in sections whose rows cannot be read as text."""
    deduplicate: bool = False
    """SITEMAPKIT_DEDUPLICATE."""
    site: str = ""
    """The key of its site, where that is not the default one, for which editors set nothing."""
    databases: tuple[str, ...] = BOTH
    """Where it can run."""

    @property
    def ours(self):
        """Whether it is this package."""
        return self.apps[:1] == OURS

    @property
    def environment(self):
        """What its settings read."""
        return {
            "BENCHMARKS_APPS": ",".join(self.apps),
            "BENCHMARKS_DECLARED": self.declared,
            "BENCHMARKS_PAGE": self.page,
            "BENCHMARKS_CODEC": self.codec,
            "BENCHMARKS_RUNNER": self.runner,
            "BENCHMARKS_WORKERS": str(self.workers),
            "BENCHMARKS_STORAGE": self.storage,
            "BENCHMARKS_SERVE": self.serve,
            "BENCHMARKS_BY_ROWS": "1" if self.by_rows else "",
            "BENCHMARKS_DEDUPLICATE": "1" if self.deduplicate else "",
            "BENCHMARKS_SITE": self.site,
        }


def ours(name, title, **options):
    """Return one of ours: by default it builds the files of a route and columns."""
    usual = {
        "kind": "build",
        "run": "ours.build",
        "prepare": "ours.clear",
        "apps": OURS,
        "declared": "columns",
    }
    return Contender(name=f"kit-{name}", title=f"django-sitemapkit: {title}", **usual | options)
