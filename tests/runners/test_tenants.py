"""Schemas of tenants: what one connection is switched to, no other process sees."""

from types import SimpleNamespace

import pytest
from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from django_sitemapkit.builds import build
from django_sitemapkit.exceptions import BuildFailed
from django_sitemapkit.runners import processes
from django_sitemapkit.runners.processes import ProcessesRunner
from tests.builds import SITE, Products, fill, use_storage

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant(sections, settings, monkeypatch):
    """Give a function that switches the connection as django-tenants does; no worker starts."""
    real = connections["default"]
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "tests.settings")
    monkeypatch.setattr(real, "is_in_memory_db", lambda: False, raising=False)
    sections.add(Products)
    fill()
    use_storage(settings, "Memory")

    class Started(Exception):
        """Worker processes would be started now."""

    def start(size, arguments):
        raise Started(arguments)

    monkeypatch.setattr(processes, "helper_processes", start)

    def switch(schema, tenant=None):
        monkeypatch.setattr(real, "schema_name", schema, raising=False)
        monkeypatch.setattr(real, "tenant", tenant, raising=False)
        return Started

    return switch


def test_workers_are_refused_in_a_schema_of_no_tenant(tenant):
    """They would list the public schema's rows as the tenant's; one process builds it as ever."""
    tenant("acme")
    with pytest.raises(BuildFailed, match=r"schema 'acme'.*'inline'"):
        build(SITE, runner=ProcessesRunner(2))
    assert build(SITE).urls == 5


@pytest.mark.parametrize(("schema", "public"), [("public", None), ("shared", "shared"), ("", None)])
def test_workers_share_the_schema_that_all_connections_begin_in(tenant, settings, schema, public):
    """Its name may be set, as for django-tenants."""
    if public:
        settings.PUBLIC_SCHEMA_NAME = public
    with pytest.raises(tenant(schema)):
        build(SITE, runner=ProcessesRunner(2))


def test_helpers_are_switched_to_the_tenant_of_the_builder(tenant):
    """Its schema is among what each helper is given."""
    acme = SimpleNamespace(schema_name="acme")
    with pytest.raises(tenant("acme", acme)) as raised:
        build(SITE, runner=ProcessesRunner(2))
    assert raised.value.args[0][-1] == {"default": "acme"}
