"""Rows that say themselves whether and how they are listed: ``SitemapFields``."""

import pytest
from django.core.exceptions import ValidationError
from django.db.models import F, Value
from django.db.models.functions import Concat

from django_sitemapkit import Section
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.reading.validation import mistakes_of
from tests.factories import declare
from tests.overrides.setting import entries, rendered
from tests.testapp.models import Topic

pytestmark = pytest.mark.django_db


class Things(Section):
    """Topics, read by column."""

    queryset = Topic.objects.all()
    location = Concat(Value("/things/"), F("code"))
    changefreq = "weekly"


class Objects(Things):
    """Topics, read as objects of which one column is named."""

    only = ("code",)

    def location(self, topic):
        return f"/things/{topic.code}"


@pytest.fixture(params=[Things, Objects])
def topics(request, sections):
    """Declare a section over three topics."""
    sections.add(type("Things", (request.param,), {}))
    return Topic.objects.bulk_create(Topic(code=code) for code in "abc")


def test_a_row_says_whether_and_how_it_is_listed(topics):
    """Where it says nothing, what is declared holds."""
    assert entries() == {f"/things/{code}": {"changefreq": "weekly"} for code in "abc"}
    Topic.objects.filter(code="a").update(sitemap_include=False)
    Topic.objects.filter(code="b").update(sitemap_priority="0.25", sitemap_changefreq="daily")
    assert entries() == {
        "/things/b": {"changefreq": "daily", "priority": "0.25"},
        "/things/c": {"changefreq": "weekly"},
    }


def test_a_wrong_value_is_as_none(topics):
    """What holds for the section holds for the row; a form does not let it in."""
    Topic.objects.filter(code="b").update(sitemap_priority="2")
    assert list(entries()) == ["/things/a", "/things/b", "/things/c"]
    assert entries()["/things/b"].get("priority") == entries()["/things/c"].get("priority")
    (problem,) = rendered()[0].problems.examples
    assert (problem.key, problem.skipped) == ("b", False)
    with pytest.raises(ValidationError):
        Topic(code="d", sitemap_priority="2").full_clean()


def test_no_row_costs_a_query(topics, django_assert_num_queries):
    """Fields that ``only`` does not name are read with the others."""
    with django_assert_num_queries(2):
        entries()


def test_a_change_of_them_is_seen(sections):
    """By the digest of the page, and of no other."""
    section = declare(Things)
    Topic.objects.bulk_create(Topic(code=code) for code in "ab")
    seen = {section.fingerprints([EVERYTHING])[0]}
    for number, change in enumerate(
        (
            {"sitemap_priority": "0.25"},
            {"sitemap_priority": "0.5"},
            {"sitemap_changefreq": "daily"},
            {"sitemap_include": False},
        ),
        start=2,
    ):
        Topic.objects.filter(code="a").update(**change)
        seen.add(declare(Things).fingerprints([EVERYTHING])[0])
        assert len(seen) == number
    Topic.objects.filter(code="a").update(sitemap_changefreq="weekly")
    assert declare(Things).fingerprints([EVERYTHING])[0] in seen


def test_a_queryset_that_cannot_be_filtered_is_left_to_its_check():
    """A check tells of it, instead of an error that nobody expects."""
    rows = Topic.objects.all()
    for queryset, code in ((rows[:2], "E103"), (rows.union(rows), "E104")):
        found = mistakes_of(declare(Things, queryset=queryset))
        assert f"sitemapkit.{code}" in [mistake.identifier for mistake in found]
    assert declare(Things).rows.count() == 0
