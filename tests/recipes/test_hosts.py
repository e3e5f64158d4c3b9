"""The recipe of tenants.md for subdomains, followed with django-hosts."""

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

FILES = {
    "settings.py": """
        from pathlib import Path

        BASE_DIR = Path(__file__).parent
        SECRET_KEY = "hosts"
        ALLOWED_HOSTS = [".example.com"]
        DATABASES = {
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}
        }
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        INSTALLED_APPS = ["django_hosts", "django_sitemapkit", "shop"]
        MIDDLEWARE = [
            "django_hosts.middleware.HostsRequestMiddleware",
            "django_hosts.middleware.HostsResponseMiddleware",
        ]
        ROOT_URLCONF = "urls"
        ROOT_HOSTCONF = "shop.hosts"
        DEFAULT_HOST = "www"
        STORAGES = {
            "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
            "sitemaps": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": BASE_DIR / "files"},
            },
        }
        USE_TZ = True
    """,
    "urls.py": """
        from django.http import HttpResponse
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("shops/<slug:slug>/", lambda request, slug: HttpResponse(slug), name="shop"),
        ]
    """,
    "shop/__init__.py": "",
    "shop/urls.py": """
        from django.http import HttpResponse
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("<slug:slug>/", lambda request, slug: HttpResponse(slug), name="product"),
        ]
    """,
    "shop/models.py": """
        from django.db import models

        class Shop(models.Model):
            slug = models.SlugField()

        class Product(models.Model):
            shop = models.ForeignKey(Shop, models.CASCADE)
            slug = models.SlugField()
    """,
    "run.py": """
        import gzip, json, re
        import django

        django.setup()
        from django.core.checks import run_checks
        from django.core.management import call_command
        from django.test import Client

        def read(host):
            found = []
            index = Client().get("/sitemap.xml", headers={"host": host})
            for address in re.findall("<loc>(.*?)</loc>", index.getvalue().decode()):
                path = address.removeprefix(f"https://{host}")
                document = Client().get(path, headers={"host": host}).getvalue()
                if path.endswith(".gz"):
                    document = gzip.decompress(document)
                found += re.findall("<loc>(.*?)</loc>", document.decode())
            return sorted(found)

        def checked():
            return [found.id for found in run_checks() if found.id.startswith("sitemapkit")]

        def read_all():
            return {host: read(f"{host}.example.com") for host in ("www", "tea", "coffee")}

        call_command("makemigrations", "shop", verbosity=0)
        answers = {"checks": [checked()]}
        call_command("migrate", verbosity=0)
        answers["checks"].append(checked())
        from shop.models import Product, Shop
        for name in ("tea", "coffee"):
            shop = Shop.objects.create(slug=name)
            Product.objects.bulk_create(Product(shop=shop, slug=f"{name}-{n}") for n in range(3))
        answers["checks"].append(checked())
        answers["live"] = read_all()
        call_command("build_sitemaps")
        answers["built"] = read_all()
        print(json.dumps(answers))
    """,
}


def test_each_host_has_a_sitemap_of_its_own(tmp_path):
    """Live and built; no check finds fault with it, but that an empty database lacks tables.

    Django 6.1 has databases checked without being asked to.
    """
    require_package("django-hosts", "django_hosts")
    files = {name: dedented(text) for name, text in FILES.items()}
    for block in blocks_of(ROOT / "docs" / "tenants.md"):
        if block.heading == "Subdomains without schemas" and block.file:
            files[block.file] = files.get(block.file, "") + block.text
    answers = answers_of(files, tmp_path)
    for how in ("live", "built"):
        assert answers[how] == {
            "www": [f"https://www.example.com/shops/{shop}/" for shop in ("coffee", "tea")],
            "tea": [f"https://tea.example.com/tea-{n}/" for n in range(3)],
            "coffee": [f"https://coffee.example.com/coffee-{n}/" for n in range(3)],
        }
    empty, *others = answers["checks"]
    assert empty in ([], ["sitemapkit.W041"])
    assert others == [[], []]
