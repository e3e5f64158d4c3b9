"""The message for a database on which ``migrate`` was not run."""

from contextlib import suppress

from django.db import Error, connections, router
from django.db.migrations.loader import MigrationLoader

from django_sitemapkit.models.builds import Build


def unapplied_migrations(*, own: bool = False) -> str:
    """Return which apps have migrations that are not applied, and what to run; "" for none.

    Considers all apps, because sections read the tables of others, or only the package's ``own``.
    Call it only after a database error: it loads the migrations of all apps. Returns "" too if the
    database does not answer, or is in a transaction that has failed.
    """
    alias = router.db_for_write(Build)
    connection = connections[alias]
    if connection.connection is None:  # A second attempt to connect may take as long.
        return ""
    with suppress(Error):
        loader = MigrationLoader(connection)
        apps = {app for app, name in {*loader.disk_migrations} - {*loader.applied_migrations}}
        if own:
            apps &= {Build._meta.app_label}
        if apps:
            run = "migrate" if alias == "default" else f"migrate --database {alias}"
            names = ", ".join(sorted(apps))
            return f"Migrations of {names} are not applied: run `python manage.py {run}`."
    return ""
