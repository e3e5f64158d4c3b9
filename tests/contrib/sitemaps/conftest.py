"""What the tests of the drop-in share."""

from pathlib import Path

import pytest
from django.contrib import sitemaps as contrib

from django_sitemapkit.contrib import sitemaps as drop_in
from tests.contrib.sitemaps.comparing import Kit


@pytest.fixture
def kits(settings, tmp_path):
    """Give contrib and the drop-in, each with its templates; a test adds others to both."""

    def templates_of(module):
        return [tmp_path, Path(module.__file__).parent / "templates"]

    def use(module):
        settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": templates_of(module)}]

    return [Kit(module, use) for module in (contrib, drop_in)]


@pytest.fixture
def kit(kits):
    """Give the drop-in with its templates."""
    _, found = kits
    found.activate()
    return found


@pytest.fixture
def template(tmp_path):
    """Return what stores a template of the project's own."""

    def store(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return store
