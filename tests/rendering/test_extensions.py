"""Images, videos, news and own elements: what methods return, as XML that stays valid."""

import datetime as dt
import re
from types import SimpleNamespace

import pytest
from django.db import DatabaseError
from django.db.models import QuerySet
from django.template import engines
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.translation import get_language
from lxml import etree

from django_sitemapkit import Allow, Element, Image, News, Section, StaticSection, Video
from django_sitemapkit.inspection import inspect_object, inspect_path
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import reader_of
from django_sitemapkit.rendering import PageRendering, page_entries, tags, validators_of
from django_sitemapkit.testing import assert_valid_sitemap
from tests import factories
from tests.builds import SITE, build, manifest, states, use_storage, xml
from tests.factories import declare
from tests.languages import COLUMNS, IN_ALL, NAMESPACES, ROUTE, place, places, render, texts
from tests.overrides.setting import by_path
from tests.testapp.models import Place, Product

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.urls_languages")]

HOST = "https://www.example.com"
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
VIDEO = {"thumbnail": "/t.jpg", "title": "T", "description": "D", "content": "/v.mp4"}


def plain(**options):
    """Return a section that lists each place once, at ``/slug/``."""
    given = {"i18n": False, "alternates": False, "location": lambda self, obj: f"/{obj.slug}/"}
    return places(**given | options)


def listed(section):
    """Return the problems of a section, and its document, in which every row is listed."""
    rendering, document = render(section)
    assert document.count(b"<url>") == Place.objects.count()
    assert not any(problem.skipped for problem in rendering.problems.examples)
    return dict(rendering.problems.counts), document


def of(**options):
    """Return what stands behind the ``loc`` of a page's only row, and the problems."""
    problems, document = listed(plain(**options))
    inside = re.search(rb"</loc>(.*)</url>", document, re.DOTALL)[1]
    return inside.decode(), problems


@pytest.fixture
def at(monkeypatch):
    """Return what sets the time, for those who ask how old news is."""

    def at(moment):
        class Clock(dt.datetime):
            @classmethod
            def now(cls, zone=None):
                return moment.astimezone(zone)

        known = {"UTC": dt.UTC, "datetime": Clock, "timedelta": dt.timedelta}
        monkeypatch.setattr(tags, "dt", SimpleNamespace(**known))
        monkeypatch.setattr("django.utils.timezone.now", lambda: moment)

    return at


# Images


IMAGES = {
    "a path": ("/a.jpg", [f"{HOST}/a.jpg"]),
    "a URL": ("https://cdn.example.net/a b.jpg", ["https://cdn.example.net/a%20b.jpg"]),
    "a value": (Image(location="/a.jpg"), [f"{HOST}/a.jpg"]),
    "several": (["/a.jpg", Image(location="/b.jpg")], [f"{HOST}/a.jpg", f"{HOST}/b.jpg"]),
    "a generator": ((f"/{n}.jpg" for n in "ab"), [f"{HOST}/a.jpg", f"{HOST}/b.jpg"]),
    "None": (None, []),
    "the empty text": ("", []),
    "none of several": ([], []),
    "some of several": ([None, "", Place().cover, "/a.png"], [f"{HOST}/a.png"]),
}


@pytest.mark.parametrize(("value", "expected"), IMAGES.values(), ids=IMAGES)
def test_a_method_returns_images(value, expected):
    """Whatever stands for them: a text, a value, several, or nothing."""
    place("a")
    problems, document = listed(plain(images=lambda self, obj: value))
    assert texts(document, "i:image/i:loc") == [expected]
    assert problems == {}


def test_a_method_may_return_files():
    """A file field of the object, empty or not, and files of related rows."""
    made = place("a", cover="c.jpg")
    place("b")
    made.photos.create(file="p.jpg")

    def images(self, obj):
        yield from (photo.file for photo in obj.photos.all())

    _, document = listed(plain(images=lambda self, obj: obj.cover))
    assert texts(document, "i:image/i:loc") == [[f"{HOST}/c.jpg"], []]
    _, document = listed(plain(images=images))
    assert texts(document, "i:image/i:loc") == [[f"{HOST}/p.jpg"], []]


@pytest.mark.parametrize(("count", "problems"), [(1000, {}), (1001, {"too-many-tags": 1}),
                                                 (5000, {"too-many-tags": 1})])  # fmt: skip
def test_a_thousand_images_are_enough(count, problems):
    """One more is left out, once and by name; the row stays."""
    place("a")
    found, document = listed(plain(images=lambda self, obj: [f"/{n}.jpg" for n in range(count)]))
    assert document.count(b"<image:image>") == 1000
    assert found == problems


WRONG = {
    "images": [
        "javascript:alert(1)", "/\x0b.jpg", 5, b"/a.jpg", Image(location=None), Video(**VIDEO),
        {"/\x0b"}, ["/\x0b"], Image(location=""),
    ],
    "videos": [
        "text", Video(**VIDEO | {"content": None}), Video(**VIDEO | {"description": "d" * 2049}),
        Video(**VIDEO | {"title": "\x0b"}), Video(**VIDEO | {"content": "/a/"}),
    ],
    "news": [
        News(publication="P", language="English", published=NOW, title="T"),
        News(publication="", language="en", published=NOW, title="T"),
        News(publication="P", language="en", published="yesterday", title="T"),
        News(publication="P", language="en", published=None, title="T"), "text",
    ],
    "elements": [
        Element(name="price"), Element(name="shop:a b"), Element(name="other:price"), "<x/>",
        Element(name="shop:price", text="\x0b"), Element(name="shop:price", text=5),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option in WRONG for value in WRONG[option]]
)
def test_what_is_wrong_costs_the_value_and_not_the_row(option, value):
    """It is a named problem; what else the row says is written."""
    place("a")
    namespaces = {"namespaces": {"shop": "https://example.com/shop"}}
    more = {"lastmod": lambda self, obj: NOW, **(namespaces if option == "elements" else {})}
    inside, problems = of(**{option: lambda self, obj: value}, **more)
    assert inside == f"<lastmod>{NOW.isoformat()}</lastmod>"
    assert sum(problems.values()) == 1


@pytest.mark.parametrize("option", WRONG)
def test_a_method_that_raises_costs_what_it_would_have_said(option):
    """Whether it returns, yields, or what it returns raises; a failing database fails the page."""
    place("a")

    def raises(self, obj):
        raise LookupError(obj.slug)

    def raises_late(self, obj):
        yield from WRONG[option][:0]
        raise LookupError(obj.slug)

    class Lazy(QuerySet):
        """A queryset that fails where it is read."""

        def __iter__(self):
            raise LookupError("a")

    def fails(self, obj):
        raise DatabaseError("gone")

    more = {"namespaces": {"shop": "https://example.com/shop"}} if option == "elements" else {}
    for method in (raises, raises_late, lambda self, obj: Lazy(type(obj))):
        assert of(**{option: method}, **more) == ("", {"exception": 1})
    with pytest.raises(DatabaseError):
        of(**{option: fails}, **more)


@pytest.mark.parametrize("option", ["images", "videos", "news", "elements"])
def test_a_value_that_is_no_method_breaks_no_page(option):
    """A check tells of it; where nobody looked, nothing is written."""
    place("a")
    assert of(**{option: 5}) == ("", {})


# Videos, own elements, and all of them


def test_all_of_them_stand_behind_the_tags_in_one_order(at):
    """Links first, then images, videos, news and own elements, whatever the order of the class."""
    at(NOW)
    place("a", "en", cover="c.jpg")
    section = places(
        location=COLUMNS,
        languages=["en"],
        elements=lambda self, obj: Element(name="shop:price", text="1 & 2"),
        news=lambda self, obj: News(publication="P", language="en", published=NOW, title="a<b"),
        videos=lambda self, obj: [Video(**VIDEO), Video(**VIDEO | {"title": 'b"'})],
        images="cover",
        lastmod=lambda self, obj: NOW,
        namespaces={"shop": "https://example.com/shop?a&b"},
    )
    rendering, document = render(section)
    assert not rendering.problems
    root = etree.fromstring(document)
    assert [etree.QName(tag).localname for tag in root[0]] == [
        "loc", "lastmod", "link", "image", "video", "video", "news", "price",
    ]  # fmt: skip
    assert root.nsmap == {
        None: NAMESPACES["s"], "xhtml": NAMESPACES["x"], "image": NAMESPACES["i"],
        "video": NAMESPACES["v"], "news": NAMESPACES["n"], "shop": "https://example.com/shop?a&b",
    }  # fmt: skip
    assert [root[0][-1].text, root[0][-2].findtext("n:title", None, NAMESPACES)] == ["1 & 2", "a<b"]


def test_a_line_feed_stays_one_and_an_entry_one_line():
    """Those who compare files, and our own diff, read them by line."""
    place("a")
    said = "one\ntwo\r\n three"
    section = plain(
        videos=lambda self, obj: Video(**VIDEO | {"description": said}),
        elements=lambda self, obj: Element(name="a:b", text=said, attributes={"c": said}),
        namespaces={"a": "https://example.com/a"},
    )
    _, document = listed(section)
    assert document.count(b"\n") == 4  # the declaration, the root's tags, and the entry
    assert texts(document, "v:video/v:description") == [[said]]
    own = etree.fromstring(document)[0][-1]
    assert (own.text, own.get("c")) == (said, said)


def test_a_namespace_is_declared_where_the_section_has_elements():
    """And is refused where it does not: nothing is written that no document declares."""
    place("a")
    shop = {"namespaces": {"shop": "https://example.com/shop"}}
    price = {"elements": lambda self, obj: Element(name="shop:price")}
    assert b"https://example.com/shop" in listed(plain(**shop, **price))[1]
    assert b"https://example.com/shop" not in listed(plain(**shop))[1]
    assert of(**price) == ("", {"wrong-namespace": 1})


def test_items_of_a_list_have_them_too():
    """In each language, as rows do."""
    section = declare(
        StaticSection, items=["home"], images=lambda self, item: f"/{item}.jpg", **IN_ALL
    )
    _, document = render(section)
    assert texts(document, "i:image/i:loc") == [[f"{HOST}/home.jpg"]] * 3
    section = declare(StaticSection, items=["home"], images=lambda self, item: f"/{item}.jpg")
    assert texts(render(section)[1], "i:image/i:loc") == [[f"{HOST}/home.jpg"]]


def test_a_row_that_is_refused_says_nothing():
    """Neither it nor its images are written, and its problem is the only one."""
    place("a")
    section = plain(location=lambda self, obj: "mailto:x", images=lambda self, obj: "\x0b")
    rendering, document = render(section)
    assert document == b""
    assert sum(rendering.problems.counts.values()) == 1


# News


def article(published):
    """Return what declares each place as an article."""
    return lambda self, obj: News(publication="P", language="en", published=published, title="T")


WINDOW = {
    "47 hours": (NOW - 47 * HOUR, True),
    "48 hours": (NOW - 48 * HOUR, True),
    "49 hours": (NOW - 49 * HOUR, False),
    "another zone": (dt.datetime(2026, 2, 27, 3, tzinfo=dt.timezone(-10 * HOUR)), True),
    "naive, of the project's zone": (dt.datetime(2026, 2, 27, 6, 30), True),  # noqa: DTZ001
    "naive, and too old": (dt.datetime(2026, 2, 27, 5, 30), False),  # noqa: DTZ001
    "a date": (dt.date(2026, 2, 28), True),
    "a date that began before": (dt.date(2026, 2, 27), False),
    "text": ("2026-02-27T11:30:00Z", False),
}


@pytest.mark.parametrize(("published", "is_news"), WINDOW.values(), ids=WINDOW)
def test_news_is_of_the_last_two_days(at, settings, published, is_news):
    """What is older stays in the sitemap as a page, without a word about news."""
    settings.TIME_ZONE = "America/Chicago"
    at(NOW)
    place("a")
    inside, problems = of(news=article(published))
    assert inside.startswith("<news:news>") == is_news
    assert problems == {}


FUTURE = [NOW + 3 * HOUR, (NOW + 3 * HOUR).isoformat(), dt.date(2026, 3, 2), "9999-12-31"]


@pytest.mark.parametrize("published", FUTURE, ids=str)
def test_news_of_the_future_is_not_news_yet(at, published):
    """It is reported; the page lists its URL, and is rendered again when the moment has come."""
    at(NOW)
    place("a")
    assert of(news=article(published)) == ("", {"future-date": 1})
    assert of(videos=lambda self, obj: Video(**VIDEO, published=published))[1] == {"future-date": 1}
    rendering, _ = render(plain(news=article(NOW + 3 * HOUR)))
    assert rendering.pipeline.tags.changes_at == NOW + 3 * HOUR


def test_a_video_of_the_future_has_no_date_yet(at):
    """It costs the date alone, which comes when it is true."""
    at(NOW)
    place("a")
    section = plain(videos=lambda self, obj: Video(**VIDEO, published=NOW + HOUR, views=3))
    rendering, document = render(section)
    assert texts(document, "v:video/v:view_count") == [["3"]]
    assert texts(document, "v:video/v:publication_date") == [[]]
    assert rendering.pipeline.tags.changes_at == NOW + HOUR
    at(NOW + HOUR)
    assert len(texts(render(section)[1], "v:video/v:publication_date")[0]) == 1


@pytest.mark.parametrize(
    ("expires", "is_expired"),
    [
        (NOW - HOUR, True),
        ((NOW - HOUR).isoformat(), True),
        (dt.date(2026, 2, 28), True),
        (dt.date(2026, 3, 1), False),
        (NOW + HOUR, False),
        ("9999-12-31", False),
    ],
)
def test_an_expired_video_is_listed_and_reported(at, expires, is_expired):
    """Its date tells search engines to stop showing it; nothing of it is left out.

    A page that keeps its file until a row changes is rendered again to report it.
    """
    at(NOW)
    place("a")
    rendering, document = render(plain(videos=lambda self, obj: Video(**VIDEO, expires=expires)))
    comes = not is_expired and expires != "9999-12-31"
    assert (rendering.pipeline.tags.changes_at is not None) == comes
    assert len(texts(document, "v:video/v:expiration_date")[0]) == 1
    assert rendering.problems.counts == ({"expired-video": 1} if is_expired else {})
    assert not rendering.problems.skipped


def test_one_page_is_one_article():
    """A second one is left out by name."""
    place("a")
    now = timezone.now()
    news = article(now)
    inside, problems = of(news=lambda self, obj: [news(self, obj), news(self, obj)])
    assert inside.count("<news:news>") == 1
    assert problems == {"too-many-tags": 1}


@pytest.mark.slow
def test_a_thousand_and_one_articles_are_two_files(client, sections):
    """Whatever SITEMAPKIT_MAX_URLS and ``limit`` would allow; without news they are one."""
    Place.objects.bulk_create(Place(slug=f"p{n}") for n in range(1001))
    news = type(plain(news=article(timezone.now()), limit=5000).options)
    assert [len(keys_of(page)) for page in rendered(reader_of(news(SITE)))] == [1000, 1]
    assert len(rendered(reader_of(type(plain(name="plain").options)(SITE)))) == 1


def rendered(section):
    """Return the documents of all pages of a section."""
    pages = [PageRendering(section, page.keys, SITE.scope()) for page in pages_with_rows(section)]
    return [b"".join(page) for page in pages]


def keys_of(document):
    """Return the locations of a document."""
    return re.findall(b"<loc>", document)


@pytest.mark.parametrize("more", [{"images": lambda self, obj: "/a.jpg"}, {}])
def test_an_empty_news_page_is_valid(client, sections, more):
    """Whatever else its section declares: an empty sitemap is valid as a news sitemap alone."""
    empty = Place.objects.filter(slug="none")
    sections.add(type(plain(news=article(timezone.now()), queryset=empty, **more).options))
    response = client.get("/sitemap-things-1.xml")
    assert response.status_code == 200
    assert_valid_sitemap(response)


@pytest.mark.slow
def test_a_news_section_without_news_is_served_empty(client, sections, settings):
    """Live and published: page 1 has no URL, page 2 is not there, and no index has either."""
    use_storage(settings, "Memory")
    place("a")
    empty = type(plain(news=article(NOW), queryset=Place.objects.filter(slug="none")).options)
    sections.add(empty)
    sections.add(type("Others", (Section,), {"queryset": Place.objects.all(), "location": ROUTE}))
    build(SITE)
    for serve in ("live", "auto", "published"):
        settings.SITEMAPKIT_SERVE_FROM = serve
        response = client.get("/sitemap-things-1.xml")
        assert response.status_code == 200
        root = etree.fromstring(response.getvalue())
        assert (root.tag, len(root)) == (f"{{{NAMESPACES['s']}}}urlset", 0)
        assert root.nsmap["news"] == NAMESPACES["n"]
        assert client.get("/sitemap-things-2.xml").status_code == 404
        assert client.get("/sitemap-others-2.xml").status_code == 404
        assert b"things" not in client.get("/sitemap.xml").getvalue()


def test_a_page_of_news_is_due_when_an_article_gets_too_old(at, settings, sections):
    """No row changes then: the page is rendered again all the same, once, and no other."""
    storage = use_storage(settings, "Memory")
    sections.add(type(plain(news=article_of_slug, limit=2).options))
    for slug in ("1", "40", "46", "100"):
        place(slug)
    at(NOW)
    build(SITE)
    first, second = ("things", 1), ("things", 2)
    assert b"<news:news>" in xml(storage, manifest()[second])
    assert {key: line.changes_at for key, line in manifest().items() if key[0]} == {
        first: NOW + 8 * HOUR, second: NOW + 2 * HOUR,
    }  # fmt: skip
    at(NOW + 3 * HOUR)
    result = states(build(SITE))
    assert (result[first], result[second]) == ("same", "stored")
    assert b"<news:news>" not in xml(storage, manifest()[second])
    assert manifest()[second].changes_at is None


def article_of_slug(self, obj):
    """Return the article of a place whose slug is its age in hours."""
    published = NOW - int(obj.slug) * HOUR
    return News(publication="P", language="en", published=published, title="T")


def test_news_has_no_etag_before_it_is_read():
    """It gets too old without a row that changes: no promise about rows tells of that."""
    factories.products(1)
    rows = {"queryset": Product.objects.all(), "location": lambda self, obj: f"/{obj.slug}/"}
    for news, is_told in ((None, True), (article(NOW), False)):
        section = declare(**rows, lastmod="updated_at", trust_lastmod=True, news=news)
        (page,) = pages_with_rows(section)
        assert bool(validators_of(section, page, SITE.scope())[0]) == is_told


# As values, and explained


def test_entries_as_values_carry_them(sections, rf):
    """For templates of a project's own, which write them by ``{% sitemap_entry %}``."""
    place("a", "en", "es", cover="c.jpg")
    sections.add(type(places(location=COLUMNS, images="cover").options))
    section = places(location=COLUMNS, images="cover")
    document = render(section)[1].decode()
    found = list(page_entries(section, pages_with_rows(section)[0]))
    assert len(found) == 2
    template = engines["django"].from_string(
        "{% load sitemapkit %}{% sitemap_entries 'things' 1 as entry %}{% sitemap_entry entry %}"
        "{% endsitemap_entries %}"
    )
    written = template.render({}, rf.get("/"))
    for entry in found:
        assert entry.extensions.startswith('<xhtml:link rel="alternate" hreflang="en"')
        assert entry.extensions in document
        assert entry.extensions in written


@pytest.mark.parametrize("location", [COLUMNS, lambda self, obj: f"/{slug_now(obj)}/", ROUTE])
def test_an_explanation_shows_what_is_listed(sections, location):
    """Of each version that its path names, and of an object all: links, images and all."""
    made = place("a", "en", "es", "fr", cover="c.jpg")
    section = places(location=location, images="cover")
    sections.add(type(section.options))
    document = render(section)[1].decode()
    by_path("/en/places/x/", include=False)
    versions = inspect_object(SITE, made)
    assert len({version.location for version in versions}) == 3
    for explained in versions:
        assert explained.listed
        assert explained.xml in document
        assert explained.xml.count("<xhtml:link") == 3
    if isinstance(location, type(ROUTE)):
        for path in re.findall(f"<loc>{HOST}([^<]+)", document):
            found = inspect_path(SITE, path)
            assert found.location == f"{HOST}{path}"
            assert found.listed
            assert found.xml in document


def slug_now(obj):
    """Return the slug in the active language."""
    from django.utils.translation import get_language

    return getattr(obj, f"slug_{get_language()}")


def test_an_explanation_of_a_version_that_is_excluded(sections):
    """It is not listed, and the others do not link to it."""
    made = place("a", "en", "es")
    sections.add(type(places(location=COLUMNS).options))
    by_path("/es/places/a-es/", include=False)
    explained, excluded = inspect_object(SITE, made)
    assert explained.xml.count("<xhtml:link") == 1
    assert (excluded.listed, excluded.why) == (False, "A URL override excludes it.")
    assert not inspect_path(SITE, "/es/places/a-es/").listed


def test_an_explanation_of_an_object_without_a_version(sections, settings):
    """It says so; so it does where another site has all of them."""
    none, spanish = place("none"), place("b", "es")
    hosts = {"en": HOST, "es": "https://example.es", "fr": HOST}
    sections.add(type(places(location=COLUMNS, language_hosts=hosts).options))
    for made in (none, spanish):
        (explained,) = inspect_object(SITE, made)
        assert not explained.listed
        assert explained.why == "It has no version in a language that section things lists here."
        assert explained.step == "language"
    assert not inspect_path(SITE, "/es/places/b-es/").listed


def test_items_are_explained_in_each_language(sections):
    """With the links of all versions, and the page that has them."""
    pages = {"items": ["home", "/a/", "/b/"], "limit": 3}
    sections.add(type(declare(StaticSection, **pages, **IN_ALL).options))
    for path in ("/en/", "/es/", "/fr/"):
        explained = inspect_path(SITE, path)
        assert explained.listed
        assert explained.xml.count("<xhtml:link") == 3
        assert explained.page == f"{HOST}/sitemap-things-1.xml.gz"
    assert inspect_path(SITE, "/b/").page == f"{HOST}/sitemap-things-3.xml.gz"


def test_items_of_another_site_are_not_explained_here(sections):
    """Their path may be one of this site, too; they are listed there."""
    hosts = {"en": HOST, "es": "https://example.es", "fr": HOST}
    sections.add(
        type(declare(StaticSection, items=["home"], language_hosts=hosts, **IN_ALL).options)
    )
    assert inspect_path(SITE, "/en/").listed
    assert not inspect_path(SITE, "/es/").listed


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_lazy_texts_are_in_the_language_of_the_version(several):
    """A text that gettext_lazy() gave is read while that language is active."""

    def videos(self, obj):
        title = named_lazily()
        video = Video(thumbnail="/t.jpg", title=title, description="D", player="/p")
        return [video] if several else video

    place("a")
    document = render(places(languages=["en", "es"], videos=videos))[1]
    assert b"<video:title>It is en</video:title>" in document
    assert b"<video:title>It is es</video:title>" in document


def test_lazy_texts_within_values_are_in_the_language_of_the_version():
    """However deep: of elements in elements, of their attributes, and of tags."""

    def videos(self, obj):
        return Video(**VIDEO, tags=[named_lazily(), "t"], restriction=Allow("IE"))

    def elements(self, obj):
        inner = Element(name="s:b", text=named_lazily())
        return Element(name="s:a", attributes={"t": named_lazily()}, children=(inner,))

    place("a")
    namespaces = {"s": "https://example.com/s"}
    section = places(
        languages=["en", "es"], videos=videos, elements=elements, namespaces=namespaces
    )
    rendering, document = render(section)
    assert not rendering.problems.counts
    for code in ("en", "es"):
        text = f"It is {code}"
        assert f"<video:tag>{text}</video:tag><video:tag>t</video:tag>".encode() in document
        assert f'<s:a t="{text}"><s:b>{text}</s:b></s:a>'.encode() in document


def named_lazily():
    """Return a lazy text that names the active language."""
    return lazy(lambda: f"It is {get_language()}", str)()
