"""With SITEMAPKIT_DEDUPLICATE, sections that are proven to differ are built as without it."""

import io

import pytest
from django.core.management import call_command

from django_sitemapkit.builds import InlineRunner, build, status_of
from django_sitemapkit.builds.make import page_builder
from django_sitemapkit.builds.report.due import due_by_section
from tests.builds import (
    SITE,
    Articles,
    Products,
    fill,
    manifest,
    states,
    use_storage,
    xml,
)
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db


class Again(Articles):
    """The articles once more."""

    name = "again"


class Elsewhere(InlineRunner):
    """A runner that is not the default one, and knows which pages it was given."""

    def __init__(self):
        super().__init__()
        self.given = []

    def run(self, builder, rows):
        self.given += [(row.section, row.number) for row in rows]
        return super().run(builder, rows)


@pytest.fixture
def storage(settings):
    """Have rows, and nothing published."""
    settings.SITEMAPKIT_DEDUPLICATE = True
    fill()
    return use_storage(settings, "Memory")


def digests():
    """Return the sections whose pages were compared with others."""
    return {section for (section, _), line in manifest().items() if line.prefix_digest}


def test_no_url_is_compared_where_all_are_proven(storage, sections, monkeypatch, caplog):
    """Any runner makes the pages, and a build without changes costs as little."""
    sections.add(Products)
    sections.add(Articles)
    monkeypatch.setattr(page_builder, "PageDeduplicator", None)
    runner = Elsewhere()
    assert build(SITE, runner=runner).status == "published"
    assert {section for section, _ in runner.given} == {"products", "articles"}
    assert not caplog.messages
    assert digests() == set()
    assert build(SITE).status == "unchanged"
    Product.objects.filter(slug="p0").update(slug="p9")
    result = build(SITE)
    assert states(result)["products", 1] == "stored"
    assert states(result)["articles", 1] == "same"


@pytest.mark.slow
def test_what_may_meet_is_compared_and_nothing_else(storage, sections, caplog):
    """The first section has the URL; pages of others stay out of it, whichever comes or goes."""
    for section in (Products, Articles, Again):
        sections.add(section)
    runner = Elsewhere()
    result = build(SITE, runner=runner)
    assert "single process" not in caplog.text
    assert runner.given.count(("again", 1)) == 2  # A second time without what the others list.
    assert runner.given.count(("products", 1)) == 1
    assert sum(file.duplicates for file in result.files) == 1
    assert digests() == {"articles", "again"}
    assert manifest()["again", 1].status == "empty"
    assert build(SITE).status == "unchanged"
    before = manifest()
    sections.remove("again")
    build(SITE)
    after = manifest()
    assert all(after[key].name == line.name for key, line in before.items() if key[0])
    sections.add(Again)
    build(SITE)
    assert manifest()["again", 1].status == "empty"


def test_what_was_left_out_is_listed_once_it_is_proven(storage, sections):
    """The file that lacks it is not kept; the status says so before."""
    sections.add(Again)
    sections.add(Articles)
    build(SITE)
    assert manifest()["articles", 1].status == "empty"
    sections.remove("again")
    reasons = {item.section: item.pages for item in due_by_section(SITE)}
    assert reasons["articles"] == {"again": 1}
    build(SITE)
    line = manifest()["articles", 1]
    assert (line.status, line.urls, line.duplicates) == ("done", 1, 0)
    assert b"<loc>" in xml(storage, line)
    assert [item for item in due_by_section(SITE) if item.pages] == []


@pytest.mark.slow
def test_the_files_of_sections_that_are_not_built_prove_nothing(storage, sections):
    """They may be of another declaration."""
    sections.add(Products)
    sections.add(Articles)
    build(SITE)
    assert digests() == set()
    Product.objects.filter(slug="p0").update(slug="p9")
    build(SITE, sections=["products"])
    assert digests() == {"products"}
    build(SITE)
    assert build(SITE).status == "unchanged"


@pytest.mark.slow
def test_the_status_says_how_each_section_is_compared(storage, sections, settings):
    """Proven, hashed, or nothing where duplicates stay."""
    for section in (Products, Articles, Again):
        sections.add(section)
    build(SITE)
    expected = {"products": "proven", "articles": "hashed", "again": "hashed"}
    assert {one.name: one.duplicates for one in status_of(SITE).sections} == expected
    out = io.StringIO()
    call_command("sitemap_status", stdout=out)
    assert "  Duplicates, proven: products\n" in out.getvalue()
    assert "  Duplicates, hashed: articles, again\n" in out.getvalue()
    settings.SITEMAPKIT_DEDUPLICATE = False
    assert {one.duplicates for one in status_of(SITE).sections} == {""}
