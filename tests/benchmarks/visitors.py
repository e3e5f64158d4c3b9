"""Who asks for pages: of a live sitemap, in audits and in crawls, or of files to validate."""

from tests.benchmarks.contender import AUDIT, CONTRIB, DROP_IN, OURS, Contender


def requests():
    """Yield what asks for live pages and indexes."""
    live = {"apps": OURS, "prepare": "ours.clear_and_plan", "serve": "live"}
    contrib = {"apps": CONTRIB, "prepare": "peers.prepare_site"}
    for name, title, by_rows in [
        ("kit-page", "", False),
        ("kit-page-rows", ", value by value", True),
    ]:
        yield Contender(
            name=name,
            title=f"django-sitemapkit: a live page of 50,000{title}",
            kind="page",
            run="ours.page",
            declared="columns",
            by_rows=by_rows,
            **live,
        )
    yield Contender(
        name="kit-drop-in-page",
        title="django-sitemapkit: a page of 50,000 of the drop-in, read as columns",
        kind="page",
        run="peers.contrib_page",
        prepare="ours.clear",
        apps=DROP_IN,
        declared="whole",
    )
    yield Contender(
        name="kit-drop-in-first",
        title="django-sitemapkit: the first requests of the drop-in, its index and a page",
        kind="first",
        run="peers.first_requests",
        prepare="ours.clear",
        apps=DROP_IN,
        declared="whole",
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


def editors():
    """Yield what the admin's pages do that answer at once however many URLs there are."""
    yield Contender(
        name="kit-inspect",
        title="django-sitemapkit: what becomes of one URL",
        kind="inspect",
        run="ours.inspect",
        prepare="ours.clear_and_publish",
        apps=OURS,
        declared="columns",
    )
    yield Contender(
        name="kit-compare",
        title="django-sitemapkit: all URLs of two builds compared",
        kind="compare",
        run="ours.compare",
        prepare="ours.clear_and_change",
        apps=OURS,
        declared="columns",
        site="compared",
    )


def audits():
    """Yield what fetches all pages that a sitemap lists."""
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
