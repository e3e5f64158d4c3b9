"""Each documented way to install the package: with Django alone, and with each extra alone."""

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.recipes.walkthrough import Walkthrough, call, fresh_environment
from tests.test_docs import PAGES
from tests.test_extras import APPS, MODULES

pytestmark = pytest.mark.release

DJANGO = "~=5.2.0"
"""The oldest Django: the extra ``tasks`` is for it. The quick start runs on the others."""

SETTINGS = """
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "tests"
DEBUG = True
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "mysite.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
DJANGO_APPS = ["contenttypes", "auth", "messages", "sessions"]
INSTALLED_APPS = [f"django.contrib.{name}" for name in DJANGO_APPS]
INSTALLED_APPS += ["django_sitemapkit", "mysite"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
PROCESSORS = ["auth.context_processors.auth", "messages.context_processors.messages"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                *(f"django.contrib.{name}" for name in PROCESSORS),
            ]
        },
    }
]
SITEMAPKIT_BASE_URL = "https://www.example.com"
"""

URLS = """
from django.apps import apps
from django.http import HttpResponse
from django.urls import include, path

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", lambda request: HttpResponse("<title>Home</title>"), name="home"),
]
if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    urlpatterns.append(path("admin/", admin.site.urls))
"""

SITEMAPS = """
from django_sitemapkit import StaticSection, register


@register
class Pages(StaticSection):
    items = ["home"]
"""

MANAGE = """
import os
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"""

# In one process, since starting one for each command would take most of the time.
START = """
from manage import os
import django

django.setup()
from django.core.management import call_command, get_commands, load_command_class

call_command("check", fail_level="WARNING")
call_command("makemigrations", check_changes=True)
call_command("migrate", verbosity=0)
for name, app in get_commands().items():
    if app.startswith("django_sitemapkit"):
        load_command_class(app, name).create_parser("manage.py", name).format_help()
call_command("build_sitemaps")
"""


class Project(Walkthrough):
    """A project in a folder of its own, with one page."""

    def __init__(self, folder, variables):
        super().__init__(folder, {**variables, "PYTHONDONTWRITEBYTECODE": "1"})
        (folder / "mysite").mkdir()
        names = {"manage.py": MANAGE, "start.py": START, "mysite/__init__.py": ""}
        sources = {"settings": SETTINGS, "urls": URLS, "sitemaps": SITEMAPS}
        names |= {f"mysite/{name}.py": text for name, text in sources.items()}
        for name, text in names.items():
            self.write(name, text)

    def set(self, text):
        """Add lines to the settings."""
        self.write("mysite/settings.py", textwrap.dedent(text))

    def manage(self, command):
        """Run a command, which must succeed, and return what it prints."""
        return self.run(f"python manage.py {command}")

    def fail(self, command):
        """Run a command, which must fail as an error of usage, and return its message."""
        done = subprocess.run(
            ["python", "manage.py", *command.split()], executable=self.python,
            cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        return done.stderr

    @property
    def python(self):
        """The interpreter of the environment."""
        return f"{self.variables['PATH'].partition(':')[0]}/python"


@pytest.fixture(scope="module")
def django_alone(distributions, tmp_path_factory):
    """Make an environment with the wheel and Django, and return the variables of its shell."""
    folder = tmp_path_factory.mktemp("alone")
    (wheel,) = distributions.glob("*.whl")
    variables = fresh_environment(folder, wheel=wheel, django=DJANGO)
    call("pip install --quiet django-sitemapkit", shell=True, cwd=folder, env=variables)
    return variables


@pytest.fixture
def installed(request, django_alone, distributions, tmp_path):
    """Make an environment with one extra on top of Django, and a project in it."""
    bin_folder, _, others = django_alone["PATH"].partition(":")
    python = tmp_path / "venv" / "bin" / "python"
    # It sees what the other one has, so that pip installs the packages of the extra only.
    call([f"{bin_folder}/python", "-m", "venv", "--without-pip", str(tmp_path / "venv")])
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    base = call([f"{bin_folder}/python", "-c", purelib]).strip()
    own = call([python, "-c", purelib]).strip()
    Path(own, "base.pth").write_text(base, encoding="utf-8")
    (wheel,) = distributions.glob("*.whl")
    pip = [f"{bin_folder}/pip", "--python", str(python), "install", "--quiet"]
    # pip takes the constraint, which names the wheel, for another one than that with an extra.
    unconstrained = {**django_alone, "PIP_CONSTRAINT": ""}
    extra = f"django-sitemapkit[{request.param}] @ {wheel.as_uri()}"
    call([*pip, extra], env=unconstrained)
    path = f"{python.parent}:{others}"
    project = Project(make_folder(tmp_path), {**django_alone, "PATH": path})
    yield project
    project.close()


def make_folder(tmp_path):
    """Return a new folder for a project."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def project(django_alone, tmp_path):
    """Make a project where only Django is installed."""
    return Project(make_folder(tmp_path), django_alone)


def test_each_extra_of_the_documentation_is_tried():
    """With each page that says how to install one."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r'pip install "django-sitemapkit\[([\w-]+)\]"', text)) <= set(MODULES)
    assert set(re.findall(r'pip install [^"]?django-sitemapkit\[', text)) == set()
    assert set(PATHS) == set(MODULES)


@pytest.mark.parametrize("admin", ["with the admin", "without the admin"])
@pytest.mark.parametrize("app", [*APPS, "all of them"])
def test_each_app_runs_with_django_alone(project, app, admin):
    """It starts, is checked and migrated, its commands show their help, and the site is built."""
    apps = APPS[1:] if app == "all of them" else {app} - {APPS[0]}
    project.set(f"INSTALLED_APPS += {sorted(apps)}\n")
    if admin == "with the admin":
        project.set('INSTALLED_APPS += ["django.contrib.admin"]\n')
    assert "Build 1 of site 'default': published; 1 URL" in project.run("python start.py")


def test_django_alone_moves_validates_and_says_what_it_lacks(project):
    """From files and over HTTP, with the app that the pages name; an extra is asked for."""
    project.set(f"""
        INSTALLED_APPS += {sorted(APPS[1:])}
        SITEMAPKIT_BASE_URL = "http://{project.address}"
    """)
    project.run("python start.py")
    assert "2 documents" in project.manage("validate_sitemaps --repair")
    project.run("python manage.py runserver")
    try:
        index = project.get("/sitemap.xml").read()
        address = f"http://{project.address}/sitemap.xml"
        assert "2 documents" in project.manage(f"validate_sitemaps {address}")
        assert "no differences" in project.manage(f"diff_sitemaps --against {address}").lower()
        listed = re.search(rb"<loc>[^<]+(/sitemap-[^<]+)</loc>", index)[1].decode()
        (project.folder / "old").mkdir()
        (project.folder / "old" / "sitemap.xml.gz").write_bytes(project.get(listed).read())
    finally:
        project.close()
    assert "1 document," in project.manage("validate_sitemaps old")
    project.manage("diff_sitemaps --against old")
    for command, extra in (
        ("audit_sitemaps", "audit"),
        ("audit_sitemaps --live", "audit"),
        ("crawl_sitemaps", "audit"),
        ("validate_sitemaps old --schema .", "schema"),
        ("build_sitemaps --runner celery", "celery"),
        ("build_sitemaps --runner tasks", "tasks"),
    ):
        message = project.fail(command).strip()
        assert f'pip install "django-sitemapkit[{extra}]"' in message
        assert "\n" not in message


def follow_audit(project):
    """docs/auditing.md and docs/crawling.md, in the process and over HTTP."""
    project.set(f"""
        INSTALLED_APPS += ["django_sitemapkit.audit"]
        SITEMAPKIT_BASE_URL = "http://{project.address}"
        SITEMAPKIT_AUDIT = {{"max_bad": 0.5}}
    """)
    project.run("python start.py")
    assert "1 URL of build 1, 0 bad" in project.manage("audit_sitemaps --restart")
    assert "1 URL crawled" in project.manage("crawl_sitemaps --output public")
    project.run("python manage.py runserver")
    assert "0 bad" in project.manage("audit_sitemaps --live --allow-private")


def follow_celery(project):
    """docs/queues.md: a worker knows the tasks, without a list of them."""
    project.set('SITEMAPKIT_RUNNER = {"BACKEND": "celery", "OPTIONS": {"queue": "sitemaps"}}\n')
    project.write(
        "mysite/celery.py", "import manage\nfrom celery import Celery\n\napp = Celery()\n"
    )
    project.manage("check")
    tasks = "import django, mysite.celery as c; django.setup(); print(*c.app.tasks)"
    assert "django_sitemapkit.help_build" in project.run(f'python -c "{tasks}"')


def codec(name):
    """Return the path of a codec: docs/settings.md."""

    def follow(project):
        project.set(f'SITEMAPKIT_GZIP_BACKEND = "{name}"\n')
        project.set('INSTALLED_APPS += ["django_sitemapkit.audit"]\n')
        project.run("python start.py")
        assert "0 errors" in project.manage("validate_sitemaps")

    return follow


def follow_google(project):
    """docs/submitting.md: the credentials are read, which are none here."""
    project.set("""
        INSTALLED_APPS += ["django_sitemapkit.submission"]
        SITEMAPKIT_SUBMIT = {"google_credentials": BASE_DIR / "manage.py"}
    """)
    project.run("python start.py")
    done = project.run("python manage.py submit_sitemaps 2>&1 || true")
    assert "manage.py is not the JSON key of a service account" in done


def follow_idna(project):
    """README.md: a host beyond ASCII."""
    project.set('SITEMAPKIT_BASE_URL = "https://bücher.example"\n')
    project.run("python start.py")
    assert "https://xn--bcher-kva.example" in project.manage("sitemap_status")


def follow_s3(project):
    """docs/hosting.md: the settings that it shows."""
    project.set("""
        STORAGES = {
            "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
            "sitemaps": {
                "BACKEND": "django_sitemapkit.contrib.s3.SitemapS3Storage",
                "OPTIONS": {"bucket_name": "shop-sitemaps", "default_acl": "private"},
            },
        }
    """)
    project.manage("migrate --verbosity 0")
    project.manage("check --fail-level WARNING")
    line = "from django.core.files.storage import storages as s; print(s['sitemaps'].bucket_name)"
    assert "shop-sitemaps" in project.manage(f'shell --verbosity 0 -c "{line}"')


def follow_schema(project):
    """docs/validating.md: a schema besides our own rules."""
    project.set('INSTALLED_APPS += ["django_sitemapkit.audit"]\n')
    project.write(
        "any.xsd",
        '<schema xmlns="http://www.w3.org/2001/XMLSchema"'
        ' targetNamespace="http://www.sitemaps.org/schemas/sitemap/0.9">'
        '<element name="sitemapindex"/></schema>',
    )
    project.run("python start.py")
    assert "0 errors" in project.manage("validate_sitemaps")
    found = project.run("! python manage.py validate_sitemaps --schema any.xsd 2>&1")
    assert "2 documents" in found
    assert "1 error," in found
    assert "Schema: " in found


def follow_tasks(project):
    """docs/queues.md: the backport, with the backend that needs no worker."""
    project.set("""
        INSTALLED_APPS += ["django_tasks"]
        SITEMAPKIT_RUNNER = {"BACKEND": "tasks"}
    """)
    project.run("sed -i s/fail_level=.WARNING.// start.py")  # It says that this one has no workers.
    assert "published" in project.run("python start.py")


def follow_testing(project):
    """docs/testing.md: fixtures and factories, without a line of configuration but Django's own."""
    project.write(
        "test_sitemaps.py",
        "from django_sitemapkit.testing import assert_listed\n"
        "from django_sitemapkit.testing.factories import ExtraUrlFactory\n\n\n"
        "def test_extra(db):\n"
        '    ExtraUrlFactory(path="/press/")\n'
        '    assert_listed("/press/")\n',
    )
    assert "1 passed" in project.run("python -m pytest -q --ds mysite.settings test_sitemaps.py")


PATHS = {
    "audit": follow_audit,
    "celery": follow_celery,
    "fast": codec("isal"),
    "google": follow_google,
    "idna": follow_idna,
    "s3": follow_s3,
    "schema": follow_schema,
    "tasks": follow_tasks,
    "testing": follow_testing,
    "zlib-ng": codec("zlib-ng"),
}
"""What the pages say of each extra."""


@pytest.mark.parametrize("installed", sorted(PATHS), indirect=True)
def test_each_extra_works_alone(installed, request):
    """With nothing else but Django."""
    PATHS[request.node.callspec.params["installed"]](installed)
