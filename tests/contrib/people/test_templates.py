"""The site map for people within a project: its own base, and the tag in its own pages."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext

from django_sitemapkit import Route, StaticSection
from django_sitemapkit.models import Plan
from tests.contrib.people.reading import (
    FIRST_PAGE,
    READINGS,
    Levels,
    body,
    entries,
    sections_of,
    written,
)
from tests.languages import place, places, render
from tests.testapp.models import Reading
from tests.testapp.serving import (
    BASE,
    Products,
    Readings,
    declare,
    locations,
    make_products,
    make_readings,
)

pytestmark = pytest.mark.django_db


# The project's own base

OWN_BASE = """<title>{% block title %}{% endblock %} - Shop</title>{% block styles %}{% endblock %}
<body class="shop"><nav>{% block trail %}{% endblock %}</nav><main>{% block main %}{% endblock %}"""

EXTENDED = """{% extends "shop/base.html" %}{% load static %}
{% block styles %}{% static "sitemapkit_people/people.css" %}{% endblock %}
{% block main %}{% block content %}{% endblock %}{% endblock %}"""


@pytest.fixture
def own_templates(settings):
    """Return a function that puts templates of a project before those of the package."""

    def put(templates):
        loaders = [
            ("django.template.loaders.locmem.Loader", templates),
            "django.template.loaders.app_directories.Loader",
        ]
        engine = {**settings.TEMPLATES[0], "APP_DIRS": False}
        engine["OPTIONS"] = {**engine["OPTIONS"], "loaders": loaders}
        settings.TEMPLATES = [engine]

    return put


def test_the_base_may_extend_that_of_the_project(client, sections, own_templates, show):
    """Titles, breadcrumbs and content go to the blocks that it has for them, and nothing else."""
    own_templates({"shop/base.html": OWN_BASE, "sitemapkit_people/base.html": EXTENDED})
    show(2)
    declare(sections, Levels)
    make_readings(range(3))
    first, page = client.get(FIRST_PAGE), client.get(READINGS)
    assert "<title>Site map - Shop</title>" in body(first)
    assert "<title>Readings: Level 0 – Level 1 · Site map - Shop</title>" in body(page)
    assert list(sections_of(first)) == ["Readings"]
    assert [title for _, title in entries(page)] == ["Level 0", "Level 1"]
    for response in (first, page):
        assert body(response).count("people.css") == body(response).count("<body") == 1
        assert re.search(r"<nav>\s*<li.*</nav><main>\s*<h1", body(response), re.DOTALL)
        assert "XML" not in body(response)


def test_any_template_may_be_replaced(client, sections, own_templates):
    """A list alone, for the first page, the page of a section and the tag."""
    own_templates(
        {"sitemapkit_people/entries.html": "<b>{% for one in entries %}{{ one.title }}{% endfor %}"}
    )
    declare(sections, Levels)
    make_readings([7])
    for address in (FIRST_PAGE, READINGS):
        assert "<b>Level 7" in body(client.get(address))


# The tag


def test_tag_writes_the_sections(client, rf, sections):
    """Links to their places on the first page, for a page or a footer of the project's own."""
    declare(sections, Readings)
    declare(sections, Products, heading="All <things>")
    declare(sections, StaticSection, name="pages", items=["/a/"])
    declare(sections, StaticSection, name="none", items=[])
    make_readings([1])
    text = written("{% sitemap_html %}", rf)
    assert re.findall('<a href="(.*?)">(.*?)</a>', text) == [
        ("/sitemap/#section-readings", "Readings"),
        ("/sitemap/#section-pages", "Pages"),
    ]
    make_products("a")
    assert ">All &lt;things&gt;</a>" in written("{% sitemap_html %}", rf)
    assert 'id="section-products"' in body(client.get(FIRST_PAGE))


def test_tag_takes_as_many_queries_for_many_sections(rf, sections):
    """What editors have set, and one look at all sections; none is planned."""
    counts = []
    for number in range(3):
        declare(sections, Readings, name=f"readings-{number}", limit=1)
        make_readings(range(10 * number, 10 * number + 10))
        with CaptureQueriesContext(connection) as queries:
            assert written("{% sitemap_html %}", rf).count("<li>") == number + 1
        counts.append(len(queries))
    assert counts == [2, 2, 2]
    assert not Plan.objects.exists()


def test_tag_writes_the_entries_of_a_section(rf, sections):
    """The first ones, as many as are asked for."""
    declare(sections, Readings)
    make_readings(range(9))
    count = written('{% sitemap_html "readings" %}', rf).count("<li>")
    assert count == 9
    text = written("{% sitemap_html name at_most=2 %}".replace("name", '"readings"'), rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/readings/{n}/" for n in range(2)]
    assert written('{% sitemap_html "readings" 0 %}', rf) == ""
    assert written('{% sitemap_html "nothing" %}', rf) == ""


def test_tag_asks_for_no_plan(rf, sections):
    """The first entries are those of the section, however it is cut, or not cut."""
    declare(sections, Readings, limit=2)
    declare(sections, StaticSection, name="pages", items=["/a/", "/b/", "/c/"], limit=2)
    make_readings(range(9))
    text = written('{% sitemap_html "readings" 5 %}', rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/readings/{n}/" for n in range(5)]
    assert not Plan.objects.exists()
    text = written('{% sitemap_html "pages" %}', rf)
    assert re.findall('href="(.*?)"', text) == [f"{BASE}/{name}/" for name in "abc"]


@pytest.mark.urls("tests.urls_languages")
@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_tag_speaks_the_language_of_the_page(rf, sections, count):
    """Of rows in several languages it writes those in the active one."""
    section = places()
    sections.add(type(section.options))
    for n in range(8):
        place(f"p{n}")
    english = [url for url in locations(render(section)[1]) if url.startswith(f"{BASE}/en/")]
    assert len(english) == 8
    found = re.findall('href="(.*?)"', written(f'{{% sitemap_html "things" {count} %}}', rf))
    assert found == english[:count]


def test_tag_writes_nothing_where_there_is_nothing(rf, settings, sections, caplog):
    """A page of the project renders whatever is the matter with the sitemap."""
    assert written("{% sitemap_html %}", rf) == ""
    declare(sections, Readings)
    make_readings([1])
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {"a": {"BASE_URL": "https://a.example"}}
    assert written("{% sitemap_html %}", rf) == ""
    assert "The site map cannot be rendered" in caplog.text
    assert "<li>" in written("{% sitemap_html %}", rf, host="a.example")


@pytest.mark.urls("tests.urls_languages")
def test_tag_needs_the_addresses_of_the_site_map(rf, sections, caplog):
    """Where the URLconf does not include them, the log says what to add."""
    declare(sections, Readings)
    make_readings([1])
    assert written("{% sitemap_html %}", rf) == ""
    assert 'include("django_sitemapkit.contrib.people.urls")' in caplog.text


def test_tag_writes_nothing_of_a_section_that_cannot_be_paged(rf, sections, caplog):
    """The page renders, and the log says why."""
    declare(sections, Readings, get_queryset=lambda self: Reading.objects.order_by("pk")[:3])
    make_readings([1])
    assert written('{% sitemap_html "readings" %}', rf) == ""
    assert "The site map cannot be rendered" in caplog.text


def test_a_section_whose_url_does_not_exist_is_named(rf, sections, caplog):
    """A footer must not break each web page; who writes the XML gets the error with the name."""
    declare(sections, Readings, location=Route("unknown", level="level"))
    make_readings([1])
    assert written('{% sitemap_html "readings" %}', rf) == ""
    assert "Section 'readings': The URLconf has no pattern named 'unknown'" in caplog.text
    xml = "{% load sitemapkit %}{% sitemap_entries 'readings' 1 as entry %}{% endsitemap_entries %}"
    with pytest.raises(ImproperlyConfigured, match="Section 'readings'"):
        Template(xml).render(Context())
