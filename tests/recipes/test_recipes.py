"""The recipes of languages.md, each followed on a project of its own with the real package."""

import pytest
from lxml import etree

from tests.languages import links, short, texts
from tests.recipes.projects import answers_of, require_package
from tests.test_docs import PROJECT, ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

HOST = "https://www.example.com"
PACKAGES = {"django-modeltranslation": "modeltranslation", "django-parler": "parler"}

SETTINGS = """
    from base import *

    INSTALLED_APPS = [{before}"django.contrib.contenttypes", "django_sitemapkit", "shop"]
    LANGUAGE_CODE = "en"
    LANGUAGES = [("en", "English"), ("es", "Spanish"), ("zh-hans", "Chinese")]
    PARLER_LANGUAGES = {{None: [{{"code": code}} for code, _ in LANGUAGES]}}
    SITEMAPKIT_BASE_URL = "https://www.example.com"
    STORAGES = {{"sitemaps": {{"BACKEND": "django.core.files.storage.InMemoryStorage"}}}}
"""
MODELS = {
    "django-modeltranslation": {
        "shop/models.py": """
            from django.db import models

            class City(models.Model):
                slug = models.SlugField()
                name = models.CharField(max_length=100)
        """,
        "shop/translation.py": """
            from modeltranslation.translator import TranslationOptions, register

            from .models import City

            @register(City)
            class CityTranslation(TranslationOptions):
                fields = ["slug", "name"]
        """,
        "shop/sitemaps.py": """
            from django_sitemapkit import Route, Section, Translated, register

            from .models import City

            @register
            class Cities(Section):
                queryset = City.objects.all()
                location = Route("city", slug=Translated("slug"))
                i18n = True
                alternates = True
        """,
    },
    "django-parler": {
        "shop/models.py": """
            from django.db import models
            from django.urls import reverse
            from parler.models import TranslatableModel, TranslatedFields

            class City(TranslatableModel):
                public = models.BooleanField(default=True)
                translations = TranslatedFields(
                    slug=models.SlugField(),
                    name=models.CharField(max_length=100),
                )

                def get_absolute_url(self):
                    return reverse("city", kwargs={"slug": self.slug})
        """,
    },
}
URLS = """
    from django.conf.urls.i18n import i18n_patterns
    from django.urls import include, path
    from shop.views import city

    urlpatterns = [
        path("", include("django_sitemapkit.urls")),
        *i18n_patterns(path("cities/<slug:slug>/", city, name="city")),
    ]
"""
RUN = """
    import django, json
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("check", fail_level="WARNING", verbosity=0)
    from django_sitemapkit.registry import registry
    from shop.models import City

    CITIES = {
        1: {"en": "london", "es": "londres", "zh-hans": "lundun"},
        2: {"en": "seville", "es": "sevilla"},
        3: {"es": "cuenca"},
    }

    def make(cities):
        for pk, slugs in cities.items():
            city = City(pk=pk)
            for code, slug in slugs.items():
                if hasattr(city, "set_current_language"):
                    city.set_current_language(code)
                    city.slug = city.name = slug
                else:
                    setattr(city, f"slug_{code.replace('-', '_')}", slug)
            city.save()

    def read(name):
        client.get(f"/sitemap-{name}-1.xml").getvalue()  # The first one plans.
        with CaptureQueriesContext(connection) as queries:
            body = client.get(f"/sitemap-{name}-1.xml").getvalue().decode()
        own = [query for query in queries if "shop_" in query["sql"]]
        return {"body": body, "queries": len(own)}

    client = Client(headers={"host": "www.example.com"})
    names = [section.get_name() for section in registry]
    make(CITIES)
    live = {name: read(name) for name in names}
    make({pk: {"en": f"city-{pk}", "es": f"ciudad-{pk}"} for pk in range(10, 60)})
    many = {name: read(name) for name in names}
    call_command("build_sitemaps", "--fail-on-skipped", verbosity=0)
    built = {name: read(name) for name in names}
    print(json.dumps({"live": live, "many": many, "built": built}))
"""


def follow(name, folder):
    """Write the files of a recipe into a project, run it, and return what it answers."""
    page = ROOT / "docs" / "languages.md"
    blocks = [block for block in blocks_of(page) if block.heading == name]
    before = '"modeltranslation", ' if name == "django-modeltranslation" else '"parler", '
    files = {
        "base.py": PROJECT["base.py"],
        "settings.py": SETTINGS.format(before=before),
        "urls.py": URLS,
        "run.py": RUN,
        "shop/__init__.py": "",
        "shop/views.py": "def city(request, slug): ...\n",
        **MODELS[name],
    }
    files = {path: dedented(text) for path, text in files.items()}
    files |= {block.file: block.text for block in blocks if block.file}
    return answers_of(files, folder)


EXPECTED = {
    path: some
    for some in (
        ["en /en/cities/london/", "es /es/cities/londres/", "zh-Hans /zh-hans/cities/lundun/"],
        ["en /en/cities/seville/", "es /es/cities/sevilla/"],
        ["es /es/cities/cuenca/"],
    )
    for path in (link.split()[1] for link in some)
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_recipe_lists_what_is_translated(name, tmp_path):
    """Each city in the languages it has, linked to each other; live, built, and without N + 1."""
    require_package(name, PACKAGES[name])
    answers = follow(name, tmp_path)
    assert set(answers["live"]) == ({"cities", "guides"} if name == "django-parler" else {"cities"})
    for section, page in answers["live"].items():
        assert short(links(page["body"].encode()), HOST) == EXPECTED, section
        many = answers["many"][section]
        assert etree.fromstring(many["body"].encode()).tag.endswith("urlset")
        assert len(texts(many["body"].encode(), "s:loc")) == 6 + 100
        assert many["queries"] == page["queries"] <= 4
        assert answers["built"][section]["body"] == many["body"]
