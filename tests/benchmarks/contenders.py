"""Who takes part, and the process that each of them runs in.

    python -m tests.benchmarks.contenders NAME prepare|run

Every run is a process of its own, and so is what has to be prepared for it: what that loads would
count as idle memory. A run ends with a line of JSON; "unavailable" in it says why there was none.
"""

import json
import sys
from dataclasses import dataclass
from importlib import import_module

OURS = ("django_sitemapkit",)
AUDIT = (*OURS, "django_sitemapkit.audit")
CONTRIB = ("django.contrib.sites", "django.contrib.sitemaps")
ICV = ("django.contrib.auth", "django.contrib.contenttypes", "icv_sitemaps")
BOTH = ("postgresql", "sqlite")


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
    serve: str = "auto"
    """SITEMAPKIT_SERVE_FROM."""
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
            "BENCHMARKS_SERVE": self.serve,
            "BENCHMARKS_DEDUPLICATE": "1" if self.deduplicate else "",
            "BENCHMARKS_SITE": self.site,
        }


def _builds():
    ways = [
        ("kit", "a route and columns", "columns", "inline"),
        ("kit-objects", "`get_absolute_url()` of objects, with `only`", "objects", "inline"),
        ("kit-processes", "columns, two processes", "columns", "processes"),
    ]
    for name, title, declared, runner in ways:
        for codec in ("zlib", "zlib-ng", "isal") if name == "kit" else ("zlib", "isal"):
            yield Contender(
                name=f"{name}-{codec}",
                title=f"django-sitemapkit: {title}, {codec}",
                kind="build",
                run="ours.build" if runner == "inline" else "ours.build_in_processes",
                prepare="ours.clear",
                apps=OURS,
                declared=declared,
                codec=codec,
                runner=runner,
            )
    yield Contender(
        name="kit-proven",
        title="django-sitemapkit: a route and columns, zlib, de-duplicated by proof",
        kind="build",
        run="ours.build",
        prepare="ours.clear",
        apps=OURS,
        declared="columns",
        deduplicate=True,
    )
    for name, title in [
        ("overridden", "one row in ten overridden"),
        ("reset", "an override was set once and is gone"),
    ]:
        yield Contender(
            name=f"kit-{name}",
            title=f"django-sitemapkit: a route and columns, zlib, {title}",
            kind="build",
            run=f"ours.build_{name}",
            prepare=f"ours.clear_for_{name}",
            apps=OURS,
            declared="columns",
            site=name,
        )
    for name, title, declared in [
        ("contrib", "whole objects", "whole"),
        ("contrib-lean", "with `only()`", "lean"),
    ]:
        yield Contender(
            name=name,
            title=f"django.contrib.sitemaps: pages into gzip files, {title}",
            kind="build",
            run="peers.contrib_build",
            prepare="peers.prepare_site",
            apps=CONTRIB,
            declared=declared,
        )
    yield Contender(
        name="icv",
        title="django-icv-sitemaps: `generate_all_sections()`",
        kind="build",
        run="peers.icv_build",
        prepare="peers.prepare_icv",
        apps=ICV,
    )
    yield Contender(
        name="static",
        title="django-static-sitemaps: `refresh_sitemap`, with a relative ROOT_DIR",
        kind="build",
        run="peers.static_build",
        prepare="peers.prepare_site",
        apps=(*CONTRIB, "static_sitemaps"),
        declared="whole",
    )
    yield Contender(
        name="limit",
        title="the limit: `COPY` of ready XML through psql, `gzip -6` beside it",
        kind="build",
        run="outside.limit_build",
        prepare="outside.require_psql",
        databases=("postgresql",),
    )
    yield Contender(
        name="npm",
        title="npm's sitemap: rows as JSON through psql, written by node",
        kind="build",
        run="outside.npm_build",
        prepare="outside.require_npm",
        databases=("postgresql",),
    )


def _rebuilds():
    for name, title, declared in [
        ("kit-rebuild", "by a digest of the rows", "columns"),
        ("kit-rebuild-trusted", "by `trust_lastmod`, with an index on key and date", "trusted"),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: a build after one row has changed, {title}",
            kind="rebuild",
            run="ours.rebuild",
            prepare="ours.clear",
            apps=OURS,
            declared=declared,
        )
    yield Contender(
        name="kit-sites",
        title="django-sitemapkit: a build of up to 1,000 sites of 20 URLs, all unchanged",
        kind="sites",
        run="ours.rebuild_sites",
        prepare="ours.clear",
        apps=OURS,
        declared="sites",
    )


def _overlapping():
    for name, title, deduplicate in [
        ("kit-overlapping", "two sections that list one URL in a hundred both", False),
        ("kit-distinct", "the same, de-duplicated", True),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: {title}, zlib",
            kind="overlapping",
            run="ours.build_overlapping",
            prepare="ours.clear",
            apps=OURS,
            declared="overlapping",
            deduplicate=deduplicate,
        )


def _traced():
    for name, title, site in [
        ("kit-traced", "a route and columns", ""),
        ("kit-traced-overridden", "a route and columns, one row in ten overridden", "overridden"),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: {title}",
            kind="traced",
            run="ours.build_traced",
            prepare="ours.clear_for_overridden" if site else "ours.clear",
            apps=OURS,
            declared="columns",
            site=site,
        )


def _requests():
    live = {"apps": OURS, "prepare": "ours.clear_and_plan", "serve": "live"}
    contrib = {"apps": CONTRIB, "prepare": "peers.prepare_site"}
    yield Contender(
        name="kit-page",
        title="django-sitemapkit: a live page of 50,000",
        kind="page",
        run="ours.page",
        declared="columns",
        **live,
    )
    yield Contender(
        name="contrib-page",
        title="django.contrib.sitemaps: a page of 50,000",
        kind="page",
        run="peers.contrib_page",
        declared="whole",
        **contrib,
    )
    yield Contender(
        name="kit-pages",
        title="django-sitemapkit: the last live page, after the first by turns",
        kind="pages",
        run="ours.pages",
        declared="columns",
        **live,
    )
    for name, title, declared in [
        ("kit-index-live", "live", "hundred"),
        ("kit-index-trusted", "live, with `trust_lastmod`", "hundred-trusted"),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: the index of 100 sections, {title}",
            kind="index",
            run="ours.index",
            declared=declared,
            **live,
        )
    yield Contender(
        name="kit-index-published",
        title="django-sitemapkit: the index of 100 sections, published",
        kind="index",
        run="ours.index",
        prepare="ours.clear_and_publish",
        apps=OURS,
        declared="hundred",
        serve="published",
    )
    yield Contender(
        name="contrib-index",
        title="django.contrib.sitemaps: the index of 100 sections, with `lastmod()`",
        kind="index",
        run="peers.contrib_index",
        declared="hundred",
        **contrib,
    )


def _audits():
    yield Contender(
        name="audit",
        title="django-sitemapkit: an audit of all pages, within the process",
        kind="audit",
        run="auditing.audit",
        prepare="auditing.clear",
        apps=AUDIT,
        declared="usual-pages",
        page="usual",
    )
    yield Contender(
        name="audit-client",
        title="Django's test client: the same pages, nothing else",
        kind="audit",
        run="auditing.get_by_client",
        page="usual",
    )
    yield Contender(
        name="audit-many",
        title="django-sitemapkit: an audit of many small pages, within the process",
        kind="audit-many",
        run="auditing.audit",
        prepare="auditing.clear",
        apps=AUDIT,
        declared="pages",
        page="small",
    )


def _crawls():
    yield Contender(
        name="crawl-live",
        title="django-sitemapkit: a crawl over HTTP, 8 requests at a time",
        kind="crawl",
        run="crawling.crawl_live",
        prepare="crawling.clear",
        apps=AUDIT,
    )
    yield Contender(
        name="crawl-scrapy",
        title="Scrapy: the same, with `LinkExtractor`",
        kind="crawl",
        run="crawling.crawl_by_scrapy",
        prepare="crawling.require_scrapy",
    )
    yield Contender(
        name="crawl-many",
        title="django-sitemapkit: a crawl of many small pages, within the process",
        kind="crawl-many",
        run="crawling.crawl_many",
        prepare="crawling.clear_and_publish",
        apps=AUDIT,
        declared="pages",
        page="linked",
    )


def _validations():
    for name, title in [
        ("plain", "URLs with lastmod"),
        ("hreflang", "URLs with lastmod and five language links"),
        ("images", "URLs with lastmod and an image"),
    ]:
        for prefix, does, run, apps in [
            ("kit-validate", "django-sitemapkit: validates", "validate", OURS),
            ("expat", "expat with empty handlers: inflates and parses", "parse", ()),
        ]:
            yield Contender(
                name=f"{prefix}-{name}",
                title=f"{does} files of {title}",
                kind="validate",
                run=f"validating.{run}",
                prepare=f"validating.prepare_{name}",
                apps=apps,
                databases=("sqlite",),  # None is read.
            )


CONTENDERS = {
    contender.name: contender
    for contender in (
        *_builds(),
        *_rebuilds(),
        *_overlapping(),
        *_traced(),
        *_requests(),
        *_audits(),
        *_crawls(),
        *_validations(),
    )
}


def main(arguments):
    """Do one stage of one contender; return the exit code."""
    import django

    from tests.benchmarks.measuring import Unavailable

    name, stage = arguments
    function = getattr(CONTENDERS[name], stage)
    django.setup()
    module, _, attribute = function.partition(".")
    try:
        outcome = getattr(import_module(f"tests.benchmarks.{module}"), attribute)()
    except Unavailable as error:
        outcome = {"unavailable": str(error)}
    sys.stdout.write(f"\n{json.dumps(outcome or {})}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
