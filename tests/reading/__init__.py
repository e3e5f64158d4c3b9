"""What the tests of reading share."""

import itertools
import linecache

from django.test.utils import isolate_apps
from django.urls import reverse, reverse_lazy
from django.utils.text import slugify

from django_sitemapkit.protocol.locations import Scope
from django_sitemapkit.reading.keysets import EVERYTHING
from django_sitemapkit.rendering import PageRendering
from tests.factories import SITE, declare
from tests.testapp.models import Product

_number = itertools.count()


def proxy(model=Product, **members):
    """Return a proxy of a model with other methods; its rows are the model's."""
    meta = type("Meta", (), {"proxy": True, "app_label": "testapp"})
    members |= {"__module__": "tests.testapp.models", "Meta": meta}
    with isolate_apps("tests.testapp"):
        return type(f"Proxy{next(_number)}", (model,), members)


def function(body, name="url", parameters="self", **names):
    """Return a function that has a source, and a module of its own. Raises SyntaxError."""
    text = f"def {name}({parameters}):\n    {body}\n"
    file = f"<function {next(_number)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    found = {"reverse": reverse, "reverse_lazy": reverse_lazy, "slugify": slugify, **names}
    exec(compile(text, file, "exec"), found)
    return found[name]


def by_method(function, model=Product, **options):
    """Return the reader of a section whose model has a get_absolute_url()."""
    rows = proxy(model, get_absolute_url=function).objects.all()
    return declare(**{"queryset": rows, "location": None, **options})


def given(reader):
    """Return what a reader gives: the bytes of a page, and what is said of its rows."""
    rendering = PageRendering(type(reader)(reader.options), EVERYTHING, Scope(SITE.origin))
    return b"".join(rendering).decode(), rendering.problems.by_code()
