"""The override of an object on the object's own page, be its key what it may."""

import datetime as dt
import re
import uuid
from urllib.parse import quote

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote as admin_quote
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory
from django.urls import reverse

from django_sitemapkit import Section
from django_sitemapkit.admin import inlines
from django_sitemapkit.builds import build
from django_sitemapkit.identities import identity_of
from django_sitemapkit.models import UrlOverride
from tests.admin.editors import chief, client_of, entry, live, text_of
from tests.admin.urls import FIELDS, site
from tests.builds import use_storage
from tests.cases import few
from tests.factories import (
    EPOCH,
    SITE,
    ArticleFactory,
    DayFactory,
    FeatureFactory,
    PassFactory,
    ProductFactory,
    ReadingFactory,
    ShopFactory,
    TokenFactory,
)
from tests.testapp.models import Article, ArticleProxy, Day, Moment, Product, Reading, Token

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin.urls")]

PREFIX = "sitemapkit-override"

EMPTY = {
    "site": "default",
    "include": "",
    "priority": "",
    "changefreq": "",
    "lastmod_0": "",
    "lastmod_1": "",
    "note": "",
}

KEYS = {
    "automatic integer": ProductFactory,
    "uuid": TokenFactory,
    "negative integer": lambda: ReadingFactory(level=-7),
    "text with slashes": lambda: Session.objects.create(
        session_key="a/b c_2F?é", session_data="x", expire_date=EPOCH
    ),
    "date": DayFactory,
    "child": FeatureFactory,
    "child with a uuid": PassFactory,
    "proxy": lambda: ArticleProxy.objects.get(pk=ArticleFactory().pk),
}
"""An object for each kind of key."""


def path_of(obj):
    """Return the path at which an object is listed."""
    label, key = identity_of(obj)
    return f"/{label}/{quote(key, safe='')}/"


@pytest.fixture(autouse=True)
def _registered(sections):
    def section_of(model):
        class Things(Section):
            name = f"{model._meta.model_name}s"
            queryset = model.objects.all()
            priority = 0.3

            def location(self, obj):
                return path_of(obj)

        return Things

    for model in FIELDS:
        if model not in {ArticleProxy, Reading}:
            sections.add(section_of(model))
    sections.add(section_of(Reading))


def url_of(obj):
    """Return the address of an object's page."""
    opts = obj._meta
    return reverse(f"inlines:{opts.app_label}_{opts.model_name}_change", args=[admin_quote(obj.pk)])


def own(obj):
    """Return what the form sends of the object itself."""
    data = {}
    for name in FIELDS[type(obj)]:
        value = obj._meta.get_field(name).value_from_object(obj)
        if isinstance(value, dt.datetime):
            data |= {f"{name}_0": value.date(), f"{name}_1": value.strftime("%H:%M:%S")}
        else:
            data[name] = value
    return data


def sent(*rows, initial=0):
    """Return what the forms of the inline send; ``was`` is what they showed of ``include``."""
    data = {f"{PREFIX}-TOTAL_FORMS": len(rows), f"{PREFIX}-INITIAL_FORMS": initial}
    for number, row in enumerate(rows):
        data[f"initial-{PREFIX}-{number}-include"] = row.pop("was", "")
        data |= {f"{PREFIX}-{number}-{name}": value for name, value in {**EMPTY, **row}.items()}
    return data


def errors_of(response):
    """Return the errors of the inline."""
    (inline,) = response.context["inline_admin_formsets"]
    return f"{inline.formset.errors} {inline.formset.non_form_errors()}"


def listed(obj):
    """Return the entry of an object, in whatever section has it."""
    names = [f"{model._meta.model_name}s" for model in FIELDS]
    return next((found for name in names if (found := entry(live(name), path_of(obj)))), "")


@pytest.mark.slow
@pytest.mark.parametrize("kind", few(3, KEYS))
def test_an_object_of_any_key_is_steered_from_its_own_page(kind):
    """It shows what its URL comes to; excluded there, it is gone from the live page."""
    obj = KEYS[kind]()
    other = KEYS[kind]() if kind in {"automatic integer", "uuid"} else None
    assert listed(obj)
    client = chief()
    text = text_of(client.get(url_of(obj)))
    assert '>0.3</td><td data-label="Source">declaration of the section</td>' in text
    assert path_of(obj) in text
    response = client.post(url_of(obj), own(obj) | sent({"include": "False"}))
    assert response.status_code == 302, errors_of(response)
    row = UrlOverride.objects.get()
    assert (row.model, row.object_id) == identity_of(obj)
    assert not listed(obj)
    assert other is None or listed(other)
    text = text_of(client.get(url_of(obj)))
    assert "A URL override excludes it." in text
    change = {"id": row.pk, "was": "False", "priority": "0.9"}
    response = client.post(url_of(obj), own(obj) | sent(change, initial=1))
    assert response.status_code == 302, errors_of(response)
    assert "<priority>0.9</priority>" in listed(obj)
    deletion = {"id": row.pk, "DELETE": "on"}
    response = client.post(url_of(obj), own(obj) | sent(deletion, initial=1))
    assert response.status_code == 302, errors_of(response)
    assert not UrlOverride.objects.exists()
    assert "<priority>0.3</priority>" in listed(obj)


@pytest.mark.slow
def test_an_object_is_shown_as_published_and_as_it_will_be(settings):
    """It says so above the fields; the message after a change says when the files follow."""
    use_storage(settings, "Memory")
    obj = ArticleFactory()
    build(SITE)
    client = chief()
    response = client.post(url_of(obj), own(obj) | sent({"include": "False"}), follow=True)
    assert "The published sitemap stays as it is until the next build." in text_of(response)
    text = " ".join(re.sub("<[^>]+>", " ", text_of(client.get(url_of(obj)))).split())
    assert "Published now listed · show the sitemap file" in text
    assert "After the next build not listed A URL override excludes it." in text
    assert 'id="sitemapkit-inline" data-name="Sitemap"' in text_of(client.get(url_of(obj)))


@pytest.mark.slow
def test_a_key_that_a_form_spells_otherwise_is_named_as_it_is_stored(settings):
    """A moment of the editor's zone: else nothing would find the override."""
    settings.TIME_ZONE = "Europe/Madrid"
    obj = Moment.objects.create(at=dt.datetime(2024, 1, 2, 12, 30, tzinfo=dt.UTC))
    local = {"at_0": "2024-01-02", "at_1": "13:30:00"}
    response = chief().post(url_of(obj), local | sent({"include": "False"}))
    assert response.status_code == 302, errors_of(response)
    assert not listed(obj)
    row = UrlOverride.objects.get()
    assert (row.model, row.object_id) == identity_of(Moment.objects.get())
    change = {"id": row.pk, "include": "True"}
    response = chief().post(url_of(obj), local | sent(change, initial=1))
    assert response.status_code == 302, errors_of(response)
    assert listed(obj)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "values"),
    [
        (Token, {"id": str(uuid.UUID(int=7))}),
        (Reading, {"level": "-3"}),
        (Day, {"date": "2024-02-29"}),
        (Article, {"title": "t", "edited_at_0": "2024-02-29", "edited_at_1": "12:00:00"}),
    ],
)
def test_an_object_gets_its_override_as_it_is_added(model, values):
    """Its key may be known only once it is saved."""
    add = reverse(f"inlines:testapp_{model._meta.model_name}_add")
    assert "Save the object first to see its entry." in text_of(chief().get(add))
    response = chief().post(add, values | sent({"priority": "0.9"}))
    assert response.status_code == 302, errors_of(response)
    obj = model.objects.get()
    row = UrlOverride.objects.get()
    assert (row.model, row.object_id) == identity_of(obj)
    assert "<priority>0.9</priority>" in listed(obj)


@pytest.mark.slow
def test_an_object_without_override_gets_none():
    """Saved as it was, the page makes no empty row, on change pages or add pages."""
    token = TokenFactory()
    assert chief().post(url_of(token), own(token) | sent({})).status_code == 302
    add = reverse("inlines:testapp_token_add")
    assert chief().post(add, {"id": uuid.uuid4()} | sent({})).status_code == 302
    assert not UrlOverride.objects.exists()


@pytest.mark.slow
def test_a_copy_gets_an_override_of_its_own():
    """Saved as new, what is set for the one is set for the other too."""
    shop = ShopFactory()
    product = ProductFactory(shop=shop)
    data = own(product) | {"slug": "copy", "shop": shop.pk, "_saveasnew": "1"}
    row = UrlOverride(site="default", include=False)
    row.model, row.object_id = identity_of(product)
    row.save()
    sending = sent({"id": row.pk, "include": "False"}, initial=1)
    response = chief().post(url_of(product), data | sending)
    assert response.status_code == 302, errors_of(response)
    assert UrlOverride.objects.filter(include=False).count() == 2
    assert not listed(Product.objects.get(slug="copy"))


@pytest.mark.slow
def test_both_histories_tell_who_changed_what():
    """The override's own, and that of the object."""
    reading = ReadingFactory(level=3)
    client = client_of(
        *("change_reading", "add_urloverride", "change_urloverride", "delete_urloverride")
    )
    client.post(url_of(reading), own(reading) | sent({"include": "False"}))
    row = UrlOverride.objects.get()
    change = {"id": row.pk, "was": "False", "include": "False", "note": "n"}
    client.post(url_of(reading), own(reading) | sent(change, initial=1))
    client.post(url_of(reading), own(reading) | sent({"id": row.pk, "DELETE": "on"}, initial=1))
    entries = LogEntry.objects.order_by("pk")
    shown = [
        (entry.content_type.model, entry.action_flag, entry.get_change_message())
        for entry in entries
    ]
    assert shown == [
        ("urloverride", 1, "Excluded from the sitemap."),
        ("reading", 2, "Added URL override “Reading 3”."),
        ("urloverride", 2, "Changed note."),
        ("reading", 2, "Changed Note for URL override “Reading 3”."),
        ("urloverride", 3, ""),
        ("reading", 2, "Deleted URL override “Reading 3”."),
    ]
    assert {entry.user.username for entry in entries} == {"editor"}


@pytest.mark.slow
def test_an_object_of_no_section_is_told(sections):
    """An override of it would do nothing; neither would one of a section that is off."""
    for section in list(sections):
        sections.remove(section.get_name())
    token = TokenFactory()
    text = text_of(chief().get(url_of(token)))
    assert "No section of this site lists objects of this model." in text


@pytest.mark.slow
def test_what_is_wrong_is_told_at_its_field():
    """Nothing is saved, of the object neither."""
    token = TokenFactory()
    data = {"lastmod_0": "2999-01-01", "lastmod_1": "0:00", "priority": "7"}
    response = chief().post(url_of(token), own(token) | sent(data))
    assert "This date is in the future." in errors_of(response)
    assert "less than or equal to 1" in errors_of(response)
    assert not UrlOverride.objects.exists()


@pytest.fixture
def main_and_other(settings):
    """Give the project two sites."""
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com"},
        "other": {"BASE_URL": "https://testserver"},
    }


@pytest.mark.slow
def test_with_several_sites_there_is_a_row_for_each(main_and_other):
    """Each opens the form of its site, and no override of another may be made of it."""
    token = TokenFactory()
    path = path_of(token)
    client = chief()
    text = text_of(client.get(url_of(token)))
    assert f"{PREFIX}-0-include" not in text
    assert f'name="{PREFIX}-TOTAL_FORMS" value="0"' in text
    for name in ("main", "other"):
        assert f'<a href="?sitemap_site={name}#sitemapkit-inline">{name}</a>' in text
    url = f"{url_of(token)}?sitemap_site=other"
    text = text_of(client.get(url))
    for name in ("TOTAL", "MIN_NUM", "MAX_NUM"):  # Scripts neither add nor remove any.
        assert re.search(rf'name="{PREFIX}-{name}_FORMS" value="1"', text)
    assert "Site: other (https://testserver)" in text
    assert "Site: main" not in text
    response = client.post(url, own(token) | sent({"site": "main", "include": "False"}))
    assert response.status_code == 200
    assert not UrlOverride.objects.exists()
    response = client.post(url, own(token) | sent({"site": "other", "include": "False"}))
    assert response.status_code == 302, errors_of(response)
    row = UrlOverride.objects.get()
    assert row.site == "other"
    assert entry(live("tokens"), path)
    assert not entry(live("tokens", host="testserver"), path)
    main = f"{url_of(token)}?sitemap_site=main"
    text = text_of(client.get(main))
    assert text.index(">other</a>") < text.index(">main</a>")  # It has an override.
    assert "<td>No, exclude it</td>" in text
    response = client.post(main, own(token) | sent({"site": "main", "note": "n"}))
    assert response.status_code == 302, errors_of(response)
    assert set(UrlOverride.objects.values_list("site", "note")) == {("other", ""), ("main", "n")}
    UrlOverride.objects.all().delete()
    rows = ({"site": "main", "note": "1"}, {"site": "main", "note": "2"})
    assert "submit at most 1 form" in errors_of(client.post(main, own(token) | sent(*rows)))


@pytest.mark.slow
def test_without_an_open_site_the_object_is_saved_alone(main_and_other):
    """Its overrides stay as they are."""
    token = TokenFactory()
    row = UrlOverride(site="main", note="n")
    row.model, row.object_id = identity_of(token)
    row.save()
    response = chief().post(url_of(token), own(token) | sent())
    assert response.status_code == 302, errors_of(response)
    assert UrlOverride.objects.get() == row


@pytest.mark.slow
def test_sites_that_have_no_row_are_named(main_and_other, monkeypatch):
    """With the page on which each of them can be chosen."""
    monkeypatch.setattr(inlines, "MAX_LISTED_SITES", 1)
    token = TokenFactory()
    text = text_of(chief().get(url_of(token)))
    assert "Only the first 1 sites are shown." in text
    add = reverse("inlines:sitemapkit_urloverride_add")
    add = f"{add}?model=testapp.token&object_id={token.pk}"
    assert f'href="{add.replace("&", "&amp;")}"' in text
    text = text_of(chief().get(add))
    assert '<option value="testapp.token" selected>' in text
    assert f'value="{token.pk}"' in text
    assert '<option value="other">other (https://testserver)</option>' in text


@pytest.mark.slow
def test_an_override_that_someone_else_made_meanwhile_is_not_doubled():
    """A page that was opened before says so; where it sets nothing, it saves."""
    token = TokenFactory()
    row = UrlOverride(site="default", include=True)
    row.model, row.object_id = identity_of(token)
    row.save()
    response = chief().post(url_of(token), own(token) | sent({"include": "False"}))
    assert "This override already exists." in errors_of(response)
    response = chief().post(url_of(token), own(token) | sent({}))
    assert response.status_code == 302
    assert UrlOverride.objects.get().include is True


@pytest.mark.slow
def test_no_site_is_told_as_a_message(settings):
    """The page of the object works without."""
    del settings.SITEMAPKIT_BASE_URL
    token = TokenFactory()
    assert "set SITEMAPKIT_BASE_URL" in text_of(chief().get(url_of(token)))
    assert chief().post(url_of(token), own(token) | sent()).status_code == 302


@pytest.mark.slow
def test_a_site_that_cannot_be_explained_says_why(monkeypatch):
    """The page of the object works all the same."""

    def fail(*args):
        raise ImproperlyConfigured("something is missing")

    monkeypatch.setattr("django_sitemapkit.admin.inlines.inspections_of", fail)
    assert "something is missing" in text_of(chief().get(url_of(TokenFactory())))


@pytest.mark.slow
def test_the_page_of_the_override_links_back_to_the_object():
    """Where the object has a page in the same admin."""
    reading = ReadingFactory(level=-3)
    row = UrlOverride(site="default", model="testapp.reading", object_id="-3")
    row.save()
    url = reverse("inlines:sitemapkit_urloverride_change", args=[row.pk])
    text = text_of(chief().get(url))
    assert f'<a href="{url_of(reading)}">-3</a>' in text
    assert f'<a href="{url}' in text_of(chief().get(url_of(reading)))


def test_a_project_may_save_the_forms_itself():
    """What is not written yet is not in the history either."""
    token, request = TokenFactory(), RequestFactory().get("/")
    request.user = User.objects.create(username="someone", is_superuser=True)
    row = UrlOverride(site="default")
    row.model, row.object_id = identity_of(token)
    row.save()
    (inline,) = site._registry[Token].get_inline_instances(request, token)
    made = inline.get_formset(request, token)
    formset = made(sent({"id": row.pk, "note": "n"}, initial=1), instance=token)
    assert formset.is_valid(), formset.errors
    (changed,) = formset.save(commit=False)
    assert (changed.note, UrlOverride.objects.get().note) == ("n", "")
    formset = made(sent({"id": row.pk, "DELETE": "on"}, initial=1), instance=token)
    assert formset.is_valid()
    formset.save(commit=False)
    assert formset.deleted_objects == [row]
    formset = made(sent({"include": "False"}), instance=TokenFactory())
    assert formset.is_valid()
    (new,) = formset.save(commit=False)
    assert new.model == "testapp.token"
    assert new.pk is None
    assert not LogEntry.objects.exists()
    changed.save()
    assert UrlOverride.objects.get().note == "n"


@pytest.mark.slow
def test_who_may_only_see_sees_no_fields():
    """Yet what the URL comes to; and what is sent all the same is not taken."""
    token = TokenFactory()
    client = client_of("change_token", "view_urloverride")
    text = text_of(client.get(url_of(token)))
    assert '>0.3</td><td data-label="Source">declaration of the section</td>' in text
    assert f"{PREFIX}-0-include" not in text
    client.post(url_of(token), own(token) | sent({"include": "False"}))
    assert not UrlOverride.objects.exists()
    row = UrlOverride(site="default", note="set by others")
    row.model, row.object_id = identity_of(token)
    row.save()
    text = text_of(client.get(url_of(token)))
    assert "set by others" in text
    assert f"{PREFIX}-0-include" not in text
    data = {"id": row.pk, "include": "False", "DELETE": "on"}
    client.post(url_of(token), own(token) | sent(data, initial=1))
    assert UrlOverride.objects.get().include is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("permissions", "may"),
    [
        (("add_urloverride",), {"add"}),
        (("change_urloverride",), {"change"}),
        (("view_urloverride", "delete_urloverride"), {"delete"}),
        ((), set()),
    ],
)
def test_each_permission_lets_do_what_it_says(permissions, may):
    """To add, change and delete overrides each has its own."""
    client = client_of("change_token", *permissions)
    token, added = TokenFactory.create_batch(2)
    row = UrlOverride(site="default")
    row.model, row.object_id = identity_of(token)
    row.save()
    client.post(url_of(added), own(added) | sent({"include": "False"}))
    found = UrlOverride.objects.filter(object_id=str(added.pk))
    assert found.exists() == ("add" in may)
    client.post(url_of(token), own(token) | sent({"id": row.pk, "note": "n"}, initial=1))
    row.refresh_from_db()
    assert row.note == ("n" if "change" in may else "")
    client.post(url_of(token), own(token) | sent({"id": row.pk, "DELETE": "on"}, initial=1))
    assert UrlOverride.objects.filter(pk=row.pk).exists() == ("delete" not in may)


def test_the_checks_of_the_admin_find_nothing_wrong(settings):
    """It has no foreign key to the objects, and needs none."""
    settings.SITEMAPKIT_SERVE_FROM = "live"  # Else a check asks for a storage.
    found = [error for error in checks.run_checks() if "sitemapkit" in str(error)]
    assert [error.id for error in found] == ["sitemapkit.W036"]  # It has inlines only.
    for model in FIELDS:
        assert site._registry[model].check() == []
