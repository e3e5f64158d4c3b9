"""Random methods of random models: what is read as columns equals the method, byte for byte."""

import random
from dataclasses import dataclass
from functools import cache

import pytest
from django.conf import settings as django_settings
from django.contrib import sitemaps
from django.core.files.storage import storages
from django.db import transaction
from django.db.models import Prefetch, Value
from django.test import RequestFactory, override_settings
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from django_sitemapkit import Section, StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.contrib import sitemaps as dropin
from django_sitemapkit.contrib.sitemaps import views
from django_sitemapkit.mixins import section_class_for
from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests import urls
from tests.builds import manifest, xml
from tests.factories import SITE
from tests.reading import function, urlconfs
from tests.reading.random_models import HOOKED, POOL, REFUSED, fill, tables


class Urls:
    """The URLs of all forms, and those of the package."""

    urlpatterns = [*urlconfs.urlpatterns, *urls.urlpatterns]


# Expressions

DATES = {"date", "moment"}
NAMES = st.sampled_from(["article", "page", "translated", "code", "even", "month", "many", "file"])
CONSTANTS = ['"a"', '"x/y"', '""', '"ü"', "1", "0.5", "True", "None"]
ODD = [
    *("slugify(self.slug)", "self.slug[0]", "len(self.slug)", "self", "self.nothing"),
    *("[self.pk][0]", "self.slug.title()", "self.objects", "(lambda: self.slug)()"),
]
"""What is never proven."""


@cache
def members(model, depth=2):
    """Return the attributes of a model's objects that are proven, and those that are not."""
    proven = {"pk", "label", "path()", "kind"}
    others = set()
    for field in model._meta.concrete_fields:
        (others if field.name in REFUSED else proven).add(field.attname)
        if field.name in DATES:
            proven |= {f"{field.name}.year", f"{field.name}.month", f"{field.name}.isoformat()"}
        relation = field.remote_field
        if relation is not None and depth:
            inner, refused = members(relation.model, depth - 1)
            is_proven = not relation.parent_link and relation.model not in HOOKED
            for one in (*inner, *refused):
                # That a related object has a constant does not show that there is one.
                is_read = is_proven and one in inner and not one.endswith(("kind", "path()"))
                (proven if is_read else others).add(f"{field.name}.{one}")
    return sorted(proven), sorted(others)


@cache
def expressions(model, *, is_odd):
    """Return random expressions of a model's objects."""
    proven, others = members(model)
    leaves = st.sampled_from([f"self.{one}" for one in proven]) | st.sampled_from(CONSTANTS)
    if is_odd:
        leaves |= st.sampled_from([*ODD, *(f"self.{one}" for one in others)])
    return st.recursive(leaves, _expressions, max_leaves=6)


def _expressions(inner):
    pairs, threes = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    return st.one_of(
        inner.map("str({})".format),
        inner.map("int({})".format),
        inner.map("str({}).lower()".format),
        inner.map("{}.strftime('%b-%d')".format),
        inner.map("f'''/{{{}}}/'''".format),
        inner.map("f'''/{{{}!r:>4}}/'''".format),
        pairs.map(lambda two: f"f'''/{{{two[0]}}}-{{{two[1]!s}:>4}}/'''"),
        pairs.map(lambda two: f"'/%s/%s/' % ({two[0]}, {two[1]})"),
        pairs.map(lambda two: "'/{}/{}/'.format(" + ", ".join(two) + ")"),
        pairs.map(lambda two: "({} + {})".format(*two)),
        pairs.map(lambda two: "({} or {})".format(*two)),
        pairs.map(lambda two: "({}, {})[1]".format(*two)),
        threes.map(lambda three: "({} if {} else {})".format(*three)),
        threes.map(lambda three: "({} if {} == {} else None)".format(*three)),
        st.tuples(NAMES, inner).map(lambda two: f"reverse({two[0]!r}, args=[{two[1]}])"),
        st.tuples(NAMES, inner).map(lambda two: f"reverse_lazy({two[0]!r}, args=[{two[1]}])"),
        st.tuples(NAMES, inner).map(
            lambda two: f"reverse({two[0]!r}, kwargs={{'slug': {two[1]}}})"
        ),
        st.tuples(NAMES, inner).map(lambda two: f"reverse({two[0]!r}, args={{'slug': {two[1]}}})"),
        pairs.map(lambda two: f"reverse('city', args=['ch', {two[0]}, {two[1]}])"),
        pairs.map(lambda two: f"reverse('product', kwargs=dict(shop={two[0]}, slug={two[1]}))"),
    )


@cache
def bodies(model, *, is_odd):
    """Return random statements of methods."""
    inner = expressions(model, is_odd=is_odd)
    pairs, threes = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    urls = [
        "reverse('article', args=[self.pk])",
        "reverse('file', args=[str(self.pk)])",
        "reverse('code', kwargs={'code': 'AB', 'slug': self.slug}) + '?a=1&b=2'",
        "reverse('page', kwargs={'slug': self.slug})",
        "f'/{self.slug}/{self.pk}/'",
    ]
    return st.one_of(
        st.sampled_from(urls).map("return {}".format),
        inner.map("return {}".format),
        inner.map("return f'''/{{{}}}/'''".format),
        inner.map("return reverse('many', args=[{}])".format),
        inner.map("return reverse('translated', kwargs={{'slug': str({})}})".format),
        inner.map("from django.urls import reverse\n    return reverse('file', args=[{}])".format),
        pairs.map(lambda two: "if not {}:\n        return None\n    return {}".format(*two)),
        pairs.map(lambda two: "found = {}\n    return '/' + str(found) + {}".format(*two)),
        threes.map(lambda three: "found = {}\n    return {} if {} else found".format(*three)),
    )


@cache
def dates(model):
    """Return the members of a model's objects that are dates, or nearly."""
    proven, _ = members(model)
    found = [one for one in proven if one.rpartition(".")[2] in DATES]
    return st.sampled_from(["slug", *found, *found])


# Sections


@dataclass
class Example:
    """A section of some kind over the rows of a model, by the sources of its methods."""

    kind: str
    model: type
    is_odd: bool
    location: str
    is_of_model: bool
    tags: dict
    options: dict
    change: str
    seed: int


LANGUAGES = [
    *[{}] * 5,
    {"i18n": True},
    {"i18n": True, "alternates": True, "x_default": True},
    {"i18n": True, "languages": ["es", "en"], "alternates": True},
]
KINDS = ["section", "mixin", "contrib", "generic", "drop-in", "generic drop-in"]
PLAIN = {
    "as they are": lambda rows, relations: rows.all(),
    "some": lambda rows, relations: rows.exclude(slug="9"),
    "deferred": lambda rows, relations: rows.defer("slug"),
    "prefetched": lambda rows, relations: rows.prefetch_related(*relations),
    # Without a constraint, this leaves out rows that lead nowhere.
    "joined": lambda rows, relations: rows.select_related(
        *([name for name, one in relations.items() if one.null or one.db_constraint] or [None])
    ),
}
CHANGED = {
    "of other objects": lambda rows, relations: rows.prefetch_related(
        *(Prefetch(name, _others(field)) for name, field in relations.items())
    ),
    "of other names": lambda rows, relations: rows.prefetch_related(
        *(Prefetch(name, to_attr="kind") for name in [*relations][:1])
    ),
    "annotated": lambda rows, relations: rows.annotate(kind=Value("annotated")),
    "extra": lambda rows, relations: rows.extra(select={"kind": "'extra'"}),
}
"""Querysets whose objects have other values than their fields."""


def _others(field):
    """Return other objects for a foreign key than it leads to."""
    return field.remote_field.model.objects.exclude(slug="a")


def relations_of(model):
    """Return the foreign keys of a model by name."""
    return {
        field.name: field
        for field in model._meta.concrete_fields
        if field.remote_field is not None and not field.remote_field.parent_link
    }


@st.composite
def examples(draw):
    """Return a random section."""
    model = draw(st.sampled_from(POOL))
    kind, is_odd = draw(st.sampled_from(KINDS)), draw(st.integers(0, 3)) == 0
    tags = {
        "lastmod": st.tuples(st.just("self"), dates(model)).map("return {0[0]}.{0[1]}".format),
        "changefreq": st.sampled_from(
            ["return 'daily'", "return 'Daily' if self.slug else None", "return self.slug"]
        ),
        "priority": st.sampled_from(
            ["return 0.5", "return 0.2 if self.slug else 1", "return self.pk"]
        ),
    }
    chosen = draw(st.sets(st.sampled_from(list(tags)), max_size=2))
    return Example(
        kind,
        model,
        is_odd,
        draw(bodies(model, is_odd=is_odd)),
        draw(st.booleans()),
        {tag: draw(tags[tag]) for tag in sorted(chosen)},
        draw(st.sampled_from(LANGUAGES)) | draw(st.sampled_from([{}, {"limit": 2}])),
        draw(st.sampled_from([*PLAIN, *CHANGED] if is_odd else [*PLAIN])),
        draw(st.integers(0, 99)),
    )


def declared(example):
    """Return a section, or a class or an instance of contrib or the drop-in."""
    change = (PLAIN | CHANGED)[example.change]
    rows = change(example.model.objects, relations_of(example.model))
    methods = {
        tag: function(body.replace("self", "obj"), tag, "self, obj")
        for tag, body in example.tags.items()
    }
    members = {**methods, **example.options, "name": "things", "__module__": __name__}
    if not example.is_of_model:
        own = function(example.location.replace("self", "obj"), "location", "self, obj")
        members["location"] = own
    match example.kind:
        case "section":
            return type("Things", (Section,), {**members, "queryset": rows})
        case "mixin":
            get_queryset = {"get_queryset": lambda self: rows.all()}
            return section_class_for(
                example.model, type("Sitemap", (), {**members, **get_queryset})
            )
    module = sitemaps if "drop-in" not in example.kind else dropin
    if "generic" not in example.kind:
        return type("Things", (module.Sitemap,), {**members, "items": lambda self: rows.all()})
    found = type(
        "Things", (module.GenericSitemap,), {**members, "lastmod": module.GenericSitemap.lastmod}
    )
    date = next((one for one in sorted(DATES) if hasattr(example.model, one)), "slug")
    dated = {"queryset": rows, "date_field": date if "lastmod" in methods else None}
    return found(dated, priority=0.3, changefreq="Weekly")


class Home(StaticSection):
    """What is listed whatever a random section lists."""

    items = ("home",)


STORAGE = {"BACKEND": "tests.builds.storages.Memory"}


@override_settings(ROOT_URLCONF=Urls, STORAGES={**django_settings.STORAGES, "sitemaps": STORAGE})
class RandomMethods(TestCase):
    """Compares reading with calling."""

    compared = read = built = 0
    """How many there were; how many read as columns, and of those how many built."""

    @classmethod
    def setUpClass(cls):
        """Make the tables before the class's transaction."""
        cls._tables = tables()
        cls._tables.__enter__()
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        """Have the examples prove something."""
        super().tearDownClass()
        cls._tables.__exit__(None, None, None)
        if cls.compared >= 100:
            assert 5 * cls.read >= cls.compared, f"{cls.read} of {cls.compared} are columns"
            assert cls.built > cls.compared // 20

    def compare(self, example):
        """Render the pages of a section in both ways."""
        try:
            url = function(example.location)
            section = declared(example)
        except SyntaxError:  # Python 3.11 has no such quotes within an f-string.
            reject()
        fill(example.model, random.Random(example.seed))
        example.model.get_absolute_url = url
        try:
            called = self.rendered(section, example, as_columns=False)
            as_columns = self.rendered(section, example, as_columns=True)
        finally:
            del example.model.get_absolute_url
        assert as_columns == called

    def rendered(self, section, example, *, as_columns):
        """Return what a section gives: live, or built."""
        with self.settings(SITEMAPKIT_METHODS_AS_COLUMNS=as_columns):
            is_ours = isinstance(section, type) and issubclass(section, Section)
            reader = reader_of((section if is_ours else adapt_contrib(section, "things"))(SITE))
            is_built = example.seed % 4 == 0
            if as_columns:
                type(self).compared += 1
                type(self).read += not reader.reads_objects
                type(self).built += is_built and not reader.reads_objects
                assert reader.method_difference(EVERYTHING) == ""
            else:
                assert reader.reads_objects
            if is_built:
                return _built(section)
            if "drop-in" in example.kind:
                request = RequestFactory().get("/old.xml", secure=True)
                response = views.sitemap(request, {"things": section})
                return response.getvalue(), response.headers.get("Last-Modified")
            page = PageRendering(reader, EVERYTHING, Scope(SITE.origin))
            return b"".join(page), page.problems.by_code()

    @pytest.mark.slow
    @given(examples())
    def test_it_gives_the_same(self, example):
        """A few examples."""
        self.compare(example)


def many(part):
    """Return a test of a part of the examples, for a processor of its own.

    The thorough run has two hundred of them, other ones each time; `exhaustive` has thousands.
    """

    def test(self, example):
        """A good part is read as columns."""
        self.compare(example)

    test.__name__ = f"test_it_gives_the_same_for_many_{part}"  # By which its examples differ.
    more = settings(max_examples=2 * settings.default.max_examples)
    return pytest.mark.thorough(more(given(examples())(test)))


for part in range(5):
    setattr(RandomMethods, f"test_it_gives_the_same_for_many_{part}", many(part))


def _built(section):
    """Return the pages of a section that a build stores, and their problems."""
    with registry.isolated() as sections, transaction.atomic():
        sections.add_all({"things": section, "home": Home})
        build(SITE)
        found = {
            number: (row.problems, xml(storages["sitemaps"], row) if row.name else b"")
            for (name, number), row in manifest().items()
            if name == "things"
        }
        transaction.set_rollback(True)
    return found
