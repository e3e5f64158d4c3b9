"""The recipe of recipes.md for django CMS, followed with the package."""

from urllib.parse import urlsplit

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

FILES = {
    "settings.py": """
        SECRET_KEY = "cms"
        ALLOWED_HOSTS = ["*"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        INSTALLED_APPS = [
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "django.contrib.sites",
            "django.contrib.sitemaps",
            "cms",
            "menus",
            "treebeard",
            "sekizai",
            "django_sitemapkit",
            "shop",
        ]
        MIDDLEWARE = [
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ]
        TEMPLATES = [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                        "django.template.context_processors.request",
                        "sekizai.context_processors.sekizai",
                        "cms.context_processors.cms_settings",
                    ]
                },
            }
        ]
        CMS_CONFIRM_VERSION4 = True
        CMS_TEMPLATES = [("page.html", "Page")]
        LANGUAGE_CODE = "en"
        LANGUAGES = [("en", "English"), ("de", "German")]
        ROOT_URLCONF = "urls"
        SITE_ID = 1
        SITEMAPKIT_BASE_URL = "https://www.example.com"
        STATIC_URL = "/static/"
        USE_TZ = True
        X_FRAME_OPTIONS = "SAMEORIGIN"
    """,
    "urls.py": """
        from cms.sitemaps import CMSSitemap
        from django.conf.urls.i18n import i18n_patterns
        from django.contrib.sitemaps.views import sitemap
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("old.xml", sitemap, {"sitemaps": {"cms": CMSSitemap}}),
            *i18n_patterns(path("", include("cms.urls"))),
        ]
    """,
    "shop/__init__.py": "",
    "shop/templates/page.html": "",
    "run.py": """
        import json

        import django

        django.setup()
        from cms.api import create_page, create_page_content
        from cms.sitemaps import CMSSitemap
        from django.core.management import call_command
        from django.db import transaction
        from django.test import Client

        from django_sitemapkit import register

        call_command("migrate", verbosity=0)
        register(CMSSitemap, name="cms")
        home = create_page("Home", "page.html", "en", slug="home")
        with transaction.atomic():
            home.set_as_homepage()
        about = create_page("About", "page.html", "en", slug="about")
        create_page_content("de", "Ueber", about, slug="ueber")
        create_page("English", "page.html", "en", slug="english")
        create_page("Members", "page.html", "en", slug="members", login_required=True)
        create_page("Moved", "page.html", "en", slug="moved", redirect="/en/about/")

        def read(path):
            response = Client().get(path, headers={"host": "www.example.com"})
            assert response.status_code == 200, path
            return response.getvalue().decode()

        call_command("check", verbosity=0)
        names = {"old": "/old.xml", "old class": "/sitemap-cms-1.xml"}
        names["section"] = "/sitemap-pages-1.xml"
        print(json.dumps({name: read(path) for name, path in names.items()}))
    """,
}


def test_the_pages_of_django_cms(tmp_path):
    """The class as it is lists what contrib's view does; the section links the languages, too."""
    require_package("django-cms", "cms")
    files = {name: dedented(text) for name, text in FILES.items()}
    (recipe,) = [b for b in blocks_of(ROOT / "docs" / "recipes.md") if b.heading == "django CMS"]
    files[recipe.file] = recipe.text
    answers = answers_of(files, tmp_path)
    listed = {name: sorted(locations(text)) for name, text in answers.items()}
    expected = ["/de/ueber/", "/en/", "/en/about/", "/en/english/"]
    assert listed["old"] == expected
    assert listed["old class"] == listed["section"] == listed["old"]
    assert answers["section"].count('hreflang="de"') == answers["section"].count('"en"') == 2


def locations(text):
    """Return the paths of a document's locations."""
    return [urlsplit(part.partition("<")[0]).path for part in text.split("<loc>")[1:]]
