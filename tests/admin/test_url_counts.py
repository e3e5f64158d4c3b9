"""How many URLs builds list, and how that has changed."""

import pytest
from django.utils import timezone

from django_sitemapkit.admin.differences import (
    changes_by_build,
    chart_context,
    section_changes,
)
from django_sitemapkit.builds import build, publish
from django_sitemapkit.builds.report.differences import UrlChange
from django_sitemapkit.models import Build, Place
from django_sitemapkit.testing.factories import PlaceFactory
from tests.admin.operating import OVERVIEW, page, person, text_of
from tests.builds import SITE, edit_product
from tests.factories import products
from tests.testapp.models import Product

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("after", "before", "text", "is_loss"),
    [
        (5, None, "", False),
        (5, 5, "", False),
        (1001, 1000, "+1", False),
        (1330, 1000, "+330 (+33 %)", False),
        (950, 1000, f"{MINUS}50 ({MINUS}5 %)", False),
        (470_316, 705_519, f"{MINUS}235,203 ({MINUS}33 %)", True),
        (0, 3, f"{MINUS}3 ({MINUS}100 %)", True),
        (3, 0, "+3", False),
    ],
)
def test_a_change_is_told_in_urls_and_percent(after, before, text, is_loss):
    """And marked where more than a twentieth is gone."""
    change = UrlChange(after, before)
    assert (change.text, change.is_loss) == (text, is_loss)
    assert ("sitemapkit-loss" in str(change)) == is_loss


def test_a_section_that_came_or_went_is_among_the_changes():
    """With nothing before it, or nothing after."""
    assert section_changes({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {
        "a": UrlChange(1, 0),
        "b": UrlChange(2, 3),
        "c": UrlChange(0, 4),
    }
    assert section_changes({"a": 1}, None) == {"a": UrlChange(1, None)}


@pytest.fixture
def shrunk(built, settings):
    """Publish a site twice; the second build has lost most products."""
    settings.SITEMAPKIT_MAX_SHRINK = 1
    products(8)
    first = build(SITE)
    Product.objects.filter(pk__gt=Product.objects.order_by("pk")[1].pk).delete()
    second = build(SITE)
    return first, second


@pytest.mark.slow
@pytest.mark.django_db
def test_a_build_that_lost_much_does_not_look_like_the_others(shrunk):
    """In the list, on its page and on the overview; the build before it has nothing to show."""
    first, second = shrunk
    lost = first.urls - second.urls
    viewer = person("viewer")
    rows = text_of(viewer.get(page("changelist"))).partition("<tbody>")[2].split("<tr>")[1:]
    assert f'sitemapkit-loss" dir="ltr">{MINUS}{lost} (' in rows[0]
    assert f'<td class="field-url_count">{first.urls}</td>' in rows[1]
    text = text_of(viewer.get(page("change", second.build)))
    assert text.count("sitemapkit-loss") == 2  # In total, and of its section.
    text = text_of(viewer.get(OVERVIEW))  # In total, of its section, and in the list of builds.
    assert text.count(f'sitemapkit-loss" dir="ltr">{MINUS}{lost} (') == 3
    assert (
        f'aria-label="URLs of the last 2 builds: build {first.build}, {first.urls} to'
        f' build {second.build}, {second.urls}."' in text
    )


@pytest.mark.slow
@pytest.mark.django_db
def test_rolling_back_tells_what_comes_back(shrunk):
    """For each section and for all of them."""
    first, second = shrunk
    text = text_of(person("publisher").get(page("publish", first.build)))
    more = first.urls - second.urls
    assert text.count(f">+{more} (") == 2


@pytest.mark.slow
@pytest.mark.django_db
def test_only_whole_builds_are_compared(shrunk):
    """One that failed half-way has lost nothing; of one without files nothing is known."""
    _, second = shrunk
    failed, empty = (
        Build.objects.create(
            site=SITE.key, fence=9, status="failed", started_at="2026-01-01T00:00Z",
            previous_id=second.build,
        )
        for _ in range(2)
    )  # fmt: skip
    PlaceFactory(build=failed, section="products", urls=1)
    builds = Build.objects.filter(pk__in=[failed.pk, empty.pk])
    changes = changes_by_build(builds)
    assert changes == {failed.pk: UrlChange(1, None)}
    assert "sitemapkit-loss" not in text_of(person("viewer").get(page("change", failed.pk)))


@pytest.mark.slow
@pytest.mark.django_db
def test_a_build_without_files_is_no_point_of_the_chart(shrunk):
    """How many URLs it had is not known; it did not have none."""
    first, _ = shrunk
    assert chart_context(SITE) is not None
    Place.objects.filter(build=first.build).delete()
    assert chart_context(SITE) is None


@pytest.mark.slow
@pytest.mark.django_db
def test_the_live_build_is_the_last_point_of_the_chart_and_of_the_last_builds(shrunk):
    """After a roll-back as well, however many builds came after it."""
    first, _ = shrunk
    for day in range(1, 6):
        edit_product(Product.objects.first().slug, day=day)
        assert build(SITE).status == "published"
    publish(SITE, first.build)
    context = person("viewer").get(OVERVIEW).context
    assert context["chart"]["last"]["name"] == f"build {first.build}, {first.urls}"
    shown = [item["build"].pk for item in context["builds"]]
    assert shown == sorted(shown, reverse=True)
    assert (len(shown), shown[-1]) == (6, first.build)


@pytest.mark.slow
@pytest.mark.django_db
def test_the_chart_has_the_values_of_each_build_and_marks_held_ones(shrunk):
    """The line leads through the published ones only, and the text says the same."""
    first, second = shrunk
    held = Build.objects.get(pk=first.build)
    held.pk, held.status, held.published_at = None, "held", None
    held.ended_at = timezone.now()
    held.save()
    PlaceFactory(build=held, section="products", urls=1)
    chart = chart_context(SITE)
    names = [f"build {pk}, {urls}" for pk, urls in (
        (first.build, first.urls), (second.build, second.urls), (held.pk, 1),
    )]  # fmt: skip
    assert [point["name"] for point in chart["points"]] == names
    assert [(a["name"], b["name"]) for a, b in chart["segments"]] == [tuple(names[:2])]
    assert chart["held"] == names[2]
    assert chart["text"] == (
        f"URLs of the last 3 builds: {names[0]} to {names[2]}. Not published: {names[2]}"
    )
    heights = [float(point["y"]) for point in chart["points"]]
    assert heights == sorted(heights)  # The fewer URLs, the lower.
    assert chart["lines"][0]["text"] == "0"
