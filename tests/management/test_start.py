"""start_sitemaps: what it prints, what it writes, and what it never touches."""

import sys
from types import ModuleType

import pytest
from django.apps import apps
from django.contrib.sitemaps import Sitemap
from django.contrib.sitemaps.views import index
from django.db import connections
from django.http import HttpResponse
from django.urls import include, path

from django_sitemapkit import StaticSection
from django_sitemapkit.management.commands.start_sitemaps import Command
from tests.management import run
from tests.testapp.models import Product
from tests.testapp.serving import Products, make_products

pytestmark = pytest.mark.django_db


def view(request, **kwargs):
    """Answer for every page."""
    return HttpResponse("ok")


class ShopSitemap(Sitemap):
    """Lists products."""

    def items(self):
        return Product.objects.order_by("pk")


@pytest.fixture
def urlconf(settings, monkeypatch):
    """Return what sets the URL patterns of the project."""

    def use(*patterns, **members):
        module = ModuleType("urls_of_a_test")
        vars(module).update(members, urlpatterns=list(patterns))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        settings.ROOT_URLCONF = module.__name__

    return use


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Let the app of the tests have a package of its own, and return its folder."""
    config = apps.get_app_config("testapp")
    monkeypatch.setattr(config, "path", str(tmp_path))
    monkeypatch.setattr(config.module, "__path__", [str(tmp_path)])
    return tmp_path


def test_it_prints_what_no_section_lists(sections):
    """What is printed is the module; what to do next is not part of it."""
    code, out, err = run("start_sitemaps")
    assert code == 0
    compile(out, "sitemaps.py", "exec")
    assert "class Products(Section):\n    queryset = Product.objects.all()\n" in out
    assert 'items = ("home", "about")' in out
    assert "manage.py build_sitemaps" in err
    assert "build_sitemaps" not in out


def test_what_a_section_lists_is_not_proposed_again(sections):
    """Neither its model, nor its URL names."""
    sections.add(Products)
    sections.add(type("Home", (StaticSection,), {"items": ["home"]}))
    _, out, _ = run("start_sitemaps")
    assert "Product.objects" not in out
    assert 'items = ("about",)' in out
    assert "# Left out, in a section already: testapp.Product\n" in out


def test_a_name_that_a_section_has_is_not_given_again(sections):
    """Two sections of one name could not be registered."""
    sections.add(type("Products", (StaticSection,), {"items": ["home"]}))
    _, out, _ = run("start_sitemaps")
    assert "class TestappProducts(Section):" in out


def test_classes_of_contrib_in_the_urlconf_are_registered(sections, urlconf):
    """By their names there; what they list needs no section."""
    local = type("Local", (ShopSitemap,), {"__module__": __name__})
    here = type("Here", (ShopSitemap,), {"__module__": "urls_of_a_test"})
    named = {"goods": ShopSitemap, "made": ShopSitemap(), "local": local, "here": here}
    urlconf(
        path("", include("django_sitemapkit.urls")),
        path("old.xml", index, {"sitemaps": {**named, "No Name": ShopSitemap}}),
        Here=here,
    )
    make_products("a")
    _, out, _ = run("start_sitemaps")
    assert f"from {__name__} import ShopSitemap\n" in out
    assert '\nregister_all(\n    {\n        "goods": ShopSitemap,\n    }\n)\n' in out
    assert "# Left out, not a class, or one of the URLconf: No Name, here, local, made\n" in out
    assert "Product.objects" not in out


def test_pages_behind_a_login_are_left_out(sections, urlconf, settings):
    """Also if LoginRequiredMiddleware asks for it, but not those it lets pass."""
    from django.contrib.auth.decorators import login_not_required

    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    urlconf(
        path("inside/", view, name="inside"),
        path("outside/", login_not_required(lambda request: HttpResponse()), name="outside"),
    )
    _, out, err = run("start_sitemaps")
    assert 'items = ("outside",)' in out
    assert "# Left out, needs a login: inside\n" in out
    assert "urls_of_a_test" in err
    assert 'path("", include("django_sitemapkit.urls")),' in err


def test_pages_without_end_are_split_into_lines(sections, urlconf):
    """A formatter would do the same, and splits no line that is short enough."""
    names = [f"a-rather-long-name-of-page-{number}" for number in range(4)]
    urlconf(*(path(f"{name}/", view, name=name) for name in names))
    _, out, _ = run("start_sitemaps")
    assert "    items = (\n" + "".join(f'        "{name}",\n' for name in names) + "    )\n" in out


def test_it_writes_into_an_app(sections, app):
    """The file has what would be printed."""
    _, printed, _ = run("start_sitemaps")
    code, out, err = run("start_sitemaps", "--write", "testapp")
    assert (code, (app / "sitemaps.py").read_text("utf-8")) == (0, printed)
    assert str(app / "sitemaps.py") in out
    assert "manage.py check" in err


@pytest.mark.parametrize("existing", ["sitemaps.py", "sitemaps/__init__.py"])
def test_it_never_overwrites(sections, app, existing):
    """Nor does it put a file beside a package, which would hide it."""
    file = app / existing
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine\n")
    code, out, err = run("start_sitemaps", "--write", "testapp")
    assert (code, out) == (2, "")
    assert "Name another app" in err
    assert file.read_text() == "mine\n"
    assert len(list(app.rglob("sitemaps*"))) == 1


def test_a_file_that_is_no_module_stays(sections, app):
    """Such as a link to a file that is not there."""
    (app / "sitemaps.py").symlink_to(app / "elsewhere.py")
    code, out, _ = run("start_sitemaps", "--write", "testapp")
    assert (code, out) == (2, "")
    assert not (app / "elsewhere.py").exists()


@pytest.mark.parametrize("name", ["auth", "nowhere"])
def test_it_writes_into_apps_of_the_project_only(sections, name, tmp_path, monkeypatch):
    """Neither into an installed package, nor into an app that is not there."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    monkeypatch.setattr(apps.get_app_config("auth"), "path", str(installed))
    code, out, err = run("start_sitemaps", "--write", name)
    assert (code, out) == (2, "")
    assert name in err
    assert not list(installed.iterdir())


def test_nothing_is_written_if_nothing_is_left(sections, app, urlconf, monkeypatch):
    """It says why, and ends well."""
    urlconf(path("", include("django_sitemapkit.urls")))
    monkeypatch.setattr(apps, "get_models", lambda: [Product])
    sections.add(Products)
    code, out, err = run("start_sitemaps", "--write", "testapp")
    assert (code, err) == (0, "")
    assert "in a section already" in out
    assert not list(app.iterdir())


def test_quiet_it_says_nothing_besides(sections):
    """With ``--verbosity 0`` there is the module alone."""
    code, out, err = run("start_sitemaps", "--verbosity", "0")
    assert (code, err) == (0, "")
    assert "class Products" in out


def test_it_runs_no_checks(sections, capsys, monkeypatch):
    """They would say that there is no section yet."""
    monkeypatch.setattr(connections, "close_all", lambda: None)
    Command().run_from_argv(["manage.py", "start_sitemaps", "--verbosity", "0"])
    printed = capsys.readouterr()
    assert "class Products" in printed.out
    assert printed.err == ""
