"""Methods that write rows: the log names the section and the table, and the rows are listed."""

import pytest
from django.db import connection

from django_sitemapkit.reading.keysets import EVERYTHING
from tests.factories import ProductFactory, declare
from tests.testapp.models import Product, Shop

pytestmark = pytest.mark.django_db


def count_a_visit(obj):
    """Write by the ORM."""
    Product.objects.filter(pk=obj.pk).update(note="seen")


def add_a_shop(obj):
    """Write another row."""
    Shop.objects.create(slug=f"new-{Shop.objects.count()}")


def forget_shops(obj):
    """Write by hand."""
    with connection.cursor() as cursor:
        cursor.execute("delete from testapp_shop where slug = 'none'")


@pytest.mark.parametrize(
    ("write", "table"),
    [(count_a_visit, "product"), (add_a_shop, "shop"), (forget_shops, "shop")],
)
def test_a_method_that_writes_is_named_once(caplog, write, table):
    """However many rows it writes, and however often the section is read."""

    def location(self, obj):
        write(obj)
        return f"/{obj.slug}/"

    ProductFactory.create_batch(2)
    section = declare(name=write.__name__, queryset=Product.objects.all(), location=location)
    for _ in range(2):
        (chunk,) = section.chunks(EVERYTHING)
        assert None not in chunk.locations
    (record,) = caplog.records
    assert f"Section {write.__name__!r}: one of its methods writes to " in record.message
    assert f"testapp_{table}" in record.message


def test_a_method_that_reads_is_not_named(caplog):
    """Whatever it asks for each row."""
    ProductFactory.create_batch(2)

    def location(self, obj):
        return f"/{Shop.objects.get(pk=obj.shop_id).slug}/"

    section = declare(queryset=Product.objects.all(), location=location)
    assert [None not in chunk.locations for chunk in section.chunks(EVERYTHING)] == [True]
    assert caplog.records == []
