"""The screen of extra URLs, and the page to paste many."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import IntegrityError
from django.urls import reverse

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import build
from django_sitemapkit.models import ExclusionRule, ExtraUrl, UrlOverride
from django_sitemapkit.overrides.transfer import Comparison
from tests.admin import editors
from tests.admin.editors import (
    add,
    change,
    chief,
    client_of,
    entry,
    errors_of,
    live,
    page,
    tags,
    text_of,
)
from tests.builds import use_storage
from tests.factories import SITE
from tests.management import run as command

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _registered(sections):
    sections.add(editors.Pages)


def paste(text, *, client=None, **values):
    """Send the page, and return the response."""
    data = {"site": "default", "urls": text, **values}
    return (client or chief()).post(page("extraurl", "paste"), data)


@pytest.mark.slow
def test_an_extra_url_is_listed():
    """It is pasted as it comes, and is in a section of its own, with its values."""
    response = add("extraurl", path="https://www.example.com/sale/", priority="0.9")
    assert response.status_code == 302
    assert tags(live("extra-urls"), "/sale/") == {"priority": "0.9"}
    row = ExtraUrl.objects.get()
    text = text_of(chief().get(page("extraurl", "change", row.pk)))
    assert "section extra-urls" in text
    assert change(row, path="sales/").status_code == 302
    assert entry(live("extra-urls"), "/sales/")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"path": ""}, "This field is required"),
        ({"path": "https://other.example/"}, "another host"),
        ({"path": "/a/#b"}, "fragment"),
        ({"path": "/a/", "lastmod_0": "2999-01-01", "lastmod_1": "0:00"}, "in the future"),
    ],
)
def test_says_what_is_wrong(values, shown):
    """Nothing is saved, and the page says why."""
    assert shown in errors_of(add("extraurl", **values))
    assert not ExtraUrl.objects.exists()


def test_a_url_without_a_page_is_doubted():
    """The one that is added alone as those that are pasted."""
    unknown = "The site probably has no public page at"
    client = chief()
    response = add("extraurl", client=client, path="/lost/")
    assert f"{unknown} 1 of these URLs: /lost/" in text_of(client.get(response.url))
    response = add("extraurl", client=client, path="/?page=2")
    assert unknown not in text_of(client.get(response.url))


@pytest.mark.slow
def test_a_preview_does_not_say_that_an_unsaved_url_is_served(settings, sections):
    """Where its section is served live; of what is saved as it is, it is no unsaved change."""
    use_storage(settings, "Memory")
    build(SITE)
    sections.add(type("Late", (StaticSection,), {"items": ["/new/"]}))
    ExclusionRule.objects.create(site=SITE.key, pattern="/new/")
    text = text_of(add("urloverride", path="/new/", include="True", _preview="1"))
    assert "Preview of unsaved changes" in text
    assert "in no sitemap file" in text
    assert "served live" not in text
    add("urloverride", path="/new/", include="True")
    text = text_of(change(UrlOverride.objects.get(), _preview="1"))
    assert "Preview of unsaved changes" not in text
    assert "served live" in text


def test_a_duplicate_is_told_with_a_link():
    """The one that is there is linked, even if spelt otherwise."""
    add("extraurl", path="/é/")
    row = ExtraUrl.objects.get()
    text = text_of(add("extraurl", path="/%C3%A9/"))
    assert f'This already exists: <a href="{page("extraurl", "change", row.pk)}">' in text


@pytest.mark.slow
def test_pastes_many():
    """Paths and URLs, one on each line; what is there already is reported, and left as it is."""
    add("extraurl", path="/known/", note="n")
    client = chief()
    response = paste("/a/\r\n\r\nhttps://www.example.com/b/\r\n/known/\r\n", client=client)
    assert response.status_code == 302
    text = text_of(client.get(response.url))
    assert set(ExtraUrl.objects.values_list("path", "note")) == {
        *(("/a/", ""), ("/b/", ""), ("/known/", "n"))
    }
    assert "/b/</loc>" in live("extra-urls")
    assert LogEntry.objects.filter(action_flag=1).count() == 3
    assert "2 URLs added. Whether their pages answer was not looked at." in text
    unknown = "The site probably has no public page at 2 of these URLs, such as /a/"
    assert unknown in text
    assert "1 URL already existed." in text


def test_nothing_is_added_unless_all_lines_are_right():
    """Wrong lines are reported by number; the right ones are added once that is asked for."""
    text = "/a/\n\nhttps://other.example/\n/b/#c\n/a/\n"
    answer = text_of(paste(text))
    assert not ExtraUrl.objects.exists()
    assert "3 lines are invalid" in answer
    assert "https://other.example/</td><td>It is on another host" in answer
    assert "/b/#c</td><td>It has a fragment" in answer
    assert "/a/</td><td>This is a duplicate of line 1.</td>" in answer
    assert "https://other.example/\n/b/#c" in answer  # What was pasted is there to be repaired.
    client = chief()
    response = paste(text, client=client, save_rest="on")
    assert ExtraUrl.objects.get().path == "/a/"
    shown = "3 invalid lines were skipped, such as line 3 (It is on another host"
    assert shown in text_of(client.get(response.url))


def test_of_many_invalid_lines_the_first_are_listed(monkeypatch):
    """And it says that there are others."""
    monkeypatch.setattr("django_sitemapkit.admin.extras.MAX_INVALID_LINES", 2)
    lines = [f"/{number}/#c\n" for number in range(3)]
    assert "Only the first" not in text_of(paste("".join(lines[:2])))
    text = text_of(paste("".join(lines)))
    assert "Only the first 2 are shown." in text
    assert "3 lines are invalid" in text


def test_says_how_many_pasted_urls_are_excluded():
    """By an override or a rule: they are added all the same."""
    UrlOverride(site="default", path="/b/", include=False).save()
    ExclusionRule(site="default", pattern="/c").save()
    client = chief()
    response = paste("/a/\n/b/\n/c/\n", client=client)
    shown = "2 of these URLs are excluded by overrides or rules, such as https://www.example.com/b/"
    assert shown in text_of(client.get(response.url))


def test_lines_are_counted_as_they_were_pasted():
    """Empty ones at the beginning, too; nothing but those is nothing."""
    answer = text_of(paste("\n\n/ok/\nhttps://other.example/\n"))
    assert ">4</td><td>https://other.example/</td><td>It is on another" in answer
    assert "This field is required" in text_of(paste("\n \n"))


def test_who_may_only_add_is_led_somewhere():
    """The list is not for everyone who may add to it."""
    client = client_of("add_extraurl")
    response = client.post(
        page("extraurl", "paste"), {"site": "default", "urls": "/a/"}, follow=True
    )
    assert response.status_code == 200
    assert "1 URL added." in text_of(response)


def test_a_paste_has_its_limit(monkeypatch):
    """More lines are for the import."""
    monkeypatch.setattr("django_sitemapkit.admin.extras.MAX_PASTED_LINES", 2)
    assert "Paste at most 2 lines" in text_of(paste("/a/\n/b/\n/c/"))
    assert paste("/a/\n/b/").status_code == 302


def test_a_paste_that_meets_another_says_so(monkeypatch):
    """Two editors may paste the same at the same time."""

    def apply(self):
        raise IntegrityError

    monkeypatch.setattr(Comparison, "apply", apply)
    assert "another user has just added the same ones" in text_of(paste("/a/"))


def test_with_several_sites_a_paste_is_for_one_of_them(settings):
    """The same path may be added to each."""
    del settings.SITEMAPKIT_BASE_URL
    settings.SITEMAPKIT_SITES = {
        "main": {"BASE_URL": "https://www.example.com"},
        "other": {"BASE_URL": "https://other.example"},
    }
    assert "This field is required" in text_of(paste("/a/", site=""))
    assert paste("https://other.example/a/", site="other").status_code == 302
    assert paste("/a/", site="main").status_code == 302
    assert set(ExtraUrl.objects.values_list("site", "path")) == {("other", "/a/"), ("main", "/a/")}


@pytest.mark.slow
def test_warns_of_a_url_that_a_section_gives():
    """It is saved all the same; a URL that only the extra URLs have is none."""
    client = chief()
    shown = "Section pages already lists /about/. To change its values"
    for path, count in (("/about/", 1), ("/sale/", 0)):
        response = add("extraurl", client=client, path=path)
        assert text_of(client.get(response.url)).count(shown) == count
    ExtraUrl.objects.all().delete()
    response = paste("/other/\n/about/", client=client)
    assert text_of(client.get(response.url)).count(shown) == 1
    assert ExtraUrl.objects.count() == 2


@pytest.mark.slow
def test_pasted_urls_wait_for_a_build(settings):
    """The first as the later ones: the message, the overview and the command say so."""
    use_storage(settings, "Memory")
    build(SITE)
    client = chief()
    for path in ("/new/", "/newer/"):
        text = text_of(client.get(paste(path, client=client).url))
        assert "The published sitemap stays as it is until the next build." in text
        assert "Publish all waiting changes now" in text
        assert (
            "live"
            not in text_of(client.get(reverse("admin:sitemapkit_overview")))
            .partition('<th scope="row">extra-urls</th>')[2]
            .partition("</tr>")[0]
        )
        assert "  not published" in command("inspect_sitemap_url", path)[1]
        build(SITE)


@pytest.mark.slow
def test_says_how_many_pasted_urls_are_published(settings):
    """All are looked for in the files, not only the first."""
    use_storage(settings, "Memory")
    build(SITE)
    client = chief()
    many = "\n".join(f"/new/{number}/" for number in range(25))
    response = paste(f"{many}\n/about/\n/press/\n", client=client)
    text = text_of(client.get(response.url))
    assert "2 of these URLs are in the published sitemap already, such as" in text
    assert " URLs, such as /new/0/" in text
