"""The guide for moving, from a project with Django alone to served and built sitemaps."""

import subprocess

import pytest

from tests.recipes.walkthrough import SECONDS, fresh_environment
from tests.test_docs import BLOCKS, PROJECT, dedented

pytestmark = pytest.mark.recipes

OTHERS = {"From django-static-sitemaps", "From Wagtail"}
"""Headings of the page under which nothing is followed."""

STEPS = [
    block for block in BLOCKS if block.page.stem == "migrating" and block.heading not in OTHERS
]

MANAGE = """
import os, sys

from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
"""

SETTINGS = """
from base import *

{}
INSTALLED_APPS += ["django.contrib.contenttypes", "shop"]
"""

BEFORE = 'INSTALLED_APPS = ["django.contrib.sitemaps"]\n'
"""What the settings have before the first step."""

ROWS = """
from datetime import UTC, datetime

from shop.models import Product, Shop

shop = Shop.objects.create(slug="attic")
for slug in ("tea-pot", "cup", "sketch"):
    edited = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    Product.objects.create(shop=shop, slug=slug, public=slug != "sketch", updated_at=edited)
"""

ASK = """
from django.test import Client

client = Client(headers={{"host": "www.example.com"}})
response = client.get({!r})
print(response.status_code, response.get("Location", ""), "tea-pot" in response.getvalue().decode())
"""


class Project:
    """A project in a folder, and a terminal there with an environment of its own."""

    def __init__(self, folder, variables):
        self.folder = folder
        # A file that is changed twice in a second would be taken for the one before.
        self.variables = {
            **variables,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
        }
        for name in ("base.py", "shop/__init__.py", "shop/models.py", "shop/views.py"):
            self.write(name, dedented(PROJECT[name]))
        self.write("manage.py", MANAGE)
        self.write("settings.py", BEFORE)

    def write(self, name, text):
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SETTINGS.format(text) if name == "settings.py" else text, "utf-8")

    def run(self, line, *arguments):
        """Type a line into the terminal; return its exit code and all that it prints."""
        done = subprocess.run(
            ["/bin/sh", "-c", line, *arguments],
            cwd=self.folder, env=self.variables, timeout=SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def shell(self, code):
        """Run Python code in Django's shell; return what it prints."""
        status, out = self.run('python manage.py shell --no-imports -c "$0"', code)
        assert status == 0, out
        return out

    def ask(self, address):
        """Return an answer: its status, where it leads, and whether it lists a product."""
        return self.shell(ASK.format(address)).splitlines()[-1]

    def follow(self, block, shown):
        """Write the file of a step, or run its commands, the last of which prints ``shown``."""
        if block.language == "python":
            self.write(block.file, block.text)
            return
        *others, last = block.text.splitlines()
        for line in others:
            code, out = self.run(line)
            assert code == 0, f"{block}: {out}"
        code, out = self.run(last)
        assert code == (5 if shown and "CommandError" in shown else 0), f"{block}: {out}"
        assert shown in (None, out), str(block)


def test_the_guide_is_followed(tmp_path_factory):
    """Each file is written, each command run, and prints what the page shows."""
    variables = fresh_environment(tmp_path_factory.mktemp("environment"))
    project = Project(tmp_path_factory.mktemp("project"), variables)
    before = [block for block in STEPS if block.heading == "Before"]
    for block in before:
        project.follow(block, None)
    for line in ("pip install --quiet django", "python manage.py migrate --run-syncdb"):
        code, out = project.run(line)
        assert code == 0, out
    project.shell(ROWS)
    assert project.ask("/sitemap-products.xml") == "200  True"

    steps = STEPS[len(before) :]
    assert {block.language for block in steps} == {"python", "sh", "text"}
    for block, following in zip(steps, [*steps[1:], steps[0]], strict=True):
        if block.language != "text":
            project.follow(block, following.text if following.language == "text" else None)
    assert project.ask("/sitemap-products.xml?p=2").startswith("301 https://www.example.com/s")
    assert project.ask("/sitemap.xml?p=2").startswith("200 ")
    assert project.ask("/sitemap-products-1.xml") == "200  True"
    assert project.ask("/sitemap-sketches.xml").startswith("404 ")
    assert "site-packages" in project.shell("import django_sitemapkit; print(django_sitemapkit)")
