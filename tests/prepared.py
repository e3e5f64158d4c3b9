"""Rows and files that many tests begin with: made once, and copied for each of them."""

from collections.abc import Callable, Hashable
from typing import Any

from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.core.management.color import no_style
from django.db import connection

from tests.builds.storages import Recording

Tables = list[tuple[Any, list[str], list[Any]]]

_made: dict[Hashable, tuple[Any, Tables, dict[str, dict[str, bytes]]]] = {}


def once(key: Hashable, make: Callable[[], Any], *aliases: str) -> Any:
    """Return what ``make()`` returns, and leave the rows and files that it makes.

    Only the first call for a ``key`` runs it. Later ones copy all rows that were there afterwards,
    and the files of the storages with these ``aliases``, which is "sitemaps" unless given.
    """
    chosen = {alias: storages[alias] for alias in aliases or ("sitemaps",)}
    if key not in _made:
        result = make()
        _made[key] = result, _rows(), {alias: _files(chosen[alias]) for alias in chosen}
    else:
        result, tables, files = _made[key]
        _replace(tables)
        for alias, storage in chosen.items():
            for name, data in files[alias].items():
                storage._save(name, ContentFile(data))
    for storage in chosen.values():
        if isinstance(storage, Recording):
            storage.calls.clear()
    return result


def _rows() -> Tables:
    """Return each table, with its columns and all values of its rows."""
    found = []
    with connection.cursor() as cursor:
        for label in ("testapp", "sitemapkit"):
            for model in apps.get_app_config(label).get_models(include_auto_created=True):
                if model._meta.managed and not model._meta.proxy:
                    cursor.execute(f"SELECT * FROM {_table(model)}")
                    columns = [column[0] for column in cursor.description]
                    found.append((model, columns, cursor.fetchall()))
    return found


def _replace(tables: Tables) -> None:
    """Let all tables have these rows, with the same keys, and no others."""
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        for model, columns, rows in tables:
            cursor.execute(f"DELETE FROM {_table(model)}")
            if rows:
                names = ", ".join(map(connection.ops.quote_name, columns))
                values = ", ".join(["%s"] * len(columns))
                cursor.executemany(f"INSERT INTO {_table(model)} ({names}) VALUES ({values})", rows)
        filled = [model for model, _, rows in tables if rows]
        for statement in connection.ops.sequence_reset_sql(no_style(), filled):
            cursor.execute(statement)


def _table(model: Any) -> str:
    """Return the quoted name of a model's table."""
    return connection.ops.quote_name(model._meta.db_table)


def _files(storage: Storage, folder: str = "") -> dict[str, bytes]:
    """Return the bytes of all files by name."""
    if isinstance(storage, Recording):
        return storage.contents()
    folders, names = storage.listdir(folder)
    found = {}
    for name in names:
        with storage.open(f"{folder}{name}") as file:
            found[f"{folder}{name}"] = b"".join(file.chunks())
    for name in folders:
        found |= _files(storage, f"{folder}{name}/")
    return found
