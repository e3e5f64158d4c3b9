"""The recipe of tenants.md for one schema and many hosts, followed with django-hosts."""

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

FILES = {
    "settings.py": """
        from pathlib import Path

        SECRET_KEY = "hosts"
        ALLOWED_HOSTS = [".example.com"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        INSTALLED_APPS = [
            "django.contrib.contenttypes", "django_hosts", "django_sitemapkit", "shop",
        ]
        MIDDLEWARE = [
            "django_hosts.middleware.HostsRequestMiddleware",
            "django_hosts.middleware.HostsResponseMiddleware",
        ]
        DEFAULT_HOST = "www"
        PARENT_HOST = "example.com"
        ROOT_HOSTCONF = "shop.hosts"
        ROOT_URLCONF = "shop.urls"
        STORAGES = {
            "sitemaps": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": Path(__file__).parent / "files"},
            }
        }
        USE_TZ = True
    """,
    "shop/__init__.py": "",
    "shop/models.py": """
        from django.db import models

        class Shop(models.Model):
            slug = models.SlugField()

        class Product(models.Model):
            shop = models.ForeignKey(Shop, models.CASCADE)
            slug = models.SlugField()
    """,
    "shop/urls.py": """
        from django.http import HttpResponse
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("", lambda request: HttpResponse("home"), name="home"),
        ]
    """,
    "shop/urls_of_shop.py": """
        from django.http import HttpResponse
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("<slug:slug>/", lambda request, slug: HttpResponse(slug), name="product"),
        ]
    """,
    "run.py": """
        import gzip, json, re
        import django

        django.setup()
        from django.core.checks import run_checks
        from django.core.management import call_command
        from django.test import Client

        call_command("migrate", run_syncdb=True, verbosity=0)
        from shop.models import Product, Shop

        def read(host):
            client, found = Client(headers={"host": host}), []
            index = client.get("/sitemap.xml").getvalue().decode()
            for address in re.findall("<loc>(.*?)</loc>", index):
                page = client.get(address.removeprefix(f"https://{host}")).getvalue()
                page = gzip.decompress(page) if page[:2] == b"\\x1f\\x8b" else page
                found += re.findall("<loc>(.*?)</loc>", page.decode())
            return found

        for name in ("tea", "coffee"):
            Product.objects.create(shop=Shop.objects.create(slug=name), slug=f"{name}-pot")
        hosts = [f"{name}.example.com" for name in ("www", "tea", "coffee")]
        answers = {"checks": [found.id for found in run_checks()]}
        answers["live"] = [read(host) for host in hosts]
        call_command("build_sitemaps", "--site", "tea", verbosity=0)
        call_command("build_sitemaps", verbosity=0)
        answers["built"] = [read(host) for host in hosts]
        print(json.dumps(answers))
    """,
}


def test_each_host_has_a_sitemap_of_its_own(tmp_path):
    """The URLs of its shop alone, by the URLconf of its host; live and built alike."""
    require_package("django-hosts", "django_hosts")
    files = {name: dedented(text) for name, text in FILES.items()}
    for block in blocks_of(ROOT / "docs" / "tenants.md"):
        if block.file and block.heading == "Subdomains without schemas":
            files[block.file] = files.get(block.file, "") + block.text
    answers = answers_of(files, tmp_path)
    expected = [
        ["https://www.example.com/"],
        ["https://tea.example.com/tea-pot/"],
        ["https://coffee.example.com/coffee-pot/"],
    ]
    assert answers["live"] == answers["built"] == expected
    assert [found for found in answers["checks"] if found.startswith("sitemapkit")] == []
