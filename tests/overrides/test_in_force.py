"""What overrides and rules do to rows: who is meant, and which of several counts."""

import datetime as dt
from decimal import Decimal
from urllib.parse import quote

import pytest
from django.contrib.sitemaps import Sitemap
from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone, translation

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.models import UrlOverride, hash_of
from django_sitemapkit.overrides import in_force, overrides_of, section_of
from django_sitemapkit.reading.keysets import EVERYTHING
from tests.factories import EPOCH, SITE, products, words
from tests.overrides.setting import (
    by_object,
    by_path,
    entries,
    extra,
    rendered,
    rule,
    setting,
)
from tests.testapp.models import (
    Article,
    ArticleProxy,
    Day,
    Feature,
    Moment,
    Pass,
    Product,
    Reading,
    Token,
    Topic,
)

pytestmark = pytest.mark.django_db


class Things(Section):
    """Products with a value for each tag."""

    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    lastmod = "updated_at"
    changefreq = "weekly"
    priority = F("rank")


@pytest.fixture(autouse=True)
def filtered(monkeypatch):
    """Let the filter be asked, as it is where rows are many."""
    monkeypatch.setattr(in_force, "MAX_ROWS_WITHOUT_FILTER", 0)


@pytest.fixture
def things(sections):
    """Declare a section of three products."""
    sections.add(Things)
    return products(3, rank="0.50")


def path_of(product):
    """Return the path of a product."""
    return f"/products/{product.shop.slug}/{product.slug}/"


def declared(sections, model, **options):
    """Register a section over a model, with locations made of its keys."""

    def location(self, obj):
        return f"/things/{obj.pk}/"

    options = {"location": location, "queryset": model._default_manager.all()} | options
    sections.add(type("Things", (Section,), options))


# By path


def test_a_path_is_overridden_in_each_tag(things):
    """And no other one is."""
    by_path(path_of(things[1]), lastmod=EPOCH + dt.timedelta(1), changefreq="daily", priority="0.9")
    given = {"lastmod": "2024-02-29T12:30:15+00:00", "changefreq": "weekly", "priority": "0.5"}
    ours = {"lastmod": "2024-03-01T12:30:15+00:00", "changefreq": "daily", "priority": "0.9"}
    assert list(entries().values()) == [given, ours, given]


@pytest.mark.parametrize("tag", ["lastmod", "changefreq", "priority"])
def test_a_tag_that_no_other_has_is_set(sections, tag):
    """In its one entry alone, and in the order of the protocol."""
    declared(sections, Reading)
    Reading.objects.bulk_create(Reading(level=level) for level in range(3))
    value = {"lastmod": EPOCH, "changefreq": "daily", "priority": "0.9"}[tag]
    by_path("/things/1/", **{tag: value})
    assert [list(tags) for tags in entries().values()] == [[], [tag], []]


def test_a_path_is_found_by_its_query_and_its_escapes(sections):
    """As it stands in the sitemap."""
    sections.add(type("Things", (StaticSection,), {"items": ["/ü/?a=b c", "/ü/", "/ü"]}))
    by_path("/%c3%bc/?a=b%20c", include=False)
    assert list(entries()) == ["/%C3%BC/", "/%C3%BC"]


def test_texts_that_a_database_takes_for_one_are_two(sections):
    """Be they paths or keys: upper and lower case, with and without accents."""
    near = ["/Cafe/", "/cafe/", "/café/", "/CAFÉ/"]
    sections.add(type("Things", (StaticSection,), {"items": near}))
    for path, priority in zip(near[:3], ("0.1", "0.2", "0.3"), strict=True):
        by_path(path, priority=priority)
    assert [tags.get("priority") for tags in entries().values()] == ["0.1", "0.2", "0.3", None]


def test_a_key_is_compared_by_its_text(sections):
    """The database may hold another one to be equal."""
    declared(sections, Topic)
    topic = Topic.objects.create(code="cafe")
    by_object(Topic(code="Café"), include=False)
    assert list(entries()) == ["/things/cafe/"]
    by_object(topic, include=False)
    assert entries() == {}


def test_an_override_is_of_its_own_site(things):
    """Another one's, and one at another path of the host, does nothing here."""
    UrlOverride.objects.create(site="other", path=path_of(things[0]), include=False)
    UrlOverride.objects.create(site="", path=path_of(things[0]), include=False)
    by_path(path_of(things[0])[:-1], include=False)
    assert len(entries()) == 3


def test_lists_and_extra_urls_are_overridden_too(sections):
    """By path, as all URLs are."""
    sections.add(type("Things", (StaticSection,), {"items": ["home", "about"]}))
    by_path("/about/", include=False)
    extra("/a/", priority="0.1")
    extra("/b/", priority="0.1")
    by_path("/a/", priority="0.9")
    assert list(entries()) == ["/"]
    assert entries("extra-urls") == {"/a/": {"priority": "0.9"}, "/b/": {"priority": "0.1"}}


# By object

OBJECTS = {
    "int": lambda: (products(2), {}),
    "uuid": lambda: ([Token.objects.create(), Token.objects.create()], {}),
    "child by uuid": lambda: ([Pass.objects.create(), Pass.objects.create()], {}),
    "text": lambda: ([Topic.objects.create(code=code) for code in ("a b/ü", "a c/ü")], {}),
    "negative": lambda: ([Reading.objects.create(level=level) for level in (-1, 1)], {}),
    "date": lambda: ([Day.objects.create(date=EPOCH.date() + dt.timedelta(n)) for n in (0, 1)], {}),
    "moment": lambda: ([Moment.objects.create(at=EPOCH + dt.timedelta(n)) for n in (0, 1)], {}),
    "key of text": lambda: (words("Zebra", "apple"), {"key": "text"}),
    "key of text, by column": lambda: (
        words("Zebra", "apple"),
        {
            "key": "text",
            "location": Concat(Value("/things/"), Cast("pk", CharField()), Value("/")),
        },
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_is_overridden_whatever_its_key(sections, kind):
    """It alone; by its identity, wherever the section's paging key comes from."""
    objects, options = OBJECTS[kind]()
    declared(sections, type(objects[0]), **options)
    assert len(entries()) == 2
    by_object(objects[0], include=False)
    (left,) = entries()
    assert left == f"/things/{quote(str(objects[1].pk), safe='/:+')}/"
    override = by_object(objects[1], priority="0.3")
    assert list(entries().values()) == [{"priority": "0.3"}]
    override.delete()
    assert list(entries().values()) == [{}]


@pytest.mark.parametrize("listed", [Article, Feature, ArticleProxy])
@pytest.mark.parametrize("edited", [Article, Feature, ArticleProxy])
def test_a_proxy_or_child_is_the_same_object(sections, listed, edited):
    """Whichever of them a section lists, and an editor opens."""
    feature = Feature.objects.create(title="One", edited_at=EPOCH)
    declared(sections, listed)
    by_object(edited(pk=feature.pk), include=False)
    assert entries() == {}


def test_an_object_is_found_in_each_of_its_sections(sections):
    """And wherever its URL goes; an object of another model with the same key is another one."""
    sections.add(Things)
    sections.add(type("Others", (Things,), {"limit": 2}))
    declared_names = ["things", "others", "readings"]
    sections.add(
        type(
            "Readings",
            (Section,),
            {"queryset": Reading.objects.all(), "location": Route("reading", level="pk")},
        )
    )
    (product,) = products(1)
    Reading.objects.create(level=product.pk)
    by_object(product, priority="0.1")
    Product.objects.update(slug="moved")
    found = [next(iter(entries(name).values())).get("priority") for name in declared_names]
    assert found == ["0.1", "0.1", None]


def test_an_override_of_an_object_that_is_gone_does_nothing(things):
    """Nor does one of a model that is."""
    by_object(things[0], include=False)
    things[0].delete()
    UrlOverride.objects.create(site=SITE.key, model="gone.model", object_id="1", include=False)
    assert len(entries()) == 2


# Which one counts


def test_the_nearest_counts_value_by_value(sections):
    """Path before object before the object's own fields before settings before declaration."""
    topic = Topic.objects.create(code="a")
    options = {
        "priority": 0.1,
        "changefreq": "never",
        "location": Concat(Value("/things/"), F("pk")),
    }
    declared(sections, Topic, **options)

    def values():
        (tags,) = entries().values()
        return tags.get("changefreq"), tags["priority"]

    assert values() == ("never", "0.1")
    setting("things", priority="0.2", changefreq="yearly")
    assert values() == ("yearly", "0.2")
    Topic.objects.update(sitemap_priority="0.3")
    assert values() == ("yearly", "0.3")
    Topic.objects.update(sitemap_changefreq="monthly")
    assert values() == ("monthly", "0.3")
    obj = by_object(topic, priority="0.0")
    assert values() == ("monthly", "0.0")
    path = by_path("/things/a", changefreq="hourly")
    assert values() == ("hourly", "0.0")
    path.priority = Decimal(1)
    path.save()
    assert values() == ("hourly", "1.0")
    path.delete()
    obj.delete()
    Topic.objects.update(sitemap_priority=None, sitemap_changefreq="")
    setting("things", priority=None)
    assert values() == ("yearly", "0.1")


@pytest.mark.parametrize(
    ("path", "obj", "ruled", "listed"),
    [
        (None, None, True, False),
        (True, None, True, True),
        (None, True, True, True),
        (True, False, False, True),
        (False, True, False, False),
        (False, True, True, False),
        (True, False, True, True),
        (None, False, True, False),
        (False, None, False, False),
        (None, None, False, True),
    ],
)
def test_the_nearest_says_whether_it_is_listed(things, path, obj, ruled, listed):
    """Both kinds of overrides before rules."""
    by_path(path_of(things[0]), include=path, changefreq="daily")
    by_object(things[0], include=obj, changefreq="never")
    if ruled:
        rule(path_of(things[0]))
    found = entries()
    assert (path_of(things[0]) in found) == listed
    assert len(found) == 2 + listed
    if listed:
        assert found[path_of(things[0])]["changefreq"] == "daily"


def test_rules_leave_out_what_they_match(things):
    """Each by itself; the query belongs to the URL."""
    for product, slug in zip(things, ("a", "ab", "b"), strict=True):
        product.slug = slug
        product.save()
    shop = things[0].shop.slug
    a = rule(f"/products/{shop}/a")
    assert list(entries()) == [f"/products/{shop}/b/"]
    b = rule("*/b/$")
    assert entries() == {}
    a.delete()
    assert list(entries()) == [f"/products/{shop}/a/", f"/products/{shop}/ab/"]
    b.delete()
    rule("*?")
    rule(SITE.origin.replace("https:/", "*"))
    assert len(entries()) == 3


# What met a row


def test_a_page_knows_what_met_its_rows(things):
    """And nothing of what did not: overrides of others, rules that come second."""
    met = [
        by_path(path_of(things[0]), include=False),
        by_object(things[0], include=False),
        by_object(things[1], priority="0.1"),
        rule(path_of(things[2])),
    ]
    rule("/products/")
    by_path("/elsewhere/", include=False)
    by_object(Product(pk=0), include=False)
    rendering, _ = rendered()
    last = hash_of("rule /products/")
    assert set(rendering.pipeline.override_hashes) == {row.hash for row in met} | {last}


def test_hashes_that_collide_hide_nothing(things, monkeypatch):
    """They are compared by what they stand for."""
    override = by_path("/elsewhere/", include=False, priority="0.1")
    monkeypatch.setattr(in_force, "hash_of", lambda text: override.hash)
    monkeypatch.setattr(
        "django_sitemapkit.overrides.lookups.BloomFilter.find",
        lambda self, texts: list(range(len(texts))),
    )
    before = {path: tags["priority"] for path, tags in entries().items()}
    assert before == dict.fromkeys(map(path_of, things), "0.5")
    rendering, _ = rendered()
    assert not rendering.pipeline.override_hashes


# Values that cannot stand


@pytest.mark.parametrize(
    ("tag", "value", "code"),
    [
        ("priority", "7", "invalid-priority"),
        ("changefreq", "hardly", "invalid-changefreq"),
        ("lastmod", timezone.now() + dt.timedelta(days=1), "future-date"),
    ],
)
def test_a_value_that_is_wrong_is_left_out_and_told(things, tag, value, code):
    """What would hold without it holds, and the URL stays."""
    plain = entries()
    by_path(path_of(things[1]), **{tag: value})
    rendering, _ = rendered()
    assert entries() == plain
    (problem,) = rendering.problems.examples
    assert (problem.key, problem.skipped) == (things[1].pk, False)
    assert problem.code == code or code.startswith("invalid")
    assert (rendering.pipeline.tags.changes_at is not None) == (tag == "lastmod")


def test_wrong_values_keep_no_right_one_from_its_row(things):
    """Each is looked at by itself."""
    for product, priority in zip(things, ("0.9", "9", "0.8"), strict=True):
        by_object(product, priority=priority)
    assert [tags["priority"] for tags in entries().values()] == ["0.9", "0.5", "0.8"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_naive_lastmod_is_one_of_the_projects_zone(things, settings, zone):
    """Under USE_TZ = False, for overrides as for rows."""
    settings.USE_TZ, settings.TIME_ZONE = False, zone
    by_path(path_of(things[0]), lastmod=dt.datetime(2024, 1, 2, 3, 4, 5))  # noqa: DTZ001
    extra("/a/", lastmod=dt.datetime(2024, 1, 2, 3, 4, 5))  # noqa: DTZ001
    offset = {"UTC": "+00:00", "America/New_York": "-05:00"}[zone]
    found = {
        dt.datetime.fromisoformat(tags["lastmod"])
        for tags in (entries()[path_of(things[0])], entries("extra-urls")["/a/"])
    }
    assert found == {dt.datetime.fromisoformat(f"2024-01-02T03:04:05{offset}")}


# Old sitemaps


class Old(Sitemap):
    """A sitemap of before, over a queryset."""

    priority = 0.5

    def items(self):
        return Reading.objects.order_by("level")

    def location(self, item):
        return f"/readings/{item.pk}/"


class OldList(Old):
    def items(self):
        return list(super().items())


class OldLanguages(Old):
    i18n = True

    def location(self, item):
        return f"/{translation.get_language()}/readings/{item.pk}/"


@pytest.fixture
def readings():
    """Make three readings."""
    return [Reading.objects.create(level=level) for level in (1, 2, 3)]


@pytest.mark.slow
def test_an_old_sitemap_is_steered_as_any_section(sections, readings):
    """By path, object, rule and settings."""
    sections.add(Old, "things")
    by_object(readings[0], priority="0.1")
    by_path("/readings/2/", changefreq="daily")
    rule("/readings/3")
    setting("things", priority="0.7")
    assert entries() == {
        "/readings/1/": {"priority": "0.1"},
        "/readings/2/": {"changefreq": "daily", "priority": "0.7"},
    }


def test_an_old_sitemap_of_a_list_is_overridden_by_path(sections, readings):
    """It has no keys that objects could be distinguished by."""
    sections.add(OldList, "things")
    by_object(readings[0], include=False)
    by_path("/readings/2/", include=False)
    assert list(entries()) == ["/readings/1/", "/readings/3/"]


def test_an_object_is_overridden_in_all_of_its_languages(sections, readings):
    """And a path in its own."""
    sections.add(OldLanguages, "things")
    by_object(readings[0], include=False)
    by_path("/es/readings/2/", include=False)
    assert sorted(entries()) == [
        *("/en/readings/2/", "/en/readings/3/", "/es/readings/3/"),
        *("/fr/readings/2/", "/fr/readings/3/"),
    ]


# What it costs


def test_where_nothing_is_set_one_query_tells(things, django_assert_num_queries):
    """For all pages of a request; the rows are read as ever."""
    with django_assert_num_queries(1):
        section = section_of(SITE, "things")
    with django_assert_num_queries(1):
        list(section.chunks(EVERYTHING))
    with django_assert_num_queries(2):
        entries()


def test_a_filter_is_made_once(things, django_assert_num_queries):
    """As long as nothing changes; then a page costs a look at the revision and a look-up."""
    by_path(path_of(things[0]), include=False)
    entries()
    with django_assert_num_queries(3):
        entries()
    by_path("/elsewhere/")
    assert overrides_of(SITE) is overrides_of(SITE)
    entries()
    with django_assert_num_queries(3):
        entries()
