"""Whatever is declared: each URL is listed once, with its date, however and whenever it is read.

A declaration is drawn as text, so that one that fails can be tried by hand. What it has to list is
found as a loop of Django would: each row of the queryset by itself, each URL by ``reverse()``.
"""

import datetime as dt
import re
from contextlib import ExitStack
from itertools import cycle

import pytest
from django.conf import settings as django_settings
from django.conf.urls.i18n import i18n_patterns
from django.db import connection, models, transaction
from django.db.models import functions
from django.urls import NoReverseMatch, path, reverse
from django.utils import timezone, translation
from django.utils.translation import get_language
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from django_sitemapkit import Route, Section, StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.planning import pages_with_rows
from django_sitemapkit.reading import keysets, text_queries
from django_sitemapkit.registry import registry
from django_sitemapkit.rendering import PageRendering
from django_sitemapkit.sites import all_sites
from tests.builds import manifest, use_storage, xml
from tests.reading.test_any_queryset import refusal_of
from tests.reading.test_collations import DATABASES, MODELS, TEXTS, VALUES, tables  # noqa: F401
from tests.urls import urlpatterns as others
from tests.urls import view

VALUES_BY_LANGUAGE = True
"""Whether methods that ask for the language are drawn."""

urlpatterns = [
    *others,
    path("one/<str:a>/<slug:b>/", view, name="one"),
    *i18n_patterns(path("each/<str:a>/<slug:b>/", view, name="each")),
]

BY_LANGUAGE = {
    code: dt.date(2024, 1, day) for day, (code, _) in enumerate(django_settings.LANGUAGES, 1)
}
NAMES = {**vars(models), **vars(functions), "dt": dt, "timezone": timezone}
EPOCH = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)

# In these, $T is a text and $D the year of a date: a change of the declaration puts in others.
CONDITIONS = [
    *("rank__gt=2", "note='$T'", "note__in={'$T', '$T'}", "day=dt.date($D, 1, 1)", "pk__in=[]"),
    *("day__gte=dt.date($D, 1, 1)", "at__lte=timezone.now()", "at__year=2024", "at=None"),
    *("at__gte=timezone.now() - dt.timedelta(days=9999)", "parent__note='$T'"),
    *("slug__gt='s1'", "Exists(M.objects.filter(parent=OuterRef('pk')))"),
]
PLAIN = [
    *(
        "F('slug')",
        "Value('$D-01-01')",
        "Value('$T')",
        "Concat(Value('$T'), 'slug', Value('$T'), output_field=CharField())",
    ),
    "Case(When(note='$T', then=Value('$T')), default=Value('$T'))",
    "Case(When(day__lt=dt.date($D, 1, 1), then=Value('old')), default=Value('new'))",
    *("Cast('rank', CharField())", "Upper('note')", "Coalesce('parent__slug', Value('$T'))"),
    "Func('note', Value('$T'), function='REPLACE', template=\"REPLACE(%(expressions)s, 'a')\")",
    "Coalesce(Subquery(M.objects.filter(pk=OuterRef('parent')).values('note')[:1]), Value('$T'))",
]
WINDOWS = [
    "Cast(Window(RowNumber(), order_by='slug'), CharField())",
    "Window(Lead('slug', default=Value('$T')), order_by='slug')",
    "Concat(Value('$T'), Window(Max('slug'), partition_by='note'), output_field=CharField())",
    "Cast(RawSQL('RANK() OVER (ORDER BY slug)', ()), CharField())",
]
NAMES["RawSQL"] = models.expressions.RawSQL
CALLS = st.lists(
    st.sampled_from(
        [
            *(f".filter({one})" for one in CONDITIONS),
            *(f".exclude({one})" for one in CONDITIONS),
            ".filter(Q(note='$T') | ~Q(rank=1) & Q(day=dt.date($D, 1, 1)))",
            *(".distinct()", ".order_by('-note')", ".order_by('parent__slug').reverse()"),
            *(".select_related('parent')", ".all()"),
        ]
    ),
    max_size=2,
)
EXPRESSIONS = st.sampled_from(PLAIN) | st.sampled_from([*PLAIN, *WINDOWS])
LASTMODS = st.sampled_from(
    [
        *("F('at')", "F('day')", "F('parent__at')", "Window(Max('at'), partition_by='note')"),
        # Of such a mixture Django cannot read what MariaDB gives.
        "Coalesce('at', Value(dt.datetime($D, 1, 1, tzinfo=dt.UTC)))",
    ][: 4 if connection.vendor == "mysql" else 5]
)
WAYS = ["text", "text", "columns", "methods", "languages"]
DECLARATIONS = st.fixed_dictionaries(
    {
        "calls": CALLS.map("".join),
        "path": EXPRESSIONS,
        "lastmod": LASTMODS,
        "way": st.sampled_from(WAYS),
        "trusts": st.booleans(),
        "key": st.sampled_from(["key", "pk", "slug"]),
    }
)
CONSTANTS = st.tuples(st.permutations("ab"), st.permutations(["2024", "2025"]))
CHANGES = ["declaration", "declaration", "rows", "nothing"]


def written(text, constants, model):
    """Return what the text of an expression stands for, with some constants."""
    texts, years = map(cycle, constants)
    text = re.sub(r"\$[TD]", lambda found: next(texts if found[0] == "$T" else years), text)
    return eval(text, NAMES | {"M": model})


class Declared:
    """A drawn declaration: its section, and what that has to list."""

    def __init__(self, drawn, constants, model, alias):
        chain = f"M.objects.using({alias!r}).annotate(path={drawn['path']}){drawn['calls']}.all()"
        self.read = lambda: written(chain, constants, model)
        self.in_languages = drawn["way"] == "languages"
        self.view = "each" if self.in_languages else "one"
        self.lastmod = written(drawn["lastmod"], constants, model)
        named = Route(self.view, a=written(drawn["path"], constants, model), b="slug")
        concat = functions.Concat(
            models.Value("/one/"), "path", models.Value("/"), "slug", models.Value("/"),
            output_field=models.TextField(),
        )  # fmt: skip
        location = {
            "columns": concat, "methods": lambda self, row: f"/one/{row.path}/{row.slug}/",
        }.get(drawn["way"], named)  # fmt: skip
        self.trusts = drawn["trusts"] and drawn["lastmod"] == "F('at')"
        self.by_language = self.in_languages and VALUES_BY_LANGUAGE
        self.promises = self.trusts or drawn["way"] == "methods"
        lastmod = (lambda self, row: BY_LANGUAGE[get_language()]) if self.by_language else None
        options = {
            "get_queryset": lambda section: self.read(), "location": location, "limit": 4,
            "lastmod": lastmod or self.lastmod, "i18n": self.in_languages, "key": drawn["key"],
            "trust_lastmod": self.trusts, "name": "things", "__module__": __name__,
            "depends_on": ["slug"] if drawn["way"] == "methods" else None,
        }  # fmt: skip
        self.section = type("Things", (Section,), options)

    def expected(self):
        """Return all URLs with their dates, found row by row."""
        rows = self.read().annotate(date=self.lastmod)
        codes = [code for code, _ in django_settings.LANGUAGES] if self.in_languages else ["en"]
        found = []
        for row in dict.fromkeys(rows):
            for code in codes:
                date = BY_LANGUAGE[code] if self.by_language else row.date
                with translation.override(code):
                    try:
                        url = reverse(self.view, kwargs={"a": row.path, "b": row.slug})
                    except NoReverseMatch:
                        continue
                text = date.isoformat(timespec="seconds") if hasattr(date, "hour") else str(date)
                found.append((f"https://www.example.com{url}", text if date else ""))
        return sorted(found)


class Always(StaticSection):
    """What is published beside the rows, of which there may be none."""

    items = ("/always/",)


ENTRY = re.compile(r"<url><loc>(.*?)</loc>(?:<lastmod>(.*?)</lastmod>)?")


def entries(documents):
    """Return the URLs of some documents with their dates."""
    return sorted(ENTRY.findall(b"".join(documents).decode()))


def rendered(reader, **options):
    """Return the URLs of all live pages with their dates."""
    site = reader.site
    pages = pages_with_rows(reader)
    return entries(
        chunk
        for page in pages
        for chunk in PageRendering(reader, page.keys, site.scope(), **options)
    )


def built(storage, *, full=False):
    """Return the URLs of all published files with their dates."""
    (site,) = all_sites()
    build(site, full=full)
    return entries(
        xml(storage, row) for row in manifest().values() if row.section == "things" and row.name
    )


def fill(model, alias, kind):
    """Store some rows, of which many have the same date."""
    keys = VALUES.get(kind) or [text for text in TEXTS if text.isascii() and text.islower()]
    stored = []
    for n, key in enumerate(keys[:14]):
        if kind not in VALUES and model.objects.using(alias).filter(key=key).exists():
            continue
        row = model(key=key, slug=f"s{n}", note="ab"[n % 2], rank=n % 4)
        row.at = EPOCH + dt.timedelta(days=n // 6) if n % 5 else None
        row.day = dt.date(2024 + n % 2, 1, 1) if n % 7 else None
        row.parent = stored[n // 2] if n % 3 == 2 else None
        row.save(using=alias, force_insert=True)
        stored.append(row)
    return stored


def change(model, alias, stored, number):
    """Change some rows: one goes, one comes back, one is edited."""
    rows = model.objects.using(alias)
    rows.filter(parent=stored[number].pk).update(parent=None)
    rows.filter(pk=stored[number].pk).delete()
    edited = stored[number - 1]
    rows.filter(pk=edited.pk).update(note="b" if edited.note == "a" else "a", at=EPOCH, rank=3)


def agrees(storage, kind, alias, drawn, constants, changed, number):
    """Compare all ways to read a declaration with its rows, before and after a change."""
    model = MODELS[kind]
    with ExitStack() as stack:
        for name in DATABASES:
            stack.enter_context(transaction.atomic(using=name))
            stack.callback(transaction.set_rollback, True, using=name)
        stored = fill(model, alias, kind)
        declared = Declared(drawn, constants[0], model, alias)
        sections = stack.enter_context(registry.isolated())
        sections.add(declared.section)
        sections.add(Always)
        (site,) = all_sites()
        reader = sections.get(site, "things")
        if reason := refusal_of(reader):
            event("refused")
            assert "Window" in str(drawn) or "OVER" in str(drawn), reason
            return
        event("listed")
        expected = declared.expected()
        assert rendered(reader) == expected
        assert rendered(reader, on_locations=lambda urls: None) == expected
        assert built(storage) == expected
        if changed == "declaration":
            declared = Declared(drawn, constants[1], model, alias)
            sections.remove("things")
            sections.add(declared.section)
        elif changed == "rows" and not declared.promises:
            change(model, alias, stored, number)
        assert built(storage) == declared.expected()


def drawn_by_hand(kind="integer", **options):
    """Return what is always tried: each has been a fault."""
    drawn = {"calls": "", "path": "F('slug')", "lastmod": "F('at')", "way": "text", "key": "key"}
    return {
        "kind": kind, "alias": DATABASES[-1], "drawn": drawn | {"trusts": False} | options,
        "constants": (("ab", ("2024", "2025")), ("ba", ("2025", "2024"))),
        "changed": "declaration", "number": 1,
    }  # fmt: skip


def property_of(max_examples):
    """Return a test of so many declarations."""

    @example(**drawn_by_hand(path=WINDOWS[0]))
    @example(**drawn_by_hand(path="Value('$D-01-01')", trusts=True))
    @example(**drawn_by_hand(kind="uuid"))
    @given(
        kind=st.sampled_from(list(MODELS)),
        alias=st.sampled_from(DATABASES),
        drawn=DECLARATIONS,
        constants=st.tuples(CONSTANTS, CONSTANTS),
        changed=st.sampled_from(CHANGES),
        number=st.integers(1, 6),
    )
    @settings(
        max_examples=max_examples,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],  # To shrink one takes minutes, and it is short.
    )
    def test(storage, **drawn):
        """Each URL once, with its date; refused only where a window is; never out of date."""
        agrees(storage, **drawn)

    return pytest.mark.django_db(databases=DATABASES)(test)


@pytest.fixture
def storage(settings, sections, monkeypatch):
    """Give the storage of a site with the URLs above, whose rows are read some at a time."""
    settings.ROOT_URLCONF = __name__
    monkeypatch.setattr(keysets, "FIRST_CHUNK", 2)
    monkeypatch.setattr(keysets, "CHUNK", 3)
    monkeypatch.setattr(text_queries, "FIRST_CHUNK", 2)
    monkeypatch.setattr(text_queries, "ROWS_PER_TEXT", 3)
    return use_storage(settings, "Memory")


test_what_is_declared_is_listed = pytest.mark.slow(property_of(8))
test_what_many_declare_is_listed = pytest.mark.thorough(
    property_of(2 * settings.default.max_examples)
)
