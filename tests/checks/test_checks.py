"""Every mistake in a declaration has a check, with an id of its own and the way out."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from django.conf import global_settings
from django.contrib import sitemaps
from django.core import checks as django_checks
from django.core.checks import Warning  # noqa: A004  Django's name
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import Storage
from django.db import OperationalError, models
from django.db.models import (
    Count,
    F,
    FloatField,
    Func,
    Max,
    OuterRef,
    Q,
    Subquery,
    TextField,
    Value,
    Window,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat, Lead, Lower, Now, RowNumber
from django.test.utils import isolate_apps, override_settings
from django.utils.timezone import now

from django_sitemapkit import (
    ItemSection,
    Route,
    Section,
    SitemapMixin,
    StaticSection,
    Translated,
    checks,
    register,
)
from django_sitemapkit.builds import build
from django_sitemapkit.conf import SETTING_NAMES
from django_sitemapkit.mixins import section_class_for
from django_sitemapkit.protocol.limits import NAMESPACE, XHTML
from django_sitemapkit.publishing import folder_of
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.reading.validation.options import STARTED
from django_sitemapkit.runners.dummy import DummyRunner
from django_sitemapkit.sites import SitemapSite
from tests.factories import SITE
from tests.testapp.models import Draft, Place, Product, Shop, Tag

PRODUCT = Route("product", shop="shop__slug", slug="slug")


def found(function=checks.declarations.check_declarations):
    """Return the ids that a check function reports."""
    return [message.id for message in function()]


def declare(base=Section, **options):
    """Register a section with these options on top of a sound declaration."""
    sound = {"queryset": Product.objects.all(), "location": PRODUCT} if base is Section else {}
    return register(type("Products", (base,), {"__module__": __name__, **sound, **options}))


def test_a_sound_section_is_left_alone(sections):
    """Nothing is reported for a section that uses every option as it should be."""
    declare(
        lastmod="updated_at", changefreq="weekly", priority=F("rank"), key="slug", limit=10,
        lastmod_precision="day", trust_lastmod=True, version=2, helper=1, sites=["default"],
    )  # fmt: skip
    declare(StaticSection, name="pages", items=["home", "/press/"], lastmod=date(2026, 1, 2))
    declare(name="titled", title="shop__slug", heading="Things")
    assert found() == []


IMPORTED = STARTED + timedelta(seconds=3, microseconds=7)
LONG_AGO = datetime(2020, 1, 1, 5, 30, tzinfo=UTC)
NEWER = {"updated_at__lte": IMPORTED}
FROZEN = {
    "filter": {"queryset": Product.objects.filter(**NEWER)},
    "exclude": {"queryset": Product.objects.exclude(updated_at__gt=IMPORTED)},
    "Q": {"queryset": Product.objects.filter(Q(public=True) | Q(**NEWER))},
    "a range": {"queryset": Product.objects.filter(updated_at__range=(LONG_AGO, IMPORTED))},
    "an annotation": {"queryset": Product.objects.annotate(at=Value(IMPORTED))},
    "a subquery": {"queryset": Product.objects.filter(pk__in=Product.objects.filter(**NEWER))},
    "a day": {"queryset": Product.objects.filter(updated_at__date=STARTED.date())},
    "two weeks ago": {
        "queryset": Product.objects.filter(updated_at__gt=IMPORTED - timedelta(days=14))
    },
    "a constant": {"lastmod": IMPORTED},
    "items": {"base": StaticSection, "items": Product.objects.filter(**NEWER)},
}
HONEST = {
    "a date": {"queryset": Product.objects.filter(updated_at__date__gte=date(2020, 1, 1))},
    "a moment": {"queryset": Product.objects.filter(updated_at__lt=LONG_AGO)},
    "the end of a day": {
        "queryset": Product.objects.filter(
            updated_at__lte=datetime.combine(date(2020, 1, 1), time.max, UTC)
        )
    },
    "Now()": {"queryset": Product.objects.filter(updated_at__lte=Now())},
    "a method": {"get_queryset": lambda self: Product.objects.filter(updated_at__lte=now())},
    "a constant": {"lastmod": LONG_AGO},
    "a text": {"queryset": Product.objects.filter(slug="2020-13-01")},
}


@pytest.mark.django_db
@pytest.mark.parametrize("options", FROZEN.values(), ids=FROZEN)
def test_a_moment_of_the_import_is_reported(sections, options):
    """Such a class never selects a later row while the process runs."""
    declare(**options)
    assert "sitemapkit.W164" in found()


def test_an_old_class_and_a_model_may_have_a_moment_of_the_import_too(sections):
    """In the queryset that Django's own class is given, and in the condition of a mixin."""
    old = {"queryset": Product.objects.filter(**NEWER), "date_field": "updated_at"}
    register(sitemaps.GenericSitemap(old), name="old")
    sections.add(
        section_class_for(Product, type("Sitemap", (), {"filter": Q(**NEWER), "name": "own"}))
    )
    assert found().count("sitemapkit.W164") == 2


@pytest.mark.parametrize("options", HONEST.values(), ids=HONEST)
def test_a_date_that_somebody_wrote_is_not_reported(sections, options):
    """Nor what is asked for at each read."""
    declare(**options)
    assert "sitemapkit.W164" not in found()


OTHER_HOST = "https://shop.example.net"
GIVEN = {
    "another host": (lambda urls: [{**url, "location": f"{OTHER_HOST}/{n}"} for n, url in urls], 1),
    "another port": (lambda urls: [{"location": "https://example.com:8443/a/"}], 1),
    "another host without super()": (lambda urls: [{"location": f"{OTHER_HOST}/a/"}], 1),
    "this host": (lambda urls: [{**url, "priority": "0.1"} for _, url in urls], 0),
    "this host by http": (lambda urls: [{"location": "http://www.example.com:80/a/"}], 0),
    "a fragment": (lambda urls: [{"location": "https://www.example.com/a/#b"}], 0),
    "a path": (lambda urls: [{"location": "/a/"}], 0),
    "no URL": (lambda urls: [{"location": "http://["}], 0),
    "nothing": (lambda urls: [], 0),
    "an error": (lambda urls: urls["x"], 0),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("change", "count"), GIVEN.values(), ids=GIVEN)
def test_get_urls_on_another_host_is_refused(sections, change, count):
    """Its class is named, and it lists nothing rather than URLs that are not there."""

    class Elsewhere(sitemaps.Sitemap):
        def items(self):
            return ["a"]

        def location(self, item):
            return f"/{item}/"

        def get_urls(self, page=1, site=None, protocol=None):
            return change(enumerate(super().get_urls(page, site, protocol)))

    register(Elsewhere)
    (reader,) = sections.enabled_readers(SitemapSite.at("https://www.example.com"))
    messages = checks.declarations.check_declarations()
    assert [message.id for message in messages].count("sitemapkit.W158") == count
    if count:
        with pytest.raises(ImproperlyConfigured, match="Elsewhere"):
            require_pageable(reader)
    else:
        require_pageable(reader)


WINDOWED = Window(Max("slug"), partition_by="shop")
LINKED = {"i18n": True, "alternates": True}
ELEMENTS = {"elements": lambda self, obj: None}
MISTAKES = {
    "no rows": ({"queryset": None}, "E101"),
    "rows that are a list": ({"get_queryset": lambda self: []}, "W102"),
    "values()": ({"queryset": Product.objects.values("slug")}, "E102"),
    "values_list()": ({"queryset": Product.objects.values_list("slug")}, "E102"),
    "a slice": ({"queryset": Product.objects.all()[:5]}, "E103"),
    "a union": ({"queryset": Product.objects.all().union(Product.objects.all())}, "E104"),
    "a join to many": ({"queryset": Product.objects.filter(tags__name="x")}, "E105"),
    "an unknown key": ({"key": "sku"}, "E111"),
    "a key over a relation": ({"key": "shop__slug"}, "E111"),
    "a reverse relation as key": ({"key": "tags"}, "E111"),
    "a key that may be null": (
        {"queryset": Draft.objects.all(), "location": Route("article", pk="pk"), "key": "code"},
        "E113",
    ),
    "a key that is not unique": ({"key": "public"}, "E114"),
    "a misspelt option": ({"chngefreq": "weekly"}, "W140"),
    "a method without object": ({"lastmod": lambda self: None}, "E135"),
    "a filter on a window": (
        {
            "queryset": Product.objects.annotate(
                place=Window(RowNumber(), partition_by="shop", order_by="pk")
            ).filter(place=1)
        },
        "E106",
    ),
    "a window in an annotation": (
        {"queryset": Product.objects.annotate(place=Window(RowNumber(), order_by="pk"))},
        "E106",
    ),
    "a window in an option": ({"lastmod": Window(Lead("updated_at"), order_by="pk")}, "E106"),
    "a window within an expression": (
        {"location": Route("product", Concat("slug", WINDOWED, output_field=TextField()), "pk")},
        "E106",
    ),
    "a window in the text of SQL": (
        {"priority": RawSQL("rank() over(order by rank)", [], FloatField())},
        "E106",
    ),
    "a window by a template": (
        {"priority": Func("rank", template="SUM(rank)\nOVER w", output_field=FloatField())},
        "E106",
    ),
    "a window of extra()": (
        {"queryset": Product.objects.extra(select={"n": "row_number() OVER (ORDER BY id)"})},
        "E106",
    ),
    "distinct on a field": (
        {"queryset": Product.objects.order_by("shop").distinct("shop")},
        "E107",
    ),
    "contrib's items": ({"items": []}, "E121"),
    "contrib's protocol": ({"protocol": "https"}, "E121"),
    "limit 0": ({"limit": 0}, "E122"),
    "limit above the protocol's": ({"limit": 50_001}, "E122"),
    "limit as text": ({"limit": "10"}, "E122"),
    "limit True": ({"limit": True}, "E122"),
    "lastmod as a number": ({"lastmod": 2026}, "E123"),
    "an unknown precision": ({"lastmod_precision": "minute"}, "E146"),
    "changefreq in capitals": ({"changefreq": "Daily"}, "E124"),
    "priority above one": ({"priority": 1.5}, "E125"),
    "an unknown lastmod": ({"lastmod": "changed_at"}, "E126"),
    "an unknown F()": ({"priority": F("weight")}, "E126"),
    "an unknown Route column": (
        {"location": Route("product", shop="shop__slug", slug="sluug")}, "E126",
    ),
    "a column of many": ({"location": Route("product", shop="tags__name", slug="slug")}, "E127"),
    "a lastmod that is no date": ({"lastmod": "slug"}, "E128"),
    "a title of no column": ({"title": "nmae"}, "E126"),
    "a title without an object": ({"title": lambda self: "Title"}, "E135"),
    "an unknown URL name": ({"location": Route("produkt", slug="slug")}, "E131"),
    "wrong Route arguments": ({"location": Route("product", slug="slug")}, "E131"),
    "an unknown namespace": ({"location": Route("shop:product", slug="slug")}, "E131"),
    "a location as text": ({"location": "/products/"}, "E132"),
    "entries that are a list": ({"entries": ["/a/"], "location": None}, "E147"),
    "entries and a location": ({"entries": lambda self, obj: []}, "E147"),
    "entries in several languages": (
        {"entries": lambda self, obj: [], "location": None, "i18n": True}, "E147",
    ),
    "translations without a language": ({"translations": "slug"}, "E148"),
    "an unknown language of rows": ({"translations": "slug", "language": "lang"}, "E126"),
    "trust in linked rows": (
        {
            "lastmod": "updated_at", "trust_lastmod": True,
            "translations": "slug", "language": "note",
        },
        "W141",
    ),
    "entries without an object": ({"entries": lambda self: [], "location": None}, "E135"),
    "no location at all": ({"queryset": Tag.objects.all(), "location": None}, "E133"),
    "trust without a column": ({"trust_lastmod": True}, "W141"),
    "trust in a date": ({"lastmod": "released_on", "trust_lastmod": True}, "W141"),
    "only without objects": ({"only": ["slug"]}, "W143"),
    "depends_on without methods": ({"depends_on": ["slug"]}, "W143"),
    "depends_on an unknown column": ({"depends_on": ["sluug"], "location": None}, "E126"),
    "depends_on a column of many": ({"depends_on": ["tags__name"], "location": None}, "E127"),
    "languages without i18n": ({"languages": ["en"]}, "W152"),
    "alternates without i18n": ({"alternates": True}, "W152"),
    "x_default without alternates": ({"i18n": True, "x_default": "en"}, "W152"),
    "an unknown language": ({"i18n": True, "languages": ["en", "tlh"]}, "E136"),
    "no language": ({"i18n": True, "languages": []}, "E136"),
    "languages behind no relation": ({"i18n": True, "object_languages": "names__code"}, "E126"),
    "languages of objects as a list": ({"i18n": True, "object_languages": ["en"]}, "E136"),
    "languages of objects as an expression": (
        {"i18n": True, "object_languages": Lower("slug")},
        "E136",
    ),
    "languages as text": ({"i18n": True, "languages": "en"}, "E136"),
    "a host for one language": ({"i18n": True, "language_hosts": {"en": "https://a.b"}}, "E136"),
    "fewer URLs on a page than languages": ({**LINKED, "limit": 1}, "E136"),
    "an x_default that is no URL": ({**LINKED, "x_default": "de"}, "E136"),
    "an x_default that is none of them": ({**LINKED, "x_default": True}, "E136"),
    "an x_default that is a path of two hosts": (
        {
            **LINKED, "languages": ["en", "es"], "x_default": "/choose/",
            "language_hosts": {"en": "https://a.example", "es": "https://b.example"},
        },
        "E136",
    ),
    "no translation": (
        {"location": Route("product", shop="shop__slug", slug=Translated("slug"))}, "E137",
    ),
    "translations behind no relation": (
        {"location": Route("product", shop="pk", slug=Translated("slug", relation="names"))},
        "E137",
    ),
    "translations without their language": (
        {"location": Route("product", shop="pk", slug=Translated("name", relation="tags"))},
        "E137",
    ),
    "one column for all languages": ({"i18n": True, "location": F("slug")}, "E138"),
    "images that are a value": ({"images": ["/a.jpg"]}, "E139"),
    "videos that are a column": ({"videos": F("slug")}, "E139"),
    "news that is text": ({"news": "slug"}, "E139"),
    "elements without namespaces": ({"elements": lambda self, obj: None}, "E144"),
    "namespaces without elements": ({"namespaces": {"shop": "https://a.b"}}, "E144"),
    "a prefix that is taken": ({**ELEMENTS, "namespaces": {"image": "https://a.b"}}, "E144"),
    "a prefix that is no name": ({**ELEMENTS, "namespaces": {"a b": "https://a.b"}}, "E144"),
    "a namespace that is taken": ({**ELEMENTS, "namespaces": {"shop": XHTML}}, "E144"),
    "a namespace with a space": ({**ELEMENTS, "namespaces": {"shop": "https://a.b "}}, "E144"),
    "a namespace that is none": ({**ELEMENTS, "namespaces": {"shop": None}}, "E144"),
    "the protocol's own namespace": ({**ELEMENTS, "namespaces": {"shop": NAMESPACE}}, "E144"),
    "images nowhere": ({"images": "cover"}, "E126"),
    "images behind no relation": ({"images": "photos__file"}, "E126"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "code"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_reported_once_by_its_own_check(sections, options, code):
    """A mistake is named by its id, its section and a way out, and nothing else is reported."""
    declare(**options)
    messages = checks.declarations.check_declarations()
    assert [message.id for message in messages] == [f"sitemapkit.{code}"]
    assert "Section 'products'" in messages[0].msg
    assert messages[0].hint


@pytest.mark.parametrize("option", ["only", "depends_on"])
def test_only_and_depends_on_may_name_what_a_method_reads(sections, option):
    """Even if it is read as columns: an edit of it may make it a method again."""
    declare(lastmod=lambda self, obj: obj.updated_at, **{option: ["updated_at"]})
    assert found() == []


def test_a_column_on_items(sections):
    """A StaticSection has no columns; an F() on it is an error and not left out silently."""
    declare(StaticSection, items=["home"], priority=F("rank"))
    declare(StaticSection, name="titled", items=["home"], title="name")
    assert found() == ["sitemapkit.E129", "sitemapkit.E129"]


@pytest.mark.parametrize("location", [F("path"), Route("home"), "/about/"], ids=repr)
@pytest.mark.parametrize("kind", [StaticSection, ItemSection])
def test_items_have_a_method_for_their_location(sections, kind, location):
    """What a Section takes would skip each item, and leave a sitemap without a URL."""
    section = declare(kind, items=["home"], location=location)
    assert found() == ["sitemapkit.E132"]
    with pytest.raises(ImproperlyConfigured, match="location"):
        require_pageable(reader_of(section(SITE)))


@pytest.mark.parametrize(
    "queryset",
    [
        Product.objects.filter(tags__name="x").distinct(),
        Product.objects.annotate(tagged=Count("tags")),
        Product.objects.filter(shop__slug="x"),
        Product.objects.annotate(
            last=Subquery(
                Product.objects.filter(shop=OuterRef("shop")).annotate(w=WINDOWED).values("w")[:1]
            )
        ),
        Product.objects.annotate(over=Concat("slug", Value(" over(")), turnover=F("rank")),
        Product.objects.annotate(
            n=RawSQL("(SELECT RANK() OVER (ORDER BY id) FROM testapp_shop LIMIT 1)", [])
        ),
        Product.objects.filter(pk__in=Product.objects.annotate(w=WINDOWED).values("pk")),
    ],
    ids=[
        "distinct",
        "grouped",
        "joined to one",
        "subquery",
        "text",
        "SQL of a subquery",
        "wrapped",
    ],
)
def test_rows_that_a_page_does_not_change_are_allowed(sections, queryset):
    """A join to many is refused only where it repeats rows, a window only where pages cut it."""
    declare(queryset=queryset)
    assert found() == []


def test_did_you_mean(sections):
    """A misspelt option is answered with the right one."""
    declare(change_freq="weekly")
    assert checks.declarations.check_declarations()[0].hint == "Did you mean changefreq?"


@pytest.mark.parametrize(
    "queryset",
    [Product.objects.distinct(), Product.objects.annotate(tagged=Count("tags"))],
    ids=["distinct", "grouped"],
)
def test_a_column_of_many_is_found_behind_distinct(sections, queryset):
    """Neither DISTINCT nor GROUP BY keeps a column of many from repeating its row."""
    declare(queryset=queryset, location=Route("product", shop="tags__name", slug="slug"))
    assert found() == ["sitemapkit.E127"]


def test_a_section_that_reads_while_it_is_declared_is_no_error(sections):
    """A table that is not there yet must not keep ``migrate`` from making it."""

    def rows(self):
        raise OperationalError("no such table: testapp_featured")

    declare(get_queryset=rows)
    assert found() == ["sitemapkit.W100"]


def test_a_urlconf_that_cannot_be_imported():
    """A wrong URLCONF is an error with its site's name, and breaks no other check."""
    sites = {"a": {"BASE_URL": "https://a.example", "URLCONF": "no.such"}}
    with override_settings(SITEMAPKIT_SITES=sites):
        messages = checks.addresses.check_urlconfs()
        assert [message.id for message in messages] == ["sitemapkit.E010"]
        assert "'a'" in messages[0].msg
        for function in all_functions():
            function()


def test_two_sites_at_one_address():
    """The second of two sites with one base URL could never be found."""
    sites = {key: {"BASE_URL": "https://a.example/"} for key in "ab"}
    with override_settings(SITEMAPKIT_SITES=sites):
        assert found(checks.sites.check_addresses_differ) == ["sitemapkit.E013"]
    with override_settings(SITEMAPKIT_SITES={"a": sites["a"]}):
        assert found(checks.sites.check_addresses_differ) == []


def test_a_static_item_that_is_nothing(sections):
    """An item of a StaticSection that is neither a path nor a URL name is reported."""
    declare(StaticSection, items=["home", "hoem"])
    assert found() == ["sitemapkit.E134"]


def test_a_section_that_raises_is_reported(sections):
    """A get_queryset() that raises is reported, and the other sections are still looked at."""
    declare(get_queryset=lambda self: 1 / 0)
    declare(name="other", limit=0)
    assert found() == ["sitemapkit.W100", "sitemapkit.E122"]


@isolate_apps("tests.testapp")
def test_a_key_of_several_fields(sections):
    """A composite primary key is refused: pages are cut by one field."""

    class Seat(models.Model):
        pk = models.CompositePrimaryKey("row", "place")
        row = models.IntegerField()
        place = models.IntegerField()

        class Meta:
            app_label = "testapp"

    declare(queryset=Seat.objects.all(), location=Route("reading", level="row"))
    assert found() == ["sitemapkit.E112"]


@isolate_apps("tests.testapp")
def test_a_key_with_a_unique_constraint(sections):
    """A key may be unique by a constraint over it alone, but not by a conditional one."""

    class Seat(models.Model):
        row = models.IntegerField()
        place = models.IntegerField()

        class Meta:
            app_label = "testapp"
            constraints = [
                models.UniqueConstraint(fields=["row"], name="row"),
                models.UniqueConstraint(
                    fields=["place"], condition=models.Q(row__gt=1), name="place"
                ),
            ]

    declare(queryset=Seat.objects.all(), location=Route("reading", level="row"), key="row")
    assert found() == []
    declare(
        name="places",
        queryset=Seat.objects.all(),
        location=Route("reading", level="row"),
        key="place",
    )
    assert found() == ["sitemapkit.E114"]


PAGEABLE = {
    "E102", "E103", "E104", "E105", "E106", "E107", "E111", "E113", "E114", "E122", "E127",
    "E132", "E138", "E147", "E148",
}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [options for options, code in MISTAKES.values() if code in PAGEABLE],
    ids=[name for name, (_, code) in MISTAKES.items() if code in PAGEABLE],
)
def test_what_would_lose_rows_refuses_to_run(sections, options):
    """Where the checks were silenced, such a section still refuses to page, by name."""
    section = reader_of(declare(**options)(SitemapSite.at("https://www.example.com")))
    with pytest.raises(ImproperlyConfigured, match="Section 'products'"):
        require_pageable(section)


def test_contrib_overrides_that_are_not_asked(sections):
    """A contrib sitemap with its own get_urls() hears that nobody calls it."""

    class Old(sitemaps.Sitemap):
        def get_urls(self, *args, **kwargs):
            return []

    register(Old)
    assert found() == ["sitemapkit.W151"]


def test_languages_are_no_mistake_of_contrib(sections):
    """A contrib sitemap in several languages is taken as it is."""

    class Old(sitemaps.Sitemap):
        i18n = alternates = x_default = True

    register(Old)
    assert found() == []


def test_languages_and_extensions_as_they_should_be(sections):
    """Nothing is reported where every option of them is used."""
    declare(
        **LINKED, x_default="en", languages=["en", "es"], object_languages=lambda self, obj: ["en"],
        language_hosts={"en": "https://www.example.com", "es": "https://example.es"},
        images="slug", videos=lambda self, obj: None, news=lambda self, obj: None,
        **ELEMENTS, namespaces={"xs": "https://example.com/xs"},
    )  # fmt: skip
    route = Route("product", shop="pk", slug=Translated("slug", relation="translations"))
    place = {"queryset": Place.objects.all(), "location": route}
    declare(name="places", **place, **LINKED, x_default="https://example.org/", images="cover")
    declare(name="rows", **place, **LINKED, object_languages="translations__language_code",
            images="photos__file")  # fmt: skip
    declare(StaticSection, name="pages", items=["home"], **LINKED, images=lambda self, item: None)
    assert found() == []


@pytest.mark.parametrize("host", ["a.example", 5])
def test_a_host_that_is_none(sections, host):
    """It is named before the section fails by it."""
    declare(i18n=True, languages=["en"], language_hosts={"en": host})
    assert found()[0] == "sitemapkit.E136"


def test_a_list_has_no_columns_of_languages_or_images(sections):
    """A path needs rows to begin at."""
    declare(
        StaticSection,
        items=["home"],
        i18n=True,
        object_languages="translations__language_code",
    )
    declare(StaticSection, name="images", items=["home"], images=F("cover"))
    assert found() == ["sitemapkit.E136", "sitemapkit.E139"]


@pytest.mark.parametrize("code", ["ast", "kab", "es-419", "tlh"])
def test_a_language_that_google_does_not_know(sections, settings, code):
    """It is reported where links name it, and only there."""
    settings.LANGUAGES = [("en", "English"), (code, code)]
    declare(i18n=True)
    assert found() == []
    declare(name="linked", **LINKED)
    assert found() == ["sitemapkit.W153"]
    assert repr(code) in checks.declarations.check_declarations()[0].msg


WRONG_SETTINGS = {
    "BASE_URL": [
        "",
        5,
        "www.example.com",
        "/shop",
        "ftp://x/",
        "https://exa mple.com",
        "https://x.example/?q",
        "https://x.example/#a",
        "https://x.example:port",
        "https://u@x.example",
    ],
    "SITES": [None, [], "main", [{"BASE_URL": "https://a.example"}], {"a": {}}],
    "MAX_URLS": [0, -1, 50_001, "10", 5.0, True, None],
    "MAX_BYTES": [4095, 52_428_801, 1.5, "10 MB", False, None],
    "MAX_SITEMAPS": [0, 50_001, "1000", True, None],
    "SCHEMA_LOCATION": ["yes", None, 2],
    "CACHE_CONTROL": [None, 600, b"no-store", "a\nb: c"],
    "SERVE_FROM": ["files", None],
    "KEEP_REPLACED_SECONDS": [-1, "1 day"],
    "KEEP_BUILDS": [0, 1.5],
    "LEASE_SECONDS": [0, True],
    "GZIP_BACKEND": ["zstd", None],
    "REBUILD": ["", "always", True, ["on_change"]],
    "RUNNER": ["", None, {}, {"BACKEND": ""}, {"BACKEND": "inline", "WORKERS": 2}, {"OPTIONS": {}}],
    "MAX_SHRINK": [-0.1, 1.5, "0.5", True],
    "EXPORT_STORAGE": ["no-such-alias", 5, ["default"]],
    "EXPORT_TEXT": ["yes", None, 2],
    "DEDUPLICATE": ["first", None, 2],
    "METHODS_AS_COLUMNS": ["no", None, 2],
    "SENDFILE": ["nginx"],
    "SENDFILE_ROOT": ["sitemapkit", "/sitemapkit", None],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG_SETTINGS.items() for value in values],
)
def test_a_wrong_setting_is_an_error_and_no_traceback(name, value):
    """Each wrong value is reported under the setting's name, and breaks no other check."""
    with override_settings(**{f"SITEMAPKIT_{name}": value}):
        messages = checks.sites.check_settings()
        assert [message.id for message in messages] == ["sitemapkit.E001"]
        assert f"SITEMAPKIT_{name}" in messages[0].msg
        for function in all_functions():
            function()


@pytest.mark.parametrize("has_framework", [True, False])
@pytest.mark.parametrize(("name", "value"), [("SITES", None), ("BASE_URL", {})])
def test_a_wrong_setting_of_sites_is_reported_once(sections, settings, name, value, has_framework):
    """What is no default was meant to be a value, even if it is empty."""
    declare()
    settings.DEBUG, settings.SITEMAPKIT_BASE_URL = False, None
    apps = [app for app in settings.INSTALLED_APPS if app != "django.contrib.sites"]
    settings.INSTALLED_APPS = [*apps, "django.contrib.sites"] if has_framework else apps
    setattr(settings, f"SITEMAPKIT_{name}", value)
    ids = [message.id for function in all_functions() for message in function()]
    assert ids == ["sitemapkit.E001"]


def test_every_setting_has_a_wrong_value_above():
    """No setting is left without a test of its validation."""
    assert set(WRONG_SETTINGS) == set(SETTING_NAMES)


@override_settings(SITEMAPKIT_MAX_URL=5)
def test_unknown_settings():
    """A setting that does not exist is reported, with the one that was meant."""
    message = checks.sites.check_unknown_settings()[0]
    assert (message.id, message.hint) == ("sitemapkit.W002", "Did you mean SITEMAPKIT_MAX_URLS?")


@override_settings(SITEMAPKIT_PINEAPPLES=5)
def test_a_setting_like_no_other():
    """A setting that resembles none is to be taken out."""
    assert checks.sites.check_unknown_settings()[0].hint == "Remove it."


SITES = {"shop": {"BASE_URL": "https://shop.example", "SECTIONS": ["products", "newz"]}}


@override_settings(SITEMAPKIT_SITES=SITES)
def test_sections_and_sites_that_do_not_exist(sections):
    """A site's unknown section and a section's unknown site are both reported."""
    declare(sites=["shop", "blog"])
    assert found(checks.sites.check_site_sections) == ["sitemapkit.E003"]
    assert found(checks.sites.check_section_sites) == ["sitemapkit.E004"]


def shops_to_come():
    """Return sites as a function does that reads an empty table."""
    return {"www": {"BASE_URL": "https://www.example", "SECTIONS": ["pages"]}}


def all_shops():
    """Return the same with a shop, whose URLconf knows other routes."""
    shop = {"BASE_URL": "https://a.example", "URLCONF": "tests.urls"}
    return {**shops_to_come(), "a": {**shop, "SECTIONS": ["products"]}}


def test_a_section_is_checked_on_a_site_that_has_it(sections):
    """Not on another one, whose URLconf may not have its routes, and not while there is none."""
    declare()
    with override_settings(ROOT_URLCONF="tests.urls_without"):
        assert found() == ["sitemapkit.E131"]
        for function in (shops_to_come, all_shops):
            with override_settings(SITEMAPKIT_SITES=f"{__name__}.{function.__name__}"):
                assert found() == []
    shop = {**all_shops()["a"], "URLCONF": "tests.urls_without"}
    with override_settings(SITEMAPKIT_SITES={"a": shop}):
        assert found() == ["sitemapkit.E131"]


AT_THE_ROOT = (
    "Include django_sitemapkit.urls at the root of the URLconf, not within i18n_patterns() or below"
    " another path, unless you want that restriction."
)


@pytest.mark.parametrize(
    ("urlconf", "code", "named", "hint"),
    [
        ("tests.urls_without", "W005", "tests.urls_without", "Correct the URLconf; until then"),
        ("tests.urls_below", "W006", "/deep/", AT_THE_ROOT),
    ],
)
def test_urls_that_are_not_included_at_the_root(settings, urlconf, code, named, hint):
    """A project hears where to include them; of those below the root, the scope is said."""
    settings.ROOT_URLCONF = urlconf
    (message,) = checks.addresses.check_package_urls()
    assert message.id == f"sitemapkit.{code}"
    assert named in message.msg
    assert message.hint.startswith(hint)


@override_settings(SITEMAPKIT_BASE_URL="https://www.example.com/deep")
def test_a_base_url_with_a_path_is_the_root():
    """A path in the base URL stands for SCRIPT_NAME: including at its root is as it should be."""
    assert found(checks.addresses.check_package_urls) == []


@pytest.mark.parametrize("base_url", [None, "https://www.example.com"])
def test_only_the_host_header_says_where_the_site_is(settings, base_url):
    """A deployment without any base URL is warned."""
    settings.SITEMAPKIT_BASE_URL = base_url
    expected = [] if base_url else ["sitemapkit.W007"]
    assert found(checks.sites.check_base_url_is_known) == expected


@pytest.mark.parametrize("name", ["TENANT_MODEL", "ROOT_HOSTCONF"])
def test_one_base_url_for_several_hosts(name):
    """Packages that give a project several hosts have these settings."""
    with override_settings(**{name: "any"}):
        assert found(checks.sites.check_tenant_hosts) == ["sitemapkit.W033"]
        with override_settings(SITEMAPKIT_SITES={"a": {"BASE_URL": "https://a.example"}}):
            assert found(checks.sites.check_tenant_hosts) == []
        with override_settings(SITEMAPKIT_BASE_URL=None):
            assert found(checks.sites.check_tenant_hosts) == []
    assert found(checks.sites.check_tenant_hosts) == []


def storages_with(**entries):
    """Return a value of STORAGES that has these entries beside Django's own."""
    return {**global_settings.STORAGES, **entries}


DISK = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
ELSEWHERE = {"BACKEND": "django.core.files.storage.Storage"}


@pytest.mark.parametrize(
    ("aliases", "meant"),
    [
        (["sitemap"], "sitemap"),
        (["Sitemaps", "images"], "Sitemaps"),
        (["sites", "media"], ""),
        (["sitemap", "sitemaps"], ""),
        ([], ""),
    ],
)
def test_an_alias_that_was_meant_for_sitemaps(aliases, meant):
    """One that is nearly right would change nothing, and nobody would notice."""
    with override_settings(STORAGES=storages_with(**dict.fromkeys(aliases, DISK))):
        messages = checks.files.check_misspelt_alias()
    assert [message.id for message in messages] == (["sitemapkit.W008"] if meant else [])
    assert all(repr(meant) in message.msg for message in messages)


def test_an_alias_of_the_export_is_in_use():
    """Whatever it is called."""
    exported = {"STORAGES": storages_with(sitemap=DISK), "SITEMAPKIT_EXPORT_STORAGE": "sitemap"}
    with override_settings(**exported):
        assert found(checks.files.check_misspelt_alias) == []


@pytest.mark.slow
@pytest.mark.django_db
def test_published_files_that_this_server_lacks(sections, settings, tmp_path):
    """``check --deploy`` on a server whose disk is not that of the server that built."""
    declare(StaticSection, items=["home"])
    settings.STORAGES = storages_with(sitemaps={**DISK, "OPTIONS": {"location": tmp_path}})
    assert found(checks.files.check_published_files) == []
    build(SITE)
    assert found(checks.files.check_published_files) == []
    other = tmp_path / "other"
    settings.STORAGES = storages_with(sitemaps={**DISK, "OPTIONS": {"location": other}})
    (message,) = checks.files.check_published_files()
    assert message.id == "sitemapkit.W048"
    assert f"Missing from {other / folder_of(SITE)}" in message.msg
    assert "2 files" in message.msg
    assert message in django_checks.run_checks(include_deployment_checks=True)
    assert message not in django_checks.run_checks()
    settings.SITEMAPKIT_SERVE_FROM = "live"
    assert found(checks.files.check_published_files) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_codec_that_is_not_installed(monkeypatch, there):
    """ISA-L and zlib-ng may only be asked for where they are; the hint names the extra."""
    monkeypatch.setattr(checks.files, "is_codec_installed", lambda codec: there)
    for codec, extra in (("isal", "fast"), ("zlib-ng", "zlib-ng")):
        with override_settings(SITEMAPKIT_GZIP_BACKEND=codec):
            messages = checks.files.check_codec()
            assert [message.id for message in messages] == ([] if there else ["sitemapkit.E014"])
            assert all(codec in one.msg and f"[{extra}]" in one.hint for one in messages)
    with override_settings(SITEMAPKIT_GZIP_BACKEND="auto"):
        assert found(checks.files.check_codec) == []


@pytest.mark.parametrize(
    "value",
    [
        "no.such.Runner",
        "django_sitemapkit.sites.SitemapSite",
        {"BACKEND": "processes", "OPTIONS": {"workers": 0}},
        {"BACKEND": "dummy", "OPTIONS": {"queue": "sitemaps"}},
    ],
)
def test_a_runner_that_is_none(value):
    """The message has the setting's value, or that of the wrong option, and the way out."""
    with override_settings(SITEMAPKIT_RUNNER=value):
        (message,) = checks.sites.check_runner()
        assert message.id == "sitemapkit.E015"
        assert str(value) in message.msg


def test_a_runner_says_what_is_wrong_with_it(monkeypatch):
    """Its own checks are run with all others."""
    found = [Warning("no workers", id="shop.W001")]
    monkeypatch.setattr(DummyRunner, "check", lambda self: iter(found))
    with override_settings(SITEMAPKIT_RUNNER="dummy"):
        assert checks.sites.check_runner() == found


@pytest.mark.parametrize("sendfile", ["x-accel-redirect", "x-sendfile"])
def test_no_path_to_send_from(sendfile):
    """The web server cannot send a file that has no path, be the storage sound or not."""
    for entries in ({"sitemaps": ELSEWHERE}, {}):
        with override_settings(STORAGES=storages_with(**entries), SITEMAPKIT_SENDFILE=sendfile):
            (message,) = checks.files.check_sendfile()
            assert message.id == "sitemapkit.E009"
            assert sendfile in message.msg


def test_a_path_to_send_from():
    """A local disk may be sent from; without the setting, or with a wrong one, nothing is asked."""
    for entry, sendfile in ((DISK, "x-sendfile"), (ELSEWHERE, None), (ELSEWHERE, "sendfile")):
        with override_settings(
            STORAGES=storages_with(sitemaps=entry), SITEMAPKIT_SENDFILE=sendfile
        ):
            assert found(checks.files.check_sendfile) == []


# Where files are exported to


@pytest.fixture
def exporting(settings):
    """Let files be built in one storage and exported to another, each a class and its options."""

    def configure(export, source=DISK, **options):
        if isinstance(export, str):
            export = {"BACKEND": export, "OPTIONS": options}
        settings.STORAGES = storages_with(sitemaps=source, shown=export)
        settings.SITEMAPKIT_EXPORT_STORAGE = "shown"

    return configure


def found_in_export():
    """Return the ids that are reported of the export, each with a way out."""
    messages = [*checks.files.check_export(), *checks.files.check_export_encoding()]
    assert all("'shown'" in message.msg and message.hint for message in messages)
    return [message.id for message in messages]


SHOWN = f"{__name__}.Shown"
S3 = "storages.backends.s3.S3Storage"
OUR_S3 = "django_sitemapkit.contrib.s3.SitemapS3Storage"


class Shown(Storage):
    """Has the options of storages that are elsewhere."""

    def __init__(self, **options):
        vars(self).update(options)


def test_an_export_to_where_the_files_are_built(exporting, settings):
    """By the same alias, and by another one for the same folder or bucket."""
    settings.STORAGES = storages_with(sitemaps=DISK)
    settings.SITEMAPKIT_EXPORT_STORAGE = "sitemaps"
    assert found(checks.files.check_export) == ["sitemapkit.E016"]
    for options in (
        {"location": "/srv/a"},
        {"bucket_name": "a", "location": "b"},
        {"azure_container": "a", "account_name": "b"},
    ):
        backend = DISK["BACKEND"] if len(options) == 1 else SHOWN
        same = {"BACKEND": backend, "OPTIONS": options}
        exporting(same, same)
        assert found_in_export() == ["sitemapkit.E016"], options


def test_an_export_to_elsewhere_is_sound(exporting, settings):
    """Another folder of the same disk or bucket is elsewhere; so is the other kind of storage."""
    pairs = [
        ((DISK["BACKEND"], {"location": "/srv/a"}), (DISK["BACKEND"], {"location": "/srv/b"})),
        ((SHOWN, {"bucket_name": "a", "location": "b"}), (SHOWN, {"bucket_name": "a"})),
        ((SHOWN, {"bucket_name": "a"}), (DISK["BACKEND"], {"location": "/srv/a"})),
        ((SHOWN, {}), (SHOWN, {})),
    ]
    for one, other in pairs:
        for (export, options), (source, of_source) in ((one, other), (other, one)):
            exporting(export, {"BACKEND": source, "OPTIONS": of_source}, **options)
            assert found_in_export() == []
    settings.SITEMAPKIT_EXPORT_STORAGE = None
    assert found_in_export() == []


@pytest.mark.parametrize(
    "alias", ["no-such", "staticfiles", "broken"], ids=["no alias", "no STATIC_ROOT", "no class"]
)
def test_an_export_that_there_is_not_breaks_no_check(settings, alias):
    """E001 has it, or Django itself says so as soon as it is used."""
    broken = {"BACKEND": "no.such.Storage"}
    settings.STORAGES = storages_with(sitemaps=broken, broken=broken)
    settings.SITEMAPKIT_EXPORT_STORAGE = alias
    for function in (checks.files.check_export, checks.files.check_storage_reads_as_stored):
        assert found(function) == []


@pytest.mark.parametrize("option", ["file_overwrite", "overwrite_files", "allow_overwrite"])
def test_an_export_that_does_not_overwrite(exporting, option):
    """The option that keeps it from doing so is named."""
    exporting(SHOWN, **{option: False})
    assert found_in_export() == ["sitemapkit.E017"]
    assert option in checks.files.check_export()[0].hint
    exporting(SHOWN, **{option: True})
    assert found_in_export() == []


def test_an_export_into_memory(exporting):
    """Django's storage in memory never overwrites."""
    exporting("django.core.files.storage.InMemoryStorage")
    assert found_in_export() == ["sitemapkit.E017"]


def test_an_export_that_encodes(exporting):
    """What compresses, what guesses an encoding from ``.gz``, and what is asked to say so."""
    pytest.importorskip("storages")
    said = {"ContentType": "application/gzip", "ContentEncoding": "gzip"}
    for backend, options in (
        (SHOWN, {"gzip": True}),
        (S3, {}),
        (S3, {"object_parameters": said}),
        (OUR_S3, {"gzip": True}),
        (OUR_S3, {"object_parameters": said}),
    ):
        exporting(backend, bucket_name="shown", **options)
        assert found_in_export() == ["sitemapkit.W018"], (backend, options)
        assert OUR_S3 in checks.files.check_export_encoding()[0].hint


def test_an_export_to_s3_as_it_should_be(exporting, settings):
    """Ours, whatever the project's settings for other files are."""
    pytest.importorskip("storages")
    settings.AWS_IS_GZIPPED = True
    settings.AWS_S3_FILE_OVERWRITE = False
    exporting(OUR_S3, bucket_name="shown")
    assert found_in_export() == []
    exporting(S3, bucket_name="shown", object_parameters={"ContentType": "application/gzip"})
    assert found_in_export() == ["sitemapkit.E017", "sitemapkit.W018"]


def test_a_storage_that_decompresses_what_it_reads(settings):
    """It would give other bytes than it was given; nobody reads it where all pages are live."""
    for compresses in (True, False):
        packing = {"BACKEND": SHOWN, "OPTIONS": {"gzip": compresses}}
        settings.STORAGES = storages_with(sitemaps=packing)
        expected = ["sitemapkit.E019"] if compresses else []
        assert found(checks.files.check_storage_reads_as_stored) == expected
    settings.STORAGES = storages_with(sitemaps={"BACKEND": SHOWN, "OPTIONS": {"gzip": True}})
    settings.SITEMAPKIT_SERVE_FROM = "live"
    assert found(checks.files.check_storage_reads_as_stored) == []


class Silent(Storage):
    """Has what a storage must have, and nothing else."""

    def exists(self, name):
        return False


class ListsAndMeasures(Silent):
    """Has the rest, too."""

    def listdir(self, path):
        return [], []

    def size(self, name):
        return 0

    def get_modified_time(self, name):
        return None


def test_a_storage_that_cannot_say_what_it_has(settings, exporting):
    """The methods are named, with what is lost, for either storage by itself."""
    silent, sound = f"{__name__}.Silent", f"{__name__}.ListsAndMeasures"
    exporting(sound, {"BACKEND": silent})
    (message,) = checks.files.check_storage_methods()
    assert message.id == "sitemapkit.W045"
    assert message.msg == (
        "The storage of the sitemaps has no size(), listdir(), get_modified_time(): each file is"
        " read back to get its size; files without a build are never found, and stay; files"
        " without a build are never recognised as old, and stay."
    )
    exporting(silent)
    (message,) = checks.files.check_storage_methods()
    assert message.msg == (
        "SITEMAPKIT_EXPORT_STORAGE is 'shown', which has no size(), listdir(): each file is"
        " read back to get its size; each file is looked up by its name."
    )
    settings.SITEMAPKIT_SERVE_FROM = "live"
    assert found(checks.files.check_storage_methods) == []


def test_the_usual_storages_can_say_what_they_have(exporting, settings):
    """On disk and on S3; nor is anything said of a storage that there is not."""
    exporting(DISK["BACKEND"], location="/srv/a")
    assert found(checks.files.check_storage_methods) == []
    settings.SITEMAPKIT_EXPORT_STORAGE = "no-such"
    assert found(checks.files.check_storage_methods) == []
    pytest.importorskip("storages")
    exporting(OUR_S3, bucket_name="shown")
    assert found(checks.files.check_storage_methods) == []


@isolate_apps("tests.testapp")
def test_a_mixin_without_declaration(monkeypatch):
    """A model that takes SitemapMixin and declares nothing is reported."""

    class Idle(SitemapMixin, models.Model):
        class Meta:
            app_label = "testapp"

    monkeypatch.setattr(checks.declarations.apps, "get_models", lambda: [Idle, Shop])
    assert found(checks.declarations.check_mixins) == ["sitemapkit.W011"]


@isolate_apps("tests.testapp")
def test_a_mixin_with_an_unknown_queryset(monkeypatch):
    """A ``class Sitemap`` that names no method of the manager is reported."""

    class Post(SitemapMixin, models.Model):
        class Meta:
            app_label = "testapp"

        class Sitemap:
            queryset_method = "publised"

    monkeypatch.setattr("django.apps.apps.get_models", lambda: [Post, Shop])
    assert found(checks.declarations.check_mixin_querysets) == ["sitemapkit.E012"]


@pytest.mark.django_db
@override_settings(STORAGES=storages_with(sitemaps=DISK))
def test_the_project_of_the_tests_is_sound():
    """Django's own run of all checks finds nothing in the tests' project."""
    assert [
        m
        for m in django_checks.run_checks(include_deployment_checks=False)
        if m.id[:10] == "sitemapkit"
    ] == []


def all_functions():
    """Return all check functions of the package."""
    return [
        value
        for module in checks.__all__
        for name, value in vars(getattr(checks, module)).items()
        if name.startswith("check_")
    ]
