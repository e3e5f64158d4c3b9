"""Whole projects: what the command writes for them, and what a build lists then."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.walkthrough import call
from tests.test_docs import ROOT, dedented

pytestmark = pytest.mark.slow

IN_MEMORY = {
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
}
SETTINGS = """
    from pathlib import Path

    BASE_DIR = Path(__file__).parent
    SECRET_KEY = "scaffold"
    ALLOWED_HOSTS = ["www.example.com"]
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db"}}
    DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    INSTALLED_APPS = [
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django.contrib.sites",
        "django.contrib.flatpages",
        "django.contrib.redirects",
        "django_sitemapkit",
        "blog",
        "shop",
    ]
    LANGUAGES = [("en", "English"), ("fr", "French")]
    MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.locale.LocaleMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    ]
    ROOT_URLCONF = "urls"
    SITE_ID = 1
    SITEMAPKIT_BASE_URL = "https://www.example.com"
    STORAGES = {"sitemaps": {"BACKEND": "django.core.files.storage.InMemoryStorage"}}
    TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": [
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                    "django.template.context_processors.request",
                ]
            },
        }
    ]
    USE_TZ = True
"""

SHOP = """
    from django.db import models
    from django.urls import reverse

    class Dated(models.Model):
        created_at = models.DateTimeField(auto_now_add=True)
        modified = models.DateTimeField(auto_now=True)

        class Meta:
            abstract = True

    class Category(models.Model):
        slug = models.SlugField()

        def get_absolute_url(self):
            return reverse("category", args=[self.slug])

    class Product(Dated):
        slug = models.SlugField()
        is_published = models.BooleanField(default=True)
        is_deleted = models.BooleanField(default=False)
        has_page = models.BooleanField(default=True)

        def get_absolute_url(self):
            return reverse("product", args=[self.slug])

    class Book(Product):
        isbn = models.CharField(max_length=20)

    class Kit(Product):
        parts = models.IntegerField(default=2)

        def get_absolute_url(self):
            return reverse("kit", args=[self.slug])

    class Bargain(Product):
        class Meta:
            proxy = True

    class Order(Dated):
        def get_absolute_url(self):
            return reverse("order", args=[self.pk])

    class Review(models.Model):
        product = models.ForeignKey(Product, models.CASCADE)

        def get_absolute_url(self):
            return self.product.get_absolute_url()

    class Remark(models.Model):
        def get_absolute_url(self):
            return f"/shop/#remark-{self.pk}"

    class Shelf(models.Model):
        def get_absolute_url(self):
            return reverse("shelf", args=[self.pk])

    class Stock(models.Model):
        pk = models.CompositePrimaryKey("shelf", "product")
        shelf = models.ForeignKey(Shelf, models.CASCADE)
        product = models.ForeignKey(Product, models.CASCADE)

        def get_absolute_url(self):
            return f"/shop/{self.shelf_id}/{self.product_id}/"

    class Tag(models.Model):
        name = models.CharField(max_length=20)

    class Section(models.Model):
        slug = models.SlugField()

        def get_absolute_url(self):
            return f"/shop/{self.slug}/"
"""

BLOG = """
    from django.db import models
    from django.urls import reverse

    class Public(models.Manager):
        def get_queryset(self):
            return super().get_queryset().filter(status=2)

    class Post(models.Model):
        slug = models.SlugField()
        status = models.IntegerField(choices=[(1, "Draft"), (2, "Published")], default=2)
        state = models.CharField(max_length=5, choices=[("a", "A"), ("b", "B")], default="a")
        price_updated_at = models.DateTimeField(null=True)
        last_updated = models.DateField(auto_now_add=True)

        def get_absolute_url(self):
            return reverse("blog:post", args=[self.slug])

    class News(models.Model):
        text = models.TextField()
        status = models.IntegerField(default=2)
        is_public = models.BooleanField(default=True)

        objects = models.Manager()
        published = Public()

        class Meta:
            verbose_name_plural = "news"

        def get_absolute_url(self):
            return reverse("blog:news", args=[self.pk])

    class Category(models.Model):
        slug = models.SlugField()

        class Meta:
            verbose_name_plural = "categories"

        def get_absolute_url(self):
            return reverse("blog:category", args=[self.slug])

    class FAQ(models.Model):
        def get_absolute_url(self):
            return reverse("blog:news", args=[self.pk])

    class Archived(models.Model):
        slug = models.SlugField()

        def get_absolute_url(self):
            return f"/archive/{self.slug}/"
"""

ARCHIVE = """
    from django.contrib.sitemaps import Sitemap

    from .models import Archived

    class ArchiveSitemap(Sitemap):
        def items(self):
            return Archived.objects.order_by("pk")
"""

URLS = """
    from django.conf.urls.i18n import i18n_patterns
    from django.contrib import admin
    from django.contrib.auth.decorators import login_required
    from django.contrib.auth.mixins import LoginRequiredMixin
    from django.contrib.sitemaps import GenericSitemap
    from django.contrib.sitemaps import views as sitemap_views
    from django.contrib.syndication.views import Feed
    from django.http import HttpResponse
    from django.urls import include, path
    from django.utils.decorators import method_decorator
    from django.views.generic import CreateView, RedirectView, View

    from blog.archive import ArchiveSitemap
    from shop.models import Product, Tag

    def view(request, **kwargs):
        return HttpResponse("ok")

    class Page(View):
        def get(self, request, **kwargs):
            return HttpResponse("ok")

    class Mine(LoginRequiredMixin, Page):
        pass

    @method_decorator(login_required, name="dispatch")
    class Desk(Page):
        pass

    class NewTag(CreateView):
        model = Tag
        fields = ["name"]

    class Subscribe(View):
        def post(self, request):
            return HttpResponse("ok")

    class News(Feed):
        title = link = description = "news"

    sitemaps = {
        "kits": ArchiveSitemap,
        "generic": GenericSitemap({"queryset": Product.objects.all()}),
    }
    blog = [
        path("", Page.as_view(), name="index"),
        path("latest/", News(), name="latest"),
        path("post/<slug:slug>/", view, name="post"),
        path("news/<int:pk>/", view, name="news"),
        path("category/<slug:slug>/", view, name="category"),
    ]
    urlpatterns = [
        path("", include("django_sitemapkit.urls")),
        path("old.xml", sitemap_views.index, {"sitemaps": sitemaps}, name="old"),
        path("admin/", admin.site.urls),
        path("members/", include("django.contrib.auth.urls")),
        path("", view, name="home"),
        path("about-us/", view, name="about/us"),
        path("about-us/", view, name="about-again"),
        path("blog/", include((blog, "blog"))),
        path("basket/", view, name="basket"),
        path("sign-in/", view, name="enter"),
        path("adding-value/", view, name="value"),
        path("mine/", Mine.as_view(), name="mine"),
        path("desk/", Desk.as_view(), name="desk"),
        path("old-home/", RedirectView.as_view(url="/"), name="old-home"),
        path("tags/new/", NewTag.as_view(), name="new-tag"),
        path("subscribe/", Subscribe.as_view(), name="subscribe"),
        path("archive/<slug:slug>/", view),
        path("orders/<int:pk>/", login_required(view), name="order"),
        path("category/<slug:slug>/", view, name="category"),
        path("product/<slug:slug>/", view, name="product"),
        path("kit/<slug:slug>/", view, name="kit"),
        path("shop/<slug:slug>/", view, name="section"),
        *i18n_patterns(path("help/", view, name="help")),
    ]
"""

ROWS = """
    import django

    django.setup()
    from django.contrib.flatpages.models import FlatPage
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    import blog.models as blog
    import shop.models as shop

    FlatPage.objects.create(url="/imprint/", title="Imprint")
    for slug in "ab":
        shop.Category.objects.create(slug=slug)
        blog.Category.objects.create(slug=slug)
        blog.Post.objects.create(slug=slug)
        blog.Archived.objects.create(slug=slug)
        shop.Order.objects.create()
        shop.Remark.objects.create()
        shop.Section.objects.create(slug=slug)
        shop.Shelf.objects.create()
    blog.News.objects.create(text="new")
    product = shop.Product.objects.create(slug="a")
    shop.Kit.objects.create(slug="kit")
    shop.Book.objects.create(slug="book")
    for _ in range(2):
        shop.Review.objects.create(product=product)
"""

WRITTEN = '''
    """The sections of the sitemap."""

    from django.contrib.flatpages.models import FlatPage
    from django_sitemapkit import Section, StaticSection, register, register_all

    from blog.archive import ArchiveSitemap
    from blog.models import FAQ, Category, News, Post
    from shop.models import Category as ShopCategory
    from shop.models import Kit, Product
    from shop.models import Section as ShopSection


    @register
    class FlatPages(Section):
        queryset = FlatPage.objects.all()
        # queryset = FlatPage.objects.filter(registration_required=False)


    @register
    class Posts(Section):
        queryset = Post.objects.all()
        # queryset = Post.objects.filter(status=2, state=...)
        lastmod = "last_updated"


    @register
    class NewsSection(Section):
        queryset = News.objects.all()
        # queryset = News.published.all()


    @register
    class Categories(Section):
        queryset = Category.objects.all()


    @register
    class Faqs(Section):
        queryset = FAQ.objects.all()


    @register
    class ShopCategories(Section):
        queryset = ShopCategory.objects.all()


    @register
    class Products(Section):
        queryset = Product.objects.all()
        # queryset = Product.objects.filter(is_published=True, is_deleted=False)
        lastmod = "modified"


    @register
    class ShopKits(Section):
        queryset = Kit.objects.all()
        # queryset = Kit.objects.filter(is_published=True, is_deleted=False)
        lastmod = "modified"


    @register
    class Sections(Section):
        queryset = ShopSection.objects.all()


    @register
    class Pages(StaticSection):
        items = ("home", "/about-us/", "blog:index", "value")


    @register
    class TranslatedPages(StaticSection):
        items = ("help",)
        i18n = True
        alternates = True


    register_all(
        {
            "kits": ArchiveSitemap,
        }
    )
'''


@pytest.fixture
def project(tmp_path):
    """Write files into a folder, and return what runs Python there."""
    variables = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*arguments, **changed):
        command = [sys.executable, *map(str, arguments)]
        return call(command, cwd=tmp_path, env={**variables, **changed})

    run.folder = tmp_path
    return run


def write(folder, files):
    """Write the files of a project."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedented(text), encoding="utf-8")


BUILD = """
    import json

    import django

    django.setup()
    from django.core.management import call_command
    from django_sitemapkit.testing import built_sitemaps

    call_command("check", fail_level="WARNING")
    with built_sitemaps() as built:
        print(json.dumps(sorted(built.locations)))
"""


def listed(project, **variables):
    """Return the paths of the URLs that a build of a project lists, after its checks."""
    write(project.folder, {"build.py": BUILD})
    urls = json.loads(project("build.py", **variables).splitlines()[-1])
    return [re.sub(r"https?://[^/]+", "", url) for url in urls]


def assert_formatted(file):
    """Leave the linter and the formatter nothing to do."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        pytest.skip("needs ruff")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [ruff, *command, "--isolated", "--no-cache", str(file)],
            cwd=file.parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_project_of_many_kinds_of_models_and_urls(project):
    """It has the sections that a person would write, and says why there are no others."""
    files = {
        "settings.py": SETTINGS,
        "urls.py": URLS,
        "blog/__init__.py": "",
        "blog/models.py": BLOG,
        "blog/archive.py": ARCHIVE,
        "shop/__init__.py": "",
        "shop/models.py": SHOP,
        "rows.py": ROWS,
    }
    write(project.folder, files)
    project("rows.py")
    project("-m", "django", "start_sitemaps", "--write", "shop")
    file = project.folder / "shop" / "sitemaps.py"
    code, _, left_out = file.read_text("utf-8").partition("\n\n\n# ")
    assert f"{code}\n" == dedented(WRITTEN)
    assert_formatted(file)
    assert dict(re.findall(r"Left out, (.*?): (.*?)(?= Left out,|$)", unwrapped(left_out))) == {
        "URLs that no pattern matches": "shop.Remark",
        "a form or a redirect": "new-tag, old-home, subscribe",
        "in a section already": "blog.Archived",
        "its key has several fields": "shop.Stock",
        "needs a login": "desk, mine, shop.Order",
        "no URL for the first rows": "shop.Shelf",
        "no get_absolute_url()": "shop.Tag",
        "not a class, or one of the URLconf": "generic",
        "not a page for readers": "blog:latest, login, logout, old, password_change,"
        " password_change_done, password_reset, password_reset_complete, password_reset_done",
        "probably not for search engines": "basket, enter",
        "several rows with one URL": "shop.Review",
        "the rows of another model": "shop.Bargain, shop.Book",
    }
    assert listed(project) == [
        "/",
        "/about-us/",
        "/adding-value/",
        "/archive/a/",
        "/archive/b/",
        "/blog/",
        "/blog/category/a/",
        "/blog/category/b/",
        "/blog/news/1/",
        "/blog/post/a/",
        "/blog/post/b/",
        "/category/a/",
        "/category/b/",
        "/en/help/",
        "/fr/help/",
        "/imprint/",
        "/kit/kit/",
        "/product/a/",
        "/product/book/",
        "/product/kit/",
        "/shop/a/",
        "/shop/b/",
    ]


def unwrapped(comments):
    """Return comments as one line."""
    return " ".join(re.sub(r"^# *", "", line) for line in comments.splitlines())


MODELS = """
    from django.db import models
    from django.urls import reverse

    class Author(models.Model):
        slug = models.SlugField()

        def get_absolute_url(self):
            return reverse("author", args=[self.slug])

    class Story(models.Model):
        slug = models.SlugField()
        author = models.ForeignKey(Author, models.CASCADE)
        draft = models.BooleanField(default=True)
        updated_at = models.DateTimeField(auto_now=True)

        def get_absolute_url(self):
            return reverse("story", args=[self.author.slug, self.slug])
"""
FIRST_URLS = """
    from django.contrib import admin
    from django.http import HttpResponse
    from django.urls import path

    urlpatterns = [
        path("admin/", admin.site.urls),
        path("", lambda request: HttpResponse(), name="home"),
        path("<slug:slug>/", lambda request, slug: HttpResponse(), name="author"),
        path("<slug:author>/<slug:slug>/", lambda request, **kwargs: HttpResponse(), name="story"),
    ]
"""
FIRST = '''
    """The sections of the sitemap."""

    from django_sitemapkit import Section, StaticSection, register

    from stories.models import Author, Story


    @register
    class Authors(Section):
        queryset = Author.objects.all()


    @register
    class Stories(Section):
        queryset = Story.objects.all()
        # queryset = Story.objects.filter(draft=False)
        lastmod = "updated_at"


    @register
    class Pages(StaticSection):
        items = ("home",)
'''
FIRST_ROWS = """
    import django

    django.setup()
    from stories.models import Author, Story

    author = Author.objects.create(slug="ann")
    Story.objects.create(slug="one", author=author)
"""


def test_a_project_that_startproject_made(project):
    """Without tables, a host or the package's URLs it works, and says what to add."""
    variables = {"DJANGO_SETTINGS_MODULE": "mysite.settings"}
    project("-m", "django", "startproject", "mysite", ".", DJANGO_SETTINGS_MODULE="")
    project("manage.py", "startapp", "stories", **variables)
    write(project.folder, {"stories/models.py": MODELS, "mysite/urls.py": FIRST_URLS})
    settings = project.folder / "mysite" / "settings.py"
    with settings.open("a", encoding="utf-8") as file:
        file.write('INSTALLED_APPS += ["django_sitemapkit", "stories"]\n')
    printed = project("manage.py", "start_sitemaps", **variables)
    assert printed == dedented(FIRST)
    project("manage.py", "start_sitemaps", "--write", "stories", **variables)
    written = project.folder / "stories" / "sitemaps.py"
    assert written.read_text("utf-8") == printed
    assert_formatted(written)
    with settings.open("a", encoding="utf-8") as file:
        file.write('SITEMAPKIT_BASE_URL = "https://www.example.com"\n')
        file.write(f"STORAGES = {IN_MEMORY}\n")
    urls = project.folder / "mysite" / "urls.py"
    text = urls.read_text("utf-8").replace("import path", "import include, path")
    included = 'urlpatterns = [\n    path("", include("django_sitemapkit.urls")),'
    urls.write_text(text.replace("urlpatterns = [", included), encoding="utf-8")
    project("manage.py", "makemigrations", "stories", **variables)
    project("manage.py", "migrate", **variables)
    write(project.folder, {"rows.py": FIRST_ROWS})
    project("rows.py", **variables)
    assert listed(project, **variables) == ["/", "/ann/", "/ann/one/"]


EXAMPLE_ROWS = """
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone
    from example_project.gazetteer.models import Article, City, Country

    call_command("migrate", verbosity=0)
    names = {f"slug_{code}": f"chad-{code}" for code in ("en", "es", "fr")}
    country = Country.objects.create(iso="TD", population=1, area=1, **names)
    names = {f"slug_{code}": f"mao-{code}" for code in ("en", "es", "fr")}
    place = {"latitude": 1, "longitude": 1, "population": 1}
    City.objects.create(geonameid=7, country=country, **place, **names)
    Article.objects.create(title="Maps", slug="maps", published_at=timezone.now())
"""
EXAMPLE = '''
    """The sections of the sitemap."""

    from django_sitemapkit import Section, StaticSection, register

    from example_project.gazetteer.models import Article, City, Country


    @register
    class Countries(Section):
        queryset = Country.objects.all()
        i18n = True
        alternates = True


    @register
    class Cities(Section):
        queryset = City.objects.all()
        i18n = True
        alternates = True


    @register
    class Articles(Section):
        queryset = Article.objects.all()
        # queryset = Article.objects.published()
        lastmod = "edited_at"
        i18n = True
        alternates = True


    @register
    class Pages(StaticSection):
        items = (
            "gazetteer:home",
            "gazetteer:about",
            "gazetteer:countries",
            "gazetteer:articles",
        )
        i18n = True
        alternates = True


    # Left out, no get_absolute_url(): gazetteer.Release
    # Left out, probably not for search engines: robots
'''


def test_the_example_project_without_its_sections(project):
    """It has the four sections again, in the three languages of the project."""
    pytest.importorskip("dj_database_url")
    copy = project.folder / "example_project"
    shutil.copytree(
        ROOT / "example_project", copy, ignore=shutil.ignore_patterns("build", "*.sqlite3")
    )
    gazetteer = copy / "gazetteer"
    (gazetteer / "sitemaps.py").unlink()
    models = (gazetteer / "models.py").read_text("utf-8")
    declared = re.search(r"\n    class Sitemap:\n(?:        .+\n)+", models)[0]
    models = models.replace(declared, "").replace("Article(SitemapMixin, ", "Article(")
    (gazetteer / "models.py").write_text(models, encoding="utf-8")
    variables = {
        "DATABASE_URL": f"sqlite:///{project.folder / 'db.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "SITEMAPS_ROOT": str(project.folder / "files"),
    }
    write(project.folder, {"rows.py": EXAMPLE_ROWS})
    project("rows.py", **variables)
    project("-m", "django", "start_sitemaps", "--write", "gazetteer", **variables)
    written = gazetteer / "sitemaps.py"
    assert written.read_text("utf-8") == dedented(EXAMPLE)
    assert_formatted(written)
    assert listed(project, **variables) == [
        "/",
        "/about/",
        "/articles/",
        "/articles/maps/",
        "/countries/",
        "/countries/chad-en/",
        "/countries/chad-en/mao-en-7/",
        *("/es/", "/es/acerca-de/", "/es/articulos/", "/es/articulos/maps/", "/es/paises/"),
        *("/es/paises/chad-es/", "/es/paises/chad-es/mao-es-7/"),
        *("/fr/", "/fr/a-propos/", "/fr/articles/", "/fr/articles/maps/", "/fr/pays/"),
        *("/fr/pays/chad-fr/", "/fr/pays/chad-fr/mao-fr-7/"),
    ]
