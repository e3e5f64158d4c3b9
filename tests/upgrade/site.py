"""The site that is stored: its sections and rows, and how its tables go to JSON and back."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.apps import apps
from django.core import serializers
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from django_sitemapkit import Route, Section, StaticSection
from tests.testapp.models import Product, Shop

FOLDER = Path(__file__).resolve().parent
TABLES = FOLDER / "tables.json"
FILES = FOLDER / "files"
APP = "sitemapkit"
EDITED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
PRODUCTS = 30


class Products(Section):
    queryset = Product.objects.all()
    location = Route("product", shop="shop__slug", slug="slug")
    key = "slug"
    lastmod = "updated_at"
    limit = 10


class Pages(StaticSection):
    items = ("home", "about")


def create_rows():
    """Store the rows that the sections list, with the keys by which overrides name them."""
    shop = Shop.objects.create(pk=1, slug="attic")
    Product.objects.bulk_create(
        Product(pk=day + 1, shop=shop, slug=f"p{day:02}", updated_at=EDITED + timedelta(days=day))
        for day in range(PRODUCTS)
    )


def dump():
    """Write the package's tables to `TABLES`, with the migration that they are at."""
    models = (each for each in apps.get_app_config(APP).get_models() if not each._meta.proxy)
    rows = [row for model in models for row in model._base_manager.order_by("pk")]
    tables = {"migration": newest_migration(), "rows": serializers.serialize("python", rows)}
    text = json.dumps(tables, cls=serializers.json.DjangoJSONEncoder, indent=1)
    TABLES.write_text(f"{text}\n", encoding="utf-8")


def load():
    """Fill the package's tables from `TABLES` as they were then, and migrate them to today's.

    The rows are written by the models of that migration, so that a later one may rename or drop
    what it wants. Nothing may be in the tables before.
    """
    stored = json.loads(TABLES.read_text(encoding="utf-8"))
    models = migrated(stored["migration"])
    with transaction.atomic():
        for row in stored["rows"]:
            model = models.get_model(row["model"])
            model._base_manager.bulk_create([model(**values_of(row, model))])
    own = [model for model in models.get_models() if model._meta.app_label == APP]
    reset = connection.ops.sequence_reset_sql(no_style(), own)
    with connection.cursor() as cursor:
        for statement in reset:
            cursor.execute(statement)
    migrated(newest_migration())


def values_of(row, model):
    """Return the values of a stored row by attribute, a foreign key's as the key itself."""
    fields = {name: model._meta.get_field(name) for name in row["fields"]}
    values = {f.attname: f.to_python(row["fields"][name]) for name, f in fields.items()}
    return {model._meta.pk.attname: row["pk"], **values}


def newest_migration():
    """Return the name of the app's last migration."""
    (newest,) = MigrationExecutor(connection).loader.graph.leaf_nodes(APP)
    return newest[1]


def migrated(name):
    """Migrate the app to a migration, and return its models of then."""
    target = [(APP, name)]
    MigrationExecutor(connection).migrate(target)
    return MigrationExecutor(connection).loader.project_state(target).apps
