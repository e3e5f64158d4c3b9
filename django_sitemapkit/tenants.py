"""The tenants of django-tenants, for a thread or process that opens connections of its own.

A new connection begins in the public schema, whatever the one of its starter is switched to.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connections


def current_tenants() -> dict[str, Any]:
    """Return the tenant that each of this thread's connections is switched to, by alias."""
    found = {alias: getattr(connections[alias], "tenant", None) for alias in connections}
    return {alias: tenant for alias, tenant in found.items() if tenant is not None}


def switch_to(tenants: Mapping[str, Any]) -> None:
    """Switch this thread's connections to the tenants of another, by alias."""
    for alias, tenant in tenants.items():
        connection: Any = connections[alias]
        connection.set_tenant(tenant)


def current_schemas() -> dict[str, str]:
    """Return the schemas of the tenants of this thread, by alias, as a message can carry them."""
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    names = {alias: tenant.schema_name for alias, tenant in current_tenants().items()}
    return {alias: name for alias, name in names.items() if name != public}


@contextmanager
def switched_to_schemas(schemas: Mapping[str, str]) -> Iterator[None]:
    """Switch this thread's connections to the tenants of some schemas, by alias, and back."""
    model = getattr(settings, "TENANT_MODEL", "")  # Of django-tenants, so there where it is.
    before = {alias: getattr(connections[alias], "tenant", None) for alias in schemas}
    try:
        for alias, name in schemas.items():
            tenants: Any = apps.get_model(model)
            switch_to({alias: tenants.objects.using(alias).get(schema_name=name)})
        yield
    finally:
        switch_to({alias: tenant for alias, tenant in before.items() if tenant is not None})
