"""Classes over the models of packages: as they are, by the drop-in, and as sections."""

import re
from itertools import chain

import pytest

from tests.recipes.projects import answers_of, require_package
from tests.test_docs import dedented

pytestmark = pytest.mark.recipes

MPTT = """
    from django.db import models
    from django.urls import reverse
    from mptt.models import MPTTModel, TreeForeignKey

    class Node(MPTTModel):
        slug = models.SlugField()
        parent = TreeForeignKey("self", models.CASCADE, null=True, related_name="children")

        def get_absolute_url(self):
            steps = self.get_ancestors(include_self=True).values_list("slug", flat=True)
            return reverse("page", args=["/".join(steps)])

    def make():
        root = Node.objects.create(slug="tea")
        green = Node.objects.create(slug="green", parent=root)
        Node.objects.create(slug="sencha", parent=green)
        Node.objects.create(slug="black", parent=root)
        Node.objects.create(slug="coffee")
"""
TREEBEARD = """
    from django.db import models
    from django.urls import reverse
    from treebeard.mp_tree import MP_Node

    class Node(MP_Node):
        slug = models.SlugField()

        def get_absolute_url(self):
            steps = [node.slug for node in self.get_ancestors()]
            return reverse("page", args=["/".join([*steps, self.slug])])

    def make():
        root = Node.add_root(slug="tea")
        root.add_child(slug="green").add_child(slug="sencha")
        Node.objects.get(slug="tea").add_child(slug="black")
        Node.add_root(slug="coffee")
"""
POLYMORPHIC = """
    from django.db import models
    from django.urls import reverse
    from polymorphic.models import PolymorphicModel

    class Node(PolymorphicModel):
        slug = models.SlugField()

        def get_absolute_url(self):
            return reverse("page", args=[self.slug])

    class Tea(Node):
        def get_absolute_url(self):
            return reverse("page", args=[f"tea/{self.slug}"])

    class Green(Tea):
        leaf = models.SlugField()

        def get_absolute_url(self):
            return reverse("page", args=[f"tea/green/{self.leaf}"])

    def make():
        Node.objects.create(slug="coffee")
        Node.objects.create(slug="tea")
        for slug in ("black", "green"):
            Tea.objects.create(slug=slug)
        Green.objects.create(slug="best", leaf="sencha")
"""
PACKAGES = {
    "django-mptt": ("mptt", MPTT),
    "django-treebeard": ("treebeard", TREEBEARD),
    "django-polymorphic": ("polymorphic", POLYMORPHIC),
}

SETTINGS = """
    SECRET_KEY = "packages"
    ALLOWED_HOSTS = ["www.example.com"]
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    INSTALLED_APPS = [
        "django.contrib.contenttypes", "django.contrib.sitemaps", "PACKAGE", "django_sitemapkit",
        "shop",
    ]
    ROOT_URLCONF = "urls"
    SITEMAPKIT_BASE_URL = "https://www.example.com"
    STORAGES = {"sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"}}
    TEMPLATES = [
        {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}
    ]
    USE_TZ = True
"""
URLS = """
    from django.contrib import sitemaps as old
    from django.contrib.sitemaps.views import sitemap as old_view
    from django.http import HttpResponse
    from django.urls import include, path
    from django_sitemapkit.contrib import sitemaps as drop_in
    from django_sitemapkit.contrib.sitemaps.views import sitemap as drop_in_view

    from shop.models import Node

    def nodes(base):
        class Nodes(base):
            limit = 2

            def items(self):
                return Node.objects.all()

        return {"nodes": Nodes}

    urlpatterns = [
        path("", include("django_sitemapkit.urls")),
        path("old.xml", old_view, {"sitemaps": nodes(old.Sitemap)}),
        path("drop-in.xml", drop_in_view, {"sitemaps": nodes(drop_in.Sitemap)}),
        path("<path:steps>/", lambda request, steps: HttpResponse(), name="page"),
    ]
"""
RUN = """
    import gzip, json, re

    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from django_sitemapkit import Section, register, register_all

    call_command("migrate", run_syncdb=True, verbosity=0)
    from django.contrib.sitemaps import Sitemap
    from shop.models import Node, make
    from urls import nodes

    make()
    register_all(nodes(Sitemap))

    @register
    class Native(Section):
        queryset = Node.objects.all()
        limit = 2

    if hasattr(Node, "get_real_instance"):
        # Else sitemapkit.E102 says so.
        Native.queryset = Node.objects.non_polymorphic()
        Native.location = lambda self, node: node.get_real_instance().get_absolute_url()

    def read(path):
        response = Client(headers={"host": "www.example.com"}).get(path, secure=True)
        assert response.status_code == 200, path
        data = response.getvalue()
        return (gzip.decompress(data) if path.endswith(".gz") else data).decode()

    def by_index(name):
        addresses = re.findall("<loc>https://www.example.com(.*?)</loc>", read("/sitemap.xml"))
        return [read(path) for path in addresses if path.startswith(f"/sitemap-{name}-")]

    call_command("check", fail_level="WARNING", verbosity=0)
    answers = {way: [read(f"/{way}.xml?p={n}") for n in (1, 2, 3)] for way in ("old", "drop-in")}
    answers |= {f"{name}, live": by_index(name) for name in ("nodes", "native")}
    call_command("build_sitemaps", "--fail-on-skipped", verbosity=0)
    answers |= {f"{name}, built": by_index(name) for name in ("nodes", "native")}
    print(json.dumps(answers))
"""


@pytest.mark.parametrize("name", PACKAGES)
def test_the_models_of_a_package(name, tmp_path):
    """Every way lists what contrib's view does: ancestors of trees, and rows by their class."""
    module, models = PACKAGES[name]
    require_package(name, module)
    files = {
        "settings.py": SETTINGS.replace("PACKAGE", module),
        "urls.py": URLS,
        "run.py": RUN,
        "shop/__init__.py": "",
        "shop/models.py": models,
    }
    answers = answers_of({path: dedented(text) for path, text in files.items()}, tmp_path)
    expected = ["coffee", "tea", "tea/black", "tea/green", "tea/green/sencha"]
    for way, pages in answers.items():
        listed = [re.findall("<loc>https://www.example.com/(.*?)/</loc>", page) for page in pages]
        assert sorted(chain.from_iterable(listed)) == expected, way
        assert [len(page) for page in listed] in ([2, 2, 1], [1, 1, 1, 1, 1]), way
