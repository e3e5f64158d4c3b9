"""The recipes of watching.md, each followed on a project of its own with the real package."""

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

FILES = {
    "settings.py": """
        from pathlib import Path

        BASE_DIR = Path(__file__).parent
        SECRET_KEY = "watching"
        ALLOWED_HOSTS = ["www.example.com"]
        DATABASES = {
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}
        }
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        INSTALLED_APPS = ["django_sitemapkit", "shop"]
        ROOT_URLCONF = "urls"
        SITEMAPKIT_BASE_URL = "https://www.example.com"
        STORAGES = {"sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"}}
        USE_TZ = True
    """,
    "urls.py": """
        from django.http import HttpResponse
        from django.urls import include, path

        urlpatterns = [
            path("", include("django_sitemapkit.urls")),
            path("<slug:slug>/", lambda request, slug: HttpResponse(slug), name="product"),
        ]
    """,
    "shop/__init__.py": "",
    "shop/management/__init__.py": "",
    "shop/management/commands/__init__.py": "",
    "shop/models.py": """
        from django.db import models
        from django_sitemapkit import Route, SitemapMixin

        class Product(SitemapMixin, models.Model):
            slug = models.SlugField()

            class Sitemap:
                location = Route("product", slug="slug")
                limit = 2
    """,
}
BEGIN = """
    import json
    import django

    django.setup()
    from django.core.management import CommandError, call_command
    from django.test import RequestFactory
    from shop.models import Product

    call_command("migrate", run_syncdb=True, verbosity=0)
    Product.objects.bulk_create(Product(slug=f"p{n}") for n in range(6))
"""


def follow(name, package, module, folder, run):
    """Write the files of a recipe into a project, run it, and return what it answers."""
    require_package(package, module)
    files = FILES | {"run.py": dedented(BEGIN) + dedented(run)}
    files = {path: dedented(text) for path, text in files.items()}
    blocks = [b for b in blocks_of(ROOT / "docs" / "watching.md") if b.heading == name and b.file]
    assert blocks
    files |= {block.file: block.text for block in blocks}
    return answers_of(files, folder)


def samples_of(text):
    """Return the values in the text format of Prometheus by name and labels."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_prometheus(tmp_path):
    """The web process exports what the database has, also of builds that are held or fail."""
    answers = follow(
        "Prometheus",
        *("prometheus-client", "prometheus_client"),
        tmp_path,
        """
            import time
            from shop import metrics

            def scraped():
                return metrics.metrics(RequestFactory().get("/metrics")).content.decode()

            answers = {"began": time.time(), "before": scraped()}
            call_command("build_sitemaps", verbosity=0)
            call_command("build_sitemaps", verbosity=0)
            for rows in (Product.objects.filter(slug__gt="p0"), Product.objects.all()):
                rows.delete()
                try:
                    call_command("build_sitemaps", verbosity=0)
                except CommandError:
                    answers["after"] = scraped()
            print(json.dumps(answers))
        """,
    )
    assert samples_of(answers["before"]) == {}
    after = samples_of(answers["after"])
    published = after.pop('sitemap_published_timestamp_seconds{site="default"}')
    assert 0 <= published - answers["began"] + 1 < 60
    statuses = ("published", "unchanged", "held", "failed")
    assert after == {f'sitemap_builds{{site="default",status="{each}"}}': 1 for each in statuses}


def test_sentry(tmp_path):
    """A check-in opens the run and closes it; a held build closes it with an error."""
    answers = follow(
        "Sentry",
        *("sentry-sdk", "sentry_sdk"),
        tmp_path,
        """
            import sentry_sdk
            from sentry_sdk.transport import Transport

            class Kept(Transport):
                def capture_envelope(self, envelope):
                    for item in envelope.items:
                        if item.headers["type"] == "check_in":
                            sent.append(item.payload.json)

            sent = []
            dsn = "https://key@sentry.example.com/1"
            sentry_sdk.init(dsn=dsn, transport=Kept, auto_enabling_integrations=False)
            call_command("nightly_sitemaps")
            Product.objects.filter(slug__gt="p0").delete()
            try:
                call_command("nightly_sitemaps")
            except CommandError as error:
                code = error.returncode
            print(json.dumps({"code": code, "sent": sent}))
        """,
    )
    first, *_ = answers["sent"]
    assert [each["status"] for each in answers["sent"]] == [
        *("in_progress", "ok"),
        *("in_progress", "error"),
    ]
    assert {each["monitor_slug"] for each in answers["sent"]} == {"nightly-sitemaps"}
    assert first["monitor_config"]["schedule"] == {"type": "crontab", "value": "30 3 * * *"}
    assert answers["code"] == 3
