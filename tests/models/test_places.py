"""What a place says of its page."""

import pytest

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Place
from django_sitemapkit.rendering.problems import ProblemLog
from django_sitemapkit.testing.factories import BuildFactory, PlaceFactory

pytestmark = pytest.mark.django_db


def test_problems_keep_their_order():
    """That in which they were found, whatever their codes and whatever order a database keeps."""
    log = ProblemLog("pages")
    for key, code in enumerate(["no-url", "invalid-date", "no-url", "a", "invalid-date"]):
        log.add(key, InvalidValue(code, f"Bad: {key}"))
    place = PlaceFactory(build=BuildFactory(), problems=log.by_code())
    place.refresh_from_db()
    assert place.problem_examples == list(map(str, log.examples))
    assert {code: kind["count"] for code, kind in place.problems.items()} == log.counts


def test_a_place_without_a_stored_page_lists_nothing():
    """What gates add up is a number for each."""
    place = PlaceFactory(build=BuildFactory(), status="empty", page=None)
    assert (place.name, place.urls, place.xml_bytes) == ("", 0, 0)


def test_places_come_with_their_stored_pages(django_assert_num_queries):
    """By one query, however many there are."""
    build = BuildFactory()
    PlaceFactory.create_batch(3, build=build, urls=7)
    with django_assert_num_queries(1):
        assert [place.page.urls for place in Place.objects.in_build(build)] == [7, 7, 7]
    with django_assert_num_queries(1):
        assert [place.urls for place in Place.objects.in_build(build).pages()] == [7, 7, 7]
