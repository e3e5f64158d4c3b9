"""Declarations: options and hooks, and nothing that reads rows."""

import inspect
import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_sitemapkit import ExternalSection, ItemSection, Section, StaticSection, register
from django_sitemapkit.reading import reader_of
from django_sitemapkit.reading.validation import mistakes_of, require_pageable
from django_sitemapkit.registry import registry
from django_sitemapkit.sections import BaseSection, Registered
from tests.factories import SITE, declare
from tests.testapp.models import Product

HOOKS = {"get_queryset", "location", "get_name", "why_not_listed"}


@pytest.mark.parametrize("section", [Section, ItemSection, StaticSection, ExternalSection])
def test_a_section_has_options_and_hooks_only(section):
    """Nothing is reserved: of all members, only ``get_name`` is ours."""
    ours = [base for base in section.__mro__ if base is not object]
    members = {name for base in ours for name in vars(base) if not name.startswith("__")}
    assert {name for name in members if name.startswith("_")} == set()
    assert {name for name in members if callable(getattr(section, name))} <= HOOKS
    assert set(vars(section(SITE))) == {"site"}


def test_names_of_the_engine_are_free():
    """A project may call its own attributes and methods as it likes."""

    class Things(Section):
        queryset = Product.objects.all()

        def chunks(self):
            """Nothing of ours."""

        source = keyset = sources = rows = overrides = declaration = options = "mine"

        def location(self, product):
            return f"/{self.source}/"

    reader = reader_of(Things(SITE))
    assert reader.reads_objects
    assert reader.keyset.name == "pk"
    require_pageable(reader)


@pytest.mark.parametrize("validate", [require_pageable, lambda reader: list(mistakes_of(reader))])
def test_a_declaration_is_validated_once(monkeypatch, validate):
    """For its class, site and URLconf: by a system check, or else when it is read."""
    section = type(declare(queryset=Product.objects.all()).options)
    validate(reader_of(section(SITE)))
    monkeypatch.setattr("django_sitemapkit.reading.validation.mistakes_in_paging", None)
    require_pageable(reader_of(section(SITE)))


def test_rows_of_a_method_are_checked_each_time():
    """What it returned before may have been sound."""
    section = type(declare(queryset=Product.objects.all()).options)
    section.get_queryset = lambda self: section.queryset
    require_pageable(reader_of(section(SITE)))
    section.queryset = Product.objects.all()[:1]
    with pytest.raises(ImproperlyConfigured, match="sliced"):
        require_pageable(reader_of(section(SITE)))


@pytest.mark.parametrize(
    "section", [Registered, BaseSection, Section, ItemSection, ExternalSection]
)
def test_every_option_says_what_it_is(section):
    """In a comment that the Reference shows."""
    lines = inspect.getsource(section).split("\n")
    options = re.compile(r"    (\w+)(: .+)? = .+")
    found = [place for place, line in enumerate(lines) if options.fullmatch(line)]
    assert found
    assert all(lines[place - 1].startswith("    #:") for place in found)


def test_an_isolated_registry_is_restored():
    """Whatever is registered within is forgotten; it begins empty, or with what there is."""
    before = registry.declared()
    assert before
    with registry.isolated() as isolated:
        assert isolated is registry
        assert registry.declared() == []
        register(StaticSection, name="alone")
        assert [section.get_name() for section in registry] == ["alone"]
    assert registry.declared() == before
    with registry.isolated(empty=False):
        register(StaticSection, name="one-more")
        assert len(registry.declared()) == len(before) + 1
    assert registry.declared() == before
