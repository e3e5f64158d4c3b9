"""Each row is listed once and in the order of its key, whatever the queryset brings, or refused."""

from operator import itemgetter
from uuid import UUID

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    F,
    FilteredRelation,
    Max,
    OuterRef,
    Q,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat, RowNumber, Upper

from django_sitemapkit import Route, Section, checks, register
from django_sitemapkit.exceptions import RepeatedRow
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import keysets, reader_of
from django_sitemapkit.reading.keysets import EVERYTHING, raise_on_repeated_rows
from django_sitemapkit.reading.validation import mistakes_of, require_pageable
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests.factories import SITE, TagFactory, declare, products
from tests.testapp.models import Place, Product, Tag

ROWS = 12
ROUTE = Route("product", shop="shop__slug", slug="slug")


@pytest.fixture
def rows(db, monkeypatch):
    """Store products with three tags each, to be read some at a time."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 4)
    stored = products(ROWS, note="kept")
    tags = TagFactory.create_batch(3)
    link = Product.tags.through
    link.objects.bulk_create(link(product=product, tag=tag) for product in stored for tag in tags)
    return stored


def method(self, obj):
    """Return the location of a product."""
    return obj.get_absolute_url()


def repeated(section):
    """Return what the check for repeated rows finds."""
    found = [one for one in mistakes_of(section) if one.identifier == "sitemapkit.E105"]
    return found[0] if found else None


def by_route(queryset, **options):
    """Return a section that reads columns."""
    return declare(queryset=queryset, location=ROUTE, limit=5, **options)


def by_method(queryset, **options):
    """Return a section that reads objects."""
    return declare(queryset=queryset, location=method, limit=5, **options)


def by_contrib(queryset):
    """Return an adapted class of contrib."""
    old = adapt_contrib(type("Old", (Sitemap,), {"limit": 5, "items": lambda self: queryset}))
    return reader_of(old(SITE))


KINDS = [by_route, by_method, by_contrib]


def listed(section):
    """Return the keys of all rows that the pages list, and how many pages there are."""
    keys, pages = [], pages_with_rows(section)
    for page in pages:
        b"".join(PageRendering(section, page.keys, SITE.scope(), on_locations=keys.extend))
    return sorted(keys), len(pages)


ORDERS = {
    "reversed": lambda rows: rows.reverse(),
    "reversed by a name": lambda rows: rows.order_by("-slug").reverse(),
    "twice": lambda rows: rows.reverse().reverse(),
    "by chance": lambda rows: rows.order_by("?"),
    "reversed chance": lambda rows: rows.order_by("?").reverse(),
    "extra": lambda rows: rows.extra(order_by=["-slug"]),
    "reversed extra": lambda rows: rows.extra(order_by=["-slug"]).reverse(),
    "by rows of another table": lambda rows: rows.order_by("tags__name").reverse(),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_is_that_of_the_key(rows, kind, order):
    """Whatever the queryset's own order is, each row is listed once, and no page is lost."""
    expected = sorted(SITE.scope().normalise(row.get_absolute_url()) for row in rows)
    assert listed(kind(order(Product.objects.all()))) == (expected, 3)


def test_a_model_whose_order_is_reversed_is_read_by_key(rows, monkeypatch):
    """``Meta.ordering`` counts no more than an order of the queryset's own."""
    monkeypatch.setattr(Product._meta, "ordering", ["-slug"])
    for order in (lambda found: found, lambda found: found.reverse()):
        assert len(listed(by_route(order(Product.objects.all())))[0]) == ROWS


def test_a_queryset_that_locks_its_rows_is_read_without_locks(rows):
    """PostgreSQL would refuse it outside of a transaction, and together with DISTINCT anywhere."""
    locking = Product.objects.select_for_update().distinct()
    for kind in KINDS:
        assert len(listed(kind(locking))[0]) == ROWS
    assert len(listed(by_contrib(locking.order_by("pk")[:4]))[0]) == 4
    assert locking.query.select_for_update


@pytest.mark.django_db(transaction=True)
def test_a_queryset_that_locks_its_rows_is_read_outside_of_a_transaction():
    """As a request reads it."""
    products(2)
    for kind in KINDS:
        assert len(listed(kind(Product.objects.select_for_update()))[0]) == 2


TAG = Tag.objects.filter(pk=OuterRef("tags__pk")).values("name")[:1]
RANK = Window(RowNumber(), order_by="tags__name")
ALL = Product.objects.all()
REFUSED = {
    "a column of many": (ALL.annotate(tag=F("tags__name")), "'tag'"),
    "under distinct()": (ALL.annotate(tag=F("tags__name")).distinct(), "'tag'"),
    "beside an aggregate": (ALL.annotate(tag=F("tags__name"), n=Count("tags")), "'tag'"),
    "before an aggregate": (
        ALL.annotate(tag=F("tags__name")).annotate(n=Count("tags")), "'tag'",
    ),
    "within a function": (ALL.annotate(tag=Upper("tags__name")).distinct(), "'tag'"),
    "within a case": (
        ALL.annotate(tag=Case(When(tags__name="x", then=1), default=0)).distinct(), "'tag'",
    ),
    "within a condition": (ALL.annotate(tag=Q(tags__name="x")).distinct(), "'tag'"),
    "behind a subquery": (ALL.annotate(tag=Subquery(TAG)).distinct(), "'tag'"),
    "from the other side": (
        Place.objects.annotate(tag=F("photos__address")).distinct(), "'tag'",
    ),
    "of a filtered relation": (
        ALL.annotate(
            kept=FilteredRelation("tags", condition=Q(tags__name="x")), tag=F("kept__name")
        ).distinct(),
        "'tag'",
    ),
    "a window over many": (
        ALL.filter(tags__name__gt="").annotate(place=Window(RowNumber())).distinct(), "'place'",
    ),
    "a condition on the groups": (
        ALL.annotate(n=Count("tags__name")).filter(Q(n__gt=9) | Q(tags__name__gt="")),
        "relation to many",
    ),
    "tables of its own": (ALL.extra(tables=["testapp_tag"]), "extra"),
    "a join": (ALL.filter(tags__name__gt=""), "relation to many"),
}  # fmt: skip


@pytest.mark.parametrize("order", ["tags__name", F("tags__name").desc()])
def test_an_order_that_changes_what_a_filter_counts_is_refused(order):
    """Django groups by it, too, and a section is read in an order of its own."""
    fault = repeated(by_route(ALL.order_by(order).annotate(n=Count("tags")).filter(n__gt=1)))
    assert "order_by()" in fault.message
    assert "order_by()" in fault.hint
    allowed = ALL.order_by("?", "shop__slug").annotate(n=Count("tags")).filter(n__gt=1)
    assert repeated(by_route(allowed)) is None


@pytest.mark.parametrize(("queryset", "named"), REFUSED.values(), ids=REFUSED)
def test_what_repeats_rows_is_refused_with_the_way_out(sections, queryset, named):
    """By a check, and by the section itself where checks are silenced."""
    options = {"__module__": __name__, "queryset": queryset, "location": method}
    section = register(type("Things", (Section,), options))
    (message,) = checks.declarations.check_declarations()
    assert message.id == "sitemapkit.E105"
    assert named in message.msg
    assert "Exists()" in message.hint or "Subquery" in message.hint
    with pytest.raises(ImproperlyConfigured, match="Section 'things'"):
        require_pageable(reader_of(section(SITE)))


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "a join"])
def test_what_repeats_rows_is_refused_of_contrib_classes(sections, name):
    """DISTINCT, which makes a joined row one, does not help them either."""
    queryset, named = REFUSED[name]
    section = type("Old", (Sitemap,), {"items": lambda self: queryset})
    register(section)
    (message,) = checks.declarations.check_declarations()
    assert (message.id, named in message.msg) == ("sitemapkit.W105", True)
    with pytest.raises(ImproperlyConfigured, match="Section 'old'"):
        require_pageable(reader_of(adapt_contrib(section)(SITE)))


def test_a_slice_of_a_contrib_class_that_repeats_rows_is_refused(sections):
    """It pages by position: a row that comes again would be listed on several pages."""
    register(type("Old", (Sitemap,), {"items": lambda self: ALL.filter(tags__name__gt="")[:9]}))
    register(type("Union", (Sitemap,), {"items": lambda self: ALL.union(ALL.filter(tags=1))}))
    names = ALL.values_list("tags__name", flat=True)
    register(type("Names", (Sitemap,), {"items": lambda self: names}))
    register(type("Pairs", (Sitemap,), {"items": lambda self: ALL.values(tag=F("tags__name"))}))
    (message,) = checks.declarations.check_declarations()
    assert (message.id, "'old'" in message.msg) == ("sitemapkit.W105", True)


def test_a_contrib_class_that_is_distinct_on_a_field_pages_by_position():
    """Which row of a shop stays would depend on the page."""
    rows = Product.objects.order_by("shop").distinct("shop")
    assert by_contrib(rows).keyset is None


TAGS = Product.tags.through.objects.filter(product=OuterRef("pk"))
LISTED = {
    "a filter under distinct()": lambda: ALL.filter(tags__name__gt="").distinct(),
    "an alias under distinct()": lambda: (
        ALL.alias(tag=F("tags__name")).filter(tag__gt="").distinct()
    ),
    "a filter before an aggregate": lambda: ALL.filter(tags__name__gt="").annotate(n=Count("tags")),
    "a filter on an aggregate": lambda: ALL.annotate(n=Count("tags")).filter(n=3),
    "either of two aggregates": lambda: ALL.annotate(
        n=Count("tags"), last=Max("tags__name")
    ).filter(Q(n=3) | Q(last="")),
    "a column of one": lambda: ALL.annotate(shop_name=Upper("shop__slug")).distinct(),
    "one of many": lambda: ALL.annotate(tag=Subquery(TAGS.values("tag__name")[:1])).distinct(),
    "whether there are any": lambda: ALL.filter(Exists(TAGS)),
    "a window of a subquery": lambda: ALL.annotate(
        place=Subquery(TAGS.annotate(place=Window(RowNumber())).values("place")[:1])
    ),
    "without some of many": lambda: ALL.exclude(tags__name=""),
}


@pytest.mark.parametrize("queryset", LISTED.values(), ids=LISTED)
def test_what_gives_each_row_once_is_listed(rows, queryset):
    """No more is refused than has to be."""
    for kind in KINDS:
        assert len(listed(kind(queryset()))[0]) == ROWS


@pytest.mark.parametrize(
    "priority",
    [
        F("tag"),
        Case(When(tags__name="x", then=1.0), default=0.5),
        Case(When(tag="x", then=1.0), default=0.5),
        Subquery(TAG),
        RANK,
    ],
    ids=["alias", "case", "case of alias", "subquery", "window"],
)
@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "grouped"])
def test_an_option_that_repeats_rows_is_refused(sections, priority, distinct):
    """Also where the queryset hides the relation behind a name."""
    queryset = ALL.alias(tag=F("tags__name"))
    queryset = queryset.distinct() if distinct else queryset.annotate(n=Count("tags"))
    options = {"queryset": queryset, "location": ROUTE, "priority": priority}
    register(type("Things", (Section,), {"__module__": __name__, **options}))
    (message,) = checks.declarations.check_declarations()
    assert message.id == "sitemapkit.E127"
    assert "priority" in message.msg


@pytest.mark.parametrize(("last", "codes"), [("shop__product__pk", ["E127"]), ("tags__pk", [])])
def test_an_option_that_changes_what_a_filter_counts_is_refused(sections, last, codes):
    """Each tag would be counted once for each product of the shop: other rows than were planned."""
    queryset = ALL.annotate(n=Count("tags")).filter(n=2)
    options = {"queryset": queryset, "location": ROUTE, "priority": Max(last)}
    register(type("Things", (Section,), {"__module__": __name__, **options}))
    assert [message.id[-4:] for message in checks.declarations.check_declarations()] == codes


def test_images_of_many_by_an_expression_are_refused(sections):
    """Only a path is read beside the rows; an expression is read with them."""
    images = Concat(Value("/"), "photos__address", output_field=CharField())
    options = {"queryset": Place.objects.all(), "location": F("slug"), "images": images}
    register(type("Things", (Section,), {"__module__": __name__, **options}))
    assert [message.id for message in checks.declarations.check_declarations()] == [
        "sitemapkit.E127"
    ]


def unseen():
    """Return rows that are repeated where no check can see it."""
    tags = ALL.filter(tags__name__gt="")
    return tags.annotate(tag=RawSQL("testapp_tag.name", ())).distinct()


@pytest.mark.usefixtures("methods_are_called")
@pytest.mark.parametrize("kind", [by_method, by_contrib])
def test_a_row_that_comes_twice_fails_its_page(rows, kind):
    """What no check has found is named while it is read, instead of listed twice."""
    section = kind(unseen())
    name = section.get_name()
    with pytest.raises(RepeatedRow, match=rf"Section '{name}'.* {rows[0].pk} .*pk__in"):
        list(section.chunks(EVERYTHING))


@pytest.mark.parametrize("key", [int, str, lambda n: UUID(int=n)], ids=["int", "text", "uuid"])
@pytest.mark.parametrize("reads", [[[1, 1]], [[1, 2, 1]], [[1, 2], [2]], [[3], [5, 4], [1, 5]]])
def test_a_key_that_comes_again_is_noticed(key, reads):
    """Within a read, and in the next one, as of rows that do not come by key."""
    rows = [[(key(n),) for n in read] for read in reads]
    with pytest.raises(RepeatedRow, match="Section 'things'"):
        list(raise_on_repeated_rows(iter(rows), itemgetter(0), "things"))
    once = [[(key(n),)] for n in range(4)]
    assert list(raise_on_repeated_rows(iter(once), itemgetter(0), "things")) == once
