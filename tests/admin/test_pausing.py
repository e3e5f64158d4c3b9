"""Pausing publishing: with a roll-back or without, who may, and what the pages say meanwhile."""

import datetime as dt
from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_sitemapkit.builds import Pause, pause_publishing, publish
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.models import Build, Place, Publication
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.testing.factories import BuildFactory, PublicationFactory
from tests.admin.operating import EVIL, OVERVIEW, PEOPLE, page, person, text_of
from tests.builds import SITE, edit_product, run
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

PAUSE = f"{OVERVIEW}pause/?site=default"
RESUME = f"{OVERVIEW}resume/?site=default"
HEALTH = "/admin/sitemapkit/sitemapsoverview/health/"
WHY = "Publishing is paused by publisher until someone resumes it: Wrong prices"


@pytest.fixture
def two(built):
    """Publish two builds; return their numbers."""
    first = run().build
    edit_product()
    return first, run().build


@pytest.fixture
def paused(two):
    """Pause publishing; return the pause."""
    pause = Pause(by="ann", reason=f"Wrong prices {EVIL}")
    pause_publishing(SITE, pause)
    return pause


def local_text(hours):
    """Return a moment so many hours from now, as a browser sends it."""
    return f"{timezone.localtime() + dt.timedelta(hours=hours):%Y-%m-%dT%H:%M}"


# Who may


@pytest.mark.slow
@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_pause_and_resume(two, who):
    """Users who may publish builds, by POST and with a token, and nobody else."""
    client, strict = person(who), person(who, enforce_csrf_checks=True)
    outsider = {"anonymous": 302, "staff": 403, "viewer": 403, "builder": 403}
    values = {"reason": "why"}
    assert client.get(PAUSE).status_code == outsider.get(who, 200)
    assert client.put(PAUSE).status_code == outsider.get(who, 405)
    assert strict.post(PAUSE, values).status_code == 403
    assert pause_of(SITE) is None
    assert client.post(PAUSE, values).status_code == outsider.get(who, 302)
    assert (pause_of(SITE) is not None) == (who == "publisher")
    pause_publishing(SITE, Pause(by="ann", reason="why"))
    assert client.get(RESUME).status_code == outsider.get(who, 405)
    assert strict.post(RESUME).status_code == 403
    assert pause_of(SITE) is not None
    assert client.post(RESUME).status_code == outsider.get(who, 302)
    assert (pause_of(SITE) is None) == (who == "publisher")


@pytest.mark.slow
@pytest.mark.parametrize("who", ["viewer", "builder", "publisher"])
def test_only_who_may_publish_sees_the_link_and_the_button(two, who):
    """The others read that publishing is paused."""
    client = person(who)
    assert (PAUSE in text_of(client.get(OVERVIEW))) == (who == "publisher")
    pause_publishing(SITE, Pause(by="ann", reason="why"))
    text = text_of(client.get(OVERVIEW))
    assert "Publishing is paused by ann until someone resumes it: why" in text
    assert PAUSE not in text
    assert (f'action="{RESUME}"' in text) == (who == "publisher")


@pytest.mark.slow
@pytest.mark.parametrize("site", ["", "other", "%00"])
def test_a_site_that_is_not_there_is_not_found(two, site):
    """Nothing is paused."""
    client = person("publisher")
    for view in ("pause", "resume"):
        response = client.post(f"{OVERVIEW}{view}/?site={site}", {"reason": "why"})
        assert response.status_code == 404
    assert pause_of(SITE) is None


# Without a roll-back


@pytest.mark.slow
def test_publishing_is_paused_and_resumed(two):
    """The overview says so, and so do Health and the history of the published build."""
    client = person("publisher")
    text = text_of(client.post(PAUSE, {"reason": "Wrong prices"}, follow=True))
    assert text.count(WHY) == 2  # The message, and the line that stays.
    assert WHY in text_of(client.get(HEALTH))
    assert "Publishing paused" in text_of(client.get(OVERVIEW))
    assert pause_of(SITE).by == "publisher"
    edit_product(day=2)
    assert run().status == "held"
    text = text_of(client.get(OVERVIEW))
    assert "is held for review: publishing was paused by publisher: Wrong prices." in text
    text = text_of(client.post(RESUME, follow=True))
    assert "Publishing resumed." in text
    assert "The published sitemap stays as it is until the next build." in text
    assert WHY not in text
    assert WHY not in text_of(client.get(HEALTH))
    assert run().status == "published"
    entries = LogEntry.objects.order_by("pk")
    assert [entry.change_message for entry in entries] == [
        "Publishing paused.\nWrong prices",
        "Publishing resumed.",
    ]
    assert {entry.object_id for entry in entries} == {str(two[1])}
    assert {entry.user.username for entry in entries} == {"publisher"}


@pytest.mark.slow
def test_a_pause_ends_by_itself(two):
    """The overview shows its end, and nothing once it has passed."""
    client = person("publisher")
    text = text_of(client.post(PAUSE, {"reason": "why", "until": local_text(2)}, follow=True))
    until = pause_of(SITE).until
    assert dt.timedelta(hours=1) < until - timezone.now() <= dt.timedelta(hours=2)
    assert "Publishing is paused by publisher until " in text
    assert "until someone resumes it" not in text
    pause_publishing(SITE, replace(pause_of(SITE), until=timezone.now() - dt.timedelta(seconds=1)))
    text = text_of(client.get(OVERVIEW))
    assert "Publishing is paused" not in text
    assert PAUSE in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"reason": " "}, "This field is required."),
        ({"reason": "x" * 501}, "at most 500 characters"),
        ({"reason": "a\0"}, "Null characters are not allowed."),
        ({"reason": "why", "until": "2020-01-01T00:00"}, "Enter a time in the future"),
        ({"reason": "why", "until": "9999-12-31T23:59"}, "Enter a time in the future"),
        ({"reason": "why", "until": "tomorrow"}, "Enter a valid date/time."),
    ],
)
def test_a_pause_has_a_reason_and_an_end_in_the_next_year(two, values, error):
    """The form is shown again with what is wrong and what was filled in."""
    response = person("publisher").post(PAUSE, values)
    text = text_of(response)
    assert error in text
    assert "<title>Error: Pause publishing" in text
    assert f'value="{values.get("until", "")}"' in text or "until" not in values
    assert pause_of(SITE) is None
    assert not LogEntry.objects.exists()


@pytest.mark.slow
def test_where_nothing_is_published_nothing_is_paused(built):
    """The overview has no link, and the page leads back to it."""
    client = person("publisher")
    assert PAUSE not in text_of(client.get(OVERVIEW))
    text = text_of(client.post(PAUSE, {"reason": "why"}, follow=True))
    assert "Nothing is currently published." in text
    assert run().status == "published"


@pytest.mark.slow
def test_resuming_what_is_not_paused_changes_nothing(two):
    """Someone may have the page open from before."""
    text = text_of(person("publisher").post(RESUME, follow=True))
    assert "Publishing resumed" not in text
    assert not LogEntry.objects.exists()


# With a roll-back


@pytest.mark.slow
def test_a_roll_back_pauses_publishing_if_asked_to(two):
    """The next build is held, and does not publish the fault again."""
    client = person("publisher")
    text = text_of(client.get(page("publish", two[0])))
    assert 'type="checkbox" name="pause"' in text
    assert 'type="datetime-local" name="until"' in text
    values = {"pause": "on", "reason": "Wrong prices"}
    text = text_of(client.post(page("publish", two[0]), values, follow=True))
    assert f"Build {two[0]} is now live at" in text
    assert WHY in text
    assert run().status == "held"
    assert Publication.objects.get().build_id == two[0]
    entries = LogEntry.objects.filter(object_id=str(two[0])).order_by("pk")
    assert [entry.change_message for entry in entries] == [
        "Rolled back to this build.",
        "Publishing paused.\nWrong prices",
    ]


@pytest.mark.slow
def test_exclude_now_after_a_roll_back_says_what_returns(two):
    """Its build leaves the roll-back in force, and the next one still undoes it."""
    person("publisher").post(page("publish", two[0]))
    path = Product.objects.first().get_absolute_url()
    values = {"site": SITE.key, "path": path}
    chief = person("super")
    text = text_of(chief.post("/admin/sitemapkit/urloverride/include/", values, follow=True))
    assert "its sitemap file is published without it" in text
    urls = sum(row.page.urls for row in Place.objects.in_build(two[1]).pages())
    assert f"undoes the roll-back from build {two[1]} ({urls} URLs)" in text_of(chief.get(OVERVIEW))
    run()
    assert "undoes the roll-back" not in text_of(chief.get(OVERVIEW))


@pytest.mark.slow
def test_a_roll_back_alone_pauses_nothing(two):
    """As before: the next build publishes the rows."""
    person("publisher").post(page("publish", two[0]))
    assert pause_of(SITE) is None
    assert run().status == "published"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"pause": "on"}, "Enter a reason."),
        ({"reason": "why"}, "Check this box to pause publishing"),
        ({"until": "soon"}, "Check this box to pause publishing"),
        ({"pause": "on", "reason": "why", "until": "2020-01-01T00:00"}, "Enter a time in the fut"),
    ],
)
def test_a_pause_that_is_not_clear_publishes_nothing(two, values, error):
    """Neither a pause without a reason, nor a reason or a time without the check mark."""
    if values.get("until") == "soon":
        values = {"until": local_text(2)}
    text = text_of(person("publisher").post(page("publish", two[0]), values))
    assert error in text
    assert Publication.objects.get().build_id == two[1]
    assert pause_of(SITE) is None


@pytest.mark.slow
def test_a_held_build_is_published_while_publishing_is_paused(paused):
    """The page says that it stays paused."""
    client = person("publisher")
    edit_product(day=2)
    held = run().build
    text = text_of(client.get(page("publish", held)))
    assert "paused by ann until someone resumes it: Wrong prices &lt;script&gt;" in text
    assert "Publishing stays paused after it." in text
    assert "The first build after the pause publishes it." in text
    assert 'name="pause"' not in text
    client.post(page("publish", held))
    assert Publication.objects.get().build_id == held
    assert pause_of(SITE) == paused


@pytest.mark.slow
def test_a_roll_back_replaces_a_pause_if_asked_to(paused, two):
    """Else the pause stays as it is."""
    client = person("publisher")
    client.post(page("publish", two[0]))
    assert pause_of(SITE) == paused
    client.post(page("publish", two[1]), {"pause": "on", "reason": "Wrong prices"})
    assert (pause_of(SITE).by, pause_of(SITE).reason) == ("publisher", "Wrong prices")


@pytest.mark.slow
def test_a_roll_back_that_fails_pauses_nothing(two):
    """The message has the error, and nothing is in the history."""
    Build.objects.filter(pk=two[0]).update(pruned_at=timezone.now())
    values = {"pause": "on", "reason": "why"}
    text = text_of(person("publisher").post(page("publish", two[0]), values, follow=True))
    assert "The files of this build were deleted." in text
    assert pause_of(SITE) is None
    assert not LogEntry.objects.exists()


# Several sites


def test_the_list_of_sites_says_where_publishing_is_paused(settings):
    """A pause that has ended is not shown."""
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example"} for key in ("one", "two", "three")
    }
    now = timezone.now()
    for key, until in (("one", None), ("two", now - dt.timedelta(hours=1))):
        PublicationFactory(build=BuildFactory(site=key))
        pause = Pause(by="ann", reason="why", until=until)
        pause_publishing(SitemapSite.at(f"https://{key}.example", key=key), pause)
    response = person("viewer").get(OVERVIEW)
    assert text_of(response).count("publishing paused") == 1
    shown = {row["state"].site: row["state"].pause for row in response.context["rows"]}
    assert shown["one"].by == "ann"
    assert (shown["two"], shown["three"]) == (None, None)


@pytest.mark.thorough
def test_exclude_now_works_while_publishing_is_paused(paused):
    """It is an editor's own act."""
    client = person("super")
    values = {"site": "default", "path": "/products/all/p3/"}
    before = Publication.objects.get().build_id
    client.post("/admin/sitemapkit/urloverride/include/", values)
    after = Publication.objects.get().build_id
    assert after != before
    Product.objects.filter(slug="p1").delete()
    assert run().status == "held"
    publish(SITE, before)
    assert pause_of(SITE) == paused
