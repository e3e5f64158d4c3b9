"""Whatever queryset a section has: its rows are those of the queryset, each once, or it is refused.

A queryset is drawn as the text of an expression, so that one that fails can be tried by hand.
"""

import datetime as dt
import re

import pytest
from django.contrib.sitemaps import Sitemap
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import DatabaseError, models, transaction
from django.db.models import functions
from hypothesis import HealthCheck, event, given, reject, settings
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import keysets, reader_of
from django_sitemapkit.reading.validation import require_pageable
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests.factories import EPOCH, SITE, ProductFactory, declare
from tests.testapp.models import Product, Shop, Tag

# Projects still call it without arguments.
pytestmark = pytest.mark.filterwarnings("ignore:Calling select_related")

ROWS = 13
NAMES = {**vars(models), **vars(functions), "Product": Product, "Tag": Tag}

OF_ONE = [
    *("public=True", "rank__gte='0.50'", "rank__isnull=True", "rank__lt=F('pk')", "note='a'"),
    *("note__in=['a', 'b']", "slug__gt='product-05'", "slug__endswith='7'", "updated_at=None"),
    *("updated_at__year=2024", "released_on__lt=F('updated_at')", "shop__slug='shop-1'"),
    *("shop__slug__in=['shop-0', 'shop-2']", "shop__pk__gt=0", "pk__in=[]"),
    "pk__in=Product.objects.filter(tags__name='t1')",
]
OF_MANY = [
    *("tags__name='t1'", "tags__name__gt='t0'", "tags__isnull=True", "tags=None"),
    *("shop__product__public=True", "shop__product__tags__name='t1'"),
]
ORDERS = ["slug", "pk", "-rank", "note", "-updated_at", "shop__slug", "-shop", "tags__name", "?"]
TO_ONE = [
    *("F('shop__slug')", "Upper('shop__slug')", "Concat('note', 'shop__slug')", "Value(1)"),
    "Case(When(shop__slug='shop-1', then=1), default=2)",
    "Exists(Tag.objects.filter(product=OuterRef('pk')))",
    "Subquery(Tag.objects.filter(product=OuterRef('pk')).order_by('pk').values('name')[:1])",
]
AGGREGATES = [
    *("Count('tags')", "Count('tags', distinct=True)", "Max('tags__name')", "Min('shop__slug')"),
    *("Count('shop__product')", "Count('tags', filter=Q(tags__name='t1'))", "Sum('tags__pk')"),
]
TO_MANY = [
    *("F('tags__name')", "Upper('tags__name')", "F('shop__product__slug')", "F('tags')"),
    "Case(When(tags__name='t1', then=1), default=2)",
    "Subquery(Tag.objects.filter(pk=OuterRef('tags__pk')).values('name')[:1])",
    *("Window(RowNumber())", "Window(RowNumber(), order_by='tags__name')"),
]
LIMITED = "FilteredRelation('tags', condition=Q(tags__name='t1'))"


def call(method, arguments):
    """Return calls of a method as text."""
    return arguments.map(lambda text: f".{method}({text})")


def named(expressions):
    """Return expressions under a name that each call has of its own."""
    return st.sampled_from(expressions).map("{{name}}={}".format)


def conditions(leaves):
    """Return conditions joined by Q objects."""
    return st.recursive(
        st.sampled_from(leaves).map("Q({})".format),
        lambda inner: (
            st.tuples(inner, st.sampled_from("&|^"), inner).map(lambda pair: f"({' '.join(pair)})")
            | inner.map("~{}".format)
        ),
        max_leaves=3,
    )


SAFE = st.one_of(
    call("filter", conditions(OF_ONE)),
    call("exclude", conditions(OF_ONE) | st.sampled_from(OF_MANY)),
    call("order_by", st.lists(st.sampled_from(ORDERS), max_size=3).map("*{}".format)),
    st.sampled_from([".reverse()", ".distinct()"]),
    call("annotate", named(TO_ONE)),
    call("alias", named([*TO_ONE, *AGGREGATES])),
    call("annotate", named(AGGREGATES)),
    st.sampled_from(
        [
            ".annotate({name}=Count('tags')).filter({name}__gte=2)",
            ".annotate({name}=Max('tags__name')).exclude({name}='t1')",
            ".annotate({name}=Count('tags')).filter(Q({name}=1) | Q(note='a'))",
            ".filter(Exists(Tag.objects.filter(product=OuterRef('pk'), name='t1')))",
            *(".select_related('shop')", ".select_related()", ".prefetch_related('tags')"),
            *(".only('slug', 'shop')", ".defer('note')", ".all()", ".select_for_update()"),
            ".extra(select=dict({name}='1 + 1'))",
            ".extra(where=['testapp_product.id > 3'])",
            ".extra(order_by=['-slug'])",
        ]
    ),
)
"""Calls that a section has to take."""

RISKY = st.one_of(
    call("filter", conditions(OF_MANY)),
    call("exclude", conditions(OF_MANY)),
    call("annotate", named(TO_MANY)),
    call("alias", named(TO_MANY)),
    st.sampled_from(
        [
            ".annotate({name}=Count('tags')).filter(Q({name}__gt=1) | Q(tags__name='t1'))",
            ".alias({name}=F('tags__name')).filter({name}='t1')",
            f".annotate({{name}}={LIMITED}).filter({{name}}__name__gt='')",
            ".annotate({name}=Window(RowNumber())).filter({name}__gt=1)",
            ".extra(tables=['testapp_tag'])",
            ".extra(select=dict({name}='testapp_tag.name'), tables=['testapp_tag'])",
        ]
    ),
)
"""Calls that it may refuse."""


def marked(strategy, *, safe):
    """Return what is drawn with whether a section has to take it."""
    return strategy.map(lambda text: (text, safe))


SAFE_CALL, RISKY_CALL = marked(SAFE, safe=True), marked(RISKY, safe=False)
CALLS = st.lists(SAFE_CALL, max_size=4) | st.lists(SAFE_CALL | RISKY_CALL, min_size=1, max_size=5)

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.just("'slug'"),
        "lastmod": st.sampled_from(["F('updated_at')", "Greatest('updated_at', 'updated_at')"]),
        "priority": st.sampled_from(
            ["F('rank')", "Min('rank')", "Case(When(shop__slug='s', then=1.0), default=0.0)"]
        ),
    },
)
RISKY_OPTIONS = st.sampled_from(
    [
        {"priority": "Case(When(tags__name='t1', then=1.0), default=0.0)"},
        {"lastmod": "Max('shop__product__updated_at')"},
    ]
)
KINDS = ["columns", "objects", "contrib"]


@pytest.fixture
def rows(db, monkeypatch):
    """Store products with up to three tags each, to be read some at a time."""
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 3)
    shops = Shop.objects.bulk_create(Shop(slug=f"shop-{n}") for n in range(3))
    tags = Tag.objects.bulk_create(Tag(name=f"t{n}") for n in range(3))
    stored = Product.objects.bulk_create(
        ProductFactory.build(
            shop=shops[n % 3], slug=f"product-{n * 7 % ROWS:02}",
            rank=[None, "0.25", "0.75"][n % 3], public=n % 4 > 0, note="abc"[n % 3 : n % 2 + 1],
            updated_at=EPOCH + dt.timedelta(hours=n) if n % 5 else None,
            released_on=EPOCH.date() if n % 2 else None,
        )
        for n in range(ROWS)
    )  # fmt: skip
    link = Product.tags.through
    link.objects.bulk_create(
        link(product=product, tag=tag) for n, product in enumerate(stored) for tag in tags[: n % 4]
    )


def evaluated(text):
    """Return what the text of an expression stands for."""
    return eval(text, NAMES)


def expected_of(text):
    """Return the keys of a queryset's rows, sorted; reject one that Django or the database does."""
    try:
        with transaction.atomic():
            found = evaluated(text.replace(".select_for_update()", ""))
            return sorted({row.slug for row in found})
    except (DatabaseError, FieldError, LookupError, NotImplementedError, TypeError, ValueError):
        reject()


def section_of(text, kind, options):
    """Return a section over a queryset."""
    queryset = evaluated(text)
    if kind == "contrib":
        return reader_of(
            adapt_contrib(type("Things", (Sitemap,), {"limit": 4, "items": lambda self: queryset}))(
                SITE
            )
        )
    location = Route("product", shop="shop__slug", slug="slug")
    if kind == "objects":
        location = lambda self, obj: obj.get_absolute_url()  # noqa: E731
    values = {name: evaluated(value) for name, value in options.items()}
    return declare(queryset=queryset, location=location, limit=4, **values)


def listed_by(section):
    """Return the slugs of all URLs that all pages list, sorted."""
    urls = []
    with transaction.atomic():
        for page in pages_with_rows(section):
            rendering = PageRendering(section, page.keys, SITE.scope(), on_locations=urls.extend)
            b"".join(rendering)
            assert rendering.overflow is None
            assert not rendering.problems
        transaction.set_rollback(True)  # The next section has the same name, and another plan.
    return sorted(url.split("/")[-2] for url in urls)


def refusal_of(section):
    """Return why a section is refused; None where it is not."""
    try:
        require_pageable(section)
    except ImproperlyConfigured as error:
        return str(error)
    return None


REGROUPED = re.compile(r"^(?=.*order_by\(\*\[[^\]]*'tags__name')(?=.*=(?:Count|Max)\().*$")
"""An order over tags beside a filter on an aggregate, which then counts within each tag."""


def agrees(calls, kind, options, *, safe):
    """Compare what a section lists with its queryset."""
    chain = "".join(text.format(name=f"name_{n}") for n, (text, _) in enumerate(calls))
    text = f"Product.objects{chain or '.all()'}"
    expected = expected_of(text)
    section = section_of(text, kind, options)
    if reason := refusal_of(section):
        event("refused")
        assert not safe or REGROUPED.search(text), (text, reason)
        return
    if section.keyset is None and len(section.rows) > len(expected):
        event("a list that has a row twice, as Django's own class lists it")
        return
    event("listed")
    assert listed_by(section) == expected, text


def property_of(max_examples):
    """Return a test of so many querysets."""

    @given(
        calls=CALLS,
        kind=st.sampled_from(KINDS),
        options=marked(OPTIONS, safe=True) | marked(RISKY_OPTIONS, safe=False),
    )
    @settings(max_examples=max_examples, suppress_health_check=list(HealthCheck))
    def test(rows, calls, kind, options):
        """Equal, none twice, or refused; and never refused where only ordinary calls are used."""
        safe = all(is_safe for _, is_safe in calls) and (options[1] or kind == "contrib")
        agrees(calls, kind, options[0], safe=safe)

    return test


test_a_section_lists_the_rows_of_its_queryset = pytest.mark.slow(property_of(30))
test_five_hundred_sections_list_the_rows_of_their_querysets = pytest.mark.thorough(property_of(500))
