"""What this process has that workers could not see."""

from typing import Any

from django.conf import settings
from django.db import connections

from django_sitemapkit.exceptions import BuildFailed


def require_shared_databases() -> None:
    """Raise BuildFailed where other processes could not read what this one reads."""
    for alias in connections:
        connection: Any = connections[alias]
        if connection.vendor == "sqlite" and connection.is_in_memory_db():
            raise BuildFailed(
                f"The database {alias!r} is in memory, so worker processes cannot use it. Use"
                " the runner 'inline'."
            )
        _require_known_tenant(alias, connection)


def _require_known_tenant(alias: str, connection: Any) -> None:
    """Raise BuildFailed where a connection is switched to another schema, and to no tenant.

    A worker's connection begins in the public schema, and would read other rows than the process
    that builds. It can only be switched as django-tenants does it.
    """
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    schema = getattr(connection, "schema_name", None)
    if schema and schema != public and getattr(connection, "tenant", None) is None:
        raise BuildFailed(
            f"The database {alias!r} is switched to the schema {schema!r}, but worker processes"
            " connect to the public schema. Use the runner 'inline' (--workers 1)."
        )
