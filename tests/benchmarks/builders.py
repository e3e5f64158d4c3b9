"""Who builds files, and builds them again."""

from tests.benchmarks.contender import (
    ALL,
    BOTH,
    CONTRIB,
    DROP_IN,
    ICV,
    OURS,
    REGISTERED,
    Contender,
)


def builds():
    """Yield what builds all files once."""
    ways = [
        ("kit", "a route and columns", "columns", "inline"),
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
                databases=ALL if name == "kit" else BOTH,
            )
    yield from _methods()
    yield Contender(
        name="kit-rows-zlib",
        title="django-sitemapkit: a route and columns, zlib, value by value",
        kind="build",
        run="ours.build",
        prepare="ours.clear",
        apps=OURS,
        declared="columns",
        by_rows=True,
        databases=ALL,
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
    yield Contender(
        name="kit-drop-in",
        title="django-sitemapkit: a registered class of the drop-in, read as columns, zlib",
        kind="build",
        run="ours.build",
        prepare="ours.clear",
        apps=DROP_IN,
        declared="whole",
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
            databases=ALL,
        )
    yield Contender(
        name="icv",
        title="django-icv-sitemaps: `generate_all_sections()`",
        kind="build",
        run="peers.icv_build",
        prepare="peers.prepare_icv",
        apps=ICV,
        databases=ALL,
    )
    yield Contender(
        name="static",
        title="django-static-sitemaps: `refresh_sitemap`, with a relative ROOT_DIR",
        kind="build",
        run="peers.static_build",
        prepare="peers.prepare_site",
        apps=(*CONTRIB, "static_sitemaps"),
        declared="whole",
        databases=ALL,
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


def _methods():
    """Yield sections whose URLs a method makes, with the storage of a new project."""
    for name, title, declared, apps in [
        ("objects", "`get_absolute_url()`", "objects", OURS),
        ("objects-related", "the same with a foreign key in the URL", "related objects", OURS),
        ("formatted", "a `location()` with an f-string", "formatted", OURS),
        ("registered", "`register_all` of Django's own class", "whole", REGISTERED),
        ("registered-related", "the same with a foreign key in the URL", "related", REGISTERED),
    ]:
        yield Contender(
            name=f"kit-{name}",
            title=f"django-sitemapkit: {title}, zlib, files in the database",
            kind="build",
            run="ours.build",
            prepare="ours.clear_for_offers" if "related" in declared else "ours.clear",
            apps=apps,
            declared=declared,
            storage="database",
        )
    yield Contender(
        name="contrib-related",
        title="django.contrib.sitemaps: pages into gzip files, `select_related`",
        kind="build",
        run="peers.contrib_build",
        prepare="peers.prepare_offers",
        apps=CONTRIB,
        declared="related",
    )


def queues():
    """Yield what has the pages made by worker processes of a task queue."""
    for workers, title in [(1, "one worker process"), (2, "two worker processes")]:
        yield Contender(
            name=f"kit-celery-{workers}",
            title=f"django-sitemapkit: columns, {title} of Celery, zlib",
            kind="queue",
            run="queued.build",
            prepare="ours.clear",
            apps=OURS,
            declared="columns",
            runner="celery",
            workers=workers,
            databases=("postgresql",),
        )


def articles():
    """Yield what builds URLs of three values, one of them a year, of rows with UUIDs as keys."""
    for name, title, by_rows in [
        ("kit-articles", "as text", False),
        ("kit-articles-rows", "value by value", True),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: {title}, zlib",
            kind="articles",
            run="ours.build",
            prepare="ours.clear_for_articles",
            apps=OURS,
            declared="articles",
            by_rows=by_rows,
        )


def rebuilds():
    """Yield what builds once more, after little or nothing has changed."""
    for name, title, declared in [
        ("kit-rebuild", "by a digest of the rows", "columns"),
        ("kit-rebuild-objects", "`get_absolute_url()`", "objects"),
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
            storage="database" if declared == "objects" else "disk",
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


def overlapping():
    """Yield what builds two sections that share some URLs."""
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


def traced():
    """Yield what builds while Python's allocations are counted."""
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
