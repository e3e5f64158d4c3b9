"""The rows: the same ones on every database, made by the database itself.

    python -m tests.benchmarks.data ROWS

They stay between runs, in a database for each size. To have them rendered again, drop it.
"""

import json
import os
import sys
from pathlib import Path
from urllib.parse import quote

SERVERS = {
    "postgresql": os.environ.get("TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432") + "/",
    "mariadb": os.environ.get("TEST_MARIADB", "mysql://root@127.0.0.1:3306") + "/",
}
"""The addresses of the servers."""

CATEGORIES = [f"c{number:02}" for number in range(100)]

FIRST = 1_640_995_200
"""The oldest date, 2022-01-01, in seconds of the epoch."""
SPAN = 3 * 365 * 86_400
"""Seconds that the dates are spread over."""

# Every twentieth row of each category has a slug beyond ASCII. The body has 1,024 characters.
POSTGRESQL = f"""
    INSERT INTO benchmarks_product (category, slug, updated_at, body)
    SELECT
        'c' || lpad((i % 100)::text, 2, '0'),
        CASE WHEN (i * 31 + i / 100) % 20 = 0 THEN 'größe-für-alle-' ELSE 'something-to-buy-' END
            || i,
        to_timestamp({FIRST} + i * 104729 % {SPAN})
            + i * 7919 % 1000000 * interval '1 microsecond',
        repeat(lpad(i::text, 64, '0'), 16)
    FROM generate_series(1, {{rows}}::bigint) AS i
"""
SQLITE = f"""
    WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {{rows}})
    INSERT INTO benchmarks_product (category, slug, updated_at, body)
    SELECT
        printf('c%02d', i % 100),
        CASE WHEN (i * 31 + i / 100) % 20 = 0 THEN 'größe-für-alle-' ELSE 'something-to-buy-' END
            || i,
        strftime('%Y-%m-%d %H:%M:%S', {FIRST} + i * 104729 % {SPAN}, 'unixepoch')
            || printf('.%06d', i * 7919 % 1000000),
        replace(hex(zeroblob(16)), '00', printf('%064d', i))
    FROM numbers
"""


MARIADB = f"""
    INSERT INTO benchmarks_product (category, slug, updated_at, body)
    SELECT
        CONCAT('c', LPAD(seq % 100, 2, '0')),
        CONCAT(
            IF((seq * 31 + seq DIV 100) % 20 = 0, 'größe-für-alle-', 'something-to-buy-'), seq
        ),
        TIMESTAMP('1970-01-01') + INTERVAL {FIRST} + seq * 104729 % {SPAN} SECOND
            + INTERVAL seq * 7919 % 1000000 MICROSECOND,
        REPEAT(LPAD(seq, 64, '0'), 16)
    FROM seq_1_to_{{rows}}
"""


def name_of(rows):
    """Return a size in short: "100k", "1m"."""
    for unit, letter in ((1_000_000, "m"), (1_000, "k")):
        if rows % unit == 0:
            return f"{rows // unit}{letter}"
    return str(rows)


def url_of(database, rows, folder):
    """Return the URL of the database that has so many rows."""
    name = f"sitemapkit_bench_{name_of(rows)}"
    return (
        f"sqlite:///{folder}/{name}.sqlite3" if database == "sqlite" else SERVERS[database] + name
    )


def path_of(number):
    """Return the path of a row, as the database makes it."""
    rare = (number * 31 + number // 100) % 20 == 0
    slug = f"{'größe-für-alle' if rare else 'something-to-buy'}-{number}"
    return quote(f"/{CATEGORIES[number % 100]}/{slug}/")


def prepare(rows):
    """Make the tables, and the rows unless they are there; return whether they were made."""
    from django.core.management import call_command
    from django.db import connection

    _ensure_database(connection)
    call_command("migrate", run_syncdb=True, verbosity=0)
    if _found(connection) == (rows, 1, rows):
        return False
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            _fill_sqlite(cursor, rows)
        elif connection.vendor == "mysql":
            cursor.execute("TRUNCATE benchmarks_product")
            cursor.execute(MARIADB.format(rows=rows))
            cursor.execute("ANALYZE TABLE benchmarks_product")
        else:
            cursor.execute("TRUNCATE benchmarks_product RESTART IDENTITY")
            cursor.execute(POSTGRESQL.format(rows=rows))
            # Else the first contenders would pay for what autovacuum does to new rows.
            cursor.execute("VACUUM ANALYZE benchmarks_product")
            cursor.execute("CHECKPOINT")
    if _found(connection) != (rows, 1, rows):
        raise RuntimeError(f"There are {_found(connection)} rows, first and last, not {rows:,}.")
    return True


def fill_offers(rows):
    """Have as many offers as products, with the same slugs and categories."""
    from django.db import connection

    from tests.benchmarks.models import Category, Offer

    if Offer.objects.count() == rows:
        return
    Offer.objects.all().delete()
    Category.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO benchmarks_category (slug)"
            " SELECT DISTINCT category FROM benchmarks_product"
        )
        cursor.execute(
            "INSERT INTO benchmarks_offer (slug, updated_at, body, category_id)"
            " SELECT product.slug, product.updated_at, product.body, category.id"
            " FROM benchmarks_product product"
            " JOIN benchmarks_category category ON category.slug = product.category"
            " ORDER BY product.id"
        )
        vacuum = "" if connection.vendor == "sqlite" else "VACUUM "
        cursor.execute(f"{vacuum}ANALYZE")


def _ensure_database(connection):
    if connection.vendor == "sqlite":
        Path(connection.settings_dict["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        return
    name = connection.settings_dict["NAME"]
    quoted = connection.ops.quote_name(name)
    with connection._nodb_cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {quoted} CHARACTER SET utf8mb4")
            return
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE DATABASE {quoted} ENCODING 'UTF8'")


def _found(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), min(id), max(id) FROM benchmarks_product")
        return tuple(cursor.fetchone())


def _fill_sqlite(cursor, rows):
    # Who stops this finds the wrong number of rows next time, and they are made again.
    cursor.execute("PRAGMA journal_mode=OFF")
    cursor.execute("PRAGMA synchronous=OFF")
    cursor.execute("DELETE FROM benchmarks_product")
    cursor.execute("DELETE FROM sqlite_sequence WHERE name = 'benchmarks_product'")
    cursor.execute(SQLITE.format(rows=rows), None)
    cursor.execute("ANALYZE")


def _server():
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT 'SQLite ' || sqlite_version()")
        elif connection.vendor == "mysql":
            cursor.execute("SELECT CONCAT('MariaDB ', SUBSTRING_INDEX(VERSION(), '-', 1))")
        else:
            cursor.execute("SELECT 'PostgreSQL ' || current_setting('server_version')")
        return cursor.fetchone()[0].partition(" (")[0]


def main(arguments):
    """Prepare the database that the settings name."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.benchmarks.settings")
    django.setup()
    made = prepare(int(arguments[0]))
    sys.stdout.write(f"{json.dumps({'made': made, 'server': _server()})}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
