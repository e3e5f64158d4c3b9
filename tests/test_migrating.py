"""The guide for moving works: a project follows it line by line, and finds what it shows."""

import os
import subprocess
import sys

import pytest

from tests.test_docs import BLOCKS, PROJECT, dedented

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
    """A project in a folder, and its manage.py."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("base.py", "shop/__init__.py", "shop/models.py", "shop/views.py"):
            self.write(name, dedented(PROJECT[name]))
        self.write("manage.py", MANAGE)
        self.write("settings.py", BEFORE)

    def write(self, name, text):
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SETTINGS.format(text) if name == "settings.py" else text, "utf-8")

    def manage(self, *arguments):
        """Run manage.py; return its exit code and all that it prints."""
        done = subprocess.run(
            [sys.executable, "-B", "manage.py", *arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "PYTHONUNBUFFERED": "1",
                "PYTHONUTF8": "1",
            },
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def ask(self, address):
        """Return an answer: its status, where it leads, and whether it lists a product."""
        code, out = self.manage("shell", "--no-imports", "-c", ASK.format(address))
        assert code == 0, out
        return out.splitlines()[-1]

    def follow(self, block, shown):
        """Write the file of a step, or run its commands, the last of which prints ``shown``."""
        if block.language == "python":
            self.write(block.file, block.text)
            return
        calls = [line.split()[2:] for line in block.text.splitlines() if "manage.py" in line]
        for call in calls:
            code, out = self.manage(*call)
            is_shown = shown is not None and call is calls[-1]
            assert code == (5 if is_shown and "CommandError" in shown else 0), f"{block}: {out}"
            assert not is_shown or out == shown, str(block)


@pytest.mark.thorough
def test_the_guide_is_followed(tmp_path):
    """Each file is written, each command run, and prints what the page shows."""
    project = Project(tmp_path)
    before = [block for block in STEPS if block.heading == "Before"]
    for block in before:
        project.follow(block, None)
    for arguments in (["migrate", "--run-syncdb"], ["shell", "--no-imports", "-c", ROWS]):
        code, out = project.manage(*arguments)
        assert code == 0, out
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
