"""Who asks for pages: of a live sitemap, in audits and in crawls, or of files to validate."""

from functools import partial

from tests.benchmarks.contender import AUDIT, CONTRIB, DROP_IN, OURS, Contender, ours


def requests():
    """Yield what asks for live pages and indexes."""
    live = partial(ours, prepare="ours.clear_and_plan", serve="live")
    drop_in = partial(ours, apps=DROP_IN, declared="whole")
    contrib = partial(Contender, apps=CONTRIB, prepare="peers.prepare_site")
    yield live("page", "a live page of 50,000", kind="page", run="ours.page")
    yield live(
        "page-rows",
        "a live page of 50,000, value by value",
        kind="page",
        run="ours.page",
        by_rows=True,
    )
    yield drop_in(
        "drop-in-page",
        "a page of 50,000 of the drop-in, read as columns",
        kind="page",
        run="peers.contrib_page",
    )
    yield drop_in(
        "drop-in-first",
        "the first requests of the drop-in, its index and a page",
        kind="first",
        run="peers.first_requests",
    )
    yield contrib(
        name="contrib-page",
        title="django.contrib.sitemaps: a page of 50,000",
        kind="page",
        run="peers.contrib_page",
        declared="whole",
    )
    yield live(
        "pages", "the last live page, after the first by turns", kind="pages", run="ours.pages"
    )
    index = {"kind": "index", "run": "ours.index"}
    yield live("index-live", "the index of 100 sections, live", declared="hundred", **index)
    yield live(
        "index-trusted",
        "the index of 100 sections, live, with `trust_lastmod`",
        declared="hundred-trusted",
        **index,
    )
    yield ours(
        "index-published",
        "the index of 100 sections, published",
        prepare="ours.clear_and_publish",
        declared="hundred",
        serve="published",
        **index,
    )
    yield contrib(
        name="contrib-index",
        title="django.contrib.sitemaps: the index of 100 sections, with `lastmod()`",
        kind="index",
        run="peers.contrib_index",
        declared="hundred",
    )


def editors():
    """Yield what the admin's pages do that answer at once however many URLs there are."""
    yield ours(
        "inspect",
        "what becomes of one URL",
        kind="inspect",
        run="ours.inspect",
        prepare="ours.clear_and_publish",
    )
    yield ours(
        "compare",
        "all URLs of two builds compared",
        kind="compare",
        run="ours.compare",
        prepare="ours.clear_and_change",
        site="compared",
    )


def audits():
    """Yield what fetches all pages that a sitemap lists."""
    audit = partial(Contender, run="auditing.audit", prepare="auditing.clear", apps=AUDIT)
    yield audit(
        name="audit",
        title="django-sitemapkit: an audit of all pages, within the process",
        kind="audit",
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
    yield audit(
        name="audit-many",
        title="django-sitemapkit: an audit of many small pages, within the process",
        kind="audit-many",
        declared="pages",
        page="small",
    )


def crawls():
    """Yield what follows links."""
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


def validations():
    """Yield what reads files of others."""
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
