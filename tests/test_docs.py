"""The documentation says what is so: its Python runs, its lists are complete, its claims hold."""

import ast
import gzip
import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
import unittest
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib import sitemaps as contrib
from django.contrib.sitemaps import views as contrib_views
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, SystemCheckError
from django.db import connection, models
from django.db.utils import ConnectionHandler
from django.template import engines
from django.test import RequestFactory, TestCase, override_settings
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.urls import path as url
from django.urls import reverse

import django_sitemapkit
from django_sitemapkit import (
    ExternalSection,
    Route,
    Section,
    StaticSection,
    checks,
    conf,
    planning,
    publishing,
    views,
)
from django_sitemapkit.admin import differences, extras, health, url_inspection
from django_sitemapkit.admin.overrides import UrlOverrideAdmin
from django_sitemapkit.audit import options as audit
from django_sitemapkit.audit.reader import SitemapReader, validate
from django_sitemapkit.builds import Runner, build, search_published
from django_sitemapkit.builds.publication import delivery, gates
from django_sitemapkit.builds.report import published, status
from django_sitemapkit.builds.report.differences import LOSS
from django_sitemapkit.contrib.people import parts
from django_sitemapkit.exceptions import InvalidSitemap
from django_sitemapkit.management.base import Exit
from django_sitemapkit.mixins import section_class_for, sitemap_options_of
from django_sitemapkit.overrides import transfer
from django_sitemapkit.planning import pages
from django_sitemapkit.reading import keysets
from django_sitemapkit.reading.sources import FIELD_PATHS
from django_sitemapkit.reading.validation import option_names
from django_sitemapkit.registry import MAX_NAME, registry
from django_sitemapkit.rendering import PageRendering, external_entries
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.submission import options as submission
from django_sitemapkit.templatetags import sitemapkit as tags
from django_sitemapkit.views import responses
from tests.testapp.models import Place, Product, Shop

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / ".github").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
RECIPES = {"django-modeltranslation", "django-parler", "Prometheus", "Sentry"}
FOLLOWED = {"migrating", "quickstart", "recipes", "tenants", "wagtail"}
"""Pages whose Python is followed as a whole, by tests of their own."""

"""What tests/recipes follows, with these packages."""
OF_SECTIONS = ("declaring.md", "languages.md", "media.md")
EDITED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    heading: str
    language: str
    text: str

    @property
    def file(self) -> str:
        """The file that the block's first line says it is."""
        named = re.match(r"# (\S+\.py)\n", self.text)
        return named[1] if named else ""

    @property
    def followed(self) -> bool:
        """Whether it is a step of a quick start, a move or a recipe, followed as a whole."""
        return self.page.stem in FOLLOWED or self.heading in {"Quick start", *RECIPES}

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield a page's fenced blocks, each with the second-level heading it is under."""
    heading, language, begin, lines = "", None, 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if language is None and line.startswith("```"):
            language, begin, lines = line[3:], number, []
        elif language is not None and line == "```":
            yield Block(page, begin, heading, language, "\n".join(lines) + "\n")
            language = None
        elif language is not None:
            lines.append(line)
        elif line.startswith("## "):
            heading = line[3:]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]


# The Python of the pages


def test_all_python_is_marked_as_such():
    """No block of Python hides from the tests under another language."""
    languages = {block.language for block in BLOCKS}
    directives = {"{eval-rst}", "{toctree}", "{include} ../CHANGELOG.md"}
    directives |= {f"{{options}} {name}" for name in [*COMMANDS, "sitemapkit crawl"]}
    plain = {"sh", "django", "xml", "text", "ini", "nginx", "apache", "yaml"}
    assert languages - directives == {"python", *plain}
    assert len(PYTHON) > 20


@pytest.mark.django_db
@pytest.mark.parametrize("block", [b for b in PYTHON if not b.followed], ids=str)
def test_the_python_runs(block, sections, monkeypatch, request):
    """A snippet runs, declares what the checks find no fault with, and gives valid pages."""
    monkeypatch.setattr(gates, "_gates", list(gates._gates))
    run = {
        "settings.py": run_settings,
        "urls.py": run_urls,
        "shop/pages.py": run_urls,
        "shop/models.py": run_models,
        "shop/views.py": run_views,
        "shop/admin.py": run_admin,
        "shop/tests.py": partial(run_tests, request),
        "shop/test_sitemaps.py": partial(run_tests, request),
        "conftest.py": partial(run_conftest, request),
    }
    builds_too = "django_sitemapkit.builds" in block.text
    has_places = "import Place\n" in block.text
    with override_settings(ROOT_URLCONF="tests.urls_languages" if has_places else "tests.urls"):
        run.get(block.file, run_builds if builds_too else run_sections)(block)


def run_settings(block):
    """Every setting exists, and has a value that it may have."""
    values = {name: value for name, value in executed(block).items() if name.isupper()}
    assert values
    # The databases of the tests are open: these are only looked at.
    assert ConnectionHandler(values.pop("DATABASES", {})).settings["default"]["ENGINE"]
    # Django 6.1 would configure the loggers of the tests, and leave them so.
    assert values.pop("LOGGING", {"loggers": {}})["loggers"].keys() <= {"django_sitemapkit"}
    with override_settings(**values):
        assert checks.sites.check_settings() == checks.sites.check_unknown_settings() == []


def run_urls(block):
    """Find the package's addresses in a URLconf."""
    urlconf = ModuleType("urls")
    vars(urlconf).update(executed(block))
    assert reverse("sitemapkit:index", urlconf=urlconf) == "/sitemap.xml"


def run_models(block):
    """Register what the models declare, and make its queryset."""
    with isolate_apps("tests.testapp"):
        found = [
            section_class_for(value, sitemap_options_of(value))
            for value in executed(block).values()
            if isinstance(value, type)
            and issubclass(value, models.Model)
            and sitemap_options_of(value)
        ]
        for section in found:
            registry.add(section)
        assert_sound(found)
        assert [str(section(SITE).get_queryset().query) for section in found]


def run_admin(block):
    """Register what the admin has no fault to find with, and leave no trace of it."""
    before, count = dict(admin.site._registry), len(health.sources)
    inspectors = len(url_inspection._registered)
    try:
        found = executed(block)
        sites = [value for value in found.values() if isinstance(value, admin.AdminSite)]
        registered = [
            each
            for site in [admin.site, *sites]
            for model, each in site._registry.items()
            if site is not admin.site or model not in before
        ]
        contributed = len(health.sources) > count or len(url_inspection._registered) > inspectors
        assert registered or contributed
        assert [message for each in registered for message in each.check()] == []
        assert all(model in before for site in sites for model in site._registry)
    finally:
        del health.sources[count:]
        del url_inspection._registered[inspectors:]
        admin.site._registry.clear()
        admin.site._registry.update(before)


def run_tests(request, block):
    """Run the tests of a block in a project that lists its public products."""
    found = executed(block)
    cases = [each for each in found.values() if is_test_case(each)]
    functions = [value for name, value in found.items() if name.startswith("test_")]
    assert cases or functions
    for function in functions:
        fixtures = {n: request.getfixturevalue(n) for n in inspect.signature(function).parameters}
        if "sitemap_registry" not in fixtures:
            registry.add(PublicProducts)
        function(**fixtures)
    for case in cases:
        registry.add(PublicProducts)
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        assert result.testsRun
        assert result.errors + result.failures == []


def is_test_case(value):
    """Return whether a value is a class of tests that a block defines."""
    is_case = isinstance(value, type) and issubclass(value, TestCase)
    return is_case and value is not TestCase


def run_conftest(request, block):
    """Name plugins that pytest has loaded."""
    plugins = executed(block)["pytest_plugins"]
    assert plugins
    assert all(request.config.pluginmanager.hasplugin(name) for name in plugins)


def run_sections(block):
    """Read the sections that were registered, where nothing may be refused."""
    executed(block)
    assert registry.is_empty != (block.file == "shop/sitemaps.py")
    assert_sound(list(registry))
    assert bool(registry.externals(SITE)) == bool(list(external_entries(SITE)))
    shop = Shop.objects.create(slug="attic")
    Product.objects.create(shop=shop, slug="tea-pot", rank="0.4", updated_at=EDITED, note="new")
    make_a_place()
    for section in registry.enabled_readers(SITE):
        read_back(section)


def make_a_place():
    """Make a place that is called differently in each language, and has pictures."""
    slugs = {"slug_en": "kyoto", "slug_es": "kioto", "slug_fr": "kyôto"}
    place = Place.objects.create(slug="kyoto", cover="kyoto.jpg", **slugs)
    place.photos.create(file="temple.jpg")
    for name, slug in slugs.items():
        place.translations.create(language_code=name[-2:], slug=slug)


def run_builds(block):
    """Publish a product by what the page shows."""
    registry.add(Products)
    shop = Shop.objects.create(slug="attic")
    Product.objects.create(shop=shop, slug="tea-pot", updated_at=EDITED)
    with files_in_memory():
        for value in executed(block).values():
            if isinstance(value, type) and issubclass(value, Runner) and value is not Runner:
                build(SITE, runner=value())
        if "register_gate" in block.text:
            build(SITE)
        assert search_published(SITE, f"{SITE.origin}/products/attic/tea-pot/").found


def run_views(block):
    """Let the view stream the first template of its page, as valid XML."""
    registry.add(Products)
    shop = Shop.objects.create(slug="attic")
    Product.objects.create(shop=shop, slug="tea-pot", updated_at=EDITED)
    (template,) = (b.text for b in BLOCKS if b.page == block.page and "<urlset" in b.text)
    (view,) = (v for n, v in executed(block).items() if callable(v) and n != "stream_template")
    loader = ("django.template.loaders.locmem.Loader", {"products.xml": template})
    options = {"loaders": [loader], "libraries": {"sitemapkit": tags.__name__}}
    engine = {"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": options}
    with override_settings(TEMPLATES=[engine]):
        response = view(RequestFactory().get("/"))
        assert response.streaming
        assert locations(response.getvalue()) == ["https://www.example.com/products/attic/tea-pot/"]


def files_in_memory():
    """Let what is built go to a storage that is new and in memory."""
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    return override_settings(STORAGES={**settings.STORAGES, "sitemaps": memory})


SITE = SitemapSite.at("https://www.example.com")


def executed(block):
    """Execute a block as if it stood in the tests' app, and return what it defines."""
    names = {"__name__": "tests.testapp.snippet", "__package__": "tests.testapp"}
    if "STORAGES[" in block.text:  # It adds to the setting that hosting.md shows.
        names["STORAGES"] = dict(settings.STORAGES)
    lines = "\n" * block.line  # so that an error tells the line of the page
    exec(compile(lines + block.text, str(block.page), "exec"), names)
    return names


def assert_sound(declared):
    """No check finds fault, and each attribute of a section is an option."""
    messages = [message.id for message in checks.declarations.check_declarations()]
    assert messages == []
    for section in declared:
        own = {
            name
            for base in section.__mro__
            if not base.__module__.startswith(("django", "builtins"))
            for name in vars(base)
            if not name.startswith("_")
        }
        assert own - {"model", "new_sitemap", "queryset_method", "filter"} <= option_names(section)


def read_back(section):
    """Render all pages of a section and let the validator read them."""
    for page in planning.pages_with_rows(section):
        rendering = PageRendering(section, page.keys, SITE.scope())
        body = b"".join(rendering)
        assert not len(rendering.problems), rendering.problems.summary()
        if rendering.urls or section.get_name() != "products":
            assert validate([body], address="https://www.example.com/sitemap.xml").valid


def test_a_wrong_snippet_fails(sections):
    """The tests above notice a name that the package does not have, and a wrong option."""
    pages = "import django_sitemapkit as kit\n@kit.register\nclass Pages(kit.StaticSection):\n"
    wrong = [
        "from django_sitemapkit import Sektion\n",
        f"{pages}    colour = 1\n",
        f"{pages}    prioritty = 1\n",
    ]
    for text in wrong:
        with registry.isolated(), pytest.raises((ImportError, AssertionError)):
            run_sections(Block(README, 1, "", "python", f"# shop/sitemaps.py\n{text}"))
    with pytest.raises(AssertionError):
        run_settings(Block(README, 1, "", "python", "SITEMAPKIT_MAX_URLZ = 5\n"))


# The quick start of the README, followed on a project of its own; tests/recipes has the other one

PROJECT = {
    "manage.py": """
        import django, json, re
        from datetime import datetime, UTC
        from django.core.management import call_command
        from django.test import Client

        django.setup()
        call_command("migrate", run_syncdb=True, verbosity=0)
        call_command("check", fail_level="INFO", verbosity=0)
        from shop.models import Product, Shop

        edited = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
        shop = Shop.objects.create(slug="attic")
        Product.objects.create(shop=shop, slug="tea-pot", public=True, updated_at=edited)
        call_command("build_sitemaps", "--fail-on-skipped", verbosity=0)
        client = Client(headers={"host": "www.example.com"})
        addresses = "sitemap.xml", "sitemap-products-1.xml", "sitemap-pages-1.xml", "robots.txt"
        answers = {}
        for address in addresses:
            response = client.get(f"/{address}")
            assert response.status_code == 200, (address, response.status_code)
            assert "Last-Modified" in response.headers or address == "robots.txt", "not published"
            answers[address] = response.getvalue().decode()
            for listed in re.findall("<loc>https://www.example.com(.*?)</loc>", answers[address]):
                assert client.get(listed).status_code == 200, listed
        print(json.dumps(answers))
    """,
    "base.py": """
        from pathlib import Path

        BASE_DIR = Path(__file__).resolve().parent
        SECRET_KEY = "docs"
        ALLOWED_HOSTS = ["www.example.com"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
        ROOT_URLCONF = "urls"
        TEMPLATES = [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"]
                },
            }
        ]
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
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
            public = models.BooleanField()
            updated_at = models.DateTimeField()
    """,
    "shop/views.py": """
        from django.http import HttpResponse

        def home(request):
            return HttpResponse("home")

        def product(request, shop, slug):
            return HttpResponse(slug)
    """,
}
"""What a reader has before the first step: an app with two models and two views."""


@pytest.mark.thorough
def test_the_quick_start_of_the_readme_works(tmp_path):
    """Who follows the steps on a new project gets valid documents."""
    steps = [block for block in BLOCKS if block.page == README and block.followed]
    answers = follow(steps, tmp_path)
    assert answers["robots.txt"].endswith("\n\nSitemap: https://www.example.com/sitemap.xml\n")
    assert ".com/</loc>" in answers["sitemap-pages-1.xml"]
    for address in ("sitemap.xml", "sitemap-products-1.xml", "sitemap-pages-1.xml"):
        assert validate([answers[address].encode()]).valid


def follow(steps, folder):
    """Write the files of a quick start into a project, run it, and return what it answers."""
    files = {name: dedented(text) for name, text in PROJECT.items()}
    files |= {block.file: block.text for block in steps if block.language == "python"}
    files["settings.py"] = (
        f"from base import *\n{files['settings.py']}\n"
        'INSTALLED_APPS += ["django.contrib.contenttypes", "shop"]\n'
    )
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
    }
    done = subprocess.run(
        [sys.executable, folder / "manage.py"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def dedented(text):
    """Return a file's text without the indentation it has here."""
    return textwrap.dedent(text).lstrip("\n")


# The lists of the pages


def text_of(name):
    """Return a page of the documentation as text."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def found_in_pages(expression):
    """Return what an expression finds in all pages."""
    return [found for page in PAGES for found in re.findall(expression, page.read_text("utf-8"))]


def rows_of(name):
    """Return the first cells of all tables of a page that are code."""
    return re.findall(r"^\| `([^`|]+)` \|", text_of(name), flags=re.MULTILINE)


def test_every_setting_is_documented():
    """Each setting has its section, in the order of the code, and no other is documented."""
    headings = re.findall(r"^## (SITEMAPKIT_\w+)$", text_of("settings.md"), flags=re.MULTILINE)
    known = [*conf.SETTING_NAMES, "SUBMIT", "AUDIT"]
    assert headings == [f"SITEMAPKIT_{name}" for name in known]
    assert set(found_in_pages(r"SITEMAPKIT_([A-Z]+(?:_[A-Z]+)*)")) <= set(known)
    assert {*submission._RULES, *audit._RULES} <= set(rows_of("settings.md"))
    assert {"BASE_URL", "SECTIONS", "URLCONF"} == conf._SITE_KEYS <= set(rows_of("settings.md"))


def test_documented_defaults_of_the_keys_are_the_defaults():
    """What the tables of SUBMIT and AUDIT in settings.md call a default is what the code takes."""
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| `([^`]+)` \|", text_of("settings.md"), re.MULTILINE)
    taken = {
        field.name: {} if field.default is MISSING else field.default
        for options in (submission.SubmitOptions, audit.AuditOptions)
        for field in fields(options)
    }
    literal = {name: text if "//" in text else ast.literal_eval(text) for name, text in rows}
    assert literal == taken


NUMBER = r"^A whole number from ([\d,]+) (?:up|to ([\d,]+))\."


def test_documented_values_are_those_that_a_setting_takes():
    """A range or a choice in settings.md is accepted to its ends, and nothing beyond it."""
    sections = re.split(r"^## SITEMAPKIT_", text_of("settings.md"), flags=re.MULTILINE)[1:]
    compared = 0
    for section in sections:
        name, _, text = section.partition("\n\n")
        if name not in conf.SETTING_NAMES:
            continue
        check = partial(vars(conf.Settings)[name]._check, name)
        said = text.partition(" Default:")[0].partition("\n")[0]
        if limits := re.match(NUMBER, said):
            right = [int(limit.replace(",", "")) for limit in limits.groups() if limit]
            wrong = [right[0] - 1, *(limit + 1 for limit in right[1:])]
        elif said.startswith("`") and " or `" in said:
            right = list(map(ast.literal_eval, re.findall("`([^`]+)`", said)))
            wrong = ["other", 7]
        else:
            continue
        compared += 1
        assert [check(value) for value in right] == right, name
        for value in wrong:
            with pytest.raises(ImproperlyConfigured):
                check(value)
    assert compared > 10


def test_documented_defaults_are_the_defaults(settings):
    """What settings.md calls the default is what the code takes."""
    del settings.SITEMAPKIT_BASE_URL
    del settings.SITEMAPKIT_MAX_SHRINK
    defaults = re.findall(r"Default: `(.+)`$", text_of("settings.md"), flags=re.MULTILINE)
    assert [ast.literal_eval(text) for text in defaults] == [
        *(vars(conf.Settings)[name]._default for name in conf.SETTING_NAMES),
        {},
        {},
    ]


def test_every_template_tag_is_documented():
    """Each tag is shown in serving.md as it is written in a template."""
    assert tags.register.tags
    for tag in tags.register.tags:
        assert f"{{% {tag} %}}" in text_of("serving.md")


@pytest.mark.django_db
def test_every_template_of_the_pages_renders(products, rf):
    """The templates in the pages compile, and write an address of the site; XML is valid."""
    shown = [block for block in BLOCKS if block.language == "django"]
    assert len(shown) > 5
    for block in shown:
        text = engines["django"].from_string(block.text).render({}, rf.get("/"))
        assert "https://www.example.com/sitemap.xml" in text or locations(text.encode())


APP_OF = {
    name: found
    for name, app in get_commands().items()
    if (found := getattr(app, "name", app)).startswith("django_sitemapkit")
}
COMMANDS = sorted(APP_OF)


def test_every_command_is_documented():
    """Each command has its section in commands.md, and no other has."""
    headings = re.findall(r"^## (\w+)$", text_of("commands.md"), flags=re.MULTILINE)
    assert sorted(headings) == COMMANDS
    assert len(COMMANDS) > 4
    assert set(found_in_pages(r"manage\.py (\w+_sitemaps|\w*sitemap_\w+)")) == set(COMMANDS)


LINES_TO_THE_APP = 12
"""Lines after the first mention of a command in which its app is named: an introduction."""


def test_the_app_of_an_optional_command_is_named_with_it():
    """Without its app a command is unknown: each page that names the command names the app."""
    optional = {name: app for name, app in APP_OF.items() if app != "django_sitemapkit"}
    assert len(optional) > 3
    optional["--against"] = "django_sitemapkit.audit"
    missing = []
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        for command, app in optional.items():
            named = [number for number, line in enumerate(lines) if command in line]
            if page.name != "CHANGELOG.md" and named:
                before = "\n".join(lines[: named[0] + LINES_TO_THE_APP])
                missing += [] if app in before else [f"{page.name}:{named[0] + 1} {command}"]
    assert missing == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented(name):
    """Its section has the block that Sphinx fills with the help of each option."""
    text = text_of("commands.md").partition(f"## {name}\n")[2].partition("\n## ")[0]
    assert f"```{{options}} {name}\n```" in text
    made = [f"{text}\n"]
    runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_options"](None, "commands", made)
    assert "{options}" not in made[0]
    parser = load_command_class(APP_OF[name], name).create_parser("manage.py", name)
    usual = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    shown = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", made[0], flags=re.MULTILINE))
    for action in parser._actions:
        if action.dest not in usual:
            assert shown[max(action.option_strings, key=len, default=action.dest)]


def test_every_option_of_the_console_is_documented():
    """Sphinx fills the block of a command of the console script, too."""
    made = ["```{options} sitemapkit crawl\n```\n"]
    runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_options"](None, "crawling", made)
    assert "| `url` | the home page" in made[0]
    assert "| `--below` | crawl only " in made[0]


@pytest.mark.slow
def test_every_option_in_a_shown_call_exists():
    """What the pages show of a command can be typed."""
    calls = found_in_pages(r"(?<=manage\.py )(?:\w+_sitemaps|\w*sitemap_\w+)(?: [^\n`]+)?")
    assert len(calls) > 10
    for call in calls:
        name, *arguments = shlex.split(call)
        parser = load_command_class(APP_OF[name], name).create_parser("manage.py", name)
        parser.parse_args(arguments)  # ends the process where it cannot


def test_every_exit_code_is_documented():
    """The table of exit codes is that of the commands, and no other code is spoken of."""
    table = text_of("building.md").partition("## Exit codes")[2]
    codes = list(map(int, re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)))
    assert codes == sorted(Exit)
    shown = re.findall(r"Exit codes: ([^\n]+)", text_of("commands.md"))
    assert len(shown) == len(COMMANDS)
    assert {int(code) for line in shown for code in re.findall(r"\b\d+\b", line)} == set(Exit)


def test_every_state_of_a_build_is_documented():
    """What a line of a build may say is in the table of building.md."""
    room = Path(django_sitemapkit.__file__).parent / "builds" / "make"
    source = (room / "page_builder.py").read_text("utf-8")
    states = set(re.findall(r'return "(\w+)"|"(same|stored|empty)"', source))
    assert {a or b for a, b in states} == set(rows_of("building.md"))


def test_every_public_name_is_documented():
    """Each name that the package hands on is explained, and its module is in the reference."""
    for name in django_sitemapkit.__all__:
        assert f"`{name}" in "".join(map(text_of, OF_SECTIONS))
    modules = re.findall(r"auto(?:module|class):: (\S+)", text_of("reference.md"))
    protocol = Path(django_sitemapkit.__file__).parent / "protocol"
    expected = {path.stem for path in protocol.iterdir() if not path.stem.startswith("_")}
    assert {f"django_sitemapkit.protocol.{name}" for name in expected} <= set(modules)
    assert {"django_sitemapkit", "django_sitemapkit.exceptions"} <= set(modules)
    assert "django_sitemapkit.builds" in modules


def declared_options(section):
    """Return the class attributes of a section that a project sets."""
    ours = [base for base in section.__mro__ if base.__module__.startswith("django_sitemapkit")]
    return {
        name
        for base in ours
        for name, value in vars(base).items()
        if not name.startswith("_") and not callable(value) and not hasattr(value, "__get__")
    } | {"location"}


@pytest.mark.slow
def test_every_option_is_documented():
    """Each option has a row of its own, and each row of declaring.md is an option."""
    documented = set(rows_of("declaring.md")) - set(problem_codes())
    options = {
        *declared_options(Section),
        *declared_options(StaticSection),
        *declared_options(ExternalSection),
        "get_queryset",
        "why_not_listed",
    }
    assert documented <= options
    assert options - documented <= {*rows_of("languages.md"), *rows_of("media.md")}
    assert len(documented) > 10


def test_documented_defaults_of_options():
    """What declaring.md calls an option's default is that of the class."""
    pages = "".join(map(text_of, OF_SECTIONS))
    table = re.findall(r"^\| `(\w+)` \| (None|True|False|`[^`]*`) \|", pages, re.MULTILINE)
    assert len(table) > 10
    owners = {"items": StaticSection, "sitemaps": ExternalSection, "hosts": ExternalSection}
    for name, default in table:
        owner = owners.get(name, Section)
        assert ast.literal_eval(default.strip("`")) == getattr(owner, name), name


def problem_codes():
    """Return every code that a row can be refused with."""
    package = Path(django_sitemapkit.__file__).parent
    files = [path for path in package.rglob("*.py") if package / "audit" not in path.parents]
    found = r'(?:InvalidValue\(|problems\.add\(\s*[\w.\[\]]+,)\s*"([a-z-]+)"'
    codes = {code for path in files for code in re.findall(found, path.read_text("utf-8"))}
    return codes - {"invalid-pattern", "invalid-csv"}  # Of what editors type and upload.


@pytest.mark.slow
def test_every_problem_is_documented():
    """Each code that the log may show is in the table of declaring.md."""
    assert len(problem_codes()) > 5
    assert problem_codes() <= set(rows_of("declaring.md"))


def test_every_check_is_documented():
    """The tables of checks.md have each id once, and no other."""
    package = Path(django_sitemapkit.__file__).parent
    modules = [*package.glob("checks/*.py"), *package.glob("*/checks.py")]
    modules += [*package.glob("reading/**/*.py"), *package.glob("runners/*.py")]
    source = "".join(module.read_text("utf-8") for module in modules)
    found = re.findall(r"sitemapkit\.[EWI][0-9]+", source)
    known = sorted(set(found))
    assert len(known) > 20
    assert sorted(rows_of("checks.md")) == known
    assert set(found_in_pages(r"sitemapkit\.[EWI]\d+")) == set(known)


def test_every_option_that_takes_a_field_path_is_named():
    """Where declaring.md says what text means, as the table of options has it."""
    text = " ".join(text_of("declaring.md").split())
    (named,) = re.findall(r"In a `Section`, (.+) and the arguments of a `Route` take", text)
    assert set(re.findall(r"`(\w+)`", named)) == FIELD_PATHS


def admin_of_the_app():
    """Return the admin's classes for the package's models."""
    registry = admin.site._registry
    return [each for model, each in registry.items() if model._meta.app_label == "sitemapkit"]


def test_every_screen_is_documented():
    """Each address that the package adds to the admin stands in admin.md, and no other does."""
    usual = {"", "add/", "<path:object_id>/", "autocomplete/"}
    usual |= {f"<path:object_id>/{view}/" for view in ("change", "delete", "history")}
    added = {
        re.sub("<[a-z]+:", "<", f"{each.opts.model_name}/{pattern.pattern}").replace(
            "<object_id>", "<id>"
        )
        for each in admin_of_the_app()
        for pattern in each.get_urls()
        if str(pattern.pattern) not in usual
    }
    lists = {f"{each.opts.model_name}/" for each in admin_of_the_app()}
    addresses = set(re.findall(r"`([a-z]+/[a-z<>/]*)`", text_of("admin.md")))
    assert len(added) > 8
    assert addresses - {"sitemapkit/", "build/<id>/change/"} == added | lists
    for each in admin_of_the_app():
        assert str(each.opts.verbose_name_plural).lower() in text_of("admin.md").lower()


def test_every_permission_is_documented():
    """The table of admin.md has each permission that the admin asks for, and no other."""
    opts = [each.opts for each in admin_of_the_app()]
    usual = {f"{action}_{each.model_name}" for each in opts for action in each.default_permissions}
    own = {name for each in opts for name, _label in each.permissions}
    idle = {f"{action}_build" for action in ("add", "change", "delete")}
    shown = {row.removeprefix("sitemapkit.") for row in rows_of("admin.md") if "." in row}
    assert own == {"run_build", "publish_build", "bulk_urloverride"}
    assert shown == (usual | own) - idle


def test_every_column_of_the_csv_is_documented():
    """The columns in admin.md are those that the files have."""
    tables = {
        "URL overrides": UrlOverrideAdmin.transfer,
        "extra URLs": extras.ExtraUrlAdmin.transfer,
    }
    row = rf"^\| `(\w+)` \| (both|{'|'.join(tables)}) \|"
    shown = re.findall(row, text_of("admin.md"), re.MULTILINE)
    for kind, table in tables.items():
        columns = [name for name, where in shown if where in {"both", kind}]
        assert sorted(columns) == sorted(table.columns)


def test_the_numbers_of_the_pages_are_those_of_the_code():
    """A limit or a size in the text is the constant that it speaks of."""
    assert (keysets.CHUNK, keysets.FIRST_CHUNK, responses.RESPONSE_BLOCK_BYTES) == (
        2000,
        250,
        64 * 1024,
    )
    assert (pages.FILL, import_module("django_sitemapkit.planning.refresh").MERGED_FILL) == (
        0.9,
        0.75,
    )
    assert (
        views.RETRY_AFTER,
        import_module("django_sitemapkit.planning.pages").PLANNING_SECONDS,
    ) == (30, 300)
    assert MAX_NAME == 80
    assert import_module("django_sitemapkit.admin.activity").MAX_LISTED_ENTRIES == 10_000
    assert import_module("django_sitemapkit.admin.activity").MAX_LOGGED_ROWS == 1_000
    assert (transfer.MAX_CSV_LINES, transfer.MAX_CSV_BYTES) == (50_000, 5_000_000)
    assert (extras.MAX_PASTED_LINES, published.MAX_MATCHES, published.COUNT_SECONDS) == (
        5_000,
        20,
        1.0,
    )
    assert LOSS == 0.05
    assert differences.MAX_KEPT == 50_000
    assert (delivery.ORPHAN_AGE.days, publishing.ATTEMPTS, status.SHOWN_BUILDS) == (1, 3, 5)
    of_people = parts.MAX_ENTRIES, parts.MAX_PARTS, parts.MAX_PAGES, parts.MAX_NEIGHBOURS_READ
    assert of_people == (250, 20, 100, 5)


@pytest.mark.slow
@pytest.mark.django_db
def test_the_nginx_block_passes_on_each_header(products, client, settings, tmp_path):
    """Of what Django says of a file that nginx sends, nginx keeps some by itself."""
    place = {"BACKEND": settings.STORAGES["default"]["BACKEND"], "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = {**settings.STORAGES, "sitemaps": place}
    call_command("build_sitemaps", verbosity=0)
    settings.SITEMAPKIT_SENDFILE = "x-accel-redirect"
    listed = [path_of(address) for address in locations(body_of(client, "/sitemap.xml"))]
    response = client.get(listed[0], headers={"accept-encoding": "gzip"})
    kept = {"X-Accel-Redirect", "Content-Type", "Cache-Control"}
    added = re.findall(r"add_header ([\w-]+) \$upstream_http_(\w+);", text_of("hosting.md"))
    assert {header for header, _ in added} == set(response.headers) - kept
    assert all(header.lower().replace("-", "_") == variable for header, variable in added)


def test_the_layers_are_those_of_the_contract():
    """The rooms in architecture.md are those that exist, in the order that CI keeps."""
    contract = (ROOT / "pyproject.toml").read_text("utf-8").partition("layers = [")[2]
    layers = re.findall(r'^    "(.+)",$', contract.partition("\n]")[0], flags=re.MULTILINE)
    package = Path(django_sitemapkit.__file__).parent
    kept = [
        [room for room in re.findall(r"\w+", layer) if list(package.glob(f"{room}*"))]
        for layer in layers
    ]
    shown = re.findall(r"^\| ((?:`\w+`(?: · )?)+) \|", text_of("architecture.md"), re.MULTILINE)
    assert [re.findall(r"\w+", row) for row in shown] == [layer for layer in kept if layer]


def test_the_architecture_names_what_is_there():
    """Each room, class and function that architecture.md names exists."""
    package = Path(django_sitemapkit.__file__).parent
    code = "".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    page = text_of("architecture.md")
    rooms = re.findall(r"`([a-z]\w*(?:/\w+)+)`", page)
    assert rooms
    assert [room for room in rooms if not list(package.glob(f"{room}*"))] == []
    names = re.findall(r"`(?:\w+\.)?([A-Z]\w+|[a-z]\w+(?=\(\)))", page)
    defined = set(re.findall(r"(?:class|def) (\w+)", code))
    assert names
    assert set(names) - defined == set()


# The links


def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    """A link to a file of the project has its target, and its heading."""
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        if re.match("https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), target
        assert not anchor or anchor in anchors_of(file), target


def test_every_page_is_in_the_contents():
    """No page of docs/ is left out of the index's list."""
    listed = re.findall(r"^[a-z]+$", text_of("index.md"), flags=re.MULTILINE)
    assert sorted([*listed, "index"]) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


MAINTAINERS = {"architecture", "benchmarks", "contributing", "decisions", "releasing", "scale"}
"""The pages of those who change the package; all others are for those who use it."""


@pytest.mark.parametrize(("for_users", "most"), [(True, 32_000), (False, 15_000)])
def test_the_pages_are_not_too_many_words(for_users, most):
    """A tree that is full has one home for each subject; marks of tables are no words."""
    pages = list((ROOT / "docs").glob("*.md"))
    assert {page.stem for page in pages} > MAINTAINERS
    words = [
        word
        for page in pages
        if (page.stem not in MAINTAINERS) == for_users
        for word in page.read_text("utf-8").split()
        if not re.fullmatch(r"[|:-]+", word)
    ]
    assert most / 2 < len(words) <= most


# The differences from contrib in docs/dropin.md that sections have


class Products(Section):
    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    key = "slug"
    lastmod = "updated_at"
    limit = 4


class PublicProducts(Products):
    name = "products"
    queryset = Product.objects.filter(public=True)


class OldProducts(contrib.Sitemap):
    limit = 4

    def items(self):
        return Product.objects.order_by("slug")

    def location(self, product):
        return f"/products/attic/{product.slug}/"

    def lastmod(self, product):
        return product.updated_at


@pytest.fixture
def products(db, sections):
    """Ten products, "p00" to "p90", declared for both."""
    registry.add(Products)
    shop = Shop.objects.create(slug="attic")
    return [Product.objects.create(shop=shop, slug=f"p{n}0", updated_at=EDITED) for n in range(10)]


@pytest.fixture
def old(settings):
    """Ask contrib's view for a page of a sitemap, by default of OldProducts."""

    def ask(page=1, method="get", view=contrib_views.sitemap, sitemap=OldProducts, **headers):
        request = getattr(RequestFactory(headers=headers), method)(f"/sitemap.xml?p={page}")
        options = {"sitemap_url_name": "section"} if view is contrib_views.index else {}
        return view(request, {"products": sitemap}, **options).render()

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    return ask


def locations(body):
    """Return what a document lists; raises InvalidSitemap where it is malformed."""
    return [entry.location for entry in SitemapReader().read([body])]


def body_of(client, address):
    """Return a document's bytes, decompressed."""
    response = client.get(address, headers={"host": "www.example.com"})
    assert response.status_code == 200
    body = response.getvalue()
    return gzip.decompress(body) if address.endswith(".gz") else body


def path_of(address):
    """Return an address without its host."""
    return address.removeprefix("https://www.example.com")


def statements(ask):
    """Return the SQL of a request."""
    with CaptureQueriesContext(connection) as captured:
        response = ask()
        b"".join(response) if response.streaming else response.content
    return [re.sub(r"'[^']*'|\d+", "?", query["sql"].upper()) for query in captured]


def test_contrib_does_what_the_pages_say(products, old):
    """It counts and skips rows, which move from page to page; our views have tests of their own."""
    contribs = "".join(statements(lambda: old(page=3)))
    assert "COUNT(" in contribs
    assert "OFFSET" in contribs
    before = locations(old(page=2).content)
    Product.objects.create(shop=products[0].shop, slug="p15")
    assert locations(old(page=2).content) != before
    posted = old(method="post")
    assert (posted.status_code, "ETag" in posted) == (200, False)
    Product.objects.filter(slug="p10").update(slug="p1\x0b")
    with pytest.raises(InvalidSitemap):
        locations(old().content)


@override_settings(ALLOWED_HOSTS=["*"])
def test_contrib_copies_the_host_of_the_request(products, old):
    """Into the index; tests/views/test_http.py says that ours lists what the setting says."""
    urlconf = ModuleType("section_urls")
    urlconf.urlpatterns = [url("sitemap-<section>.xml", lambda request: None, name="section")]
    with override_settings(ROOT_URLCONF=urlconf):
        assert b"evil.example" in old(view=contrib_views.index, host="evil.example").content


@pytest.mark.django_db
def test_pages_are_streamed(sections, client, old):
    """A page of more rows than the first read is a stream, and read by at most 4,000 at a time."""
    registry.add(type("Products", (Products,), {"limit": None}))
    shop = Shop.objects.create(slug="attic")
    Product.objects.bulk_create(Product(shop=shop, slug=f"s{n:04}") for n in range(300))
    with CaptureQueriesContext(connection) as captured:
        response = client.get("/sitemap-products-1.xml")
        assert response.streaming
        assert len(locations(b"".join(response))) == 300
    sizes = re.findall(r"LIMIT (250|1000|2000|4000)\b", "\n".join(q["sql"] for q in captured))
    assert sizes == ["250", "1000" if connection.vendor == "postgresql" else "2000"]
    assert not old().streaming


def test_a_misspelt_option(settings, sections, db):
    """``manage.py check`` warns of it here, and not with contrib's class."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "django.contrib.sitemaps"]
    settings.SITEMAPKIT_SERVE_FROM = "live"  # Else it warns of the storage too.
    registry.add(type("Old", (OldProducts,), {"chngefreq": "weekly"}))
    call_command("check", fail_level="WARNING")
    registry.add(type("Products", (Products,), {"chngefreq": "weekly"}))
    with pytest.raises(SystemCheckError, match="Did you mean changefreq"):
        call_command("check", fail_level="WARNING")
