"""The tenants of django-tenants, for a thread or process that opens connections of its own.

A new connection begins in the public schema, whatever the one of its starter is switched to.
"""

from collections.abc import Mapping
from typing import Any

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
