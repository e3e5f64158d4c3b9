"""Each field of the editors' screens reaches the output: none is there for show."""

import pytest
from django.apps import apps
from django.urls import reverse

from tests.admin.editors import (
    ALL,
    EMPTY,
    add,
    change,
    chief,
    errors_of,
    live,
    page,
    text_of,
)
from tests.cases import few
from tests.factories import ArticleFactory, ProductFactory, ShopFactory

pytestmark = pytest.mark.django_db

LASTMOD = {"lastmod_0": "2024-05-01", "lastmod_1": "12:00:00"}

BY_PATH = {"site": "main", "path": "/about/", "include": "False"}
BY_OBJECT = {"site": "main", "model": "testapp.product", "object_id": "1", "include": "False"}
EXTRA = {"site": "main", "path": "/extra/"}
RULE = {"site": "main", "pattern": "/about/", "_confirmed": "main /about/"}

CASES = {
    "urloverride": {
        "site": (BY_PATH, {"site": "other"}),
        "path": (BY_PATH, {"path": "/press/"}),
        "model": (BY_OBJECT, {"model": "testapp.article"}),
        "object_id": (BY_OBJECT, {"object_id": "2"}),
        "include": (BY_PATH, {"include": ""}),
        "priority": (BY_PATH | {"include": "True"}, {"priority": "0.7"}),
        "changefreq": (BY_PATH | {"include": "True"}, {"changefreq": "hourly"}),
        "lastmod": (BY_PATH | {"include": "True"}, LASTMOD),
        "note": (BY_PATH, {"note": "because it is"}),
    },
    "extraurl": {
        "site": (EXTRA, {"site": "other"}),
        "path": (EXTRA, {"path": "/more/"}),
        "title": (EXTRA, {"title": "All that is left"}),
        "priority": (EXTRA, {"priority": "0.7"}),
        "changefreq": (EXTRA, {"changefreq": "hourly"}),
        "lastmod": (EXTRA, LASTMOD),
        "note": (EXTRA, {"note": "because it is"}),
    },
    "exclusionrule": {
        "site": (RULE, {"site": "other", "_confirmed": "other /about/"}),
        "pattern": (RULE, {"pattern": "/pre*", "_confirmed": "main /pre*"}),
        "note": (RULE, {"note": "because it is"}),
    },
}
"""For each field what is set before, and what it is changed to."""

NOT_FOR_XML = {"note", "title"}
"""Fields that people read: on the list, and the title on the site map for people, too."""

FOUND_BY = {"model", "object_id"}
"""Fields that are chosen but once: to change them is to make another row."""

HOSTS = ("www.example.com", "testserver")


@pytest.fixture(autouse=True)
def _two_sites(sections, settings):
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": f"https://{HOSTS[0]}"},
        "other": {"BASE_URL": f"https://{HOSTS[1]}"},
    }
    for section in ALL:
        sections.add(section)
    shop = ShopFactory()
    for pk in (1, 2):
        ProductFactory(pk=pk, shop=shop)
        ArticleFactory(pk=pk)


def output(model):
    """Return all XML of both sites, and the list that people read."""
    names = ("products", "articles", "pages", "extra-urls")
    return (
        [live(name, host=host) for host in HOSTS for name in names],
        text_of(chief().get(page(model, "changelist"))),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "field"),
    few(8, [(model, field) for model, fields in CASES.items() for field in fields]),
)
def test_each_field_changes_the_output(model, field):
    """Changed in the admin, a field makes a difference in the XML; one for people, on the list."""
    before, to = CASES[model][field]
    response = add(model, **before)
    assert response.status_code == 302, errors_of(response)
    xml, listed = output(model)

    cls = apps.get_model("sitemapkit", model)
    if field in FOUND_BY:
        cls.objects.all().delete()
        response = add(model, **before | to)
    else:
        response = change(cls.objects.get(), **to)
    assert response.status_code == 302, errors_of(response)
    new_xml, new_listed = output(model)
    if field in NOT_FOR_XML:
        assert new_xml == xml
        assert new_listed != listed
        assert to[field] in new_listed
    else:
        assert new_xml != xml


@pytest.mark.slow
@pytest.mark.parametrize("model", EMPTY)
def test_no_field_is_left_out(model):
    """Whatever field the pages have is in the list above."""
    client = chief()
    assert add(model, client=client, **CASES[model]["site"][0]).status_code == 302
    fields = set(client.get(page(model, "add")).context["adminform"].form.fields)
    listed = client.get(page(model, "changelist")).context["cl"].result_list
    url = reverse(f"admin:sitemapkit_{model}_change", args=[listed[0].pk])
    fields |= set(client.get(url).context["adminform"].form.fields)
    assert fields == set(CASES[model])
    sent = {name.removesuffix("_0").removesuffix("_1") for name in EMPTY[model]}
    assert sent == set(CASES[model])
