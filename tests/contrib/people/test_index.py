"""The first page of the site map for people: what is small in full, what is large by name."""

import re

import pytest
from django.db import OperationalError, connection
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.template import RequestContext, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import translation

from django_sitemapkit import StaticSection
from django_sitemapkit.contrib.people import parts as people_parts
from django_sitemapkit.models import ExclusionRule, ExtraUrl, Lease, Page, Plan, UrlOverride
from tests.contrib.people.reading import (
    FIRST_PAGE,
    READINGS,
    Articles,
    Levels,
    Tokens,
    body,
    entries,
    flat,
    make_articles,
    parts,
    plan,
    sections_of,
    walked,
)
from tests.factories import SITE
from tests.testapp.models import Reading
from tests.testapp.serving import (
    BASE,
    Products,
    Readings,
    declare,
    make_products,
    make_readings,
    unbounded,
)

pytestmark = pytest.mark.django_db


def shown(client):
    """Return the links of the first page by the heading of their section."""
    return sections_of(client.get(FIRST_PAGE))


def exclude(*levels):
    """Let no sitemap list some readings."""
    for level in levels:
        UrlOverride.objects.create(site=SITE.key, path=f"/readings/{level}/", include=False)


# Small sections


def test_small_sections_list_all_their_entries(client, sections):
    """In the order of registration; a section without a row is not there, and none is planned."""
    declare(sections, Articles, name="city-guides")
    declare(sections, Levels)
    declare(sections, Tokens)
    make_articles("Rome", "Paris")
    make_readings([1])
    found = shown(client)
    assert list(found) == ["City guides", "Readings"]
    assert [title for _, title in found["City guides"]] == ["Paris", "Rome"]
    assert found["Readings"] == [(f"{BASE}/readings/1/", "Level 1")]
    assert not Plan.objects.exists()
    page = body(client.get(FIRST_PAGE))
    assert 'href="/sitemap.xml"' in page
    assert "robots.txt" not in page


def test_what_is_shown_whole_is_in_the_order_of_its_titles(client, sections):
    """Whatever the ids: on the first page, on its own, and by the template tag; without accents."""
    declare(sections, Articles, name="cities")
    make_articles("Zagreb", "évora", "Part 10", "Faro", "Oslo", "Élancourt", "Part 9")
    in_order = ["Élancourt", "évora", "Faro", "Oslo", "Part 9", "Part 10", "Zagreb"]
    assert [title for _, title in shown(client)["Cities"]] == in_order
    own = entries(client.get("/sitemap/cities/1/"))
    assert [title for _, title in own] == in_order
    tag = Template("{% load sitemapkit_people %}{% sitemap_html 'cities' %}").render(
        RequestContext(RequestFactory().get("/"))
    )
    assert re.findall(">([^<>]+)</a>", tag) == in_order


def test_a_list_of_items_keeps_its_order(client, sections):
    """The project has chosen it."""
    declare(sections, StaticSection, name="pages", items=["/z/", "/a/"])
    assert [title for _, title in shown(client)["Pages"]] == ["/z/", "/a/"]


@pytest.mark.parametrize(("count", "is_small"), [(3, True), (4, True), (5, False)])
def test_a_section_is_small_if_one_page_shows_it(client, sections, show, count, is_small):
    """It has no more rows than a page of links has entries."""
    show(4)
    declare(sections, Levels)
    declare(sections, StaticSection, name="pages", items=[f"/{n}/" for n in range(count)])
    make_readings(range(count))
    for links in shown(client).values():
        assert [address.startswith(BASE) for address, _ in links] == (
            [True] * count if is_small else [False] * 2
        )


def test_the_page_leads_to_each_section(client, sections):
    """Links at the top lead to their places on the page; one section needs none."""
    declare(sections, Levels)
    make_readings([1])
    assert "#section-" not in body(client.get(FIRST_PAGE))
    declare(sections, Products)
    make_products("a")
    page = body(client.get(FIRST_PAGE))
    for name in ("readings", "products"):
        assert f'<li><a href="/sitemap/#section-{name}">' in page
        assert f'<h2 id="section-{name}">' in page


def test_what_the_xml_leaves_out_is_left_out(client, sections):
    """Rows that editors exclude; a section that lists nothing is not there."""
    declare(sections, Levels)
    declare(sections, Products)
    make_readings(range(3))
    make_products("a")
    ExclusionRule.objects.create(site=SITE.key, pattern="/products/")
    exclude(1)
    assert shown(client) == {
        "Readings": [(f"{BASE}/readings/{n}/", f"Level {n}") for n in (0, 2)],
    }


def test_extra_urls_have_titles(client, sections):
    """Without one it is the path. The section is called "More pages", in the visitor's language."""
    ExtraUrl.objects.create(site=SITE.key, path="/sale/", title="Our sale & more")
    ExtraUrl.objects.create(site=SITE.key, path="/extra/")
    expected = [(f"{BASE}/extra/", "/extra/"), (f"{BASE}/sale/", "Our sale & more")]
    assert shown(client) == {"More pages": expected}
    with override_settings(LANGUAGE_CODE="es"):
        assert shown(client) == {"Más páginas": expected}
    assert entries(client.get("/sitemap/extra-urls/1/")) == expected


def test_nothing_listed(client, sections):
    """A site without a URL says so."""
    assert "Nothing is listed yet." in body(client.get(FIRST_PAGE))


# Large sections


def test_a_large_section_is_shown_by_the_parts_of_its_page(client, sections, show):
    """Each part is called by its first title and its last, and leads to the entries from there."""
    show(4)
    declare(sections, Levels)
    make_readings(range(-2, 7))
    (links,) = shown(client).values()
    assert links == [
        (READINGS, "Level -2 – Level 1"),
        (f"{READINGS}?from=2", "Level 2 – Level 5"),
        (f"{READINGS}?from=6", "Level 6"),
    ]
    first = [entries(client.get(address))[0] for address, _ in links]
    assert [title for _, title in first] == ["Level -2", "Level 2", "Level 6"]


def test_what_follows_many_parts_is_one_link(client, sections, show):
    """It leads to the next part, and that to all the others."""
    show(4, named=2)
    declare(sections, Levels)
    make_readings(range(8))
    (links,) = shown(client).values()
    assert [title for _, title in links] == ["Level 0 – Level 3", "Level 4 – Level 7"]
    make_readings(range(8, 21))
    (links,) = shown(client).values()
    assert links[2:] == [(f"{READINGS}?from=8", "More pages")]
    found = walked(client, links[-1][0])
    assert flat(found) == [f"{BASE}/readings/{n}/" for n in range(8, 21)]


def test_several_pages_are_called_by_their_titles(client, sections, show):
    """A page by what is on it now, not when it was planned; one without a row is not there."""
    show(2)
    section = declare(sections, Levels)
    make_readings(range(10))
    plan(section, [3, 5, 7], [4, 1, 3, 2])
    Reading.objects.filter(pk__in=[0, 3, 4, 8]).delete()
    assert shown(client)["Readings"] == [
        ("/sitemap/readings/4/", "Level 1 – Level 2"),
        ("/sitemap/readings/3/", "Level 5 – Level 6"),
        ("/sitemap/readings/2/", "Level 7 – Level 9"),
    ]


@pytest.mark.slow
def test_many_pages_are_not_all_named(client, sections, show, monkeypatch):
    """The first ones are; one more link leads on, and each page to the next."""
    show(2)
    monkeypatch.setattr(people_parts, "MAX_PAGES", 3)
    declare(sections, Levels, limit=1)
    make_readings(range(3))
    assert len(shown(client)["Readings"]) == 3
    make_readings(range(3, 6))
    Plan.objects.all().delete()
    links = shown(client)["Readings"]
    assert [title for _, title in links] == ["Level 0", "Level 1", "Level 2", "More pages"]
    assert flat(walked(client, links[-1][0])) == [f"{BASE}/readings/{n}/" for n in (3, 4, 5)]


@pytest.mark.parametrize("limit", [100, 5])
def test_a_list_is_named_too(client, sections, show, limit):
    """By position: the parts of its only page, or its pages."""
    show(5)
    items = [f"/{letter}/" for letter in "abcdefghijkl"]
    upper = lambda self, item: item.upper()  # noqa: E731
    declare(sections, StaticSection, name="pages", items=items, limit=limit, title=upper)
    (links,) = shown(client).values()
    assert [title for _, title in links] == ["/A/ – /E/", "/F/ – /J/", "/K/ – /L/"]
    assert flat(walked(client, links[0][0])) == [BASE + item for item in items]


def test_what_is_not_listed_gives_no_name(client, sections, show):
    """The name says so; where both ends are not listed, the link is there all the same."""
    show(3)
    declare(sections, Levels)
    make_readings(range(9))
    exclude(0, 5, 6, 8)
    names = [title for _, title in shown(client)["Readings"]]
    assert names == ["… – Level 2", "Level 3 – …", "…"]


@pytest.mark.parametrize("pages", [1, 2])
def test_what_is_known_to_list_nothing_is_not_linked(client, sections, show, pages):
    """Neither a page nor the parts of the only one, unless a title of it is listed."""
    show(3)
    section = declare(sections, Levels)
    make_readings(range(6))
    plan(section, [3][: pages - 1], range(1, pages + 1))
    exclude(0, 2, 3, 5)
    assert [title for _, title in shown(client)["Readings"]] == ["…", "…"]
    Page.objects.update(lists=False)
    assert shown(client) == {}
    UrlOverride.objects.filter(path="/readings/5/").delete()
    assert [title for _, title in shown(client)["Readings"]] == ["… – Level 5"]


def test_while_a_large_section_is_planned(client, sections, show):
    """503, and come back; small ones need no plan."""
    declare(sections, Levels, limit=3)
    make_readings(range(5))
    lease = Lease.objects.acquire("plan:default:readings", seconds=60)
    assert client.get(FIRST_PAGE).status_code == 200
    show(4)
    assert client.get(FIRST_PAGE).status_code == 503
    lease.release()
    assert client.get(FIRST_PAGE).status_code == 200


# Headings


def test_headings(client, sections):
    """What the section says, in the visitor's language, else its name."""
    declare(sections, Products, heading=translation.gettext_lazy("Home"))
    declare(sections, Readings, name="old_city-guides")
    make_products("a")
    make_readings([1])
    assert list(shown(client)) == ["Home", "Old city guides"]
    with override_settings(LANGUAGE_CODE="es"):
        assert list(shown(client)) == ["Inicio", "Old city guides"]


# What it costs


@pytest.mark.slow
@pytest.mark.parametrize("limit", [50_000, 600])
def test_queries_do_not_grow_with_the_rows(client, sections, limit):
    """A section of 5,000 rows takes as many as one of 1,500; none counts them or skips any."""
    declare(sections, Readings, title=Concat(Value("On "), Cast("level", CharField())), limit=limit)
    declare(sections, Products)
    make_products("a")
    make_readings(range(1500))
    counts = []
    for rows in ([], range(1500, 5000)):
        make_readings(rows)
        Plan.objects.all().delete()
        client.get(FIRST_PAGE)
        with CaptureQueriesContext(connection) as queries:
            found = parts(client.get(FIRST_PAGE))
        assert len(found) > 2
        counts.append(len(queries))
        assert unbounded([query["sql"] for query in queries]) == []
    # What editors set; the keys of each section, in a savepoint each; the entries of the small one;
    # the plan, the rows at the ends of parts or pages, and their titles; which rows end a page.
    assert counts == [(12 if limit == 600 else 11)] * 2


def test_a_database_that_does_not_answer(client, sections, monkeypatch):
    """503, and come back."""

    def gone(*arguments):
        raise OperationalError("the server has gone away")

    monkeypatch.setattr("django_sitemapkit.contrib.people.views.site_for", gone)
    assert client.get(FIRST_PAGE).status_code == 503
