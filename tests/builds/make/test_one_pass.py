"""A page that is rendered anyway is digested by the statements that read its rows."""

import pytest
from django.db import connection

from django_sitemapkit.builds import build
from django_sitemapkit.builds.make.reuse import Fingerprints
from django_sitemapkit.builds.manifest import key_range_of
from django_sitemapkit.overrides import section_of
from django_sitemapkit.reading import rows as rows_module
from tests.builds import SITE, Articles, Products, edit_product, fill, manifest, states, use_storage

pytestmark = pytest.mark.django_db

READS = connection.vendor in ("postgresql", "mysql")
"""Whether rows are digested as they are read."""


@pytest.fixture
def digested(sections, settings, monkeypatch):
    """Give a site of four pages, and the list of ranges that a query of its own digested."""
    use_storage(settings, "Memory")
    for section in (Products, Articles):
        sections.add(section)
    fill()
    ranges = []
    digests_of = rows_module.digests_of

    def spy(keyset, some, columns):
        ranges.extend(some)
        return digests_of(keyset, some, columns)

    monkeypatch.setattr(rows_module, "digests_of", spy)
    return ranges


def require_fingerprints():
    """Require that each page has the fingerprint that is computed of it alone."""
    alone = Fingerprints(SITE)
    for (name, _), row in manifest().items():
        if name:
            section = section_of(SITE, name)
            assert row.fingerprint == alone.compute(section, [key_range_of(row, section)])[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_build_of_all_pages_asks_for_no_digest(digested, full):
    """Neither the first one nor a full one; and the next build keeps every page."""
    if full:
        build(SITE)
        digested.clear()
    build(SITE, full=full)
    assert len(digested) == (0 if READS else 4)
    require_fingerprints()
    assert build(SITE).status == "unchanged"


@pytest.mark.slow
def test_a_page_that_changed_is_digested_as_it_is_read(digested):
    """Its digest was computed before, to find that it changed; all others were computed once."""
    build(SITE)
    digested.clear()
    edit_product()
    result = build(SITE)
    stored = [page for page, state in states(result).items() if state == "stored"]
    # The index says when the page was stored, to the second.
    assert set(stored) - {("", 0)} == {("products", 1)}
    assert len(digested) == (4 if READS else 5)
    require_fingerprints()
    assert build(SITE).status == "unchanged"
