"""What editors have set for one row in ten, and what that leaves of the rows.

Of the overrides 60 in 100 name a path and 40 an object; 20 leave the URL out, 50 set its priority,
30 its changefreq. They are spread evenly over the rows, so that no read is without any. They stay
between runs, as the rows do, under the key of a site that other contenders do not have.
"""

from django.conf import settings

from tests.benchmarks.checking import Listed
from tests.benchmarks.models import Product

ONE_IN = 10
"""Rows for one override."""
AT_ONCE = 10_000
"""Overrides made by one call."""


def set_overrides(site, rows):
    """Make the overrides of a site, unless they are there."""
    from django.db import connection

    from django_sitemapkit.models import UrlOverride

    overrides = UrlOverride.objects.filter(site=site)
    if overrides.count() == rows // ONE_IN:
        return
    overrides.delete()
    some = []
    for number, product in _overridden():
        some.append(UrlOverride(site=site, **_named(number, product), **_set(number)))
        if len(some) == AT_ONCE:
            UrlOverride.objects.bulk_create(some)
            some.clear()
    UrlOverride.objects.bulk_create(some)
    with connection.cursor() as cursor:
        vacuum = "" if connection.vendor == "sqlite" else "VACUUM "
        cursor.execute(f"{vacuum}ANALYZE {UrlOverride._meta.db_table}")


def reset(site):
    """Set something for a site, and take it back."""
    from django_sitemapkit.models import Revision, UrlOverride

    if not Revision.objects.filter(site=site).exists():
        override = UrlOverride(site=site, path="/c00/something-to-buy-100/", include=False)
        override.save()
        override.delete()


def promised():
    """Return what the overrides leave out, and how many tags they set on the rest."""
    left_out, hints = Listed(), 0
    for number, product in _overridden():
        if "include" in _set(number):
            left_out.take(settings.SITE + _path(product))
        else:
            hints += 1
    return {"left out": left_out.urls, "their digest": left_out.digest, "hints": hints}


def _overridden():
    """Yield the rows that have an override, numbered."""
    last = 0
    while True:
        within = range(last + ONE_IN, last + 1_000 * ONE_IN + 1, ONE_IN)
        products = Product.objects.filter(pk__in=within).order_by("pk")
        some = list(products.only("category", "slug"))
        if not some:
            return
        for product in some:
            yield product.pk // ONE_IN - 1, product
        last = within[-1]


def _named(number, product):
    if number % 5 < 3:
        return {"path": _path(product)}
    return {"model": Product._meta.label_lower, "object_id": str(product.pk)}


def _set(number):
    match number // 5 % 10:
        case 0 | 1:
            return {"include": False}
        case 2 | 3 | 4:
            return {"changefreq": "weekly"}
        case _:
            return {"priority": "0.80"}


def _path(product):
    return f"/{product.category}/{product.slug}/"
