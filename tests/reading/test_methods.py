"""Methods that only read fields are read as columns, and give the same as if they were called."""

import datetime as dt
import functools
import itertools
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib import sitemaps
from django.contrib.sitemaps import GenericSitemap
from django.db import OperationalError, connection, models
from django.db.models import Prefetch, Value
from django.db.models.query import ModelIterable
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_sitemapkit import Section, register
from django_sitemapkit.builds import build
from django_sitemapkit.models import SectionSettings
from django_sitemapkit.overrides import disable_methods_as_columns, section_of
from django_sitemapkit.reading import keysets, methods, reader_of, why_not_as_text
from django_sitemapkit.reading.keysets import EVERYTHING, KeyRange
from django_sitemapkit.reading.method_sources import MustBeCalled
from django_sitemapkit.sections import adapt_contrib
from tests import factories
from tests.builds import manifest, use_storage, xml
from tests.factories import EPOCH, SITE, declare
from tests.reading import by_method, forms, given, proxy
from tests.testapp.models import Offer, Product, Shop, Story, Voucher

pytestmark = pytest.mark.django_db


def assert_same(reader, settings):
    """Check that a section gives the same if its methods are called."""
    assert reader.methods.formulas_unless_called, reader.methods.formulas_or_reasons
    assert not reader.reads_objects
    as_columns = given(reader)
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert type(reader)(reader.options).reads_objects
    assert as_columns == given(reader)
    return as_columns


def why_called(reader):
    """Return why the location of a section is a method that is called."""
    reading = reader.methods.formulas_or_reasons["location"]
    assert isinstance(reading, MustBeCalled), reading
    assert reader.reads_objects
    return reading.why


@pytest.fixture(autouse=True)
def products():
    """Make rows with the values that make a difference."""
    shops = [factories.ShopFactory(slug=slug) for slug in ("shop", "über", "")]
    for place, slug in enumerate(["a", "b c", "ñ", "x/y", "100%", "it's", "日本", "None", "a\nb"]):
        factories.ProductFactory(
            shop=shops[place % 3],
            slug=slug,
            rank=[None, Decimal("0.50"), Decimal("1.00")][place % 3],
            public=place % 2,
            updated_at=None if place == 4 else EPOCH + dt.timedelta(days=place, microseconds=place),
            released_on=None if place == 5 else EPOCH.date() + dt.timedelta(days=40 * place),
            note=["", "note"][place % 2],
        )


# --- Forms that are read as columns

FORMS = [
    *(
        forms.plain,
        forms.by_text,
        forms.documented,
        forms.imported,
        forms.lazily,
        forms.related,
        forms.key_of_related,
        forms.foreign_key,
    ),
    *(
        forms.constant_argument,
        forms.suffix,
        forms.f_string,
        forms.formatted,
        forms.percent,
        forms.added,
        forms.column,
        forms.parts_of_dates,
    ),
    *(
        forms.month,
        forms.other_types,
        forms.guard,
        forms.two_ways,
        forms.constant,
        forms.may_be_none,
    ),
    *(forms.assigned, forms.assigned_in_vain, forms.never_used, forms.decorated),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_method_of_fields_is_read_as_columns(settings, form):
    """Whatever the rows have: what it raises is named as before, and NULL is what it was."""
    assert_same(by_method(form), settings)


SURVEY = {
    38.7: [forms.plain, forms.documented, forms.imported, forms.foreign_key, forms.lazily],
    13.6: [forms.related, forms.key_of_related],
    1.5: [forms.by_text, forms.parts_of_dates, forms.month],
    1.501: [forms.suffix],
    5.0: [forms.f_string, forms.percent, forms.formatted],
    4.5: [forms.column],
    16.6 * 20 / 33: [forms.guard],
}
"""Forms by their share of 199 methods in 25 projects; no other share has forms of its own."""


def test_most_methods_of_real_projects_are_read_as_columns():
    """By how often each form occurs."""
    shares = [
        share
        for share, found in SURVEY.items()
        if not any(by_method(form).reads_objects for form in found)
    ]
    assert sum(shares) >= 60


def test_methods_of_a_section_are_read_as_columns(settings):
    """Each tag, with a constant and what it raises for a row."""

    class Products(Section):
        name = "products"
        queryset = Product.objects.all()

        def location(self, product):
            return product.get_absolute_url()

        def lastmod(self, product):
            return product.updated_at

        def priority(self, product):
            return 0.8 if product.public else 0.2

        def changefreq(self, product):
            return "daily"

    xml, _ = assert_same(reader_of(Products(SITE)), settings)
    assert "<changefreq>daily</changefreq><priority>0.2</priority>" in xml


def test_a_method_may_go_through_others(settings):
    """Of the object itself, and through properties."""
    reader = declare(
        queryset=proxy(
            get_absolute_url=forms.through, tail=property(forms.tail), name=forms.name
        ).objects.all(),
        location=None,
    )
    assert_same(reader, settings)


# --- What stays a method


REFUSED = {
    forms.positional_default: "parameters",
    forms.keyword_default: "by keyword alone",
    forms.other_function: "calls other_reverse()",
    forms.other_import: "calls reverse()",
    forms.called: "calls slugify()",
    forms.local_only_sometimes: "calls reverse()",
    forms.computed_name: "computed name",
    forms.generated: "generator",
    forms.imported_in_a_branch: "must be executed",
    forms.five_arguments: "more than a name",
    forms.repeated_argument: "computed arguments",
    forms.with_urlconf: "more than a name",
    forms.loops: "must be executed",
    forms.item: "not followed",
    forms.many: "not a plain field",
    forms.no_such_field: "not a plain field",
    forms.the_object: "not followed",
    forms.no_pattern: "nowhere",
    forms.cached: "not a function",
}


@pytest.mark.parametrize("form", REFUSED, ids=lambda form: form.__name__)
def test_what_is_not_proven_is_called(form):
    """It says why, and where that stands in the source."""
    assert REFUSED[form] in why_called(by_method(form))


def test_the_place_in_the_source_is_named():
    """With what stands there."""
    why = by_method(forms.called).methods.formulas_or_reasons["location"]
    assert why.file == forms.__file__
    assert why.expression == "slugify(self.slug)"
    source = Path(forms.__file__).read_text(encoding="utf-8")
    assert "slugify(self.slug)" in source.splitlines()[why.line - 1]


def test_a_function_whose_source_has_changed_is_called(tmp_path, monkeypatch):
    """A file that was edited after its import says nothing of what is executed."""
    path = tmp_path / "edited.py"
    path.write_text("def url(self):\n    return f'/edited/{self.slug}/'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    edited = __import__("edited")
    path.write_text("def url(self):\n    return f'/{self.note}/'\n", encoding="utf-8")
    assert "no source" in why_called(by_method(edited.url))


def test_a_patched_method_is_called():
    """Whatever ``functools.wraps`` says of it."""

    def patched(self):
        return original(self) + "?patched"

    original = forms.plain
    assert "closure" in why_called(by_method(functools.wraps(forms.plain)(patched)))


def test_another_reverse_in_the_module_is_not_djangos(monkeypatch):
    """The name alone does not tell."""
    monkeypatch.setattr(forms, "reverse", forms.other_reverse)
    assert why_called(by_method(forms.plain)) == "calls reverse()"


MODELS = {
    "its own __init__": {"__init__": lambda self, *args, **options: models.Model.__init__(self)},
    "its own __getattribute__": {"__getattribute__": object.__getattribute__.__get__},
    "its own __setattr__": {"__setattr__": lambda self, name, value: None},
    "its own from_db": {"from_db": classmethod(lambda cls, *row: cls())},
    "its own refresh_from_db": {"refresh_from_db": lambda self, **options: None},
    "its own pk": {"pk": property(lambda self: 7)},
}


@pytest.mark.parametrize("members", MODELS.values(), ids=MODELS)
def test_a_model_that_makes_its_objects_itself_is_asked(members):
    """Its objects may have other values than its columns."""
    model = proxy(get_absolute_url=forms.plain, **members)
    assert "has its own" in why_called(declare(queryset=model.objects.all(), location=None))


def test_a_signal_may_change_objects():
    """One of all models counts, too."""

    def receiver(**options):
        pass

    post_init.connect(receiver)
    try:
        assert "signal" in why_called(by_method(forms.plain))
    finally:
        post_init.disconnect(receiver)
    assert not by_method(forms.plain).reads_objects


class OwnIterator(models.QuerySet):
    """Gives its objects another way."""

    def _fetch_all(self):
        super()._fetch_all()


QUERYSETS = {
    "extra columns": lambda rows: rows.extra(select={"slug": "'x'"}),
    "aggregates": lambda rows: rows.annotate(count=models.Count("tags")),
    "its own iterator": lambda rows: OwnIterator(rows.model),
    "an annotation of the name": lambda rows: rows.annotate(get_absolute_url=Value("/x/")),
    "prefetched objects": lambda rows: rows.prefetch_related(
        Prefetch("shop", Shop.objects.annotate(slugs=Value("x")))
    ),
}


@pytest.mark.parametrize("change", QUERYSETS.values(), ids=QUERYSETS)
def test_a_queryset_that_makes_its_objects_itself_is_asked(change):
    """What it sets on them is not in the columns."""
    rows = change(proxy(get_absolute_url=forms.related).objects.all())
    assert why_called(declare(queryset=rows, location=None))


def test_rows_of_a_related_manager_know_their_object():
    """It may have unsaved values."""
    shop = Shop.objects.first()
    rows = shop.product_set.all()
    assert "sets on its objects" in why_called(
        declare(queryset=rows, location=lambda self, product: f"/{product.shop.slug}/")
    )


def test_a_method_may_be_marked():
    """As one that needs the object."""

    def marked(self):
        return f"/{self.slug}/"

    marked.reads_objects = True
    assert why_called(by_method(marked)) == "has reads_objects set"


def test_as_soon_as_one_method_is_called_all_are():
    """The objects are there."""
    reader = by_method(forms.plain, priority=lambda self, product: round(0.5))
    assert not isinstance(reader.methods.formulas_or_reasons["location"], MustBeCalled)
    assert reader.reads_objects
    assert reader.methods.formulas_unless_called == {}


def test_a_method_in_whose_place_editors_set_a_value_is_not_called(sections):
    """The others are read as columns."""
    rows = proxy(get_absolute_url=forms.plain).objects.all()
    options = {"name": "products", "queryset": rows, "priority": lambda self, product: round(0.5)}
    register(type("Products", (Section,), options))
    assert section_of(SITE, "products").reads_objects
    SectionSettings.objects.create(site=SITE.key, section="products", priority="0.9")
    assert not section_of(SITE, "products").reads_objects


# --- Rows that columns do not tell


@pytest.fixture
def offers():
    """Make offers of a shop, of none, and of one that is gone."""
    shop = Shop.objects.first()
    for slug in ("a", None, "ñ"):
        for shop_id in (shop.pk, None, shop.pk + 1000):
            Offer.objects.create(shop_id=shop_id, slug=slug)


@pytest.mark.parametrize("options", [{}, {"lastmod": forms.lastmod_of_shop}], ids=["url", "tag"])
def test_a_related_object_that_is_missing_is_what_it_was(settings, offers, options):
    """No row is lost, and each has the problem that the method's exception gives."""
    reader = declare(queryset=Offer.objects.all(), location=None, **options)
    xml, problems = assert_same(reader, settings)
    assert "/products/shop/None/" in xml  # As reverse() has it.
    assert problems["exception"]["count"] == 6


def test_many_rows_without_a_related_object_take_few_queries(offers):
    """Those of a chunk are read together."""
    for place in range(30):
        Offer.objects.create(shop=None, slug=f"more-{place}")
    with CaptureQueriesContext(connection) as queries:
        given(declare(queryset=Offer.objects.all(), location=None))
    assert len(queries) < 12


def test_a_key_that_is_added_later_changes_the_digest(offers):
    """A page is rendered again once the missing object is there."""
    reader = declare(queryset=Offer.objects.all(), location=None)
    before = reader.fingerprints([EVERYTHING])
    assert before[0][1]
    Offer.objects.filter(shop=None).update(shop_id=Shop.objects.first().pk + 1000)
    after = type(reader)(reader.options).fingerprints([EVERYTHING])
    assert after != before


@pytest.mark.slow
def test_a_build_asks_for_them_while_it_reads_ahead(offers, sections, settings, monkeypatch):
    """One connection does both, one after the other."""
    storage = use_storage(settings, "Memory")
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 5)
    monkeypatch.setattr(keysets, "CHUNK", 7)
    shop = Shop.objects.first()
    for place in range(200):
        Offer.objects.create(shop=shop if place % 3 else None, slug=f"more-{place}")
    register(type("Offers", (Section,), {"name": "offers", "queryset": Offer.objects.all()}))
    build(SITE)
    urls = xml(storage, manifest()["offers", 1]).decode()
    assert urls.count("<loc>") == 3 + sum(bool(place % 3) for place in range(200))


def test_a_row_is_not_lost_with_an_object_that_it_should_have(settings):
    """A foreign key that is never NULL may lead nowhere, too."""
    offer = Offer.objects.create(slug="a", shop_id=7)
    for offer_id in (offer.pk, offer.pk + 1000):
        Voucher.objects.create(offer_id=offer_id)
    for form in (forms.of_offer, forms.shop_of_offer):
        xml, problems = assert_same(by_method(form, Voucher), settings)
        assert xml.count("<loc>") == problems["exception"]["count"] == 1
        settings.SITEMAPKIT_METHODS_AS_COLUMNS = True


def test_a_key_of_another_row_is_read_there(settings):
    """Not as the key of the row that it leads to, which may be gone."""
    Voucher.objects.create(offer=Offer.objects.create(slug="a", shop_id=98))
    before = by_method(forms.shop_of_offer, Voucher).fingerprints([EVERYTHING])
    Offer.objects.update(shop_id=99)
    assert by_method(forms.shop_of_offer, Voucher).fingerprints([EVERYTHING]) != before


def test_a_constant_of_an_object_that_is_missing_is_none(settings, offers, monkeypatch):
    """The object has to be asked for it."""
    monkeypatch.setattr(Shop, "kind", "shop", raising=False)
    assert by_method(forms.constant_of_shop, Offer).reads_objects


class Upper(property):
    """Gives its text in capital letters."""

    def __get__(self, instance, owner=None):
        return super().__get__(instance, owner).upper()


def test_a_child_of_property_is_called():
    """It may give anything."""
    rows = proxy(get_absolute_url=forms.through, tail=Upper(forms.name)).objects.all()
    assert "plain field" in why_called(declare(queryset=rows, location=None))


def test_a_tag_that_is_a_url_is_called():
    """It may differ by language, and its pattern may be missing."""
    reader = by_method(forms.plain, changefreq=forms.url_as_changefreq)
    assert "for a tag" in reader.methods.formulas_or_reasons["changefreq"].why


# --- What comes of it


def test_pages_of_methods_have_a_digest():
    """Builds reuse them without depends_on, and no longer where the method is another one."""
    reader = by_method(forms.plain)
    assert reader.fingerprints([EVERYTHING])[0][1]
    assert reader.declaration_text() == by_method(forms.plain).declaration_text()
    assert reader.declaration_text() != by_method(forms.f_string).declaration_text()


@pytest.mark.parametrize(
    "form",
    [forms.plain, forms.related, forms.lazily, forms.by_text, forms.assigned, forms.suffix],
    ids=lambda form: form.__name__,
)
def test_a_reverse_of_fields_is_read_as_text(form):
    """As a Route is."""
    assert why_not_as_text(by_method(form)) == ""


def test_a_mixed_form_is_not_text():
    """It says what keeps it."""
    assert "computed for each row" in why_not_as_text(by_method(forms.guard))


@pytest.mark.parametrize("name", ["page", "translated", "old"])
def test_each_language_has_the_urls_of_the_method(settings, name):
    """Also of rows of which columns do not tell all."""
    settings.ROOT_URLCONF = "tests.reading.urlconfs"
    for slug in ("a", "ñ", "x/y", ""):
        Story.objects.create(language="en", slug=slug)
    assert_same(by_method(URLS[name], Story, i18n=True, alternates=True), settings)


URLS = {"page": forms.of_page, "translated": forms.of_translated, "old": forms.of_old}


CLASSES = {
    "a class": lambda: type(
        "Products",
        (sitemaps.Sitemap,),
        {
            "items": lambda self: Product.objects.filter(rank=None),
            "lastmod": lambda self, product: product.updated_at,
            "changefreq": lambda self, product: "Daily",
        },
    ),
    "a location of its own": lambda: type(
        "Products",
        (sitemaps.Sitemap,),
        {
            "items": lambda self: Product.objects.order_by("note"),
            "location": lambda self, product: f"/own/{product.slug}/",
            "priority": lambda self, product: product.rank,
        },
    ),
    "the generic one": lambda: GenericSitemap(
        {"queryset": Product.objects.all(), "date_field": "updated_at"}, priority=0.3
    ),
    "rows with joins": lambda: type(
        "Products",
        (sitemaps.Sitemap,),
        {"items": lambda self: Product.objects.filter(shop__slug__gt="a").select_related("shop")},
    ),
}


@pytest.mark.parametrize("sitemap", CLASSES.values(), ids=CLASSES)
def test_classes_of_contrib_are_read_as_columns(settings, sitemap):
    """As they are."""
    assert_same(reader_of(adapt_contrib(sitemap())(SITE)), settings)


# --- The smoke alarm


@pytest.fixture
def broken(monkeypatch):
    """Have a proof be wrong: the columns say another URL than the method gives."""
    translate = methods._Translator._column_variable
    monkeypatch.setattr(
        methods._Translator,
        "_column_variable",
        lambda self, path, field: (
            translate(self, ("note",), Product._meta.get_field("note"))
            if path == ("slug",)
            else translate(self, path, field)
        ),
    )


def test_no_difference_is_found_where_all_is_well(offers):
    """Whatever the rows have."""
    assert by_method(forms.related).method_difference(EVERYTHING) == ""
    assert declare(queryset=Offer.objects.all(), location=None).method_difference(EVERYTHING) == ""


def test_a_difference_names_the_row(broken):
    """With what the method gives, and what its source says."""
    found = by_method(forms.f_string).method_difference(EVERYTHING)
    assert found.startswith("location of the row with key")
    assert "its source says '/products/shop/" in found


@pytest.mark.parametrize("is_last", [True, False], ids=["the last page", "an inner page"])
def test_a_difference_deep_in_a_page_is_found(broken, is_last):
    """The first rows of a page are not all that is looked at."""
    Product.objects.all().delete()
    shop = Shop.objects.first()
    alike = [Product(shop=shop, slug=f"p{n}", note=f"p{n}") for n in range(100)]
    later = [Product(shop=shop, slug=f"q{n}", note="note") for n in range(300)]
    Product.objects.bulk_create(alike + later)
    end = None if is_last else Product.objects.latest("pk").pk
    assert by_method(forms.f_string).method_difference(KeyRange(None, end))


def test_methods_that_differ_are_called_from_then_on(broken, sections):
    """By all processes, until one of them changes."""
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    register(type("Products", (Section,), {"name": "products", "queryset": rows}))
    section = section_of(SITE, "products")
    assert not section.reads_objects
    disable_methods_as_columns(section, section.method_difference(EVERYTHING))
    section = section_of(SITE, "products")
    assert section.reads_objects
    assert "another value" in why_called(section)
    SectionSettings.objects.update(called_methods="another")
    assert not section_of(SITE, "products").reads_objects


@pytest.mark.slow
def test_a_build_with_a_difference_lists_what_the_methods_give(broken, sections, settings):
    """It begins again in the same run."""
    storage = use_storage(settings, "Memory")
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    register(type("Products", (Section,), {"name": "products", "queryset": rows, "limit": 3}))
    build(SITE)
    urls = "".join(
        xml(storage, row).decode() for (section, _), row in manifest().items() if section
    )
    assert "/products/shop/a/" in urls
    assert "/products/shop/note/" not in urls


@pytest.mark.slow
def test_all_sections_with_a_difference_are_built_at_once(broken, sections, settings):
    """However many there are, the build begins once more."""
    storage = use_storage(settings, "Memory")
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    for place in range(8):
        name = f"s{place}"
        register(type(name.title(), (Section,), {"name": name, "queryset": rows}))
    build(SITE)
    assert "/products/shop/a/" in xml(storage, manifest()["s7", 1]).decode()


def test_rows_that_come_later_are_compared(broken, sections, client):
    """A page without rows tells nothing."""
    rows = proxy(get_absolute_url=forms.f_string).objects.filter(note="note", public=True)
    register(type("Products", (Section,), {"name": "products", "queryset": rows}))
    Product.objects.update(public=False)
    assert client.get("/sitemap-products-1.xml").status_code == 404
    Product.objects.update(public=True)
    assert b"/products/note/" not in client.get("/sitemap-products-1.xml").content


def test_an_editor_who_sets_a_tag_does_not_forget_a_difference(broken, sections):
    """Which methods are called does not say whether they are right."""
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    options = {"name": "products", "queryset": rows, "priority": forms.half}
    register(type("Products", (Section,), options))
    section = section_of(SITE, "products")
    disable_methods_as_columns(section, section.method_difference(EVERYTHING))
    SectionSettings.objects.update(priority="0.9")
    assert section_of(SITE, "products").reads_objects


def test_rows_that_change_while_they_are_compared_are_no_difference():
    """Also those of related objects, which are read a moment later."""
    number = itertools.count()

    def change(execute, sql, params, many, context):
        if sql.startswith("SELECT") and "WHERE" in sql and sql.count("testapp_shop") > 2:
            with connection.cursor() as cursor:
                cursor.cursor.execute(f"UPDATE testapp_shop SET slug = 'shop-{next(number)}'")
        return execute(sql, params, many, context)

    Shop.objects.exclude(pk=Shop.objects.first().pk).delete()
    reader = by_method(forms.related)
    with connection.execute_wrapper(change):
        assert reader.method_difference(EVERYTHING) == ""
    assert next(number)


def test_a_live_page_with_a_difference_lists_what_the_method_gives(broken, sections, client):
    """The first page that a process renders is looked at."""
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    register(type("Products", (Section,), {"name": "products", "queryset": rows}))
    body = client.get("/sitemap-products-1.xml").content
    assert b"/products/shop/a/" in body


# --- Models that are not in the database


def reading_of(function, **fields):
    """Return why the location of a model with these fields is called; "" if it is not."""
    with isolate_apps("tests.testapp"):
        model = model_of("Thing", get_absolute_url=function, **fields)
        reader = declare(queryset=model.objects.all(), location=None)
        reading = reader.methods.formulas_or_reasons["location"]
    return reading.why if isinstance(reading, MustBeCalled) else ""


def model_of(name, options=None, **members):
    """Return a model of the isolated app."""
    meta = type("Meta", (), {"app_label": "testapp", **(options or {})})
    members |= {"__module__": "tests.testapp.models", "Meta": meta}
    return type(name, (models.Model,), members)


class Listed(models.Manager):
    """Finds some rows only."""


def test_a_related_model_with_its_own_base_manager_is_asked():
    """It may not find the object, or find another."""
    with isolate_apps("tests.testapp"):
        owners = model_of(
            "Owner", {"base_manager_name": "listed"}, slug=models.SlugField(), listed=Listed()
        )
        owner = models.ForeignKey(owners, models.CASCADE)
    assert "base manager" in reading_of(forms.of_owner, owner=owner)


class Elsewhere:
    """Reads shops from another database."""

    def allow_migrate(self, db, app_label, model_name=None, **hints):
        return (db == "other") == (model_name == "shop")


def test_a_related_object_of_another_database_is_asked(settings):
    """By the router, as the object asks for it."""
    assert not by_method(forms.related).reads_objects
    settings.DATABASE_ROUTERS = [Elsewhere()]
    assert "another database" in why_called(by_method(forms.related))


def test_a_composite_key_is_called():
    """It has no single column."""
    key = models.CompositePrimaryKey("slug", "number")
    fields = {"pk": key, "slug": models.SlugField(), "number": models.IntegerField()}
    assert "own pk" in reading_of(forms.column, **fields)


class Loud(models.CharField):
    """Gives its values in upper case, by its descriptor."""

    class descriptor_class(DeferredAttribute):  # noqa: N801  Django's name
        def __get__(self, instance, cls=None):
            value = super().__get__(instance, cls)
            return value if instance is None else value.upper()


def test_a_field_with_its_own_descriptor_is_asked():
    """It gives another value than the column has."""
    assert reading_of(forms.column, slug=models.CharField(max_length=9)) == ""
    assert "plain field" in reading_of(forms.column, slug=Loud(max_length=9))


def test_a_related_method_that_reads_nothing_is_called():
    """Whether there is a related object shows in none of the columns."""
    with isolate_apps("tests.testapp"):
        owner = models.ForeignKey(model_of("Owner", home=forms.home), models.CASCADE, null=True)
    assert "reads no field" in reading_of(forms.home_of_owner, owner=owner)


class OwnValues(models.QuerySet):
    """Reads other columns than it is asked for."""

    def values_list(self, *fields, **options):
        return super().values_list(*fields, **options)


class OwnIterable(ModelIterable):
    """Makes objects of other classes."""


def of_other_objects():
    """Return rows of which something else makes objects."""
    rows = Product.objects.all()
    rows._iterable_class = OwnIterable
    return rows


@pytest.mark.parametrize("rows", [lambda: OwnValues(Product), of_other_objects])
def test_a_queryset_that_reads_in_its_own_way_is_asked(rows):
    """Its objects, or its values, may be others."""
    with pytest.raises(MustBeCalled):
        methods.formula_of(forms.column, rows())


@pytest.mark.parametrize("form", [forms.key_of_related, forms.f_string], ids=lambda f: f.__name__)
def test_a_shop_that_is_gone_is_no_none(settings, offers, form):
    """Neither its key nor its slug is read of the offer."""
    assert_same(by_method(form, Offer), settings)


def test_text_of_a_date_is_no_date(settings):
    """A converter of the project tells them apart."""
    settings.ROOT_URLCONF = "tests.reading.urlconfs"
    Offer.objects.create(slug="a", ends_at=EPOCH)
    assert given(by_method(forms.of_a_month, Offer))[0] == ""
    assert by_method(forms.of_a_month, Offer, i18n=True).reads_objects


def test_methods_are_called_where_the_database_cannot_store_it(broken, sections, client):
    """Such as a replica, or a transaction that only reads."""
    rows = proxy(get_absolute_url=forms.f_string).objects.all()
    register(type("Products", (Section,), {"name": "products", "queryset": rows}))

    def reads_only(execute, sql, *arguments):
        if sql.startswith(("INSERT", "UPDATE")) and "sectionsettings" in sql:
            raise OperationalError("cannot execute in a read-only transaction")
        return execute(sql, *arguments)

    with connection.execute_wrapper(reads_only):
        xml_of_page = client.get("/sitemap-products-1.xml").text
    assert "/products/shop/a/" in xml_of_page
    assert "/products/shop/note/" not in xml_of_page
    assert not SectionSettings.objects.exists()
