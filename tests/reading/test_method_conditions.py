"""Each condition for reading a method as columns: without it, a wrong value would be listed."""

import sys

import django
import pytest
from django import urls
from django.contrib.sitemaps import GenericSitemap, Sitemap
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, models
from django.db.models import FilteredRelation, Prefetch, Q, Value
from django.db.models.base import ModelBase
from django.db.models.query import ModelIterable
from django.db.models.signals import post_init, pre_init
from django.test.utils import isolate_apps

from django_sitemapkit.contrib import sitemaps as dropin
from django_sitemapkit.reading import reader_of, why_not_as_text
from django_sitemapkit.sections import adapt_contrib
from tests import factories
from tests.factories import EPOCH, SITE, declare
from tests.reading import by_method, elsewhere, forms, function, given, proxy
from tests.testapp.models import Feature, Offer, Product, Shop, Tag, Voucher, Word

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def products():
    """Make two products and an article, of which each field has another value."""
    shop = factories.ShopFactory(slug="shop")
    for place, slug in enumerate(("a", "b")):
        product = factories.ProductFactory(
            shop=shop, slug=slug, note=f"note-{place}", updated_at=EPOCH, released_on=EPOCH.date()
        )
        product.tags.add(Tag.objects.create(name=f"tag-{place}"))
    factories.FeatureFactory(title="article")


def assert_called(reader, settings):
    """Check that a section lists what its methods return, since it calls them."""
    found, is_called = given(reader), reader.reads_objects
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert is_called


# --- The source

ARTICLE = "reverse('article', args=[self.pk])"
SOURCES = {
    "a local name": f"return {ARTICLE}\n    reverse = 1",
    "a local name of an inner function": f"return {ARTICLE}\n    reverse = lambda: reverse",
    "an import under another name": (
        f"from django.urls import reverse as other\n    return {ARTICLE}"
    ),
    "an import of a neighbour": f"from .elsewhere import reverse\n    return {ARTICLE}",
    "two imports of a name": (
        "from django.urls import reverse\n    from tests.reading.elsewhere import reverse\n"
        f"    return {ARTICLE}"
    ),
    "an import after its use": (
        f"url = {ARTICLE}\n    from django.urls import reverse\n    return url"
    ),
    "an import after a condition": (
        f"if {ARTICLE}:\n        return {ARTICLE}\n    from django.urls import reverse\n"
        "    return None"
    ),
    "an import in a branch": (
        f"if not self.slug:\n        from django.urls import reverse\n    return {ARTICLE}"
    ),
    "an import of another function": (
        f"from tests.reading.elsewhere import reverse\n    return {ARTICLE}"
    ),
    "an import that fails": f"from django.urls import no_such_name\n    return {ARTICLE}",
    "str() that is none": "return '/' + str(self.pk)",
    "int() that is str()": "return f'/{int(self.slug)}/'",
    "dict() that is none": "return reverse('article', kwargs=dict(pk=self.pk))",
}
NAMES = {
    "an import under another name": {"reverse": elsewhere.reverse},
    "an import of a neighbour": {"__package__": "tests.reading", "__name__": "tests.reading.x"},
    "str() that is none": {"str": None},
    "int() that is str()": {"int": str},
    "dict() that is none": {"dict": lambda **named: {"pk": 7}},
}


@pytest.mark.parametrize("case", SOURCES)
def test_a_name_is_what_it_is_in_the_method(settings, monkeypatch, case):
    """Not what it is in its module, or what it usually is."""
    monkeypatch.setitem(sys.modules, "elsewhere", urls)
    assert_called(by_method(function(SOURCES[case], **NAMES.get(case, {}))), settings)


PARAMETERS = {
    "one more": ("tab, obj", "return f'/{obj.pk}/'"),
    "one by keyword": ("obj, *, tab", "return f'/{obj.pk}/'"),
    "one by place": ("tab, /, obj", "return f'/{obj.pk}/'"),
    "none": ("", "return '/x/'"),
    "a name that it calls": ("reverse", "return reverse('home')"),
    "a name that it imports": (
        "reverse",
        "from tests.reading.elsewhere import reverse\n    return f'/{reverse.pk}/'",
    ),
}


@pytest.mark.parametrize(("parameters", "body"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_method_takes_the_object_alone(settings, parameters, body):
    """It raises if it takes more, or calls what is none."""
    location = function(body, parameters=f"self, {parameters}")
    assert_called(declare(queryset=Product.objects.all(), location=location), settings)
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = True
    assert_called(by_method(function(body, parameters=parameters)), settings)


def test_a_closure_has_names_of_its_own(settings):
    """They hide those of its module."""
    body = f"def url(self):\n        return {ARTICLE}\n    return url"
    assert_called(by_method(function(body, "make", "reverse")(elsewhere.reverse)), settings)


def test_of_two_functions_in_a_line_none_is_read(settings):
    """Which is which does not show."""
    one, other = (lambda self: f"/{self.slug}/"), (lambda self: f"/{self.note}/")
    assert one
    assert_called(by_method(other), settings)


def test_what_the_section_has_is_not_what_the_object_has(settings):
    """Though it has the same name."""
    location = function("return f'/{self.note}/{obj.pk}/'", parameters="self, obj")
    assert_called(
        declare(queryset=Product.objects.all(), location=location, note="section"), settings
    )


DOUBLED = "\n    ".join(f"a{n + 1} = a{n} + a{n}" for n in range(12))
BRANCHES = "\n    ".join(f"if self.note == '{n}':\n        a = '/{n}/'" for n in range(8))


@pytest.mark.parametrize(
    "body",
    [f"a0 = self.slug\n    {DOUBLED}\n    return a12", f"a = '/'\n    {BRANCHES}\n    return a"],
    ids=["doubled", "branches"],
)
def test_an_expression_has_an_end(settings, body):
    """Even if names stand for it many times, or conditions lead to it in many ways."""
    assert_called(by_method(function(body)), settings)


# --- Members of objects


class Upper(str):
    """Writes itself in capital letters."""

    __slots__ = ()

    def __str__(self):
        return self.upper()

    def __format__(self, spec):
        return self.upper()


MEMBERS = {
    "an attribute of a property": (
        "return f'/{self.day.year}/'",
        {"day": property(function("return self.released_on", "day"))},
    ),
    "an attribute of a constant": ("return f'/{self.kind.year}/'", {"kind": "x"}),
    "a constant of another class": ("return f'/{self.kind}/'", {"kind": Upper("x")}),
    "a method with an argument": ("return self.name(1)", {"name": forms.name}),
    "a method that takes more": (
        "return self.name()",
        {"name": function("return f'/{obj.pk}/'", "name", "tab, obj")},
    ),
    "a method of its own": ("return self.tail", {"tail": property(lambda self: self.tail)}),
    "a method of a value": ("return '/' + self.slug.title()", {}),
    "lazy text as an argument": ("return self.slug.replace('a', reverse_lazy('home'))", {}),
    "lazy text of a method": (
        "return self.slug.replace('a', self.tail())",
        {"tail": function("return reverse_lazy('home')", "tail")},
    ),
    "a mapping of arguments": ("return reverse('product', args={'a': 1, 'b': self.slug})", {}),
    "two kinds of arguments": (
        "return reverse('article', args=[self.pk], kwargs={'pk': self.pk})",
        {},
    ),
    "a list of named arguments": ("return reverse('article', kwargs=[self.pk])", {}),
    "an argument that is given twice": ("return reverse('article', [self.pk], args=[self.pk])", {}),
    "another URLconf": ("return reverse('article', 'tests.reading.urlconfs', [self.pk])", {}),
    "a name of a URL that is computed": ("return reverse(self.note or 'home')", {}),
    "an argument of each item": ("return reverse('article', args=[*[self.pk]])", {}),
}


@pytest.mark.parametrize(("body", "members"), MEMBERS.values(), ids=MEMBERS)
def test_a_member_is_what_it_is_of_the_object(settings, body, members):
    """And a call does what Python does."""
    rows = proxy(get_absolute_url=function(body), **members).objects.all()
    assert_called(declare(queryset=rows, location=None), settings)


SAME = {
    "no text": "return self.pk",
    "a call that raises": "return reverse('product', args=[self.slug, str(self.pk, errors='x')])",
    "a number of the source": "return reverse('product', args=[self.slug, 1e20])",
    "a truth of the source": "return reverse('product', args=[self.slug, True])",
    "what no database knows": "return reverse('product', args=[self.slug, ...])",
    "more than a database stores": f"return reverse('product', args=[self.slug, {2**70}])",
    "half a character": r"return reverse('product', args=[self.slug, '\ud800'])",
    "a text to quote behind a URL": "return reverse('article', args=[self.pk]) + 'ü?a=ö%'",
    "a slash behind a slash": "return reverse('home') + '/x'",
    "a fragment behind a URL": "return reverse('article', args=[self.pk]) + '#a'",
    "a dot behind a URL": "return reverse('article', args=[self.pk]) + '../x/'",
    "a query behind a URL": "return reverse('article', args=[self.pk]) + '?a=1&b=2'",
    "a format of a URL": "return reverse('article', args=[self.pk]) % 'x'",
    "a negative number": "return f'/{-self.pk}/{self.pk * 2}/'",
    "attributes of values": "return f'/{self.updated_at.year.real}/{self.pk.real}/'",
}


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
@pytest.mark.parametrize("options", [{}, {"i18n": True}], ids=["", "languages"])
def test_what_is_read_as_columns_is_what_the_method_gives(settings, body, options):
    """Each form as Python has it."""
    reader = by_method(function(body), **options)
    found, is_called = given(reader), reader.reads_objects
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert not is_called or options


def test_rows_that_are_not_read_by_key_are_given_to_methods(settings):
    """They are counted by position, and each is there as an object."""
    lastmod = function("return obj.updated_at", "lastmod", "self, obj")
    items = {"items": lambda self: Product.objects.order_by("pk")[:1], "lastmod": lastmod}
    reader = reader_of(adapt_contrib(type("Things", (Sitemap,), items))(SITE))
    assert not any(reader.methods.formulas_unless_called)
    assert "<lastmod>" in given(reader)[0]


def test_a_constant_follows_a_url_of_each_pattern(settings):
    """In each language, and behind one that is filled row by row."""
    settings.ROOT_URLCONF = "tests.reading.urlconfs"
    url = function("return reverse('old', kwargs={'slug': self.slug}) + '?a=1'")
    reader = by_method(url, i18n=True)
    found, is_called = given(reader), reader.reads_objects
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert "/viejo/a?a=1<" in found[0]
    assert not is_called


OF_CONTRIB = {
    "no text": (Sitemap, {"location": function("return obj.pk", "url", "self, obj")}),
    "a lastmod of its own": (
        GenericSitemap,
        {"lastmod": function("return obj.released_on", "lastmod", "self, obj")},
    ),
}


@pytest.mark.parametrize(("kind", "members"), OF_CONTRIB.values(), ids=OF_CONTRIB)
def test_a_class_of_contrib_gives_what_its_methods_give(settings, kind, members):
    """Not what its base has, and as text where contrib has text."""
    rows = {"queryset": Product.objects.all(), "date_field": "updated_at"}
    made = type("Things", (kind,), {"items": lambda self: rows["queryset"].all(), **members})
    sitemap = made(rows) if kind is GenericSitemap else made()
    reader = reader_of(adapt_contrib(sitemap)(SITE))
    found, is_called = given(reader), reader.reads_objects
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert not is_called


def test_the_newest_of_texts_is_that_of_python():
    """A database may have another order."""
    factories.words("a", "B")
    lastmod = function("return obj.text", "lastmod", "self, obj")
    items = {"items": lambda self: Word.objects.all(), "lastmod": lastmod}
    assert type("Words", (dropin.Sitemap,), items)().get_latest_lastmod() == "a"


def test_text_of_a_foreign_key_is_that_of_the_key():
    """An integer is read as text."""
    url = function("return reverse('article', args=[str(self.shop_id)])")
    assert why_not_as_text(by_method(url)) == ""


@pytest.mark.parametrize("body", ["return str('Daily')", "return obj.note"])
def test_a_changefreq_of_contrib_is_read_in_lower_case(settings, body):
    """Though its method returns text already, or a column as it is."""
    Product.objects.update(note="Daily")
    changefreq = function(body, "changefreq", "self, obj")
    items = {"items": lambda self: Product.objects.all(), "changefreq": changefreq}
    reader = reader_of(adapt_contrib(type("Things", (Sitemap,), items))(SITE))
    found = given(reader)
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert "<changefreq>daily<" in found[0]


@pytest.mark.parametrize("tag", ["changefreq", "priority"])
def test_a_date_is_no_other_tag(settings, tag):
    """Each row has the problem that it has if the method is called."""
    method = function("return obj.released_on", tag, "self, obj")
    reader = declare(queryset=Product.objects.all(), location=SLUG_OF, **{tag: method})
    found, is_called = given(reader), reader.reads_objects
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)
    assert not is_called


# --- Models

SLUG = function("return f'/{self.slug}/{self.pk}/'")


def _init(self, *args, **options):
    models.Model.__init__(self, *args, **options)
    self.slug = "init"


def _new(cls, *args, **options):
    found = object.__new__(cls)
    found.get_absolute_url = lambda: "/new/"
    return found


def _from_db(cls, *args, **options):
    found = models.Model.from_db.__func__(cls, *args, **options)
    found.slug = "from-db"
    return found


def _refresh(self, *args, **options):
    self.slug = "refreshed"


def _getattribute(self, name):
    return "got" if name == "slug" else object.__getattribute__(self, name)


def _setattr(self, name, value):
    object.__setattr__(self, name, "set" if name == "slug" else value)


HOOKS = {
    "__new__": _new,
    "__init__": _init,
    "__getattribute__": _getattribute,
    "__setattr__": _setattr,
    "from_db": classmethod(_from_db),
    "refresh_from_db": _refresh,
    "pk": property(lambda self: 7, lambda self, value: None),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_model_may_give_its_objects_other_values(settings, hook):
    """By each method that makes or reads them."""
    rows = proxy(get_absolute_url=SLUG, **{hook: HOOKS[hook]}).objects.defer("slug")
    if hook != "refresh_from_db":
        rows = rows.defer(None)
    key = "slug" if hook == "pk" else "pk"
    assert_called(declare(queryset=rows, location=None, key=key), settings)


def test_a_field_may_set_another(settings):
    """When Django gives an object the values of its row."""
    note = property(lambda self: "", lambda self, value: vars(self).update(slug="set"))
    rows = proxy(get_absolute_url=SLUG, note=note).objects.all()
    assert_called(declare(queryset=rows, location=None), settings)


def test_a_metaclass_may_make_the_objects(settings):
    """As one does that keeps them in memory."""

    class Kept(ModelBase):
        def __call__(cls, *args, **options):  # noqa: N805  of a metaclass
            found = super().__call__(*args, **options)
            found.slug = "kept"
            return found

    meta = type("Meta", (), {"proxy": True, "app_label": "testapp"})
    with isolate_apps("tests.testapp"):
        members = {"__module__": __name__, "Meta": meta, "get_absolute_url": SLUG}
        model = Kept("Kept", (Product,), members)
    assert_called(declare(queryset=model.objects.all(), location=None), settings)


@pytest.mark.parametrize("signal", [pre_init, post_init], ids=["pre_init", "post_init"])
@pytest.mark.parametrize("is_of_all", [True, False])
def test_a_signal_may_change_an_object(settings, signal, is_of_all):
    """By its fields, or by an argument for a property."""
    changed = property(lambda self: "", lambda self, value: setattr(self, "slug", value))
    model = proxy(get_absolute_url=SLUG, changed=changed)

    def change(sender, instance=None, kwargs=None, **options):
        if sender is model and instance is None:
            kwargs["changed"] = "changed"
        elif sender is model:
            instance.slug = "changed"

    signal.connect(change, sender=None if is_of_all else model)
    try:
        assert_called(declare(queryset=model.objects.all(), location=None), settings)
    finally:
        signal.disconnect(change, sender=None if is_of_all else model)


# --- Querysets


def _changed(rows):
    for row in rows._result_cache:
        row.slug = "changed"


class OwnFetch(models.QuerySet):
    """Changes its objects."""

    def _fetch_all(self):
        super()._fetch_all()
        _changed(self)


class OwnIter(models.QuerySet):
    """Changes its objects."""

    def __iter__(self):
        self._fetch_all()
        _changed(self)
        return iter(self._result_cache)


class OwnPrefetch(models.QuerySet):
    """Changes its objects."""

    def _prefetch_related_objects(self):
        _changed(self)
        self._prefetch_done = True


class OwnValues(models.QuerySet):
    """Reads other values than its objects have."""

    def values_list(self, *fields, **options):
        fields = [Value("value") if field == "slug" else field for field in fields]
        return super().values_list(*fields, **options)


class OwnIterable(ModelIterable):
    """Changes its objects."""

    def __iter__(self):
        for row in super().__iter__():
            row.slug = "changed"
            yield row


def _of_iterable(model):
    rows = model.objects.all()
    rows._iterable_class = OwnIterable
    return rows


def _others(names):
    return Prefetch("tags", Tag.objects.all(), to_attr=names)


QUERYSETS = {
    "_fetch_all": OwnFetch,
    "__iter__": OwnIter,
    "_prefetch_related_objects": lambda model: OwnPrefetch(model).prefetch_related("shop"),
    "values_list": OwnValues,
    "iterable": _of_iterable,
    "extra": lambda model: model.objects.extra(select={"kind": "'extra'"}),
    "annotation": lambda model: model.objects.annotate(kind=Value("annotated")),
    "aggregate": lambda model: model.objects.annotate(kind=models.Count("tags")),
    "annotated method": lambda model: model.objects.annotate(get_absolute_url=Value("/x/")),
    "prefetched under another name": lambda model: model.objects.prefetch_related(_others("kind")),
    "prefetched in the place of a method": lambda model: model.objects.prefetch_related(
        Prefetch("tags", to_attr="get_absolute_url")
    ),
    "prefetched others": lambda model: model.objects.prefetch_related(
        Prefetch("shop", Shop.objects.defer("slug").annotate(x=Value(1)).filter(pk=0))
    ),
    "selected by a condition": lambda model: model.objects.annotate(
        other=FilteredRelation("shop", condition=Q(shop__slug="no such shop"))
    ).select_related("other"),
    "fetched never": pytest.param(
        lambda model: model.objects.fetch_mode(models.FETCH_RAISE),
        marks=pytest.mark.skipif(django.VERSION < (6, 1), reason="Django 6.1 has fetch modes."),
    ),
}


@pytest.mark.parametrize("rows", QUERYSETS.values(), ids=QUERYSETS)
def test_a_queryset_may_give_its_objects_other_values(settings, rows):
    """By its own methods, and by what it sets."""
    url = function("return f'/{self.slug}/{self.kind}/{self.shop.slug}/'")
    model = proxy(get_absolute_url=url, kind="kind")
    assert_called(declare(queryset=rows(model), location=None), settings)


def test_select_related_may_leave_out_rows(settings):
    """Those without the other object, if the field does not allow that."""
    Voucher.objects.create(offer=Offer.objects.create(slug="a"))
    Voucher.objects.create(offer_id=999)
    by_key = function("return f'/{obj.pk}/'", "location", "self, obj")
    rows = Offer.objects.select_related("shop")
    assert not declare(queryset=rows, location=by_key).reads_objects
    rows = Voucher.objects.select_related("offer")
    for others in (rows, rows.filter(offer_id__gte=0)):
        settings.SITEMAPKIT_METHODS_AS_COLUMNS = True
        assert_called(declare(queryset=others, location=by_key), settings)


def test_select_related_sets_a_filtered_relation(settings):
    """In the place of a constant."""
    Offer.objects.create(slug="a", shop=Shop.objects.get())
    url = function("return f'/{self.kind}/{self.pk}/'")
    rows = proxy(Offer, get_absolute_url=url, kind="kind").objects.annotate(
        kind=FilteredRelation("shop", condition=Q(shop__slug="shop"))
    )
    assert_called(declare(queryset=rows.select_related("kind"), location=None), settings)


def test_a_relation_that_is_selected_and_deferred_is_named_when_rows_are_read():
    """With the section."""
    location = function("return f'/{obj.slug}/'", "location", "self, obj")
    rows = Offer.objects.only("slug").select_related("shop")
    with pytest.raises(ImproperlyConfigured, match="'things': Field"):
        given(declare(queryset=rows, location=location))


def test_an_annotation_is_not_of_a_related_object():
    """Though it has the name of its field."""
    url = function("return f'/{self.offer.slug}/{self.pk}/'")
    rows = proxy(Voucher, get_absolute_url=url).objects.annotate(slug=Value("annotated"))
    assert not declare(queryset=rows, location=None).reads_objects


def test_rows_of_an_object_have_that_object(settings):
    """As it is in memory."""
    shop = Shop.objects.get()
    shop.slug = "unsaved"
    rows = shop.product_set.all()
    location = function("return f'/{obj.shop.slug}/{obj.pk}/'", parameters="self, obj")
    assert_called(declare(queryset=rows, location=location), settings)


# --- Relations


def test_a_parent_has_what_the_child_has(settings):
    """Django makes it of the child's values."""
    own = property(lambda self: "own", lambda self, value: vars(self).update(title=value))
    url = function("return f'/{self.article_ptr.title}/{self.pk}/'")
    rows = proxy(Feature, get_absolute_url=url, title=own).objects.all()
    assert_called(declare(queryset=rows, location=None), settings)


class Filtered(models.ForeignKey):
    """Finds some objects only."""

    def get_extra_descriptor_filter(self, instance):
        return {"slug": "other"}


class Restricted(models.ForeignKey):
    """Joins some rows only."""

    def get_extra_restriction(self, alias, related_alias):
        return Shop.objects.filter(slug="other").query.where


class Joined(models.ForeignKey):
    """Joins rows by other columns."""

    def get_joining_fields(self, reverse_join=False):
        return ((self.model._meta.pk, self.foreign_related_fields[0]),)


def with_relation(relation):
    """Return a model of offers that leads to shops by another field."""
    meta = type("Meta", (), {"app_label": "testapp", "db_table": "testapp_offer"})
    members = {"slug": models.CharField(max_length=50), "shop": relation, "Meta": meta}
    members["get_absolute_url"] = function("return f'/{self.shop.slug}/{self.slug}/'")
    with isolate_apps("tests.testapp"):
        return type("Offers", (models.Model,), {"__module__": "tests.testapp.models", **members})


@pytest.mark.parametrize("kind", [Filtered, Restricted, Joined])
def test_a_foreign_key_may_find_its_object_in_its_own_way(settings, kind):
    """Not as a join does."""
    shop = Shop.objects.get()
    offer = Offer.objects.create(shop=shop, slug="a")
    Shop.objects.create(pk=offer.pk + 1000, slug="other")
    Offer.objects.create(pk=offer.pk + 1000, shop=shop, slug="b")
    model = with_relation(kind(Shop, models.DO_NOTHING))
    assert_called(declare(queryset=model.objects.all(), location=None), settings)


def test_a_relation_by_other_fields_is_followed_by_the_object(settings):
    """It is no foreign key."""
    Offer.objects.create(shop=Shop.objects.get(), slug="shop")
    relation = models.ForeignObject(Shop, models.DO_NOTHING, ["slug"], ["slug"])
    assert_called(declare(queryset=with_relation(relation).objects.all(), location=None), settings)


class Others(models.Manager):
    """Finds other objects."""

    def get_queryset(self):
        return super().get_queryset().exclude(slug="shop")


def test_a_base_manager_may_not_find_an_object(settings):
    """Though it is there."""
    Offer.objects.create(shop=Shop.objects.get(), slug="a")
    meta = {"app_label": "testapp", "db_table": "testapp_shop", "base_manager_name": "others"}
    members = {"slug": models.SlugField(), "others": Others(), "Meta": type("Meta", (), meta)}
    with isolate_apps("tests.testapp"):
        members["__module__"] = "tests.testapp.models"
        shops = type("Shops", (models.Model,), members)
        model = with_relation(models.ForeignKey(shops, models.DO_NOTHING))
    assert_called(declare(queryset=model.objects.all(), location=None), settings)


def test_a_base_manager_may_not_find_the_row_itself(settings):
    """It reads a field that was deferred."""
    meta = {"app_label": "testapp", "db_table": "testapp_shop", "base_manager_name": "others"}
    members = {"slug": models.SlugField(), "others": Others(), "objects": models.Manager()}
    with isolate_apps("tests.testapp"):
        members |= {"__module__": "tests.testapp.models", "Meta": type("Meta", (), meta)}
        shops = type("Shops", (models.Model,), {**members, "get_absolute_url": SLUG})
    rows = shops.objects.defer("slug")
    assert_called(declare(queryset=rows, location=None), settings)


# --- Options and what is read

OPTIONS = {
    "images": {"images": function("return '/x.png'", "images", "self, obj")},
    "entries": {"entries": function("return obj.slug", "entries", "self, obj")},
    "a constant that is refused": {"priority": function("return 7", "tag", "self, obj")},
    "a constant in another case": {"changefreq": function("return 'Daily'", "tag", "self, obj")},
    "a constant in the future": {
        "lastmod": function("return '2999-01-01'", "tag", "self, obj"),
    },
    "a constant that raises": {"priority": function("return int('x')", "tag", "self, obj")},
    "a tag by reverse()": {"changefreq": function("return reverse('home')", "tag", "self, obj")},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_other_options_are_called(settings, options):
    """They may return anything, or differ by language."""
    location = {} if "entries" in options else {"location": SLUG_OF}
    assert_called(declare(queryset=Product.objects.all(), **options, **location), settings)


SLUG_OF = function("return f'/{obj.slug}/'", "location", "self, obj")


def test_a_lastmod_of_a_related_row_is_no_column_of_the_row(settings):
    """A row without one would be left out."""
    Offer.objects.create(slug="a")
    lastmod = function("return obj.shop.slug and obj.ends_at", "lastmod", "self, obj")
    reader = declare(queryset=Offer.objects.all(), location=SLUG_OF, lastmod=lastmod)
    found = given(reader)
    settings.SITEMAPKIT_METHODS_AS_COLUMNS = False
    assert found == given(reader)


def test_the_zone_of_the_connection_is_part_of_what_is_declared(monkeypatch):
    """Moments have other texts in another zone, and pages are rendered again."""
    reader = by_method(function("return f'/{self.updated_at}/'"))
    before = reader.declaration_text()
    monkeypatch.setitem(connections["default"].__dict__, "timezone_name", "Asia/Tokyo")
    assert type(reader)(reader.options).declaration_text() != before


@pytest.mark.parametrize("ones", [(1, True), (1, "1"), (0, False), (None, "None")])
def test_constants_of_another_type_are_another_method(ones):
    """Pages of the other are not reused."""
    readers = [
        by_method(function("return f'/{self.kind}/{self.pk}/'"), proxy(kind=one)) for one in ones
    ]
    one, other = (reader.methods.formulas_or_reasons["location"].text for reader in readers)
    assert one != other
