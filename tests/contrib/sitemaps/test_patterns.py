"""What real projects do with contrib's classes: listed the same, or refused with the way out.

Each pattern of ``patterns`` is made with the classes of contrib and with those of the drop-in.
"""

import datetime as dt
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.views.decorators.cache import cache_page

from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.validation import mistakes_of
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sections import adapt_contrib
from tests import factories
from tests.cases import few
from tests.contrib.sitemaps.comparing import BASE, asked, entries_of, paths_of
from tests.contrib.sitemaps.patterns import AS_THEY_ARE, BY_DROP_IN, EVERY, ProductPaths
from tests.factories import EPOCH, SITE
from tests.testapp.models import Place, Product, Shop, Tag, Topic

pytestmark = [
    pytest.mark.django_db,
    # Contrib warns of querysets without an order, which most projects have.
    pytest.mark.filterwarnings("ignore::django.core.paginator.UnorderedObjectListWarning"),
]


@pytest.fixture
def rows(settings):
    """Store rows of all kinds."""
    settings.LANGUAGE_CODE = "en"
    shop = factories.ShopFactory()
    tags = [Tag.objects.create(name=name) for name in ("red", "blue")]
    for n in range(5):
        product = factories.ProductFactory(
            shop=shop, slug=f"p{n}", public=n != 3, rank=n / 10, note=f"p{n - 1}" if n % 2 else ""
        )
        product.updated_at = EPOCH + dt.timedelta(days=n)
        product.save()
        product.tags.set(tags[: n % 3])
    for n in range(4):
        factories.ArticleFactory(
            title=f"Article {n}", published=n != 2, edited_at=EPOCH + dt.timedelta(days=20 * n)
        )
    factories.FeatureFactory(title="Feature")
    Topic.objects.bulk_create(Topic(code=code) for code in ("0001", "00010001", "000100010002"))
    factories.TokenFactory.create_batch(3)
    factories.ReadingFactory.create_batch(3)
    for slug in ("kyoto", "nara"):
        place = Place.objects.create(slug=slug, slug_en=slug, slug_es=f"{slug}-es", slug_fr="")
        for code in ("en", "es"):
            place.translations.create(language_code=code, slug=f"{slug}-{code}")


def as_it_is(sitemap):
    """Return what all our pages of an old class list, sorted, and their problems."""
    instance = sitemap() if callable(sitemap) else sitemap
    section = reader_of(adapt_contrib(instance, "all")(SITE))
    found, problems = set(), []
    for page in pages_with_rows(section):
        rendering = PageRendering(section, page.keys, SITE.scope())
        if document := b"".join(rendering):
            found |= set(entries_of(document))
        problems += rendering.problems.examples
    return sorted(found, key=repr), problems


def once(entries):
    """Return entries without those that come again, in the order of ``as_it_is``."""
    return sorted(set(entries), key=repr)


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_it_lists_what_contrib_lists_as_it_is(rows, kits, name):
    """Registered, without a change: the same URLs with the same values, each once."""
    contrib, _ = kits
    declare = AS_THEY_ARE[name]
    expected = contrib.entries(declare(contrib))
    assert bool(expected) == (name != "nothing at all")
    found, problems = as_it_is(declare(contrib))
    assert found == once(expected)
    assert {problem.code for problem in problems} <= {"duplicate-url"}
    assert len(problems) == len(expected) - len(once(expected)) or "join" in name


@pytest.mark.parametrize("name", EVERY)
def test_it_lists_what_contrib_lists_with_the_drop_in(rows, kits, name):
    """With the import changed: the same documents but for the order, what comes twice as well."""
    contrib, ours = kits
    declare = EVERY[name]
    expected = contrib.entries(declare(contrib))
    found = ours.entries(declare(ours))
    assert found == (once(expected) if "join" in name else expected)


@pytest.mark.parametrize("name", few(12, AS_THEY_ARE))
def test_its_pages_have_the_same_headers(rows, kits, name):
    """Those of contrib's first page, where it has the same rows."""
    for options in ({}, {"limit": 50}):
        expected, found = (
            kit.sitemap({"all": limited(AS_THEY_ARE[name](kit), **options)}) for kit in kits
        )
        headers = {header: expected.headers[header] for header in expected.headers}
        if options:
            assert headers.items() <= dict(found.headers).items()
        assert set(found.headers) - set(headers) <= {"Vary", "Last-Modified"}


def limited(sitemap, **options):
    """Return a sitemap as an instance, with some options changed."""
    instance = sitemap() if callable(sitemap) else sitemap
    vars(instance).update(options)
    return instance


OTHER_PAGES = {
    "a join that repeats rows",
    "languages beyond those of the class",
    "languages of each item",
    "translations of parler",
}
"""What contrib counts row by row, or pair by pair; the items of a page are counted here."""


@pytest.mark.parametrize("name", few(12, AS_THEY_ARE))
def test_its_index_is_that_of_contrib(rows, kits, name, settings):
    """The same addresses and the same lastmod."""
    settings.ROOT_URLCONF = "tests.contrib.sitemaps.urls"
    found = []
    for kit in kits:
        response = kit.index({"all": AS_THEY_ARE[name](kit)})
        found.append((response.content.split(), response.headers.get("Last-Modified")))
    (old, old_modified), (new, new_modified) = found
    assert new_modified == old_modified
    assert b"".join(new) == b"".join(old) or name in OTHER_PAGES


@pytest.mark.parametrize("name", BY_DROP_IN)
def test_what_is_not_called_as_it_is_is_named(rows, kits, name):
    """The check of a registered class names what its pages would not have."""
    for kit in kits:
        reader = reader_of(adapt_contrib(BY_DROP_IN[name](kit), "all")(SITE))
        assert any("which is not called" in one.message for one in mistakes_of(reader))


def test_most_patterns_work():
    """Of the kinds that were found in projects."""
    assert len(EVERY) >= 45


# What contrib lists wrong


def one(kit, location, **options):
    """Return a sitemap of one item."""
    body = {"items": lambda self: ["x"], "location": lambda self, item: location, **options}
    return type("One", (kit.Sitemap,), body)


BETTER = {
    "a space and letters": ("/a b/ñ", f"/{quote('a b')}/{quote('ñ')}"),
    "the site's own URL": (f"{BASE}/absolute/", "/absolute/"),
    "no URL": (None, None),
    "another host": ("https://cdn.example.com/a/", None),
    "no slash": ("about/", None),
}


@pytest.mark.parametrize("name", BETTER)
def test_a_location_that_contrib_lists_wrong(kits, kit, name, caplog):
    """It is listed right, or named in the log with the way out; None is no URL and no problem."""
    contrib, _ = kits
    location, path = BETTER[name]
    contrib_entries = contrib.entries(one(contrib, location))
    expected = [path] if path else []
    assert [entry[0].removeprefix(BASE) for entry in contrib_entries] != expected
    kit.activate()
    assert paths_of(kit.sitemap({"all": one(kit, location)}).content) == expected
    assert bool(caplog.text) == (path is None and location is not None)
    found, problems = as_it_is(one(contrib, location))
    assert [entry[0].removeprefix(BASE) for entry in found] == expected
    assert bool(problems) == bool(caplog.text)


def test_mixed_lastmods_and_generators_work(kits):
    """Contrib fails on both."""
    contrib, ours = kits

    def declare(kit):
        class Pages(kit.Sitemap):
            def items(self):
                return (path for path in ("/a/", "/b/"))

            def location(self, path):
                return path

            def lastmod(self, path):
                return EPOCH if path == "/a/" else EPOCH.date() + dt.timedelta(days=1)

        return Pages

    with pytest.raises(TypeError):
        contrib.entries(declare(contrib))
    assert [entry[:2] for entry in ours.entries(declare(ours))] == [
        (f"{BASE}/a/", "2024-02-29"),
        (f"{BASE}/b/", "2024-03-01"),
    ]
    assert [entry[:2] for entry in as_it_is(declare(contrib))[0]] == [
        (f"{BASE}/a/", "2024-02-29"),
        (f"{BASE}/b/", "2024-03-01"),
    ]


# What is refused


def raising(self):
    """Fail as a query for a table that is not there does."""
    raise LookupError("no such thing")


REFUSED = {
    "a dict": (lambda self: {"/a/": 1}, "Use a list of its keys or values"),
    "a set": (lambda self: {"/a/"}, "Use a list, such as sorted(items)"),
    "items that raise": (raising, "Let raising() work whenever it is called"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_the_way_out(kits, kit, name):
    """Contrib fails, too; here the error names the section."""
    contrib, _ = kits
    items, way_out = REFUSED[name]
    with pytest.raises((TypeError, KeyError, LookupError)):
        contrib.entries(one(contrib, "/a/", items=items))
    kit.activate()
    for ask in (
        lambda: kit.sitemap({"all": one(kit, "/a/", items=items)}),
        lambda: as_it_is(one(contrib, "/a/", items=items)),
    ):
        with pytest.raises(ImproperlyConfigured) as error:
            ask()
        assert "Section 'all'" in str(error.value)
        assert way_out in str(error.value)


def test_a_limit_beyond_the_protocol_is_capped(kit):
    """Search engines refuse the file that contrib writes."""
    items = [f"/{number}/" for number in range(50_001)]
    listed = one(kit, "/a/", items=lambda self: items, limit=60_000)
    document = b"".join(kit.sitemap({"all": listed}).streaming_content)
    assert document.count(b"<loc>") == 50_000


# Views of the project


@pytest.mark.slow
def test_sitemaps_of_each_request(rows, kits):
    """A view that makes the dict for a tenant, a shop or a host, and passes it on."""
    expected, found = [], []
    for kit, listed in zip(kits, (expected, found), strict=True):

        class OfTenant(ProductPaths, kit.Sitemap):
            def __init__(self, public):
                self.public = public

            def items(self):
                return Product.objects.filter(public=self.public).order_by("pk")

        def view(request, kit=kit, of_tenant=OfTenant):
            sitemaps = {"all": of_tenant(public=request.headers["x-tenant"] == "public")}
            return kit.views.sitemap(request, sitemaps)

        for tenant in ("public", "private", "public"):
            kit.activate()
            response = view(asked("/sitemap.xml", {"x-tenant": tenant}))
            listed.append(paths_of(getattr(response, "render", lambda r=response: r)().content))
    assert found == expected
    assert found[0] == found[2] != found[1]


@override_settings(CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}})
def test_cache_page_keeps_a_document(rows, kits):
    """As with contrib, the second reader gets what the first one got."""
    for kit in kits:
        kit.activate()
        view = cache_page(60, key_prefix=kit.views.__name__)(kit.views.sitemap)
        sitemaps = {"all": AS_THEY_ARE["values"](kit)}
        first = view(asked("/sitemap.xml"), sitemaps)
        first = first.render() if hasattr(first, "render") else first
        Product.objects.create(shop=Shop.objects.first(), slug=f"new-{kit.views.__name__}")
        assert view(asked("/sitemap.xml"), sitemaps).content == first.content


NEWS = """<urlset>{% spaceless %}{% for url in urlset %}<url><loc>{{ url.location }}</loc>
<news>{{ url.item.slug }} {{ url.lastmod|date:"c" }} {{ url.priority }} {{ url.changefreq }}</news>
{% for image in url.images %}<image>{{ image }}</image>{% endfor %}
{% for version in url.alternates %}<link>{{ version.lang_code }} {{ version.location }}</link>
{% endfor %}{% if forloop.last %}<last/>{% endif %}</url>{% endfor %}{% endspaceless %}
</urlset>"""


@pytest.mark.parametrize("name", ["generic", "entries with images", "x default"])
def test_own_templates_get_the_same(rows, kits, template, name):
    """News, images, links: byte for byte what contrib makes of the template."""
    store = template("news.xml", NEWS)
    bodies = [kit.sitemap({"all": EVERY[name](kit)}, template_name=store).content for kit in kits]
    assert bodies[0] == bodies[1]
    assert b"<news>" in bodies[0]


def test_own_templates_of_an_index_get_the_same(rows, kits, template, settings):
    """Location and last_mod of each page."""
    settings.ROOT_URLCONF = "tests.contrib.sitemaps.urls"
    text = (
        "{% for site in sitemaps %}{{ site.location }} {{ site.last_mod|date:'c' }}\n{% endfor %}"
    )
    store = template("index.txt", text)
    bodies = [
        kit.index({"all": AS_THEY_ARE["get absolute url"](kit)}, template_name=store).content
        for kit in kits
    ]
    assert bodies[0] == bodies[1]
    assert b"2024-03-04T" in bodies[0]
