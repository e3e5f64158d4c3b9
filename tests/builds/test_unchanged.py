"""A build that changes nothing leaves its own row, and no manifest."""

import pytest

from django_sitemapkit import ExternalSection, StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.models import Build, Place
from tests.builds import SITE, Products, Readings, edit_product, fill, manifest, states, use_storage
from tests.factories import EPOCH
from tests.testapp.models import Product

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def storage(settings, sections):
    """Publish two sections."""
    sections.add(Products)
    sections.add(Readings)
    fill()
    Product.objects.update(updated_at=EPOCH)
    storage = use_storage(settings, "Memory")
    build(SITE)
    return storage


def test_it_costs_few_queries_and_no_file(storage, sections, django_assert_max_num_queries):
    """The lease, what is published, the plan, its digests, one record, and who waits for it."""
    sections.remove("readings")
    build(SITE)
    storage.calls.clear()
    with django_assert_max_num_queries(24) as queries:
        result = build(SITE, started_by="a test")
    assert storage.saved() == []
    assert not any('INSERT INTO "sitemapkit_place"' in q["sql"] for q in queries)
    record = Build.objects.latest("pk")
    assert (record.pk, record.status) == (result.build, "unchanged")
    assert (record.started_by, record.reason) == ("a test", "")
    assert record.started_at <= record.ended_at
    assert record.options["declaration"]
    assert not Place.objects.in_build(record).exists()
    published = Build.objects.get(status="published", replaced_at=None)
    assert published.checked_by == {"products": record.pk}


def test_it_reports_each_page_and_what_is_doubtful(storage):
    """As any other build does."""
    first = build(SITE, full=True)
    seen = []
    result = build(SITE, on_file=lambda file, place, total: seen.append((file, place, total)))
    assert result.status == first.status == "unchanged"
    assert states(result).keys() == states(first).keys()
    assert [place for _, place, _ in seen] == list(range(1, 7))
    assert all(total >= place for _, place, total in seen)
    assert [file for file, *_ in seen] == list(result.files)
    Product.objects.bulk_create(
        Product(shop=Product.objects.first().shop, slug=f"more{n}", updated_at=EPOCH)
        for n in range(6)
    )
    assert build(SITE).warnings
    again = build(SITE)
    assert again.status == "unchanged"
    assert again.warnings
    assert Build.objects.get(pk=again.build).warnings


@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_page_that_changed_is_made_with_what_was_known(storage, place):
    """Wherever it is in the order of the pages; the others keep their files."""
    before = manifest()
    edit_product(f"p{place}")
    result = build(SITE)
    assert result.status == "published"
    stored = {key for key, state in states(result).items() if state == "stored" and key[0]}
    assert stored == {("products", place // 2 + 1)}
    after = manifest()
    assert {key for key in after if after[key].name != before[key].name and key[0]} == stored
    assert all(line.fingerprint for key, line in after.items() if key[0])


def test_another_index_is_published(storage, sections):
    """Though no page has changed."""
    kind = type("Elsewhere", (ExternalSection,), {"sitemaps": ["/other.xml"]})
    sections.add(kind)
    assert build(SITE).status == "published"
    assert build(SITE).status == "unchanged"


def test_what_only_rendering_tells_is_rendered(storage, sections):
    """And found the same."""
    sections.add(type("Pages", (StaticSection,), {"items": ["home"]}))
    assert build(SITE).status == "published"
    result = build(SITE)
    assert result.status == "unchanged"
    assert states(result)["pages", 1] == "same"


def test_it_gives_up_what_was_held(storage):
    """A build of all sections that is in order ends what waited for review."""
    Product.objects.filter(slug="p4").update(slug="\x0b")
    held = build(SITE, strict=True)
    assert held.status == "held"
    Product.objects.filter(slug="\x0b").update(slug="p4")
    assert build(SITE).status == "unchanged"
    assert Build.objects.get(pk=held.build).status == "abandoned"
