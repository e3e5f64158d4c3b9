"""Random methods: whatever is read as columns equals the method, byte for byte."""

import datetime as dt
import itertools
import linecache

import pytest
from django.urls import reverse
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering
from tests.factories import SITE, ShopFactory, declare
from tests.reading import proxy
from tests.testapp.models import Offer

TEXT = st.none() | st.text(st.sampled_from("aZ9Ä€'&<>\"% /.-_日\n"), max_size=5)
ROW = st.tuples(
    TEXT,
    st.none() | st.sampled_from([0, 1, 7]),
    st.none() | st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2030, 1, 1)),  # noqa: DTZ001
)

FIELDS = st.sampled_from(
    [
        *("self.slug", "self.pk", "self.id", "self.shop_id", "self.shop.slug", "self.shop.pk"),
        *("self.shop.id", "self.ends_at", "self.ends_at.year", "self.ends_at.month"),
        *("self.label", "self.path()", "self.kind", "self.pk", "self.slug", "self.nothing"),
    ]
)
TEXTS = st.sampled_from(['"a"', '"x/y"', '""', '"ü"'])
NAMES = st.sampled_from(["article", "page", "translated", "code", "even", "month", "many", "file"])


def _expressions(inner):
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map("str({})".format),
        inner.map("{}.lower()".format),
        inner.map("{}.strftime('%b-%d')".format),
        inner.map("f'/{{{}}}/'".format),
        pairs.map(lambda two: f"f'/{{{two[0]}}}-{{{two[1]!s}:>4}}/'"),
        pairs.map(lambda two: f"'/%s/%s/' % ({two[0]}, {two[1]})"),
        pairs.map(lambda two: "'/{}/{}/'.format(" + ", ".join(two) + ")"),
        pairs.map(" + ".join),
        pairs.map(" or ".join),
        st.tuples(inner, inner, inner).map(lambda three: "({} if {} else {})".format(*three)),
        st.tuples(inner, inner, inner).map(
            lambda three: "({} if {} == {} else None)".format(*three)
        ),
        st.tuples(NAMES, inner).map(lambda two: f"reverse({two[0]!r}, args=[{two[1]}])"),
        st.tuples(NAMES, inner).map(
            lambda two: f"reverse({two[0]!r}, kwargs={{'slug': {two[1]}}})"
        ),
        pairs.map(lambda two: f"reverse('city', args=['ch', {two[0]}, {two[1]}])"),
    )


EXPRESSION = st.recursive(FIELDS | TEXTS, _expressions, max_leaves=6)
METHOD = st.one_of(
    EXPRESSION.map("return {}".format),
    st.tuples(EXPRESSION, EXPRESSION).map(
        lambda two: f"if not {two[0]}:\n        return None\n    return {two[1]}"
    ),
    st.tuples(EXPRESSION, EXPRESSION).map(
        lambda two: f"found = {two[0]}\n    return '/' + str(found) + {two[1]}"
    ),
    st.tuples(EXPRESSION, EXPRESSION, EXPRESSION).map(
        lambda three: "found = {}\n    return {} if {} else found".format(*three)
    ),
)

number = itertools.count()


def function(body, name="url"):
    """Return a method with a source of its own."""
    text = f"def {name}(self):\n    {body}\n"
    file = f"<method {next(number)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    found = {"reverse": reverse}
    try:
        exec(compile(text, file, "exec"), found)
    except SyntaxError:  # Python 3.11 has no such quotes within an f-string.
        reject()
    return found[name]


class RandomMethods(TestCase):
    """Compares reading with calling."""

    read = 0

    def compare(self, body, rows):
        """Render a page both ways."""
        ids = [ShopFactory(slug=slug).pk for slug in ("shop", "ü", "")]
        for slug, place, moment in rows:
            ends_at = moment and moment.replace(tzinfo=dt.UTC)
            shop = None if place is None else [*ids, 999_999][min(place, 3)]
            Offer.objects.create(slug=slug, shop_id=shop, ends_at=ends_at)
        label = property(function("return self.slug", "label"))
        path = function("return f'/{self.shop.slug}/{self.pk}'", "path")
        url = function(body)
        model = proxy(Offer, get_absolute_url=url, label=label, path=path, kind="kind")
        found = []
        for as_columns in (True, False):
            with self.settings(
                SITEMAPKIT_METHODS_AS_COLUMNS=as_columns, ROOT_URLCONF="tests.reading.urlconfs"
            ):
                reader = declare(queryset=model.objects.all(), location=None)
                type(self).read += as_columns and not reader.reads_objects
                page = PageRendering(reader, EVERYTHING, Scope(SITE.origin))
                found.append((b"".join(page), page.problems.by_code()))
        assert found[0] == found[1]

    @given(METHOD, st.lists(ROW, max_size=6))
    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    def test_it_gives_the_same(self, body, rows):
        """A few examples."""
        self.compare(body, rows)

    @pytest.mark.thorough
    @given(METHOD, st.lists(ROW, max_size=6))
    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=5_000)
    def test_it_gives_the_same_for_many(self, body, rows):
        """Thousands, of which a good part is read as columns."""
        self.compare(body, rows)

    @classmethod
    def tearDownClass(cls):
        """Have the examples prove something."""
        super().tearDownClass()
        assert cls.read > 0
