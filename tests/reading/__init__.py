"""What the tests of reading share."""

import itertools

from django.test.utils import isolate_apps

from tests.testapp.models import Product

_number = itertools.count()


def proxy(model=Product, **members):
    """Return a proxy of a model with other methods; its rows are the model's."""
    meta = type("Meta", (), {"proxy": True, "app_label": "testapp"})
    members |= {"__module__": "tests.testapp.models", "Meta": meta}
    with isolate_apps("tests.testapp"):
        return type(f"Proxy{next(_number)}", (model,), members)
