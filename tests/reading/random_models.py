"""A pool of random models, which is the same in each run, and random rows of them."""

import datetime as dt
import itertools
import random
import uuid
from contextlib import contextmanager
from decimal import Decimal

from django.db import connection, models
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init
from django.test.utils import isolate_apps

from tests.factories import EPOCH
from tests.reading import function

MODELS = 30
SEED = 30
ROWS = 5


class Reversed(models.CharField):
    """Gives its texts from right to left."""

    def from_db_value(self, value, expression, connection):
        return value if value is None else value[::-1]


class Loud(models.CharField):
    """Gives its values in capital letters, by its descriptor."""

    class descriptor_class(DeferredAttribute):  # noqa: N801  Django's name
        def __get__(self, instance, cls=None):
            value = super().__get__(instance, cls)
            return value if instance is None or value is None else value.upper()


TEXTS = ["a", "b c", "ñ", "x/y", "100%", "it's", "日本", "None", "", "Z9", "a\nb", "&<"]
FIELDS = {
    "slug": (models.SlugField, {"max_length": 40}, ["a", "b-1", "shop", "9", "x_y", ""]),
    "char": (models.CharField, {"max_length": 40}, TEXTS),
    "text": (models.TextField, {}, TEXTS),
    "email": (models.EmailField, {}, ["a@example.com", ""]),
    "url": (models.URLField, {}, ["https://example.com/ü?a=1&b=2", "/x/"]),
    "integer": (models.IntegerField, {}, [-7, 0, 1, 42, 2**31 - 1]),
    "big": (models.BigIntegerField, {}, [-(2**40), 0, 5]),
    "small": (models.PositiveSmallIntegerField, {}, [0, 1, 12]),
    "float": (models.FloatField, {}, [0.5, -1.0, 1e20, 0.1]),
    "decimal": (
        models.DecimalField,
        {"max_digits": 6, "decimal_places": 2},
        [Decimal("0.50"), Decimal("1.00"), Decimal("-3.25")],
    ),
    "boolean": (models.BooleanField, {}, [True, False]),
    "date": (models.DateField, {}, [EPOCH.date() + dt.timedelta(40 * n) for n in range(-3, 3)]),
    "moment": (
        models.DateTimeField,
        {"db_column": "at"},
        [EPOCH + dt.timedelta(40 * n, n, n) for n in range(-3, 3)],
    ),
    "time": (models.TimeField, {}, [dt.time(), dt.time(23, 59, 59, 7)]),
    "duration": (models.DurationField, {}, [dt.timedelta(), dt.timedelta(-1, 5, 7)]),
    "uuid": (models.UUIDField, {}, [uuid.UUID(int=7, version=4), uuid.UUID(int=2**127, version=4)]),
    "json": (models.JSONField, {}, [{"a": 1}, [1, "ü"], "text", 0]),
    "ip": (models.GenericIPAddressField, {}, ["127.0.0.1", "2001:db8::1"]),
    "reversed": (Reversed, {"max_length": 40}, TEXTS),
    "file": (models.FileField, {}, ["a/b.txt", ""]),
    "loud": (Loud, {"max_length": 40}, TEXTS),
}
"""Fields by their names in models: class, options, and values."""

REFUSED = {"file", "loud"}
"""Those whose values are not those of the columns."""

KEYS = {
    "auto": (models.BigAutoField, {}, None),
    "integer": (models.IntegerField, {}, lambda n: 7 * n - 20),
    "text": (models.CharField, {"max_length": 40}, lambda n: f"{TEXTS[n % 7]}{n}"),
    "slug": (models.SlugField, {"max_length": 40}, lambda n: f"key-{n}"),
    "uuid": (models.UUIDField, {}, lambda n: uuid.UUID(int=n << 80, version=4)),
    "date": (models.DateField, {}, lambda n: EPOCH.date() + dt.timedelta(n)),
    "moment": (models.DateTimeField, {}, lambda n: EPOCH + dt.timedelta(microseconds=n)),
}
"""Primary keys: class, options, and what makes the value of a number."""

GONE = [999_999, "gone", uuid.UUID(int=5, version=4), dt.date(1999, 1, 1), EPOCH.replace(year=1996)]
"""Keys of each type that lead nowhere."""

number = itertools.count()


# Models that make their objects themselves: each adds to the text that the column has.


def _shout(instance, **options):
    if "slug" in vars(instance):
        instance.slug = f"{instance.slug}!"


def _init(self, *args, **options):
    models.Model.__init__(self, *args, **options)
    _shout(self)


def _from_db(cls, *args, **options):
    found = models.Model.from_db.__func__(cls, *args, **options)
    _shout(found)
    return found


def _setattr(self, name, value):
    object.__setattr__(self, name, f"{value}!" if name == "slug" else value)


def _getattribute(self, name):
    value = object.__getattribute__(self, name)
    return f"{value}!" if name == "slug" else value


class Some(models.Manager):
    """Does not find all rows."""

    def get_queryset(self):
        return super().get_queryset().exclude(slug="a")


HOOKS = [
    {"__init__": _init},
    {"from_db": classmethod(_from_db)},
    {"__setattr__": _setattr},
    {"__getattribute__": _getattribute},
    {"objects": models.Manager(), "some": Some()},
    {},  # a signal
]

HOOKED = set()
"""The models that have one of those."""


def _model(chance, place, known):
    """Return a random model, which may have foreign keys to those that are known."""
    meta = {"app_label": "testapp", "db_table": f"random_{place}"}
    label = function("return f'/{self.pk}/{self.slug}'", "label")
    path = function("return f'{self.label}/{self.kind}/'", "path")
    members = {"kind": f"k{place}", "label": property(label), "path": path}
    bases = (models.Model,)
    hooks = None
    if place % 5 == 3:  # a child with a table of its own
        bases = (chance.choice([one for one in known if one not in HOOKED]),)
        members[f"own{place}"] = models.CharField(max_length=40, null=True)
        members |= _relations(chance, known, f"own{place}_")
    elif place % 5 == 4:
        bases = (chance.choice(known),)
        meta = {"app_label": "testapp", "proxy": True}
        hooks = {} if bases[0] in HOOKED else None
    else:
        hooks = HOOKS[place // 5] if place % 5 == 2 else None
        members |= _fields(chance, place) | _relations(chance, known, "") | (hooks or {})
        if "some" in members:
            meta["base_manager_name"] = "some"
    members |= {"__module__": "tests.testapp.models", "Meta": type("Meta", (), meta)}
    model = type(f"Random{place}", bases, members)
    if hooks is not None:
        HOOKED.add(model)
    if hooks == {}:
        post_init.connect(_shout, sender=model)
    return model


def _fields(chance, place):
    """Return a primary key, and some other fields."""
    kind, options, _ = KEYS[list(KEYS)[place % len(KEYS)]]
    fields = {"key": kind(primary_key=True, **options)}
    others = chance.sample(list(FIELDS)[1:], 6)
    for name in ["slug", *others]:
        kind, options, _ = FIELDS[name]
        fields[name] = kind(null=name != "slug" and chance.random() < 0.6, **options)
    if chance.random() < 0.5:
        fields["code"] = models.CharField(max_length=40, unique=True)
    return fields


def _relations(chance, known, prefix):
    """Return foreign keys of all kinds."""
    fields = {}
    for place in range(min(len(known), 2)):
        target = chance.choice(known)
        options = {"null": chance.random() < 0.5, "db_constraint": chance.random() < 0.6}
        if "code" in {field.name for field in target._meta.local_concrete_fields}:
            options["to_field"] = chance.choice(["code", None])
        fields[f"{prefix}r{place}"] = models.ForeignKey(
            target, models.DO_NOTHING, related_name="+", **options
        )
    if chance.random() < 0.3:
        fields[f"{prefix}above"] = models.ForeignKey(
            "self", models.DO_NOTHING, null=True, related_name="+"
        )
    return fields


def _pool():
    chance, known = random.Random(SEED), []
    with isolate_apps("tests.testapp"):
        for place in range(MODELS):
            known.append(_model(chance, place, known))
    return known


POOL = _pool()


@contextmanager
def tables():
    """Have the tables of all models, outside a transaction."""
    concrete = [model for model in POOL if not model._meta.proxy]
    with connection.schema_editor() as editor:
        for model in concrete:
            editor.create_model(model)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for model in reversed(concrete):
                editor.delete_model(model)


def fill(model, chance, made=None):
    """Store rows of a model, and of all that it leads to; return them."""
    made = {} if made is None else made
    model = model._meta.concrete_model
    if model in made:
        return made[model]
    made[model] = rows = []
    fields = [field for field in model._meta.concrete_fields if not _is_to_parent(field)]
    for field in fields:
        if field.remote_field is not None:
            fill(field.remote_field.model, chance, made)
    for place in range(ROWS):
        values = {field.attname: _value(field, chance, made, place) for field in fields}
        row = model(**{name: value for name, value in values.items() if value is not ...})
        row.save(force_insert=True)
        rows.append(row)
    return rows


def _is_to_parent(field):
    return field.remote_field is not None and field.remote_field.parent_link


def _value(field, chance, made, place):
    """Return a value of a field; ``...`` for one that the database makes."""
    if field.null and chance.random() < 0.3:
        return None
    if field.remote_field is not None:
        target = field.target_field
        if not field.db_constraint and chance.random() < 0.3:
            return _gone(target)
        rows = made[field.remote_field.model._meta.concrete_model]
        return getattr(chance.choice(rows), target.attname) if rows else None
    if field.name == "key":
        make = next(make for kind, _, make in KEYS.values() if kind is type(field))
        return ... if make is None else make(next(number) % 10_000)
    if field.name == "code":
        return f"code-{next(number)}"
    return chance.choice(FIELDS.get(field.name, FIELDS["char"])[2])


def _gone(target):
    """Return a key of the type of another field that no row has."""
    while target.remote_field is not None:
        target = target.target_field
    kinds = {models.UUIDField: 2, models.DateField: 3, models.DateTimeField: 4}
    is_text = isinstance(target, models.CharField)
    return GONE[kinds.get(type(target), 1 if is_text else 0)]
