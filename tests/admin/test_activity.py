"""The page "Activity": who did what, when and why; its filters and its file."""

import csv
import datetime as dt
import re
from io import StringIO

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.utils import timezone, translation

from django_sitemapkit.admin import activity
from django_sitemapkit.admin.activity import (
    EXCLUDED,
    PUBLISHED,
    REQUEST_STARTED,
    ROLLED_BACK,
    log_rows,
)
from django_sitemapkit.models import Build, BuildRequest, UrlOverride
from django_sitemapkit.testing.factories import (
    BuildFactory,
    BuildRequestFactory,
    ExclusionRuleFactory,
    ExtraUrlFactory,
    SectionSettingsFactory,
    UrlOverrideFactory,
)
from tests.admin.operating import EVIL, OVERVIEW, REQUEST, person, text_of
from tests.testapp.models import Article

ACTIVITY = "/admin/sitemapkit/sitemapsoverview/activity/"
SITES = {name: {"BASE_URL": f"https://{name}.example"} for name in ("one", "two")}

pytestmark = pytest.mark.django_db


def log(row, flag=CHANGE, message="", *, by="ann", day=None, fields=("note",)):
    """Log an action, as the screens do."""
    user, _ = User.objects.get_or_create(username=by)
    log_rows(user.pk, [row], flag, fields, message)
    entry = LogEntry.objects.latest("pk")
    if day is not None:
        LogEntry.objects.filter(pk=entry.pk).update(action_time=day)
    return entry


def rows_of(text):
    """Return the cells of the table, row by row, without the time."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall("<tr>(.*?)</tr>", body, re.DOTALL)
    cells = [re.findall("<t[dh].*?>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return [[re.sub("<.*?>", "", cell).strip() for cell in row[1:]] for row in cells]


def shown(*, name="super", **query):
    """Return the rows that a user sees."""
    return rows_of(text_of(person(name).get(ACTIVITY, query)))


def names(**query):
    """Return the names of the objects whose entries match."""
    return [row[2] for row in shown(**query)]


def file(client=None, **query):
    """Return the rows of the CSV file."""
    response = (client or person("super")).get(ACTIVITY, {"csv": "1", **query})
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(response).decode("utf-8-sig")
    return list(csv.DictReader(StringIO(text)))


# What is logged


@pytest.mark.parametrize("button", sorted(REQUEST_STARTED))
def test_a_button_is_logged(built, button):
    """As a request, whose name links to the build that came of it."""
    data = {"site": "default", "button": button, "section": "products", "confirmed": "1"}
    person("builder").post(REQUEST, data)
    name = "products (default)" if button == "section" else "default"
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.action_flag) == ("builder", ADDITION)
    assert shown(name="viewer") == [["builder", "Request", name, REQUEST_STARTED[button], ""]]
    build = BuildFactory()
    BuildRequest.objects.update(build=build)
    text = text_of(person("viewer").get(ACTIVITY))
    assert f'<a href="/admin/sitemapkit/build/{build.pk}/change/">{name}</a>' in text


def test_a_button_that_is_not_there_is_not_logged(built):
    """Neither is a section that does not exist."""
    client = person("builder")
    client.post(REQUEST, {"site": "default", "button": "section", "section": "nothing"})
    client.post(REQUEST, {"site": "default", "button": "nothing"})
    assert not LogEntry.objects.exists()


def test_each_kind_is_listed_with_its_reason():
    """The newest first, with the note of an editor or the reason of a build."""
    log(UrlOverrideFactory(path="/a/", note="Sold out"), ADDITION, EXCLUDED)
    log(ExtraUrlFactory(path="/b/", note="A campaign"), ADDITION)
    log(ExclusionRuleFactory(pattern="/c/", note="Private"))
    log(SectionSettingsFactory(section="products"), fields=("enabled", "priority"))
    build = BuildFactory(status="held", reason="too few URLs")
    log(build, message=PUBLISHED)
    log(build, message=ROLLED_BACK, by="bob")
    assert shown() == [
        ["bob", "Build", f"Build {build.pk}", "Rolled back to this build.", "too few URLs"],
        ["ann", "Build", f"Build {build.pk}", "Published.", "too few URLs"],
        ["ann", "Section settings", "products (default)", "Changed enabled and priority.", ""],
        ["ann", "Exclusion rule", "/c/", "Changed note.", "Private"],
        ["ann", "Extra URL", "/b/", "Added.", "A campaign"],
        ["ann", "URL override", "/a/", "Excluded from the sitemap.", "Sold out"],
    ]


def test_an_object_is_linked_while_it_exists():
    """By the name that it had then."""
    row = UrlOverrideFactory(path="/a/", note="n")
    log(row)
    row.path = "/b/"
    row.save()
    link = f'<a href="/admin/sitemapkit/urloverride/{row.pk}/change/">/a/</a>'
    assert link in text_of(person("super").get(ACTIVITY))
    log(row, DELETION)
    row.delete()
    assert "/change/" not in text_of(person("super").get(ACTIVITY)).partition("<tbody>")[2]
    assert shown() == [
        ["ann", "URL override", "/b/", "Deletion", ""],
        ["ann", "URL override", "/a/", "Changed note.", ""],
    ]


def test_entries_of_other_apps_are_not_listed():
    """What the log has of the project's own models is not about sitemaps."""
    article = Article.objects.create(title="One", edited_at=timezone.now())
    user = User.objects.create(username="ann")
    LogEntry.objects.log_actions(user.pk, [article], CHANGE, [{"changed": {"fields": ["title"]}}])
    text = text_of(person("super").get(ACTIVITY))
    assert "Nothing was changed in the admin yet." in text
    assert "0 changes" in text


def test_what_changes_very_many_is_one_entry(monkeypatch):
    """Which is about no object: it says how many there were."""
    monkeypatch.setattr("django_sitemapkit.admin.activity.MAX_LOGGED_ROWS", 2)
    user = User.objects.create(username="ann")
    rows = [UrlOverrideFactory(note="n") for _ in range(3)]
    log_rows(user.pk, rows, CHANGE, ["priority"])
    assert shown() == [["ann", "URL override", "3 URL overrides", "Changed priority.", ""]]


def test_sentences_are_translated_when_they_are_shown():
    """They are stored in English, in whichever language a user works."""
    log(BuildFactory(), message=PUBLISHED)
    with translation.override("es"):
        expected = translation.gettext(PUBLISHED)
        assert expected != PUBLISHED
        assert shown()[0][3] == expected
        assert file()[0]["action"] == expected


def test_several_sites_have_a_column(settings):
    """The site is that of the object, while it exists."""
    settings.SITEMAPKIT_SITES = SITES
    row = UrlOverrideFactory(site="two", path="/a/")
    log(row)
    assert shown() == [["ann", "two", "URL override", "/a/", "Changed note.", ""]]
    row.delete()
    assert shown()[0][1] == ""


def test_names_and_notes_are_harmless():
    """They are text, wherever they come from."""
    UrlOverride.objects.bulk_create([UrlOverride(site="default", path="/a/", note=EVIL)])
    entry = log(UrlOverride.objects.get(), by="a<b>")
    LogEntry.objects.filter(pk=entry.pk).update(object_repr=EVIL, change_message=EVIL)
    assert "&lt;script&gt;alert" in text_of(person("super").get(ACTIVITY))
    text_of(person("super").get(ACTIVITY, {"q": EVIL.partition("\x01")[0], "user": "<b>"}))


# Filters


@pytest.fixture
def logged():
    """Log actions of two users on three days."""
    days = [dt.datetime(2026, 3, day, 23, 30, tzinfo=dt.UTC) for day in (1, 2, 3)]
    log(UrlOverrideFactory(path="/caf%C3%A9/"), ADDITION, EXCLUDED, day=days[0])
    log(ExtraUrlFactory(path="/b/"), ADDITION, by="bob", day=days[1])
    log(BuildFactory(), message=PUBLISHED, day=days[1])
    log(BuildFactory(), message=ROLLED_BACK, by="bob", day=days[2])
    log(BuildRequestFactory(), ADDITION, REQUEST_STARTED["full"], by="Bobby", day=days[2])
    log(ExclusionRuleFactory(pattern="/c/"), DELETION, day=days[2])
    return [f"Build {pk}" for pk in Build.objects.order_by("pk").values_list("pk", flat=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"user": "bob"}, ["default", "second", "/b/"]),
        ({"user": "ann", "kind": "build"}, ["first"]),
        ({"kind": "buildrequest"}, ["default"]),
        ({"action": "excluded"}, ["/caf%C3%A9/"]),
        ({"action": "requested"}, ["default"]),
        ({"action": "published"}, ["first"]),
        ({"action": "rolled-back"}, ["second"]),
        ({"action": "added"}, ["/b/", "/caf%C3%A9/"]),
        ({"action": "changed"}, ["second", "first"]),
        ({"action": "deleted"}, ["/c/"]),
        ({"since": "2026-03-03"}, ["/c/", "default", "second"]),
        ({"since": "2026-03-02", "until": "2026-03-02"}, ["first", "/b/"]),
        ({"until": "2026-03-01"}, ["/caf%C3%A9/"]),
        ({"q": "café"}, ["/caf%C3%A9/"]),
        ({"q": "CAF%C3"}, ["/caf%C3%A9/"]),
        ({"q": "https://www.example.com/b/"}, ["/b/"]),
        ({"q": "nothing"}, []),
    ],
    ids=str,
)
def test_filters(logged, settings, query, found):
    """By user, kind of object, kind of action, day and name; the page and the file agree."""
    settings.TIME_ZONE = "UTC"
    named = {"first": logged[0], "second": logged[1]}
    expected = [named.get(name, name) for name in found]
    if expected:
        assert names(**query) == expected
    else:
        assert "No entries found." in text_of(person("super").get(ACTIVITY, query))
    assert [row["name"] for row in file(**query)] == expected


def test_a_day_is_one_of_the_time_zone(logged, settings):
    """At half past eleven in London, the next day has begun in Tokyo."""
    settings.TIME_ZONE = "Asia/Tokyo"
    assert "No entries found." in text_of(person("super").get(ACTIVITY, {"until": "2026-03-01"}))
    assert names(until="2026-03-02") == ["/caf%C3%A9/"]


@pytest.mark.parametrize(
    "query",
    [
        *({"kind": "nothing"}, {"action": "nothing"}, {"since": "soon"}, {"q": "\x00"}),
        *({"until": "9999-12-31"}, {"since": "0001-01-01"}),
    ],
    ids=str,
)
def test_an_invalid_filter_lists_nothing_and_says_why(logged, query):
    """There is no file of it either, but the page."""
    for csv_or_page in ({}, {"csv": "1"}):
        text = text_of(person("super").get(ACTIVITY, {**query, **csv_or_page}))
        assert 'class="errorlist"' in text
        assert "0 changes" in text


def test_every_field_has_a_label():
    """And the page one way back to all entries, if any field filters."""
    text = text_of(person("super").get(ACTIVITY))
    fields = re.findall('<(?:input|select)[^>]* id="(sitemapkit-[^"]+)"', text)
    assert len(fields) == 6
    assert fields == re.findall('<label for="(sitemapkit-[^"]+)"', text)
    assert "Show all" not in text
    assert "Show all" in text_of(person("super").get(ACTIVITY, {"q": "x"}))


# Many


@pytest.mark.slow
def test_pages_keep_the_filters_and_end(monkeypatch):
    """A long log is not counted; what is not listed is in the file."""
    monkeypatch.setattr(activity, "ACTIONS_PER_PAGE", 2)
    monkeypatch.setattr(activity, "MAX_LISTED_ENTRIES", 3)
    monkeypatch.setattr(activity, "CSV_ROWS_PER_QUERY", 2)
    for number in range(5):
        log(UrlOverrideFactory(path=f"/{number}/", note=f"{number}"))
    text = text_of(person("super").get(ACTIVITY, {"user": "ann"}))
    assert 'href="?user=ann&amp;p=2"' in text
    assert "?user=ann&amp;p=3" not in text
    assert "Only the newest entries are listed." in text
    assert "grouped in" not in text
    assert names(user="ann") == ["/4/", "/3/"]
    assert names(user="ann", p="2") == names(user="ann", p="99") == ["/2/"]
    assert [row["name"] for row in file(user="ann")] == ["/4/", "/3/", "/2/", "/1/", "/0/"]


@pytest.mark.slow
def test_what_is_done_to_many_objects_at_once_is_one_row():
    """Forty excluded URLs are one action, with the others behind the first; other work is not."""
    user, _ = User.objects.get_or_create(username="ann")
    log(UrlOverrideFactory(path="/before/"))
    rows = [UrlOverrideFactory(path=f"/{number}/") for number in range(40)]
    log_rows(user.pk, rows, CHANGE, message=EXCLUDED)
    text = text_of(person("super").get(ACTIVITY))
    first, second = rows_of(text)
    assert "and 39 more" in first[2]
    assert text.count(">/7/<") == text.count(">/39/<") == 1
    assert second[2] == "/before/"
    assert len(file()) == 41
    assert "41 changes" in text


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_entries(django_assert_max_num_queries):
    """One for each kind of object, and a few for the page."""
    for _ in range(20):
        log(UrlOverrideFactory())
        log(ExtraUrlFactory())
        log(ExclusionRuleFactory())
        log(SectionSettingsFactory(), fields=["enabled"])
        log(BuildFactory(), message=PUBLISHED)
        log(BuildRequestFactory(build=Build.objects.latest("pk")), message=REQUEST_STARTED["full"])
    client = person("super")
    client.get(ACTIVITY)
    with django_assert_max_num_queries(12):  # Session, user, count, entries, six kinds.
        assert len(rows_of(text_of(client.get(ACTIVITY)))) == 100


# The file


def test_the_file_has_the_columns_and_no_formulas():
    """A spreadsheet reads no name and no note as a formula."""
    row = UrlOverrideFactory(path="/a/", note="=1+1")
    entry = log(row, message=EXCLUDED)
    (found,) = file()
    assert found == {
        "time": LogEntry.objects.get(pk=entry.pk).action_time.isoformat(),
        "user": "ann",
        "site": "default",
        "kind": "URL override",
        "name": "/a/",
        "action": "Excluded from the sitemap.",
        "note": "'=1+1",
    }


def test_the_headers_of_the_file():
    """It is a download; HEAD has no body."""
    log(UrlOverrideFactory())
    response = person("super").head(ACTIVITY, {"csv": "1"})
    assert response.headers["Content-Disposition"] == 'attachment; filename="sitemap-activity.csv"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert b"".join(response) == b""


# Who may look


@pytest.mark.parametrize("query", [{}, {"csv": "1"}])
def test_who_may_look(query):
    """Users who may view builds; looking is all there is."""
    assert person("anonymous").get(ACTIVITY, query).status_code == 302
    assert person("staff").get(ACTIVITY, query).status_code == 403
    assert person("viewer").get(ACTIVITY, query).status_code == 200
    assert person("super").post(ACTIVITY, query).status_code == 405


def test_what_a_user_may_not_view_is_not_listed():
    """Neither on the page nor in the file, nor is it a choice."""
    log(UrlOverrideFactory(path="/secret/"))
    build = BuildFactory()
    log(build, message=PUBLISHED)
    text = text_of(person("viewer").get(ACTIVITY))
    assert "/secret/" not in text
    assert 'value="urloverride"' not in text
    assert [row["name"] for row in file(person("viewer"))] == [f"Build {build.pk}"]
    query = {"kind": "urloverride"}
    assert 'class="errorlist"' in text_of(person("viewer").get(ACTIVITY, query))


@pytest.mark.slow
def test_the_page_is_linked(built, settings):
    """From the app's page, and from the overview of one site and of several."""
    client = person("viewer")
    link = f'<a href="{ACTIVITY}">Activity</a>'
    assert link in text_of(client.get("/admin/sitemapkit/"))
    assert link in text_of(client.get(OVERVIEW))
    settings.SITEMAPKIT_SITES = SITES
    assert link in text_of(client.get(OVERVIEW))
