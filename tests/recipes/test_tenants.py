"""The recipe of tenants.md, followed with django-tenants on PostgreSQL."""

import os
from urllib.parse import urlsplit

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import ROOT, blocks_of, dedented

pytestmark = pytest.mark.recipes

SERVER = os.environ.get("TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432")
DATABASE = "sitemapkit_tenants"

FILES = {
    "settings.py": """
        from pathlib import Path

        BASE_DIR = Path(__file__).parent
        SECRET_KEY = "tenants"
        ALLOWED_HOSTS = ["*"]
        DATABASES = {{
            "default": {{
                "ENGINE": "django_tenants.postgresql_backend",
                "NAME": "{database}",
                "USER": "{server.username}",
                "PASSWORD": "{password}",
                "HOST": "{server.hostname}",
                "PORT": "{port}",
            }}
        }}
        DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        SHARED_APPS = ["django_tenants", "customers"]
        TENANT_APPS = ["django.contrib.contenttypes", "django_sitemapkit", "shop"]
        INSTALLED_APPS = SHARED_APPS + TENANT_APPS
        TENANT_MODEL = "customers.Customer"
        TENANT_DOMAIN_MODEL = "customers.Domain"
        MIDDLEWARE = ["django_tenants.middleware.main.TenantMainMiddleware"]
        ROOT_URLCONF = "urls"
        STORAGES = {{
            "default": {{"BACKEND": "django.core.files.storage.FileSystemStorage"}},
            "sitemaps": {{
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {{"location": BASE_DIR / "files"}},
            }},
        }}
        SITEMAPKIT_MAX_URLS = 20
        USE_TZ = True
    """,
    "manage.py": """
        import sys
        from django.core.management import execute_from_command_line

        if __name__ == "__main__":
            execute_from_command_line(sys.argv)
    """,
    "urls.py": """
        from django.urls import include, path

        urlpatterns = [path("", include("django_sitemapkit.urls"))]
    """,
    "customers/__init__.py": "",
    "customers/models.py": """
        from django.db import models
        from django_tenants.models import DomainMixin, TenantMixin

        class Customer(TenantMixin):
            name = models.CharField(max_length=20)

        class Domain(DomainMixin):
            pass
    """,
    "shop/__init__.py": "",
    "shop/models.py": """
        from django.db import models

        class Product(models.Model):
            slug = models.SlugField()

            def get_absolute_url(self):
                return f"/{self.slug}/"
    """,
    "shop/sitemaps.py": """
        import os, time
        from pathlib import Path
        from django_sitemapkit import Section, register
        from shop.models import Product

        PROCESSES = Path("processes")

        @register
        class Products(Section):
            queryset = Product.objects.all()

            def location(self, product):
                if PROCESSES.exists():
                    (PROCESSES / str(os.getpid())).touch()
                    if len(os.listdir(PROCESSES)) == 1:
                        time.sleep(0.2)  # The other one is still starting.
                return product.get_absolute_url()
    """,
    "run.py": """
        import gzip, json, os, re, shutil, subprocess, sys, threading
        import django

        django.setup()
        from django.core.checks import run_checks
        from django.core.management import call_command
        from django.db import connection
        from django.test import Client
        from django_tenants.utils import tenant_context

        if __name__ == "__main__":
            call_command("makemigrations", "customers", "shop", verbosity=0)
            call_command("migrate_schemas", schema_name="public", verbosity=0)
            from customers.models import Customer, Domain
            from django_sitemapkit.builds import requests
            from django_sitemapkit.models import Build, BuildRequest, UrlOverride
            from django_sitemapkit.sites import all_sites
            from shop.models import Product

            def read(host):
                found = []
                index = Client().get("/sitemap.xml", headers={"host": host})
                for address in re.findall("<loc>(.*?)</loc>", index.getvalue().decode()):
                    path = address.removeprefix(f"https://{host}")
                    document = Client().get(path, headers={"host": host}).getvalue()
                    found += re.findall("<loc>(.*?)</loc>", gzip.decompress(document).decode())
                return sorted(found)

            def manage(*arguments):
                return subprocess.run([sys.executable, "manage.py", *arguments]).returncode

            Customer.objects.create(schema_name="public", name="public")
            tenants = {}
            for name in ("tea", "coffee"):
                tenant = tenants[name] = Customer.objects.create(schema_name=name, name=name)
                Domain.objects.create(domain=f"{name}.example.com", tenant=tenant, is_primary=True)
                with tenant_context(tenant):
                    Product.objects.bulk_create(Product(slug=f"{name}-{n}") for n in range(100))
            with tenant_context(tenants["tea"]):
                UrlOverride.objects.create(site="tea", path="/tea-0/", include=False)
                UrlOverride.objects.create(site="coffee", path="/coffee-0/", include=False)
            answers = {"live": {name: read(f"{name}.example.com") for name in tenants}}
            os.mkdir("processes")
            call_command("tenant_command", "build_sitemaps", "--workers", "2", schema_name="tea")
            answers["processes"] = len(os.listdir("processes"))
            shutil.rmtree("processes")
            answers["public"] = manage("all_tenants_command", "build_sitemaps")
            with open("commands") as commands:
                answers["documented"] = [manage(*line.split()[2:]) for line in commands]
            answers["built"] = {name: read(f"{name}.example.com") for name in tenants}
            with tenant_context(tenants["tea"]):
                answers["builds"] = Build.objects.count()
                (site,) = all_sites()
                requests.record_request(site, BuildRequest.Kind.BUILD)
                requests.start_processing_on_commit(site)
                for thread in threading.enumerate():
                    if thread.name.startswith("sitemapkit-tea"):
                        thread.join(60)
                outcomes = BuildRequest.objects.values_list("outcome", flat=True)
                answers["requests"] = [[found["code"], found["urls"]] for found in outcomes]
            connection.set_schema_to_public()
            answers["checks"] = [found.id for found in run_checks()]
            print(json.dumps(answers))
    """,
}


@pytest.fixture
def database():
    """Make an empty database."""
    psycopg = pytest.importorskip("psycopg")
    try:
        connection = psycopg.connect(f"{SERVER}/postgres", autocommit=True)
    except psycopg.OperationalError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs PostgreSQL: {error}")
    with connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {DATABASE}")
        yield
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")


def test_each_tenant_has_a_sitemap_of_its_own(tmp_path, database):
    """Live, and built by two processes; its overrides are not those of another."""
    require_package("django-tenants", "django_tenants")
    server = urlsplit(SERVER)
    said = {"database": DATABASE, "server": server, "password": server.password or ""}
    files = {name: dedented(text) for name, text in FILES.items()}
    files["settings.py"] = files["settings.py"].format(**said, port=server.port or "")
    for block in blocks_of(ROOT / "docs" / "tenants.md"):
        if block.heading == "Subdomains without schemas":
            continue
        if block.file:
            files[block.file] = files.get(block.file, "") + block.text
        elif block.language == "sh":
            files["commands"] = block.text
    answers = answers_of(files, tmp_path)
    for how in ("live", "built"):
        expected = [f"https://tea.example.com/tea-{n}/" for n in range(1, 100)]
        assert answers[how]["tea"] == sorted(expected)
        expected = [f"https://coffee.example.com/coffee-{n}/" for n in range(100)]
        assert answers[how]["coffee"] == sorted(expected)
    assert answers["public"] == 2
    assert answers["documented"] == [0, 0]
    assert answers["builds"] == 3
    assert answers["requests"] == [["unchanged", 99]]
    assert [found for found in answers["checks"] if found.startswith("sitemapkit")] == []
    assert answers["processes"] == 2
