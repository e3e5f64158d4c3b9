"""robots.txt: the line of the index, the ready view, and two views for one address."""

import sys
from types import ModuleType

import pytest
from django.db import connection
from django.http import HttpResponse
from django.template import engines
from django.test.utils import CaptureQueriesContext
from django.urls import clear_url_caches, include, path, re_path

from django_sitemapkit import ExternalSection, StaticSection, checks, views
from tests.builds import BASE, use_storage

pytestmark = pytest.mark.django_db


class Paths(StaticSection):
    """Pages by hand, one in each file."""

    limit = 1
    items = [f"/{number}/" for number in range(5)]


@pytest.fixture
def five(settings, sections):
    """Declare a section of five pages."""
    use_storage(settings, "Memory")
    sections.add(Paths)


def lines(request=None):
    """Return what the tag writes."""
    template = engines["django"].from_string("{% load sitemapkit %}{% sitemap_robots %}")
    return template.render({}, request).splitlines()


@pytest.mark.parametrize("serve", ["auto", "live", "published"])
def test_the_index_has_a_line_in_any_case(settings, sections, serve):
    """With nothing to list, too: what comes later is found at the same address."""
    settings.SITEMAPKIT_SERVE_FROM = serve
    assert lines() == [f"Sitemap: {BASE}/sitemap.xml"]


def test_the_line_needs_nothing_that_can_fail(sections, django_assert_num_queries):
    """A robots.txt that answers with an error keeps crawlers from the whole site."""

    def fail(self):
        raise LookupError("no feeds today")

    sections.add(type("Feeds", (ExternalSection,), {"sitemaps": fail}))
    with django_assert_num_queries(0):
        assert lines() == [f"Sitemap: {BASE}/sitemap.xml"]


# --- The view


def urls(settings, *patterns):
    """Let the project have these patterns behind the package's own."""
    module = ModuleType("urls_of_robots")
    module.urlpatterns = [path("", include("django_sitemapkit.urls")), *patterns]
    sys.modules[module.__name__] = module
    settings.ROOT_URLCONF = module.__name__
    clear_url_caches()


@pytest.fixture(autouse=True)
def no_urls_left():
    """Leave no URLconf behind."""
    yield
    sys.modules.pop("urls_of_robots", None)
    clear_url_caches()


READY = path("robots.txt", views.robots)


def test_the_view_allows_all_and_names_the_index(settings, five, client):
    """In plain text."""
    urls(settings, READY)
    response = client.get("/robots.txt")
    assert (response.status_code, response["Content-Type"]) == (200, "text/plain; charset=utf-8")
    text = response.content.decode()
    assert text.splitlines() == ["User-agent: *", "Disallow:", "", f"Sitemap: {BASE}/sitemap.xml"]
    assert text.endswith("\n")
    assert "Set-Cookie" not in response
    assert "Cookie" not in response.get("Vary", "")


def test_the_view_may_be_kept_as_long_as_the_index(settings, five, client):
    """SITEMAPKIT_CACHE_CONTROL holds for what names the indexes, too."""
    urls(settings, READY)
    assert client.get("/robots.txt")["Cache-Control"] == "max-age=600"
    settings.SITEMAPKIT_CACHE_CONTROL = ""
    assert "Cache-Control" not in client.get("/robots.txt")


def test_the_view_opens_no_transaction(settings, five, client, monkeypatch):
    """It opts out of ATOMIC_REQUESTS: what it finds may be planned, which others have to see."""
    urls(settings, READY)
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/robots.txt").status_code == 200
    assert not [query for query in queries if query["sql"].startswith("SAVEPOINT")]


def test_the_view_takes_get_and_head_alone(settings, five, client):
    """As all views of the package."""
    urls(settings, READY)
    assert client.head("/robots.txt").status_code == 200
    assert client.post("/robots.txt").status_code == 405


def test_the_view_asks_nobody_to_log_in(settings, five, client):
    """A crawler cannot."""
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    urls(settings, READY)
    assert client.get("/robots.txt").status_code == 200


def test_the_view_names_the_sitemaps_of_the_requests_site(settings, five, client):
    """A host that is none of them gets no line."""
    urls(settings, READY)
    settings.ALLOWED_HOSTS = ["*"]
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": BASE},
        "two": {"BASE_URL": "https://two.example/"},
    }
    text = client.get("/robots.txt", headers={"host": "two.example"}).content.decode()
    assert "Sitemap: https://two.example/sitemap.xml" in text
    text = client.get("/robots.txt", headers={"host": "three.example"}).content.decode()
    assert text == "User-agent: *\nDisallow:\n\n\n"


def test_the_template_can_be_another(settings, five, client, tmp_path):
    """A project's own wins over the package's."""
    (tmp_path / "sitemapkit").mkdir()
    (tmp_path / "sitemapkit" / "robots.txt").write_text("User-agent: *\nDisallow: /admin/\n")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    urls(settings, READY)
    assert client.get("/robots.txt").content == b"User-agent: *\nDisallow: /admin/\n"


def test_the_package_includes_no_robots_txt(client):
    """It cannot stand in the way of another one."""
    assert client.get("/robots.txt").status_code == 404


# --- Two views for one address


def view(request):
    """Answer as a project's own view."""
    return HttpResponse("mine")


OTHERS = [
    path("robots.txt", view),
    re_path(r"^robots\.txt$", view),
    path("robots.txt", include([path("", view)])),
    path("", include([path("robots.txt", view)])),
]


@pytest.mark.parametrize("other", OTHERS)
def test_two_views_for_robots_txt_are_reported(settings, other):
    """The message says which of them Django calls."""
    urls(settings, READY, other)
    (message,) = checks.addresses.check_robots_served_twice()
    assert message.id == "sitemapkit.W025"
    assert "the package's is used" in message.msg
    urls(settings, other, READY)
    assert "the other one is used" in checks.addresses.check_robots_served_twice()[0].msg


@pytest.mark.parametrize("other", OTHERS)
def test_one_view_for_robots_txt_is_as_it_should_be(settings, other):
    """The package's or another; one that takes whatever nobody else does is no second one."""
    urls(settings, other, path("<path:rest>", view))
    assert checks.addresses.check_robots_served_twice() == []
    urls(settings, READY, path("<path:rest>", view), path("robots.txt/", view))
    assert checks.addresses.check_robots_served_twice() == []
