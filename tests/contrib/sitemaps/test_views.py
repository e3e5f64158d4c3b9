"""The drop-in's views: what they add to contrib's, and what they leave as it is."""

import datetime as dt
import gzip
import logging
from types import ModuleType

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import Paginator
from django.db import connection
from django.http import Http404, HttpResponse
from django.middleware.http import ConditionalGetMiddleware
from django.test import AsyncRequestFactory, Client
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse, set_urlconf
from django.utils.translation import override

from django_sitemapkit.contrib.sitemaps import reading, views
from tests import factories
from tests.contrib.sitemaps.comparing import BASE, HOST, asked, entries_of, paths_of
from tests.overrides.setting import by_object, by_path, rule, setting
from tests.testapp.models import Article, Product, Reading
from tests.testapp.serving import make_readings, unbounded

pytestmark = pytest.mark.django_db

EDITED = dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=dt.UTC)
EDITED_HEADER = "Thu, 29 Feb 2024 12:30:15 GMT"
IMAGES = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{% for url in urlset %}<url><loc>{{ url.location }}</loc><priority>{{ url.priority }}</priority>
<lastmod>{{ url.lastmod|date:"c" }}</lastmod><changefreq>{{ url.changefreq }}</changefreq>
{{ url.item.title }}</url>{% endfor %}</urlset>"""


def articles(kit, **options):
    """Return a sitemap of the articles, with some options changed."""

    class Articles(kit.Sitemap):
        def items(self):
            return Article.objects.order_by("-pk")

        def location(self, article):
            return f"/articles/{article.pk}/"

        def lastmod(self, article):
            return article.edited_at

    return type("Articles", (Articles,), {"__module__": __name__, **options})


def numbers(kit, count, **options):
    """Return a sitemap of some paths."""
    body = {"items": lambda self: list(range(count)), "location": lambda self, n: f"/{n}/"}
    return type("Numbers", (kit.Sitemap,), {"__module__": __name__, **body, **options})


def readings(kit, **options):
    """Return a sitemap of the readings, of which tests make many."""
    body = {
        "items": lambda self: Reading.objects.all(),
        "location": lambda self, reading: f"/readings/{reading.level}/",
    }
    return type("Readings", (kit.Sitemap,), {"__module__": __name__, **body, **options})


@pytest.fixture
def urls(settings):
    """Let the URLconf have a pattern "section", and others that a test adds."""
    urlconf = ModuleType("tests_of_the_drop_in_urls")
    urlconf.urlpatterns = [path("sitemap-<section>.xml", lambda request: None, name="section")]
    settings.ROOT_URLCONF = urlconf
    return urlconf.urlpatterns


# Documents


def test_the_default_template_is_not_rendered(kit):
    """Our own writer gives the same; without any template in reach, too."""
    factories.ArticleFactory.create_batch(3)
    response = kit.sitemap({"articles": articles(kit)})
    assert type(response) is HttpResponse
    assert response.headers["Content-Type"] == "application/xml"
    assert len(entries_of(response.content)) == 3
    assert views.sitemap(asked("/"), {"articles": articles(kit)}).content == response.content


def test_without_templates_the_writer_is_used(settings):
    """A project that leaves out the app has no template called sitemap.xml."""
    settings.TEMPLATES = []
    from django_sitemapkit.contrib import sitemaps

    response = views.sitemap(asked("/"), {"numbers": numbers(sitemaps, 2)})
    assert paths_of(response.content) == ["/0/", "/1/"]


def test_a_template_of_the_project_with_contribs_name_is_used(kit, template):
    """It hides the default one, as with contrib."""
    template("sitemap.xml", "{{ urlset|length }} of the project's own")
    response = kit.sitemap({"numbers": numbers(kit, 2)})
    assert response.content == b"2 of the project's own"


def test_a_template_gets_items_and_what_editors_have_set(kit, template):
    """A lastmod comes with its time, but where an editor has set the day."""
    first, second, third = factories.ArticleFactory.create_batch(3)
    by_path(f"/articles/{first.pk}/", include=False)
    by_object(second, priority="0.9", lastmod=EDITED + dt.timedelta(days=3), changefreq="daily")
    name = template("images.xml", IMAGES)
    sitemap = articles(kit, priority=0.25)
    response = kit.sitemap({"articles": sitemap}, template_name=name, content_type="text/xml")
    assert [url["item"] for url in response.context_data["urlset"]] == [second, third]
    assert [url["lastmod"] for url in response.context_data["urlset"]] == [
        dt.date(2024, 3, 3),
        third.edited_at,
    ]
    assert [url["priority"] for url in response.context_data["urlset"]] == ["0.9", "0.25"]
    assert [url["changefreq"] for url in response.context_data["urlset"]] == ["daily", None]
    assert third.title in response.content.decode()
    assert response.headers["Content-Type"] == "text/xml"
    assert response.headers["Last-Modified"] == EDITED_HEADER


def test_an_item_in_a_language_comes_with_its_code(kit, template):
    """As contrib gives it; so do its links come as dicts."""
    article = factories.ArticleFactory()
    sitemap = articles(kit, i18n=True, alternates=True, languages=["en", "es"], lastmod=None)
    name = template("own.xml", "")
    (one, two) = kit.sitemap({"a": sitemap}, template_name=name).context_data["urlset"]
    assert (one["item"], two["item"]) == ((article, "en"), (article, "es"))
    address = f"{BASE}/articles/{article.pk}/"
    assert one["alternates"] == [
        {"location": address, "lang_code": "en"},
        {"location": address, "lang_code": "es"},
    ]
    assert (one["lastmod"], one["priority"]) == (None, "")


def test_without_items_the_document_is_empty(kit):
    """Contrib answers 200 for it, and for no sitemap at all."""
    for sitemaps in ({"none": numbers(kit, 0)}, {}):
        response = kit.sitemap(sitemaps)
        assert response.status_code == 200
        assert entries_of(response.content) == []
        assert response.content.endswith(b">\n\n</urlset>\n")
        assert "Last-Modified" not in response.headers


def test_all_sitemaps_follow_each_other(kit):
    """Without a section, in the order of the dict; what comes twice stays."""
    sitemaps = {"a": numbers(kit, 2), "b": numbers(kit, 3), "c": numbers(kit, 1, location="/0/")}
    response = kit.sitemap(sitemaps)
    assert paths_of(response.content) == ["/0/", "/1/", "/0/", "/1/", "/2/", "/0/"]
    assert paths_of(kit.sitemap(sitemaps, section="b").content) == ["/0/", "/1/", "/2/"]


def test_a_queryset_lists_a_url_as_often_as_it_comes(kit):
    """Rows with the same URL, in one language or in several, on one page or on two."""
    factories.ArticleFactory.create_batch(3)
    sitemap = articles(kit, location="/all/", limit=2)
    assert [len(entries_of(body)) for body in kit.documents(sitemap)] == [2, 1]
    in_languages = articles(kit, location="/all/", i18n=True, languages=["en", "es"])
    assert len(kit.entries(in_languages)) == 6


# Pages


@pytest.mark.parametrize("page", ["0", "-1", "4", "9" * 30])
def test_a_page_that_is_not_there_is_named(kit, page):
    """Contrib's reason for 404; of a queryset as of a list."""
    factories.ArticleFactory.create_batch(5)
    for sitemap in (articles(kit, limit=2), numbers(kit, 5, limit=2)):
        with pytest.raises(Http404, match=rf"^Page {page} empty$"):
            kit.sitemap({"a": sitemap}, page=page)


@pytest.mark.parametrize("page", ["x", "", "1.5", "१"])
def test_a_page_that_is_no_number_is_named(kit, page):
    """Digits of other scripts would be a second address of the same page."""
    with pytest.raises(Http404, match=rf"^No page '{page}'$"):
        kit.sitemap({"a": numbers(kit, 1)}, page=page)


def test_a_section_that_is_not_there_is_named(kit):
    """Contrib's reason, too."""
    with pytest.raises(Http404, match=r"^No sitemap available for section: 'b'$"):
        kit.sitemap({"a": numbers(kit, 1)}, section="b")


def test_any_page_is_read_by_key(kit):
    """The last page takes the queries of the first, none of which counts or skips rows."""
    make_readings(range(2000))
    sitemap = readings(kit, limit=100)
    found = []
    kit.sitemap({"r": sitemap})  # Once in a process, methods are compared with their columns.
    for page in (2, 19):
        with CaptureQueriesContext(connection) as queries:
            body = kit.sitemap({"r": sitemap}, page=page).content
        assert paths_of(body) == [f"/readings/{n}/" for n in range(100 * page - 100, 100 * page)]
        found.append([query["sql"] for query in queries])
    assert len(found[0]) == len(found[1]) == 4  # The edits, both ends of the page, the rows.
    assert unbounded(found[0] + found[1]) == []


@pytest.mark.slow
def test_one_key_is_not_enough_for_a_second_page(kit):
    """A page is full to the last row, and the next one is then empty."""
    factories.ArticleFactory.create_batch(2)
    assert [len(entries_of(body)) for body in kit.documents(articles(kit, limit=1))] == [1, 1]
    assert len(kit.documents(articles(kit, limit=2))) == 1


def test_own_paging_is_used(kit, urls):
    """A class with its own paginator is asked for its pages, by both views."""
    sitemap = numbers(kit, 5, paginator=property(lambda self: Paginator(self.items(), 4)))
    assert [len(entries_of(body)) for body in kit.documents(sitemap)] == [4, 1]
    assert len(kit.index({"n": sitemap}).context_data["sitemaps"]) == 2


# Size


@pytest.fixture
def large(kit):
    """Return a sitemap whose document is sent in blocks unless it is compressed."""
    return numbers(kit, 12_000, location=lambda self, n: f"/{n}/{'x' * 60}/", lastmod=EDITED)


@pytest.mark.slow
def test_a_large_document_is_streamed_with_its_length(kit, large):
    """It has the header that only its last row could tell."""
    response = kit.sitemap({"large": large})
    assert response.streaming
    body = response.getvalue()
    assert len(body) == int(response.headers["Content-Length"]) > views.MAX_WHOLE_BYTES
    assert len(entries_of(body)) == 12_000
    assert response.headers["Last-Modified"] == EDITED_HEADER
    assert response.headers["X-Robots-Tag"] == "noindex, noodp, noarchive"


@pytest.mark.slow
def test_who_accepts_gzip_gets_the_document_whole(kit, large):
    """So it can be cached by ``cache_page``, and needs no other compression."""
    for sitemap in (large, numbers(kit, 2)):
        plain = kit.sitemap({"a": sitemap}).getvalue()
        response = kit.sitemap({"a": sitemap}, headers={"accept-encoding": "gzip, br"})
        assert not response.streaming
        assert gzip.decompress(response.content) == plain
        assert response.headers["Content-Encoding"] == "gzip"
        assert response.headers["Vary"] == "Accept-Encoding"


@pytest.mark.slow
def test_a_large_document_is_streamed_under_asgi(large):
    """In blocks too, from an iterator that an event loop can wait for."""
    request = AsyncRequestFactory().get("/large.xml", headers={"host": HOST})
    response = views.sitemap(request, {"large": large})
    assert response.is_async

    async def body():
        return b"".join([block async for block in response])

    found = async_to_sync(body)()
    assert len(found) == int(response.headers["Content-Length"])
    assert len(entries_of(found)) == 12_000


def test_too_many_urls_for_one_document_are_warned_of(kit, caplog, monkeypatch):
    """Each sitemap has no more than a file may have; all together may, as with contrib."""
    monkeypatch.setattr(views, "MAX_URLS", 5)
    half = numbers(kit, 3)
    response = kit.sitemap({"a": half, "b": half})
    assert len(entries_of(response.getvalue())) == 6
    assert "/old.xml has 6 URLs" in caplog.text
    assert "more than search engines read" in caplog.text


def test_a_page_that_is_too_large_says_what_it_leaves_out(kit, settings, caplog):
    """No plan could give the other rows a page: a smaller limit does."""
    settings.SITEMAPKIT_MAX_BYTES = 4096
    make_readings(range(200))
    body = kit.sitemap({"r": readings(kit)}).content
    listed = len(entries_of(body))
    assert 0 < listed < 200
    assert f"until the section sets limit to {listed} or less" in caplog.text


# Headers


def test_posts_are_refused(kit, rf, caplog):
    """Contrib answers them."""
    caplog.set_level(logging.ERROR, logger="django.request")
    for view in (views.index, views.sitemap):
        assert view(rf.post("/"), sitemaps={}).status_code == 405


def test_conditional_requests_are_answered_by_the_middleware(kit):
    """From the Last-Modified, as with contrib."""
    factories.ArticleFactory()
    middleware = ConditionalGetMiddleware(
        lambda request: kit.views.sitemap(request, {"a": articles(kit)})
    )
    assert middleware(asked("/")).headers["Last-Modified"] == EDITED_HEADER
    assert middleware(asked("/", {"if-modified-since": EDITED_HEADER})).status_code == 304


@pytest.mark.parametrize(
    "lastmod",
    [
        pytest.param(lambda self, n: None if n == 1 else EDITED, id="one-without"),
        pytest.param(lambda self, n: {0: EDITED}[n], id="one-raises"),
        pytest.param("2024-02-29", id="text"),
        pytest.param(None, id="none"),
    ],
)
def test_last_modified_needs_the_date_of_each_item(kit, lastmod):
    """Only then does it change whenever an item does."""
    response = kit.sitemap({"numbers": numbers(kit, 2, lastmod=lastmod)})
    assert "Last-Modified" not in response.headers


def test_last_modified_is_of_all_sitemaps(kit):
    """The newest, of dates and datetimes alike; none where one sitemap has none."""
    older = numbers(kit, 1, lastmod=dt.date(2024, 2, 1))
    newer = numbers(kit, 2, lastmod=lambda self, n: EDITED - dt.timedelta(days=n))
    assert kit.sitemap({"a": older, "b": newer}).headers["Last-Modified"] == EDITED_HEADER
    sitemaps = {"a": older, "b": newer, "c": numbers(kit, 1)}
    assert "Last-Modified" not in kit.sitemap(sitemaps).headers


# Hosts and languages


@pytest.mark.parametrize("view", ["index", "sitemap"])
def test_a_forged_host_is_never_copied(kit, settings, urls, view):
    """Contrib copies it where the sites framework is not installed."""
    settings.ALLOWED_HOSTS = ["*"]
    forged = {"host": "evil.example"}
    ask = getattr(kit, view)
    body = ask({"a": numbers(kit, 1)}, headers=forged).content
    assert b"evil" not in body
    assert BASE.encode() in body
    settings.SITEMAPKIT_BASE_URL = None
    with pytest.raises(ImproperlyConfigured, match="SITEMAPKIT_BASE_URL"):
        ask({"a": numbers(kit, 1)}, headers=forged)


def test_without_a_setting_the_host_is_one_that_django_allows(kit, settings):
    """The scheme is that of the request then, as with contrib, or the sitemap's own."""
    settings.SITEMAPKIT_BASE_URL = None
    settings.ALLOWED_HOSTS = [HOST]
    request = asked("/")
    request.META["wsgi.url_scheme"] = "http"
    (entry,) = entries_of(kit.views.sitemap(request, {"a": numbers(kit, 1)}).content)
    assert entry[0] == f"http://{HOST}/0/"
    sitemap = numbers(kit, 1, protocol="https")
    (entry,) = entries_of(kit.views.sitemap(request, {"a": sitemap}).content)
    assert entry[0] == f"https://{HOST}/0/"


def test_a_sitemap_may_have_a_host_of_its_own(kit, urls):
    """By ``get_domain()``; what editors have set applies there too. The index is on the site."""
    by_path("/1/", include=False)
    sitemap = numbers(kit, 3, get_domain=lambda self, site=None: f"images.{site.domain[4:]}")
    body = kit.sitemap({"a": sitemap}).content
    assert [entry[0] for entry in entries_of(body)] == [
        "https://images.example.com/0/",
        "https://images.example.com/2/",
    ]
    assert f"<loc>{BASE}/sitemap-a.xml</loc>".encode() in kit.index({"a": sitemap}).content


def test_the_visitors_language_changes_nothing(kit, settings):
    """That of the address does: it names another document."""
    settings.ROOT_URLCONF = "tests.urls_languages"
    settings.LANGUAGE_CODE = "en"
    factories.products(1)

    def location(self, product):
        return reverse("product", kwargs={"shop": "a", "slug": product.slug})

    sitemap = articles(kit, items=lambda self: Product.objects.all(), location=location)
    sitemap.lastmod = None
    with override("fr"):
        paths = [
            paths_of(kit.views.sitemap(asked(address), {"a": sitemap}).content)[0].split("/")[1]
            for address in ("/sitemap.xml", "/es/sitemap.xml")
        ]
    assert paths == ["en", "es"]


def test_the_urlconf_of_the_request_is_used(kit, urls):
    """As those set it that choose one by the host."""
    other = ModuleType("another_urlconf")
    other.urlpatterns = [path("of-host/<int:pk>/", lambda request: None, name="article")]
    article = factories.ArticleFactory()

    def location(self, item):
        return reverse("article", args=[item.pk])

    set_urlconf(other)
    try:
        body = kit.sitemap({"a": articles(kit, location=location)}).content
    finally:
        set_urlconf(None)
    assert paths_of(body) == [f"/of-host/{article.pk}/"]


# What editors have set


def test_what_editors_have_set_applies(kit, urls):
    """Overrides, rules and settings of the section of that name."""
    first, second, third = factories.ArticleFactory.create_batch(3)
    by_object(first, include=False)
    by_path(f"/articles/{second.pk}/", priority="0.9")
    rule(f"/articles/{third.pk}/")
    setting("articles", changefreq="hourly")
    sitemaps = {"articles": articles(kit)}
    (entry,) = entries_of(kit.sitemap(sitemaps).content)
    assert entry == (f"{BASE}/articles/{second.pk}/", "2024-02-29", "hourly", 0.9, ())
    setting("articles", enabled=False)
    assert b"<loc>" not in kit.index(sitemaps).content
    with pytest.raises(Http404, match="No sitemap available"):
        kit.sitemap(sitemaps, section="articles")


def test_rows_that_break_the_protocol_are_named_in_the_log(kit, caplog, template):
    """Contrib lists them as they are; a template gets the others."""
    sitemap = numbers(kit, 3, location=lambda self, n: "https://other.example/" if n else "/0/")
    assert paths_of(kit.sitemap({"n": sitemap}).content) == ["/0/"]
    assert "'n' of site 'default'>: page 1: 2 x n 1: URL not allowed" in caplog.text
    caplog.clear()
    response = kit.sitemap({"n": sitemap}, template_name=template("own.xml", ""))
    assert len(response.context_data["urlset"]) == 1
    assert "URL not allowed" in caplog.text


# The index


def test_the_index_lists_each_page(kit, urls):
    """With the sitemap's own lastmod, and a Last-Modified where all have one."""
    make_readings(range(5))
    dated = readings(kit, limit=2, lastmod=dt.date(2024, 2, 29))
    sitemaps = {"r": dated, "n": numbers(kit, 3, limit=3, lastmod=lambda self, n: EDITED)}
    response = kit.index(sitemaps)
    listed = [(f"{BASE}/sitemap-r.xml", "2024-02-29T00:00:00")]
    listed += [(f"{BASE}/sitemap-r.xml?p={n}", "2024-02-29T00:00:00") for n in (2, 3)]
    listed += [(f"{BASE}/sitemap-n.xml", "2024-02-29T12:30:15+00:00")]
    assert [(item.location, item.last_mod) for item in response.context_data["sitemaps"]] == [
        (address, EDITED if "-n" in address else dated.lastmod) for address, _ in listed
    ]
    for address, _ in listed:
        assert f"<loc>{address}</loc><lastmod>2024-02-29" in response.content.decode()
    assert response.headers["Last-Modified"] == EDITED_HEADER
    assert response.headers["X-Robots-Tag"] == "noindex, noodp, noarchive"
    plain = kit.index({**sitemaps, "m": numbers(kit, 0)})
    assert "Last-Modified" not in plain.headers
    assert f"<loc>{BASE}/sitemap-m.xml</loc></sitemap>" in plain.content.decode()


def test_the_index_counts_rows_once_and_languages_whole(kit, urls):
    """A row in three languages is three URLs, and is never cut between two pages."""
    make_readings(range(5))
    sitemap = readings(kit, limit=6, i18n=True)
    with CaptureQueriesContext(connection) as queries:
        response = kit.index({"r": sitemap})
    assert len(response.context_data["sitemaps"]) == 3
    assert len(queries) == 2  # The edits, the count.
    assert [len(entries_of(body)) for body in kit.documents(sitemap)] == [6, 6, 3]


def test_an_instance_stays_as_it_is(kit):
    """It serves several requests at once, so no request leaves anything on it."""
    instance = numbers(kit, 1, lastmod=EDITED)()
    before = dict(vars(instance))
    kit.sitemap({"n": instance})
    kit.sitemap({"n": lambda: instance}, template_name="sitemap_index.xml")
    assert vars(instance) == before


def test_moments_without_a_zone_are_in_utc():
    """As contrib writes its header."""
    naive = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001
    assert reading.moment_of_lastmod(naive) == naive.replace(tzinfo=dt.UTC)


def test_the_views_answer_at_their_addresses(kit, urls, settings):
    """Through the whole of Django, by what the URLconf passes, and with contrib's names."""
    sitemaps = {"sitemaps": {"numbers": numbers(kit, 2, limit=1)}}
    name = "django.contrib.sitemaps.views.sitemap"
    urls += [
        path("index.xml", views.index, sitemaps),
        path("of-<section>.xml", views.sitemap, sitemaps, name=name),
    ]
    client = Client(headers={"host": HOST})
    assert f"<loc>{BASE}/of-numbers.xml?p=2</loc>" in client.get("/index.xml").content.decode()
    assert paths_of(client.get("/of-numbers.xml?p=2").content) == ["/1/"]
    assert client.head("/of-numbers.xml?p=2").content == b""


def test_contribs_own_classes_are_taken_too(kits, kit, urls, template):
    """By key and with overrides; one that makes its entries itself is asked for them."""
    contrib, _ = kits
    first, *_ = factories.ArticleFactory.create_batch(3)
    by_object(first, include=False)

    def get_urls(self, *args, **kwargs):
        return contrib.Sitemap.get_urls(self, *args, **kwargs)

    standard, own = articles(contrib, limit=2), articles(contrib, limit=2, get_urls=get_urls)
    assert [len(entries_of(body)) for body in kit.documents(standard)] == [1, 1]
    assert [len(entries_of(body)) for body in kit.documents(own)] == [2, 1]
    found = kit.sitemap({"a": standard}, template_name=template("own.xml", "")).context_data
    assert len(found["urlset"]) == 1
    assert len(kit.index({"a": standard, "b": own}).context_data["sitemaps"]) == 4


def test_a_class_with_its_own_entries_is_counted_as_it_is_read(kit, urls):
    """By key, if it only adds to what the class of the drop-in gives."""
    factories.ArticleFactory.create_batch(5)
    body = {"get_urls": kit.Sitemap.get_urls}
    for options in ({}, {"i18n": True, "languages": ["en", "es"]}):
        sitemap = articles(kit, limit=3, **body, **options)
        listed = len(kit.index({"a": sitemap}).context_data["sitemaps"])
        assert len(kit.documents(sitemap)) == listed

    def get_urls(self, page=1, **kwargs):
        return [{"location": f"{BASE}/{item}"} for item in self.paginator.page(page).object_list]

    sitemap = articles(kit, limit=3, get_urls=get_urls, i18n=True, languages=["en", "es"])
    assert len(kit.index({"a": sitemap}).context_data["sitemaps"]) == 4
    assert len(kit.documents(sitemap)) == 4
