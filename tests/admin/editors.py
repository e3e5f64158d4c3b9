"""What the tests of the editors' screens share: sections, people, forms, the live XML."""

import re
from html.parser import HTMLParser
from urllib.parse import urlencode

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from django_sitemapkit import Route, Section, StaticSection
from tests.testapp.models import Article, Product

MODELS = ("urloverride", "extraurl", "exclusionrule", "sectionsettings")
"""The models of the screens."""

EMPTY = {
    "urloverride": {
        "site": "default",
        "path": "",
        "model": "",
        "object_id": "",
        "include": "",
        "priority": "",
        "changefreq": "",
        "lastmod_0": "",
        "lastmod_1": "",
        "note": "",
    },
    "extraurl": {
        "site": "default",
        "path": "",
        "title": "",
        "lastmod_0": "",
        "lastmod_1": "",
        "changefreq": "",
        "priority": "",
        "note": "",
    },
    "exclusionrule": {"site": "default", "pattern": "", "note": ""},
}
"""The forms with nothing in them, by model; section settings are a table."""


class Products(Section):
    name = "products"
    queryset = Product.objects.select_related("shop")
    lastmod = "updated_at"
    changefreq = "weekly"


class Articles(Section):
    name = "articles"
    queryset = Article.objects.all()
    location = Route("article", pk="pk")


class Pages(StaticSection):
    name = "pages"
    items = ("/about/", "/press/")
    priority = 0.3


ALL = (Products, Articles, Pages)


def client_of(*permissions, name="editor", staff=True, superuser=False, csrf=False):
    """Return a client of a user with some permissions, given by code names."""
    user, _ = User.objects.get_or_create(
        username=name, defaults={"is_staff": staff, "is_superuser": superuser}
    )
    found = Permission.objects.filter(
        content_type__app_label__in=["sitemapkit", "testapp"], codename__in=permissions
    )
    assert len(found) == len(permissions)
    user.user_permissions.set(found)
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(user)
    return client


def chief(*, csrf=False):
    """Return a client of a user who may do everything."""
    return client_of(name="chief", superuser=True, csrf=csrf)


def page(model, view, *args):
    """Return the address of a page of the admin."""
    return reverse(f"admin:sitemapkit_{model}_{view}", args=args)


def text_of(response):
    """Return what a response says."""
    content = b"".join(response) if response.streaming else response.content
    return content.decode()


def errors_of(response):
    """Return the errors of the form of a page, in words."""
    form = response.context["adminform"].form
    return " ".join(str(error) for errors in form.errors.values() for error in errors)


def add(model, /, *, client=None, **values):
    """Send the form for a new row, and return the response."""
    data = {**EMPTY[model], **values}
    return (client or chief()).post(page(model, "add"), data)


def change(row, /, *, client=None, **values):
    """Send the form of a row, with all else as it is, and return the response."""
    model = row._meta.model_name
    client = client or chief()
    response = client.get(page(model, "change", row.pk))
    form = response.context["adminform"].form
    data = {}
    for bound in form:
        value = bound.value()
        if bound.field.show_hidden_initial:
            data[bound.html_initial_name] = "" if value is None else str(value)
        if hasattr(bound.field.widget, "decompress"):
            parts = bound.field.widget.decompress(value)
            data |= {f"{bound.name}_{n}": part or "" for n, part in enumerate(parts)}
        else:
            known = {None: "", True: "True", False: "False"}
            data[bound.name] = known.get(value, value) if not isinstance(value, str) else value
    return client.post(page(model, "change", row.pk), {**data, **values})


class Fields(HTMLParser):
    """Collects what the forms of a page send as it is shown."""

    def __init__(self, text):
        super().__init__()
        self.values, self._select = {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name, value = attrs.get("name"), attrs.get("value") or ""
        if tag == "input" and name and attrs.get("type") != "submit":
            self.values[name] = value
        elif tag == "select":
            self._select = name
        elif tag == "option" and (self._select not in self.values or "selected" in attrs):
            self.values[self._select] = value


def set_section(section, /, *, client=None, query=None, **values):
    """Send the table of section settings with other values for a section; return the response."""
    client, url = client or chief(), page("sectionsettings", "changelist")
    url = f"{url}?{urlencode(query)}" if query else url
    named = {f"section-{section}-{name}": value for name, value in values.items()}
    sent = Fields(text_of(client.get(url))).values
    assert named.keys() <= sent.keys()
    return client.post(url, sent | named)


def live(section, number=1, host="www.example.com"):
    """Return the XML of a live page; "" where there is none."""
    response = Client().get(f"/sitemap-{section}-{number}.xml", headers={"host": host}, secure=True)
    return text_of(response) if response.status_code == 200 else ""


def entry(xml, path):
    """Return the entry of a URL in an XML; "" where there is none."""
    return next((line for line in xml.splitlines() if f"{path}</loc>" in line), "")


def tags(xml, path):
    """Return the values of the tags of a URL, by tag."""
    return dict(re.findall(r"<(lastmod|changefreq|priority)>([^<]*)<", entry(xml, path)))
