"""The pages that take CSV files in and give them out."""

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError

from django_sitemapkit.models import ExtraUrl, UrlOverride
from django_sitemapkit.overrides.transfer import Comparison
from tests.admin.editors import chief, client_of, page, text_of

pytestmark = pytest.mark.django_db


def upload(text, model="urloverride", client=None):
    """Send a file, and return the response."""
    file = SimpleUploadedFile("x.csv", text.encode(), content_type="text/csv")
    return (client or chief()).post(page(model, "import"), {"file": file})


def apply(response, model="urloverride", client=None, **values):
    """Confirm a dry run, and return the page that follows."""
    data = {"payload": response.context["payload"], **values}
    return (client or chief()).post(page(model, "import"), data, follow=True)


def test_a_dry_run_changes_nothing_and_shows_all():
    """What would be created, changed and refused stands there by line."""
    UrlOverride(site="default", path="/old/", note="before").save()
    UrlOverride(site="default", path="/same/").save()
    text = text_of(upload("path,note\n/new/,n\n/old/,after\n/same/,\n/#,\n"))
    assert "4 rows read." in text
    assert "1 row is unchanged." in text
    assert "<td>2</td><td>/new/</td>" in text
    assert "<td>3</td><td>/old/</td><td>note: before → after</td>" in text
    assert "<td>5</td><td>path: It has a fragment" in text
    assert UrlOverride.objects.count() == 2
    assert not LogEntry.objects.exists()


@pytest.mark.slow
def test_a_dry_run_is_applied_in_one_go():
    """The second step does what the first has shown, and the history tells of it."""
    UrlOverride(site="default", path="/old/", note="before").save()
    client = client_of("view_urloverride", "add_urloverride", "change_urloverride")
    response = upload("path,note\n/new/,n\n/old/,after\n", client=client)
    text = text_of(apply(response, client=client))
    assert "1 row created. 1 row changed." in text
    assert dict(UrlOverride.objects.values_list("path", "note")) == {"/new/": "n", "/old/": "after"}
    assert sorted(LogEntry.objects.values_list("action_flag", "user__username")) == [
        *((1, "editor"), (2, "editor"))
    ]


@pytest.mark.slow
def test_refused_lines_hold_back_the_others():
    """Unless the user says so: then the right ones are applied."""
    response = upload("path\n/a/\n/#\n")
    text = text_of(apply(response))
    assert "Nothing has changed yet" in text
    assert not UrlOverride.objects.exists()
    apply(response, apply_rest="on")
    assert UrlOverride.objects.get().path == "/a/"


def test_nothing_to_apply_has_no_button():
    """Where all is as it was, or refused, there is nothing to confirm."""
    text = text_of(upload("path\n/#\n"))
    assert "The file contains no changes." in text
    assert 'name="payload"' not in text


def test_what_is_exported_is_unchanged_taken_in_again():
    """The round trip through both pages changes nothing."""
    UrlOverride(site="default", path="/a/", note="=1+1", include=False).save()
    UrlOverride(site="default", path="/b/", priority="0.5").save()
    response = chief().get(page("urloverride", "export"))
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="sitemap-urloverrides.csv"' in response.headers["Content-Disposition"]
    text = text_of(upload(text_of(response)))
    assert "2 rows are unchanged." in text
    assert "The file contains no changes." in text


@pytest.mark.slow
def test_the_export_has_what_the_list_shows():
    """Filters and words of the list hold for the file too."""
    UrlOverride(site="default", path="/a/", include=False).save()
    UrlOverride(site="default", path="/b/", include=True).save()
    text = text_of(chief().get(page("urloverride", "changelist"), {"include__exact": "0"}))
    assert f'href="{page("urloverride", "export")}?include__exact=0"' in text
    text = text_of(chief().get(page("urloverride", "export"), {"include__exact": "0"}))
    assert "/a/" in text
    assert "/b/" not in text
    response = chief().head(page("urloverride", "export"))
    assert response.status_code == 200
    assert text_of(response) == ""


def test_extra_urls_travel_too():
    """With the columns that they have."""
    response = upload("path,priority\n/x/,0.5\n", "extraurl")
    apply(response, "extraurl")
    assert ExtraUrl.objects.get().path == "/x/"
    assert "Unknown columns" in text_of(upload("path,include\n/x/,yes\n", "extraurl"))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("django_sitemapkit.admin.transfers.MAX_CSV_BYTES", 3, "larger than 3 bytes"),
        ("django_sitemapkit.overrides.transfer.MAX_CSV_BYTES", 3, "larger than 3 bytes"),
        ("django_sitemapkit.overrides.transfer.MAX_CSV_LINES", 0, "more than 0 lines"),
    ],
)
def test_a_file_has_its_limits(name, value, shown, monkeypatch):
    """They are stated on the page, and hold."""
    monkeypatch.setattr(name, value)
    assert shown in text_of(upload("path\n/a/\n"))


def test_a_file_has_to_fit_into_a_form(settings):
    """The second step carries the file along, which the project's limit may forbid."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 20_010
    assert "too large for a form" in text_of(upload("path\n/a/\n"))
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    assert upload("path\n/a/\n").context["payload"]


def test_a_file_is_needed():
    """Without one, the page asks again."""
    text = text_of(chief().post(page("urloverride", "import")))
    assert "This field is required." in text


@pytest.mark.parametrize("payload", ["", "forged", "a:b:c"])
def test_a_forged_dry_run_is_not_applied(payload):
    """What is applied is what this user was shown, and nothing else."""
    data = {"payload": payload, "apply_rest": "on"}
    text = text_of(chief().post(page("urloverride", "import"), data, follow=True))
    assert "This preview has expired" in text


def test_a_dry_run_of_another_user_or_model_is_not_applied():
    """Its signature is of the user and the model."""
    client = client_of("view_urloverride", "add_urloverride", "change_urloverride")
    response = upload("path\n/a/\n")
    assert "has expired" in text_of(apply(response, client=client))
    assert "has expired" in text_of(apply(response, "extraurl"))
    assert not UrlOverride.objects.exists()
    assert not ExtraUrl.objects.exists()


def test_a_dry_run_that_is_refused_by_now_says_why(monkeypatch):
    """What holds is looked at once more."""
    response = upload("path\n/a/\n")
    monkeypatch.setattr("django_sitemapkit.overrides.transfer.MAX_CSV_LINES", 0)
    assert "more than 0 lines" in text_of(apply(response))


def test_a_dry_run_that_meets_another_changes_nothing(monkeypatch):
    """Two editors may apply the same at the same time."""

    def fail(self):
        raise IntegrityError

    response = upload("path\n/a/\n")
    monkeypatch.setattr(Comparison, "apply", fail)
    assert "another user changed the same rows" in text_of(apply(response))
