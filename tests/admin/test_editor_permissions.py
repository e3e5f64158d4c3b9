"""Who may do what on the editors' pages: each page, method and kind of user."""

from itertools import product

import pytest
from django.core import signing
from django.test import Client

from django_sitemapkit.models import ExclusionRule, ExtraUrl, SectionSettings, UrlOverride
from tests.admin.editors import ALL, EMPTY, MODELS, chief, client_of, page, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

ROWS = {
    "urloverride": lambda: UrlOverride(site="default", path="/about/"),
    "extraurl": lambda: ExtraUrl(site="default", path="/extra/"),
    "exclusionrule": lambda: ExclusionRule(site="default", pattern="/nothing"),
    "sectionsettings": lambda: SectionSettings(site="default", section="pages"),
}

SENT = {
    "urloverride": {"path": "/press/"},
    "extraurl": {"path": "/more/"},
    "exclusionrule": {"pattern": "/none"},
    "sectionsettings": {"section-articles-priority": "0.5"},
}

LOGIN, REFUSED, SHOWN, DONE, WRONG_METHOD = "login", 403, 200, 302, 405

USERS = ("anonymous", "not staff", "staff", "viewer", "editor")


def outcome(response):
    """Return the status of a response; "login" where it leads there."""
    to_login = response.status_code == 302 and "/login/" in response.url
    return LOGIN if to_login else response.status_code


def client_for(user, model, *permissions, csrf=False):
    """Return a client of a kind of user; an editor has just the permissions that are asked for."""
    if user == "anonymous":
        return Client(enforce_csrf_checks=csrf)
    if user == "not staff":
        return client_of(*permissions, name="visitor", staff=False, csrf=csrf)
    given = {"staff": (), "viewer": (f"view_{model}",), "editor": permissions}[user]
    return client_of(*given, name=user, csrf=csrf)


@pytest.fixture(autouse=True)
def _registered(sections, monkeypatch):
    for section in ALL:
        sections.add(section)
    monkeypatch.setattr(
        "django_sitemapkit.admin.overrides.publish_override", lambda *args, **options: None
    )


def pages(model):
    """Yield view, needed permissions, method, data, and what a viewer and an editor get."""
    view, add, change, delete = (f"{verb}_{model}" for verb in ("view", "add", "change", "delete"))
    new = EMPTY.get(model, {}) | SENT[model]
    yield "changelist", (view,), "get", {}, SHOWN, SHOWN
    if model == "sectionsettings":
        yield "changelist", (view, add, change, delete), "post", new, REFUSED, DONE
        yield "changelist", (view, add, change), "post", new, REFUSED, REFUSED
        yield "changelist", (view, change, delete), "post", new, REFUSED, REFUSED
        yield "changelist", (view, add, delete), "post", new, REFUSED, REFUSED
        yield "add", (add,), "get", {}, DONE, REFUSED
        yield "change", (view,), "get", {}, DONE, DONE
    else:
        yield "add", (add,), "get", {}, REFUSED, SHOWN
        yield "add", (view, add), "post", new, REFUSED, DONE
        yield "change", (view,), "get", {}, SHOWN, SHOWN
        yield "change", (view, change), "post", new, REFUSED, DONE
    yield "delete", (view, delete), "get", {}, REFUSED, SHOWN
    yield "delete", (view, delete), "post", {"post": "yes"}, REFUSED, DONE
    yield "history", (view,), "get", {}, SHOWN, SHOWN
    if model in {"urloverride", "extraurl"}:
        payload = {"payload": "forged"}
        yield "import", (view, add, change), "get", {}, REFUSED, SHOWN
        yield "import", (view, add, change), "post", payload, REFUSED, DONE
        yield "import", (view, add), "post", payload, REFUSED, REFUSED
        yield "import", (view, change), "post", payload, REFUSED, REFUSED
        yield "import", (view, add, change), "put", {}, REFUSED, WRONG_METHOD
        yield "export", (view,), "get", {}, SHOWN, SHOWN
        yield "export", (view,), "post", {}, WRONG_METHOD, WRONG_METHOD
    if model == "extraurl":
        yield "paste", (view, add), "get", {}, REFUSED, SHOWN
        yield "paste", (view, add), "post", {"site": "default", "urls": "/a/"}, REFUSED, DONE
        yield "paste", (view, add), "put", {}, REFUSED, WRONG_METHOD
    if model == "urloverride":
        yield "exclude", (view, "bulk_urloverride"), "get", {}, REFUSED, WRONG_METHOD
        yield "exclude", (view, "bulk_urloverride"), "post", {}, REFUSED, DONE
        yield "exclude", ("bulk_urloverride",), "post", {}, REFUSED, REFUSED
        yield "exclude", (view, change), "post", {}, REFUSED, REFUSED


CASES = [(model, *case) for model in MODELS for case in pages(model)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join([*case[:2], *case[2], case[3]]))
def test_each_page_asks_for_its_permission(case):
    """Nobody gets more than the permissions say, by GET or POST."""
    model, view, needed, method, data, viewer, editor = case
    row = ROWS[model]()
    row.save()
    on_row = view in {"change", "delete", "history", "exclude"}
    url = page(model, view, row.pk) if on_row else page(model, view)
    expected = dict(zip(USERS, (LOGIN, LOGIN, REFUSED, viewer, editor), strict=True))
    for user in USERS:
        before = list(type(row).objects.values())
        client = client_for(user, model, *needed)
        response = getattr(client, method)(url, data)
        assert outcome(response) == expected[user], user
        if expected[user] != DONE:
            assert list(type(row).objects.values()) == before


@pytest.mark.parametrize(
    ("model", "view"),
    [
        *product(MODELS, ["changelist", "add", "change", "delete"]),
        *product(["urloverride", "extraurl"], ["import"]),
        ("extraurl", "paste"),
        ("urloverride", "exclude"),
    ],
)
def test_nothing_is_taken_from_another_page(model, view):
    """A form that some other site sends in the user's name has no token."""
    row = ROWS[model]()
    row.save()
    on_row = view in {"change", "delete", "exclude"}
    url = page(model, view, row.pk) if on_row else page(model, view)
    data = EMPTY.get(model, {}) | SENT[model] | {"post": "yes", "urls": "/a/", "payload": "x"}
    before = list(type(row).objects.values())
    assert chief(csrf=True).post(url, data).status_code == 403
    assert list(type(row).objects.values()) == before


def test_the_forms_of_the_pages_carry_their_token():
    """With the checks on, what the pages send is taken."""
    row = ROWS["urloverride"]()
    row.save()
    client = chief(csrf=True)
    for url in (page("urloverride", "import"), page("extraurl", "paste")):
        token = client.get(url).context["csrf_token"]
        response = client.post(url, {"csrfmiddlewaretoken": str(token), "payload": "x"})
        assert response.status_code in {200, 302}
    token = client.get(page("urloverride", "change", row.pk)).context["csrf_token"]
    data = {"csrfmiddlewaretoken": str(token)}
    assert client.post(page("urloverride", "exclude", row.pk), data).status_code == 302
    row.refresh_from_db()
    assert row.include is False


@pytest.mark.parametrize("action", ["include_urls", "exclude_urls", "reset_overrides"])
@pytest.mark.parametrize(
    ("permissions", "may"),
    [
        (("view_urloverride",), False),
        (("view_urloverride", "change_urloverride", "add_urloverride"), False),
        (("view_urloverride", "bulk_urloverride"), True),
    ],
)
def test_each_action_asks_for_its_own_permission(action, permissions, may):
    """To change many at once is more than to change one."""
    row = UrlOverride(site="default", path="/about/", priority="0.5")
    row.save()
    before = UrlOverride.objects.values().get()
    data = {"action": action, "_selected_action": [row.pk]}
    client_of(*permissions).post(page("urloverride", "changelist"), data)
    assert (UrlOverride.objects.values().get() != before) == may
    url = page("urloverride", "changelist")
    assert outcome(Client().post(url, data)) == LOGIN
    assert client_of(name="nobody").post(url, data).status_code == 403
    changed = UrlOverride.objects.values().get()
    assert client_of("view_urloverride", "bulk_urloverride").get(url, data).status_code in {
        200,
        302,
    }
    assert UrlOverride.objects.values().get() == changed


@pytest.mark.parametrize("model", MODELS)
def test_who_may_only_see_sees_no_buttons(model):
    """No Save, no Preview, no Import, no Exclude now."""
    row = ROWS[model]()
    row.save()
    client = client_of(f"view_{model}")
    words = (
        "_save",
        "_preview",
        "Exclude now",
        "Import",
        "Paste URLs",
        "exclude_urls",
        "_continue",
    )
    for url in (page(model, "changelist"), page(model, "change", row.pk)):
        text = text_of(client.get(url))
        assert not [word for word in words if word in text]
    is_table = model not in EMPTY
    url = page(model, "changelist") if is_table else page(model, "change", row.pk)
    text = text_of(chief().get(url))
    assert "_save" in text
    assert ("_preview" in text) != is_table


def test_a_preview_is_for_those_who_may_save():
    """It writes for a moment, and shows what the user's values would do."""
    row = ROWS["urloverride"]()
    row.save()
    data = EMPTY["urloverride"] | {"path": "/about/", "_preview": "1"}
    client = client_of("view_urloverride")
    assert client.post(page("urloverride", "change", row.pk), data).status_code == 403
    assert client.post(page("urloverride", "add"), data).status_code == 403


def test_a_signed_dry_run_is_no_permission():
    """Who has lost the permission meanwhile applies nothing."""
    client = client_of("view_urloverride", "add_urloverride")
    user = client.get(page("urloverride", "add")).wsgi_request.user
    payload = signing.dumps("path\n/a/\n", salt=f"sitemapkit.urloverride.{user.pk}", compress=True)
    response = client.post(page("urloverride", "import"), {"payload": payload})
    assert response.status_code == 403
    assert not UrlOverride.objects.exists()
