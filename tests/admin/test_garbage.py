"""Whatever stands in an address or a form, no page of the admin is a server error."""

import pytest
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from django_sitemapkit.models import Build, ExclusionRule, ExtraUrl, SectionSettings, UrlOverride
from tests.admin.editors import ALL, EMPTY, Fields, chief, page, text_of

pytestmark = pytest.mark.django_db

QUERIES = [
    {"site": "\0"},
    {"site": "x", "status": "x", "include": "x", "kind": "x"},
    {"section": "\0"},
    {"changefreq__exact": "\0", "status__exact": "\0"},
    {"enabled__exact": "x"},
    {"id__in": "1,\0"},
    {"path__regex": "(", "reason__regex": "("},
    {"changed_at__year": "99999", "started_at__year": "99999"},
    {"q": "\0", "o": "\0", "p": "\0"},
    {"q": "://\0", "o": "9.-x", "p": "9" * 30},
    {"unknown": "x"},
    {"e": "1", "unknown": "x"},
]
"""What nobody types and any scanner sends."""


def views():
    """Return the name of every page of the package's screens, and how many keys it takes."""
    for model, screen in admin.site._registry.items():
        if model._meta.app_label == "sitemapkit":
            for pattern in screen.get_urls():
                if pattern.name:
                    yield model, pattern.name, len(pattern.pattern.converters)


def queries_for(model, name):
    """Return the queries for a page: a list is asked one by one, for it stops at the first."""
    fields = {field.name for field in model._meta.fields}
    known = [
        {
            key: value
            for key, value in query.items()
            if key.split("__")[0] in fields or "__" not in key
        }
        for query in QUERIES
    ]
    if name.endswith(("_changelist", "_export")):
        return known
    return [{key: value for query in known for key, value in query.items()}, {"section": "\0"}]


VIEWS = [pytest.param(*view, id=view[1]) for view in views()]


@pytest.fixture
def rows(sections):
    """Make a row of each model, and return their keys."""
    for section in ALL:
        sections.add(section)
    rows = [
        UrlOverride(site="default", path="/a/"),
        ExtraUrl(site="default", path="/a/"),
        ExclusionRule(site="default", pattern="/a/"),
        SectionSettings(site="default", section="products"),
        Build(site="default", fence=1, started_at=timezone.now()),
    ]
    for row in rows:
        row.save()
    return {type(row): row.pk for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name", "keys"), VIEWS)
def test_no_address_is_a_server_error(rows, model, name, keys):
    """Garbage in the query or in the place of a key is answered, if only by a refusal."""
    client = chief()
    client.raise_request_exception = False
    of_row, others = keys > 0, [1] * (keys - 1)
    url = reverse(f"admin:{name}", args=[rows[model], *others] if of_row else [])
    for query in queries_for(model, name):
        assert client.get(url, query).status_code < 500, query
    for key in ("\0", "x", "9" * 30) if of_row else ():
        url = reverse(f"admin:{name}", args=[key, *others])
        assert client.get(url).status_code < 500, key
        assert client.post(url).status_code < 500, key


@pytest.mark.slow
def test_an_export_by_unknown_filters_is_refused():
    """It leads back to the list and says why; a file of all rows would not be what was asked."""
    UrlOverride(site="default", path="/a/").save()
    for query in ({"status": "x"}, {"path__regex": "("}):
        response = chief().get(page("urloverride", "export"), query, follow=True)
        assert response.redirect_chain == [(page("urloverride", "changelist"), 302)]
        assert "Nothing was exported: the address contains an unknown filter." in (
            text_of(response)
        )


@pytest.mark.slow
def test_no_form_is_a_server_error(rows):
    """A NUL in any field of any form is refused."""
    client, nul = chief(), "/a\0/"
    for model, fields in EMPTY.items():
        response = client.post(page(model, "add"), dict.fromkeys(fields, nul))
        assert response.status_code == 200
    table = page("sectionsettings", "changelist")
    fields = Fields(text_of(client.get(table))).values
    assert client.post(table, dict.fromkeys(fields, nul)).status_code == 200
    urls = {"urls": nul, "site": nul}
    assert client.post(page("extraurl", "paste"), urls).status_code == 200
    asked = {"site": nul, "button": nul, "section": nul}
    assert client.post(reverse("admin:sitemapkit_request"), asked).status_code == 404
    for line in (f"default,{nul},", f"{nul},/a/,", f"default,/a/,{nul}"):
        file = SimpleUploadedFile("x.csv", f"site,path,note\n{line}\n".encode())
        response = client.post(page("extraurl", "import"), {"file": file})
        assert response.status_code == 200
        assert response.context["invalid"] == 1
