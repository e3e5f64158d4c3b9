"""Rows that are read as text give what rows read one by one give: bytes, problems, all of it."""

import datetime as dt
import os
from contextlib import suppress

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import ExtractYear, Lower
from django.test import override_settings
from django.urls import include, path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_sitemapkit import Route
from django_sitemapkit.audit.reader import validate
from django_sitemapkit.models import ExclusionRule, UrlOverride
from django_sitemapkit.overrides import in_force, overrides_of
from django_sitemapkit.reading import keysets, pushdown, text_queries
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering, pages
from tests.factories import EPOCH, SITE, declare
from tests.overrides.setting import by_object, by_path, rule
from tests.reading import urlconfs
from tests.testapp.models import Product, Shop, Topic

urlpatterns = [path("", include("django_sitemapkit.urls")), *urlconfs.urlpatterns]

NOW = dt.datetime.now(dt.UTC)
MANY = int(os.environ.get("SITEMAPKIT_EXAMPLES", "300"))
"""Examples of the thorough run; 5,000 take minutes."""
PLAIN = st.text("abzAZ09-_", min_size=1, max_size=6)
ODD = st.sampled_from(
    [
        *(
            "",
            " ",
            ".",
            "..",
            ".a",
            "a.b",
            "a/b",
            "/a",
            "a/../b",
            "a/.b",
            "//",
            "a&b",
            "it's",
            '"<>',
        ),
        *(
            "%",
            "%2F",
            "%41",
            "a b",
            "a+b",
            "a:b",
            "a=b",
            "a?b",
            "#",
            "~!$()*,;=@",
            "\\",
            "-5",
            "07",
        ),
        *(
            "ü",
            "España",
            "漢字",
            "😀",
            "e\u0301",
            "\x85",
            "\u2028",
            "\ufffe",
            "\uffff",
            "\U0001fffe",
        ),
        *(
            "\x01",
            "\x02\x01",
            "\n",
            "a\nb",
            "\x0e",
            "\x0f",
            "\x10",
            "\t",
            "\x7f",
            "é.",
            "ü/ü",
            "x" * 190,
        ),
        *("::+:", " ::", "2024-02-29", "2024-02-29 12:30:15", "T00:00:00+00:00", "漢" * 190),
    ]
)
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
TEXTS = st.one_of(PLAIN, PLAIN, PLAIN, ODD, ANY)
MOMENTS = st.one_of(
    st.none(),
    st.just(NOW + dt.timedelta(days=900)),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.integers(0, 10**14).map(lambda n: EPOCH - dt.timedelta(microseconds=n)),
)
DAYS = st.none() | st.dates() | st.dates(dt.date(2020, 1, 1), dt.date(2024, 1, 1))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "slug": TEXTS,
            "note": TEXTS.map(lambda text: text[:20]),
            "shop": st.integers(0, 1),
            "updated_at": MOMENTS,
            "released_on": DAYS,
        }
    ),
    max_size=14,
    unique_by=lambda row: row["slug"],
)
ROUTES = st.sampled_from(
    [
        Route("article", pk="pk"),
        Route("article", pk=ExtractYear("released_on")),
        Route("article", "note"),
        Route("product", shop="shop__slug", slug="slug"),
        Route("product", shop="note", slug="pk"),
        Route("city", country="shop__slug", slug="slug", id=ExtractYear("released_on")),
        Route("city", country="note", slug="slug", id="shop_id"),
        Route("city", country="note", slug=Lower("slug"), id="pk"),
        Route("glued", a="shop__slug", b="pk", c="note"),
        Route("file", rest="slug"),
        Route("bare", rest="slug"),
        Route("edit", rest="note"),
        Route("untyped", name="slug"),
        Route("untyped", name="released_on"),
        Route("many", x="slug"),
        Route("code", code="note", slug="slug"),
    ]
)
OPTIONS = st.fixed_dictionaries(
    {"location": ROUTES},
    optional={
        "key": st.just("slug"),
        "lastmod": st.sampled_from(
            [
                "updated_at",
                "released_on",
                F("updated_at"),
                dt.date(2024, 2, 29),
                dt.date(2999, 1, 1),
            ]
        ),
        "changefreq": st.sampled_from(["daily", "never", "now"]),
        "priority": st.sampled_from([0.5, 1, 7]),
        "lastmod_precision": st.just("day"),
        "limit": st.integers(1, 20),
    },
)
ZONES = st.sampled_from(["UTC", "America/New_York", "Pacific/Kiritimati"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["path", "path", "object", "object", "rule", "head"]),
        st.integers(0, 13),
        st.fixed_dictionaries(
            {
                "include": st.sampled_from([None, None, True, False]),
                "priority": st.sampled_from([None, None, "0.9", "7"]),
                "changefreq": st.sampled_from(["", "", "daily", "hardly"]),
                "lastmod": st.none() | MOMENTS,
            }
        ),
    ),
    max_size=8,
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, settings):
    """Have a few rows read at a time by both ways, so that pages end within chunks."""
    for module in (keysets, text_queries):
        monkeypatch.setattr(module, "FIRST_CHUNK", 3)
    monkeypatch.setattr(keysets, "CHUNK", 5)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 5)
    settings.ROOT_URLCONF = __name__


def state_of(section):
    """Return all that a rendering finds, and its bytes."""
    rendering = PageRendering(section, EVERYTHING, SITE.scope())
    document = b"".join(rendering)
    lastmods = rendering.lastmods
    return document, {
        "urls": (rendering.urls, rendering.rows, rendering.size),
        "keys": (rendering.first, rendering.last, rendering.overflow, rendering.split_at),
        "lastmods": (lastmods.oldest, lastmods.newest, lastmods.dated),
        "overridden": rendering.overridden,
        "newest_key": lastmods.newest_key,
        "problems": sorted(map(str, rendering.problems.examples)),
        "counts": (rendering.problems.counts, rendering.problems.skipped),
        "changes": rendering.changes_at,
    }


def require_equal(section):
    """Have a section rendered both ways; return whether its rows could be read as text."""
    text, of_text = state_of(section)
    if text:
        assert validate([text], SITE.address("index")).valid
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages.LineEntries, "of", classmethod(lambda *arguments: None))
        rows, of_rows = state_of(section)
    assert text == rows
    keys = of_text.pop("newest_key"), of_rows.pop("newest_key")
    assert of_text == of_rows
    if keys[0] != keys[1]:  # Any row that has the newest lastmod will do.
        assert all(len({str(key) for key in keys}) == 2 for key in keys)
        newest = of_text["lastmods"][1].encode()
        assert rows.count(b"<lastmod>" + newest) > 1
    return not pushdown.obstacle(section)


def store(rows):
    """Store some products of two shops, of which one has a name that has to be quoted."""
    Product.objects.all().delete()
    Shop.objects.all().delete()
    shops = Shop.objects.bulk_create([Shop(slug="shop"), Shop(slug="ñ/.&")])
    stored = [Product(**row | {"shop": shops[row["shop"]]}) for row in rows]
    Product.objects.bulk_create(stored, ignore_conflicts=True)  # To MariaDB u and ü are equal.


def edit(section, edits):
    """Set overrides and rules for some rows of a section, as far as it lists them."""
    for model in (UrlOverride, ExclusionRule):
        model.objects.all().delete()
    listed = {}
    for _, entries, *_ in PageRendering(section, EVERYTHING, SITE.scope()).written():
        paths = [location.removeprefix(SITE.origin) for location in entries.locations]
        listed |= dict(zip(entries.keys, paths, strict=True))
    for kind, row, values in edits:
        path = list(listed.values())[row] if row < len(listed) else f"/elsewhere/{row}/"
        with suppress(IntegrityError), transaction.atomic():  # A path or object that has one.
            if kind == "object":
                by_object(Product.objects.order_by("pk")[row:].first() or Product(pk=0), **values)
            elif kind == "path":
                by_path(path, **values)
            else:
                rule(f"{path[: 2 + row]}*" if kind == "head" else f"{path}$")
    return overrides_of(SITE)


def compare(rows, options, share, edits, zone):
    """Have some rows rendered both ways."""
    store(rows)
    with pytest.MonkeyPatch.context() as patch, override_settings(TIME_ZONE=zone):
        patch.setattr(pushdown, "MAX_ODD", share)
        patch.setattr(in_force, "MAX_ROWS_WITHOUT_FILTER", 2 * len(edits))
        section = declare(queryset=Product.objects.all(), **options)
        section.overrides = edit(section, edits)
        require_equal(section)


SHARES = st.sampled_from([0, 0.1, 0.4, 1, 1])


@pytest.mark.django_db
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, options=OPTIONS, share=SHARES, edits=EDITS, zone=ZONES)
def test_both_ways_give_the_same(rows, options, share, edits, zone):
    """Whatever the rows, the route, the tags, the limit, what editors have set, the odd rows."""
    compare(rows, options, share, edits, zone)


@pytest.mark.thorough
@pytest.mark.django_db
@settings(deadline=None, max_examples=MANY, suppress_health_check=[HealthCheck.too_slow])
@given(rows=ROWS, options=OPTIONS, share=SHARES, edits=EDITS, zone=ZONES)
def test_both_ways_give_the_same_for_many_examples(rows, options, share, edits, zone):
    """The same claim, for as many examples as find what is rare."""
    compare(rows, options, share, edits, zone)


TOPICS = st.lists(
    st.fixed_dictionaries(
        {
            "code": st.one_of(PLAIN, PLAIN, TEXTS),
            "edited_at": MOMENTS,
            "sitemap_changefreq": st.sampled_from(["", "", "", "daily", "now"]),
            "sitemap_priority": st.sampled_from([None, None, None, 0, "0.50", "7"]),
        }
    ).map(lambda values: values | {"code": values["code"][:100]}),
    max_size=14,
    unique_by=lambda row: row["code"],
)


@pytest.mark.django_db
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=TOPICS,
    lastmod=st.sampled_from(["edited_at", dt.date(2024, 2, 29)]),
    priority=st.sampled_from([0.3, 7]),
    share=SHARES,
)
def test_rows_that_set_values_themselves_are_odd(rows, lastmod, priority, share):
    """Both ways give the same, whichever of them set one."""
    Topic.objects.all().delete()
    Topic.objects.bulk_create([Topic(**row) for row in rows], ignore_conflicts=True)
    options = {"location": Route("untyped", name="pk"), "lastmod": lastmod, "priority": priority}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pushdown, "MAX_ODD", share)
        assert require_equal(declare(queryset=Topic.objects.all(), **options))
