"""Without its extras the package starts, and says what to install only when it is needed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MODULES = {
    "audit": ("lxml", "protego", "urllib3"),
    "celery": ("celery",),
    "fast": ("isal",),
    "google": ("google", "requests"),
    "idna": ("idna",),
    "s3": ("boto3", "storages"),
    "schema": ("lxml",),
    "tasks": ("django_tasks",),
    "testing": ("factory", "pytest", "pytest_django"),
    "zlib-ng": ("zlib_ng",),
}
"""What each extra installs."""

APPS = (
    "django_sitemapkit",
    "django_sitemapkit.audit",
    "django_sitemapkit.contrib.people",
    "django_sitemapkit.contrib.sitemaps",
    "django_sitemapkit.contrib.wagtail_admin",
    "django_sitemapkit.submission",
)

SETTINGS = f"""
import json
import os
import sys

for name in {sorted({*sum(MODULES.values(), ()), "wagtail"})}:
    sys.modules[name] = None  # Importing it fails.

from django.conf import settings

HAS_ADMIN = "admin" in sys.argv
DJANGO_APPS = ("contenttypes", "auth", "messages", "sessions", "admin")
settings.configure(
    SECRET_KEY="tests",
    INSTALLED_APPS=[
        *(f"django.contrib.{{name}}" for name in DJANGO_APPS if HAS_ADMIN or name != "admin"),
        *{APPS},
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {{
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {{
                "context_processors": [
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                    "django.template.context_processors.request",
                ]
            }},
        }}
    ],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    ROOT_URLCONF="__main__",
    SITEMAPKIT_BASE_URL="https://www.example.com",
    STORAGES={{
        "sitemaps": {{
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {{"location": "files"}},
        }}
    }},
)
import django

django.setup()

from django.core import checks
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import CommandError
from django.http import HttpResponse
from django.urls import include, path

from django_sitemapkit import StaticSection, register


@register
class Pages(StaticSection):
    items = ["/about/"]


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", include("django_sitemapkit.submission.urls")),
    path("map/", include("django_sitemapkit.contrib.people.urls")),
    path("about/", lambda request: HttpResponse("About")),
]
if HAS_ADMIN:
    from django.contrib import admin

    urlpatterns.append(path("admin/", admin.site.urls))
"""

START = """
for command, app in get_commands().items():
    if app.startswith("django_sitemapkit"):
        load_command_class(app, command).create_parser("manage.py", command).format_help()
        print(command)
errors = [found.id for found in checks.run_checks() if found.level >= checks.ERROR]
assert not errors, errors
call_command("makemigrations", "--check", verbosity=0)
call_command("migrate", verbosity=0)
"""

USE = """
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from django.test import override_settings

folder = os.getcwd()
handler = partial(SimpleHTTPRequestHandler, directory=folder)
server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
for name, url in (("old", "https://www.example.com/about/"), ("other", f"{address}/about/")):
    with open(f"{folder}/{name}.xml", "w") as file:
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?><urlset'
            ' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{url}</loc></url></urlset>"
        )
call_command("migrate", verbosity=0)
for arguments, more in json.loads(sys.stdin.read()):
    arguments = [each.replace("FOLDER", folder).replace("ADDRESS", address) for each in arguments]
    line = "0"
    try:
        with override_settings(**more):
            call_command(*arguments, stdout=sys.stderr, stderr=sys.stderr)
    except CommandError as error:
        line = f"{error.returncode} {error}".partition("\\n")[0]
    print(line)
"""


def run_without_extras(script, folder, argument, commands=()):
    """Run a script in a folder and a process without extras; return the lines that it prints."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(ROOT)]),
    }
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETTINGS + script, argument],
        input=json.dumps(commands), env=environment, cwd=folder,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_extra_is_unknown_here():
    """Another extra needs a line in the table above."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) == set(MODULES)


@pytest.mark.slow
@pytest.mark.parametrize("admin", ["admin", "no admin"])
def test_nothing_imports_an_extra_at_start(tmp_path, admin):
    """Each app starts, is checked and migrated, and each command shows its help."""
    commands = run_without_extras(START, tmp_path, admin)
    assert {"build_sitemaps", "crawl_sitemaps", "submit_sitemaps", "advise_sitemaps"} < {*commands}


WITHOUT = [
    ["build_sitemaps"],
    ["validate_sitemaps"],
    ["validate_sitemaps", "--repair"],
    ["validate_sitemaps", "FOLDER/old.xml"],
    ["validate_sitemaps", "ADDRESS/other.xml"],
    ["diff_sitemaps", "--against", "FOLDER/old.xml"],
    ["diff_sitemaps", "--against", "ADDRESS/old.xml"],
]
"""Commands that need no extra: what moving and repairing needs is among them."""

S3 = {"sitemaps": {"BACKEND": "django_sitemapkit.contrib.s3.SitemapS3Storage"}}
NEEDING = [
    (["build_sitemaps"], "audit", {"SITEMAPKIT_AUDIT": {"max_bad": 0.5}}),  # Not if unchanged.
    (["audit_sitemaps"], "audit", {}),
    (["audit_sitemaps", "--live"], "audit", {}),
    (["crawl_sitemaps"], "audit", {}),
    (["crawl_sitemaps", "/about/", "--save", "--output=FOLDER"], "audit", {}),
    (["build_sitemaps", "--runner=celery"], "celery", {}),
    (["build_sitemaps", "--full"], "fast", {"SITEMAPKIT_GZIP_BACKEND": "isal"}),
    (["submit_sitemaps"], "google", {"SITEMAPKIT_SUBMIT": {"google_credentials": __file__}}),
    (["build_sitemaps"], "idna", {"SITEMAPKIT_BASE_URL": "https://bücher.example"}),
    (["build_sitemaps"], "s3", {"STORAGES": S3}),
    (["validate_sitemaps", "FOLDER", "--schema=FOLDER"], "schema", {}),
    (["build_sitemaps", "--full"], "zlib-ng", {"SITEMAPKIT_GZIP_BACKEND": "zlib-ng"}),
]
"""Commands with the extra that they need, and settings that ask for it."""


@pytest.mark.slow
def test_a_command_that_needs_an_extra_says_how_to_install_it(tmp_path):
    """On one line, even if the system checks that say it are skipped; the others run."""
    first, *others = (([*command, "--skip-checks"], settings) for command, _, settings in NEEDING)
    # The files were written by a codec that is gone: that is no damage.
    last = ["validate_sitemaps", "--skip-checks"], {"SITEMAPKIT_GZIP_BACKEND": "isal"}
    commands = [first, *((command, {}) for command in WITHOUT), *others, last]
    lines = run_without_extras(USE, tmp_path, "no admin", commands)
    said = [line for line in lines if line != "0"]
    assert lines == [*said[:1], *["0"] * len(WITHOUT), *said[1:], "0"]
    for (command, extra, _), line in zip(NEEDING, said, strict=True):
        assert f'pip install "django-sitemapkit[{extra}]"' in line, (command, line)
        assert int(line[0]) == (1 if extra in {"google", "s3"} else 2), (command, line)
