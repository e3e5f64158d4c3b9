"""The message for a database on which ``migrate`` was not run."""

import re
from contextlib import suppress

from django.apps import apps as installed
from django.db import Error, connections, router
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from django_sitemapkit.models.builds import Build

_LACKS = re.compile(r"no such|does ?n[o\']t exist|Unknown column|42P01|42703|ORA-00(942|904)")
"""What databases say of a table or column that does not exist; PostgreSQL's codes, too."""


def missing_model(error: BaseException) -> type[Model] | None:
    """Return the model, of any app, whose table or column an error reports as missing.

    None for any other error.
    """
    # The next lines of PostgreSQL quote the statement, with tables that are there.
    first_line = str(error).partition("\n")[0]
    text = f"{first_line} {getattr(error.__cause__, 'sqlstate', '')}"
    models = installed.get_models(include_auto_created=True) if _LACKS.search(text) else ()
    named = (m for m in models if re.search(rf"\b{re.escape(m._meta.db_table)}\b", text))
    return next(named, None)


def schema_error_message(error: BaseException) -> str:
    """Return a database error's text with the missing table or migration, and what to run.

    Returns "" if nothing is known to be missing. Call it only after a database error, as
    ``unapplied_migrations_message()``.
    """
    model, missing = missing_model(error), unapplied_migrations_message()
    lacks = f" The database lacks a table or column of {model._meta.label}." if model else ""
    run = missing or (model and "Make and apply its migrations: `makemigrations`, `migrate`.")
    return f"{error}.{lacks} {run}" if run else ""


def unapplied_migrations_message(*, own: bool = False) -> str:
    """Return a sentence on the apps with unapplied migrations, and what to run; "" for none.

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
