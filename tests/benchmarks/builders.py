"""Who builds files, and builds them again."""

from functools import partial

from tests.benchmarks.contender import (
    ALL,
    CONTRIB,
    DROP_IN,
    ICV,
    REGISTERED,
    Contender,
    ours,
)


def builds():
    """Yield what builds all files once."""
    for codec in ("zlib", "zlib-ng", "isal"):
        yield ours(codec, f"a route and columns, {codec}", codec=codec, databases=ALL)
    for codec in ("zlib", "isal"):
        yield ours(
            f"processes-{codec}",
            f"columns, two processes, {codec}",
            run="ours.build_in_processes",
            codec=codec,
            runner="processes",
        )
    yield from _methods()
    yield ours(
        "rows-zlib", "a route and columns, zlib, value by value", by_rows=True, databases=ALL
    )
    yield ours("proven", "a route and columns, zlib, de-duplicated by proof", deduplicate=True)
    for name, title in [
        ("overridden", "one row in ten overridden"),
        ("reset", "an override was set once and is gone"),
    ]:
        yield ours(
            name,
            f"a route and columns, zlib, {title}",
            run=f"ours.build_{name}",
            prepare=f"ours.clear_for_{name}",
            site=name,
        )
    yield ours(
        "drop-in",
        "a registered class of the drop-in, read as columns, zlib",
        apps=DROP_IN,
        declared="whole",
    )
    yield from _peers()


def _methods():
    """Yield sections whose URLs a method makes, with the storage of a new project."""
    for name, title, declared, options in [
        ("objects", "`get_absolute_url()`", "objects", {}),
        ("objects-related", "the same with a foreign key in the URL", "related objects", {}),
        ("formatted", "a `location()` with an f-string", "formatted", {}),
        ("registered", "`register_all` of Django's own class", "whole", {"apps": REGISTERED}),
        (
            "registered-related",
            "the same with a foreign key in the URL",
            "related",
            {"apps": REGISTERED},
        ),
    ]:
        yield ours(
            name,
            f"{title}, zlib, files in the database",
            prepare="ours.clear_for_offers" if "related" in declared else "ours.clear",
            declared=declared,
            storage="database",
            **options,
        )
    yield _contrib("contrib-related", "`select_related`", "related", prepare="peers.prepare_offers")


def _contrib(name, title, declared, prepare="peers.prepare_site", **options):
    """Return a build by contrib's views."""
    return Contender(
        name=name,
        title=f"django.contrib.sitemaps: pages into gzip files, {title}",
        kind="build",
        run="peers.contrib_build",
        prepare=prepare,
        apps=CONTRIB,
        declared=declared,
        **options,
    )


def _peers():
    """Yield what other packages build."""
    yield _contrib("contrib", "whole objects", "whole", databases=ALL)
    yield _contrib("contrib-lean", "with `only()`", "lean", databases=ALL)
    peer = partial(Contender, kind="build")
    yield peer(
        name="icv",
        title="django-icv-sitemaps: `generate_all_sections()`",
        run="peers.icv_build",
        prepare="peers.prepare_icv",
        apps=ICV,
        databases=ALL,
    )
    yield peer(
        name="static",
        title="django-static-sitemaps: `refresh_sitemap`, with a relative ROOT_DIR",
        run="peers.static_build",
        prepare="peers.prepare_site",
        apps=(*CONTRIB, "static_sitemaps"),
        declared="whole",
        databases=ALL,
    )
    for name, title, needed in [
        ("limit", "the limit: `COPY` of ready XML through psql, `gzip -6` beside it", "psql"),
        ("npm", "npm's sitemap: rows as JSON through psql, written by node", "npm"),
    ]:
        yield peer(
            name=name,
            title=title,
            run=f"outside.{name}_build",
            prepare=f"outside.require_{needed}",
            databases=("postgresql",),
        )


def queues():
    """Yield what has the pages made by worker processes of a task queue."""
    for workers, title in [(1, "one worker process"), (2, "two worker processes")]:
        yield ours(
            f"celery-{workers}",
            f"columns, {title} of Celery, zlib",
            kind="queue",
            run="queued.build",
            runner="celery",
            workers=workers,
            databases=("postgresql",),
        )


def articles():
    """Yield what builds URLs of three values, one of them a year, of rows with UUIDs as keys."""
    article = partial(ours, kind="articles", prepare="ours.clear_for_articles", declared="articles")
    yield article("articles", "as text, zlib")
    yield article("articles-rows", "value by value, zlib", by_rows=True)


def rebuilds():
    """Yield what builds once more, after little or nothing has changed."""
    for name, title, options in [
        ("", "by a digest of the rows", {}),
        ("-objects", "`get_absolute_url()`", {"declared": "objects", "storage": "database"}),
        (
            "-trusted",
            "by `trust_lastmod`, with an index on key and date",
            {"declared": "trusted"},
        ),
    ]:
        yield ours(
            f"rebuild{name}",
            f"a build after one row has changed, {title}",
            kind="rebuild",
            run="ours.rebuild",
            **options,
        )
    yield ours(
        "sites",
        "a build of up to 1,000 sites of 20 URLs, all unchanged",
        kind="sites",
        run="ours.rebuild_sites",
        declared="sites",
    )


def overlapping():
    """Yield what builds two sections that share some URLs."""
    shared = partial(ours, kind="overlapping", run="ours.build_overlapping", declared="overlapping")
    yield shared("overlapping", "two sections that list one URL in a hundred both, zlib")
    yield shared("distinct", "the same, de-duplicated, zlib", deduplicate=True)


def traced():
    """Yield what builds while Python's allocations are counted."""
    build = partial(ours, kind="traced", run="ours.build_traced")
    yield build("traced", "a route and columns")
    yield build(
        "traced-overridden",
        "a route and columns, one row in ten overridden",
        prepare="ours.clear_for_overridden",
        site="overridden",
    )
