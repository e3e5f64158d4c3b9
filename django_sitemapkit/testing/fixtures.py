"""pytest fixtures, for projects that use pytest-django.

Name this module in the ``conftest.py`` at the root of your tests::

    pytest_plugins = ["django_sitemapkit.testing.fixtures"]

It is not an entry point: pytest would import the package at the start of every run, before Django
is set up, in projects that do not use the fixtures too.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from django_sitemapkit.registry import Registry, registry
from django_sitemapkit.testing import BuiltSitemaps, built_sitemaps


@pytest.fixture(name="built_sitemaps")
def built_sitemaps_fixture(db: Any) -> Iterator[Callable[..., BuiltSitemaps]]:
    """Yield `django_sitemapkit.testing.built_sitemaps` as a function, without a ``with`` block.

    Its build is served until the test ends.

    Example::

        def test_the_shop(built_sitemaps, product):
            sitemaps = built_sitemaps()
            assert sitemaps.result.status == "published"
    """
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(built_sitemaps(**options))


@pytest.fixture
def sitemap_registry() -> Iterator[Registry]:
    """Yield an empty registry in place of the project's sections, which the test's end restores.

    Example::

        def test_a_section_alone(sitemap_registry, product):
            sitemap_registry.add(Products)
            assert_listed(product)
    """
    with registry.isolated() as empty:
        yield empty
