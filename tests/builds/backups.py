"""Backups of the database, to go back to within a test."""

from django.apps import apps
from django.db import connection

from tests.testapp.models import Article, Product, Reading, Shop

PACKAGE = tuple(
    model for model in apps.get_app_config("sitemapkit").get_models() if not model._meta.proxy
)
ROWS = (Shop, Product, Article, Reading)


def back_up():
    """Return all rows of the package, and of the models that the tests of builds declare."""
    return [(model, list(model._base_manager.all())) for model in (*PACKAGE, *ROWS)]


def restore(backup):
    """Let the database have those rows and no others."""
    with connection.constraint_checks_disabled():
        for model, _ in backup:
            model.objects.all()._raw_delete(connection.alias)
        for _, rows in backup:
            for row in rows:
                row.save_base(raw=True, force_insert=True)
    connection.check_constraints()
