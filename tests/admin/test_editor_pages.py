"""What holds for all pages of the editors: they are harmless, and ask few questions."""

import re
from html.parser import HTMLParser

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_sitemapkit.models import ExclusionRule, ExtraUrl, SectionSettings, UrlOverride
from tests.admin.editors import ALL, EMPTY, MODELS, add, chief, page, set_section, text_of
from tests.factories import ProductFactory, products

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> javascript:alert(3) \x01\x1b\x7f"

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture(autouse=True)
def _registered(sections):
    for section in ALL:
        sections.add(section)


def harmless(response):
    """Return the page, in which nothing of the text above is more than text."""
    text = text_of(response)
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert not re.search(r"""(href|src|action)=["']?\s*javascript:""", text, re.IGNORECASE)
    return text


class InlineCode(HTMLParser):
    """Collects what a strict Content-Security-Policy forbids in a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        forbidden = {name for name in names if name == "style" or name.startswith("on")}
        forbidden |= {name for name in names if (names[name] or "").startswith("data:")}
        if forbidden or tag == "style" or (tag == "script" and "src" not in names):
            self.found.append((tag, attrs))


def inline_code(text):
    """Return what of a page a policy of "default-src 'self'" forbids."""
    parser = InlineCode()
    parser.feed(text)
    return parser.found


def evil_rows():
    """Store rows whose every text is evil, past all forms, and return them."""
    product = ProductFactory(slug=EVIL)
    values = {"site": "default", "note": EVIL}
    UrlOverride.objects.bulk_create(
        [
            UrlOverride(path=f"/about/?{EVIL.replace(chr(1), '')[:-3]}", **values),
            UrlOverride(model="testapp.product", object_id=str(product.pk), **values),
            UrlOverride(model=EVIL, object_id=EVIL, **values),
            UrlOverride(path="/evil/", site=EVIL, changefreq=EVIL[:10]),
        ]
    )
    ExtraUrl.objects.bulk_create(
        [ExtraUrl(path="/evil/", **values), ExtraUrl(path="/evil/", site=EVIL, note=EVIL)]
    )
    ExclusionRule.objects.bulk_create(
        [
            ExclusionRule(pattern=f"/{EVIL[:-4]}", **values),
            ExclusionRule(pattern="/", site=EVIL, note=EVIL),
        ]
    )
    SectionSettings.objects.bulk_create(
        [
            SectionSettings(site="default", section=EVIL, changefreq=EVIL[:10]),
            SectionSettings(site=EVIL, section="pages"),
        ]
    )
    return [
        *UrlOverride.objects.all(),
        *ExtraUrl.objects.all(),
        *ExclusionRule.objects.all(),
        *SectionSettings.objects.all(),
    ]


def test_no_stored_text_does_harm():
    """On no page of a row, and on no list, is any of it more than text."""
    client = chief()
    rows = evil_rows()
    assert len(rows) == 10
    for row in rows:
        model = row._meta.model_name
        for view in ("change", "delete", "history"):
            harmless(client.get(page(model, view, row.pk)))
    for model in MODELS:
        assert "&lt;script&gt;" in harmless(client.get(page(model, "changelist")))
    for action in ("include_urls", "exclude_urls", "reset_overrides"):
        data = {"action": action, "_selected_action": [row.pk for row in rows[:4]]}
        harmless(client.post(page("urloverride", "changelist"), data, follow=True))
    harmless(client.get(reverse("admin:index")))


@pytest.mark.parametrize(
    ("model", "field"), [(model, field) for model in EMPTY for field in EMPTY[model]]
)
@pytest.mark.parametrize("button", ["_save", "_preview"])
def test_no_text_that_is_sent_does_harm(model, field, button):
    """Whatever field it comes in, it comes back as text: refused, saved or previewed."""
    found = {"path": "/a/"} if model == "extraurl" else {}
    found |= {"pattern": "/a"} if model == "exclusionrule" else {}
    for text in (EVIL, f"/{EVIL[:-4]}"):
        response = add(model, **(found | {field: text, button: "1"}))
        harmless(response)
        if response.status_code == 302:
            harmless(chief().get(response.url))


@pytest.mark.parametrize("field", ["enabled", "changefreq", "priority"])
def test_no_text_that_the_table_sends_does_harm(field):
    """It is refused, or means nothing."""
    harmless(set_section("pages", **{field: EVIL}))
    assert not SectionSettings.objects.exists()


def test_no_pasted_or_imported_text_does_harm():
    """Neither in the errors nor in what is shown of a dry run, nor in the words of a search."""
    client = chief()
    lines = f"{EVIL}\n/{EVIL[:-4]}\njavascript:alert(1)\n"
    harmless(client.post(page("extraurl", "paste"), {"site": "default", "urls": lines}))
    cell = '"' + EVIL.replace('"', '""')[:-4] + '"'
    for text in (
        f"{cell}\n",
        f"path,{cell}\n",
        f"path,note\n/a/,{cell}\n{cell},\n/b/,\n",
        f"path,note,include,priority,changefreq,lastmod\n/a/,,{cell},,,\n/b/,,,{cell},,\n",
        f"path,note,include,priority,changefreq,lastmod\n/a/,,,,{cell},\n/b/,,,,,{cell}\n",
        f"site,path\n{cell},/a/\n",
        f"model,object_id\n{cell},1\ntestapp.product,{cell}\n",
    ):
        file = SimpleUploadedFile(f"{EVIL}.csv", text.encode())
        harmless(client.post(page("urloverride", "import"), {"file": file}))
    UrlOverride(site="default", path="/a/", note=EVIL).save()
    file = SimpleUploadedFile("x.csv", b"path,note\n/a/,b\n")
    assert "&lt;script&gt;" in harmless(client.post(page("urloverride", "import"), {"file": file}))
    for model in MODELS:
        harmless(client.get(page(model, "changelist"), {"q": EVIL}))


def test_pages_have_no_inline_code():
    """A policy of "default-src 'self'" forbids scripts and styles within the page."""
    client = chief()
    for row in evil_rows():
        text = text_of(client.get(page(row._meta.model_name, "change", row.pk)))
        assert inline_code(text) == []
    urls = [page(model, view) for model in MODELS for view in ("changelist", "add")]
    urls += [page("urloverride", "import"), page("extraurl", "paste")]
    for url in urls:
        assert inline_code(text_of(client.get(url))) == []
    file = SimpleUploadedFile("x.csv", b"path,note\n/a/,b\n/#,\n")
    response = client.post(page("urloverride", "import"), {"file": file})
    assert inline_code(text_of(response)) == []
    response = client.post(page("extraurl", "paste"), {"site": "default", "urls": "/#\n/a/"})
    assert inline_code(text_of(response)) == []


def rows_of(model, numbers):
    """Return unsaved rows of a model."""
    made = {
        "urloverride": lambda n: (
            UrlOverride(site="default", path=f"/{n}/", include=n % 2 == 0, note=f"note {n}")
            if n % 2
            else UrlOverride(site="default", model="testapp.product", object_id=str(n))
        ),
        "extraurl": lambda n: ExtraUrl(site="default", path=f"/{n}/", priority="0.5"),
        "exclusionrule": lambda n: ExclusionRule(site="default", pattern=f"/{n}/"),
    }[model]
    return [made(number) for number in numbers]


@pytest.mark.parametrize("model", EMPTY)
@pytest.mark.parametrize("query", [{}, {"q": "1"}])
def test_a_list_asks_as_much_for_200_rows_as_for_10(model, query, django_assert_num_queries):
    """The number of queries does not grow with the rows, and is small."""
    products(3)
    client = chief()
    url = page(model, "changelist")
    manager = rows_of(model, [0])[0].__class__.objects
    manager.bulk_create(rows_of(model, range(10)))
    client.get(url)
    with django_assert_num_queries(6):  # Session, user, a savepoint, count, rows.
        client.get(url, query)
    manager.bulk_create(rows_of(model, range(10, 200)))
    with django_assert_num_queries(6):
        assert client.get(url, query).context["cl"].result_count >= 100 or query


@pytest.mark.parametrize("model", ["urloverride", "extraurl"])
def test_a_page_asks_as_much_among_200_rows_as_among_10(model, django_assert_max_num_queries):
    """What a URL comes to is looked up, not searched for."""
    client = chief()
    rows_of(model, [1])[0].save()
    manager = rows_of(model, [1])[0].__class__.objects
    url = page(model, "change", manager.get().pk)
    client.get(url)
    with CaptureQueriesContext(connection) as first:
        client.get(url)
    asked = len(first)
    manager.bulk_create(rows_of(model, range(2, 200)))
    client.get(url)
    with django_assert_max_num_queries(asked):
        client.get(url)


@pytest.mark.parametrize("model", ["urloverride", "extraurl", "exclusionrule"])
def test_before_rows_are_deleted_it_is_said_when_the_sitemap_follows(model):
    """Of one as of many; a page that answers a form leads to neither, since none leads back."""
    field = "pattern" if model == "exclusionrule" else "path"
    client = chief()
    add(model, client=client, **{field: "/nowhere/"})
    row = apps.get_model("sitemapkit", model).objects.get()
    said = "Published sitemap files stay as they are until the next build."
    chosen = {"action": "delete_selected", "_selected_action": row.pk}
    for response in (
        client.get(page(model, "delete", row.pk)),
        client.post(page(model, "changelist"), chosen),
    ):
        assert said in text_of(response)
    url = page(model, "change", row.pk)
    assert page(model, "delete", row.pk) in text_of(client.get(url))
    values = {"site": "default", field: "/nowhere/", "note": "", "_preview": "1"}
    assert page(model, "delete", row.pk) not in text_of(client.post(url, values))
