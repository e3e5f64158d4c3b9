"""How much the site map shows, and in which language."""

import pytest
from django.utils import translation

from django_sitemapkit.contrib.people import parts
from django_sitemapkit.contrib.people.templatetags import (
    sitemapkit_people,  # noqa: F401  loaded later, its default would be that of a test
)


@pytest.fixture(autouse=True)
def no_language():
    """Begin and end without an active language, which LocaleMiddleware leaves behind."""
    translation.deactivate()
    yield
    translation.deactivate()


@pytest.fixture
def show(monkeypatch):
    """Return a function that sets how many entries are shown, and how many parts are named."""

    def set_limits(entries, named=parts.MAX_PARTS):
        monkeypatch.setattr(parts, "MAX_ENTRIES", entries)
        monkeypatch.setattr(parts, "MAX_PARTS", named)
        defaults = {"at_most": named + 1, "rows": entries}
        monkeypatch.setattr(parts.parts_of, "__kwdefaults__", defaults)

    return set_limits
