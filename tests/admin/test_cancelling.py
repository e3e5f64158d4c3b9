"""Cancelling a build: who may, after a confirmation, and what the pages say afterwards."""

import pytest
from django.contrib.admin.models import LogEntry

from django_sitemapkit.builds.lease import acquire, cancellable_lease
from django_sitemapkit.exceptions import BuildCancelled
from django_sitemapkit.models import Build, Lease
from tests.admin.operating import OVERVIEW, PEOPLE, person, text_of
from tests.builds import SITE, run

pytestmark = pytest.mark.django_db

CANCEL = f"{OVERVIEW}cancel/?site=default"
ACTIVITY = "/admin/sitemapkit/sitemapsoverview/activity/"


@pytest.fixture
def running(built):
    """Let a process build the site, with one file of many done; return its lease."""
    run()
    with acquire(SITE, makes_build=True) as lease:
        Build.objects.create(
            site=SITE.key, fence=lease.fence, started_at=lease.now(), started_by="bob"
        )
        yield lease


@pytest.mark.slow
@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_cancel(running, who):
    """Users who may build, by POST and with a token, and nobody else."""
    client, strict = person(who), person(who, enforce_csrf_checks=True)
    outsider = {"anonymous": 302, "staff": 403, "viewer": 403, "publisher": 403}
    values = {"fence": running.fence}
    assert client.get(CANCEL).status_code == outsider.get(who, 200)
    assert client.put(CANCEL).status_code == outsider.get(who, 405)
    assert strict.post(CANCEL, values).status_code == 403
    running.prove()
    assert client.post(CANCEL, values).status_code == outsider.get(who, 302)
    assert (cancellable_lease(SITE) is None) == (who == "builder")


@pytest.mark.slow
@pytest.mark.parametrize("who", ["viewer", "builder", "publisher"])
def test_only_who_may_build_sees_the_link(running, who):
    """And only while there is something to cancel."""
    client = person(who)
    assert (CANCEL in text_of(client.get(OVERVIEW))) == (who == "builder")
    running.row.release()
    Build.objects.filter(status=Build.Status.RUNNING).delete()
    assert CANCEL not in text_of(client.get(OVERVIEW))


@pytest.mark.slow
def test_a_build_is_cancelled_after_a_confirmation(running):
    """The page says what is done and what stays; the log says who cancelled it."""
    client = person("builder")
    build = Build.objects.get(status=Build.Status.RUNNING)
    text = text_of(client.get(CANCEL))
    assert f"Build {build.pk}: 0 of 1 files are done." in text
    assert "Started by bob." in text
    assert f"keeps serving build {Build.objects.published(SITE).pk}." in text
    running.prove()
    assert f'name="fence" value="{running.fence}"' in text
    text = text_of(client.post(CANCEL, {"fence": running.fence}, follow=True))
    assert f"Build {build.pk} is cancelled. It stops in a moment." in text
    assert "cancelled by builder" in text
    with pytest.raises(BuildCancelled, match="was cancelled by builder"):
        running.prove()
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (str(build.pk), "Build cancelled.")
    assert "Build cancelled." in text_of(client.get(ACTIVITY))
    assert "Build cancelled." in text_of(client.get(ACTIVITY, {"action": "cancelled"}))
    assert "Build cancelled." not in text_of(client.get(ACTIVITY, {"action": "published"}))


@pytest.mark.slow
def test_no_id_has_a_thousands_separator(built, settings):
    """With one, the confirmation named no build, and nothing was cancelled."""
    run()
    Lease.objects.update(fence=1_233)
    settings.USE_THOUSAND_SEPARATOR = True
    with acquire(SITE, makes_build=True) as lease:
        Build.objects.create(pk=1_234, site=SITE.key, fence=1_234, started_at=lease.now())
        client = person("builder")
        assert 'name="fence" value="1234"' in text_of(client.get(CANCEL))
        assert ">Build 1234</a>" in text_of(client.get(OVERVIEW))


@pytest.mark.slow
@pytest.mark.parametrize("fence", [None, "", "x", "²", "9" * 30, "0"])
def test_another_build_than_the_confirmed_one_goes_on(running, fence):
    """Whatever was sent."""
    client = person("builder")
    values = {} if fence is None else {"fence": fence}
    text = text_of(client.post(CANCEL, values, follow=True))
    assert "The build had ended before it could be cancelled." in text
    running.prove()
    assert not LogEntry.objects.exists()


def test_where_nothing_runs_there_is_nothing_to_confirm(built):
    """The overview says so."""
    response = person("builder").get(CANCEL, follow=True)
    assert response.redirect_chain == [(f"{OVERVIEW}?site=default", 302)]
    assert "No build is running." in text_of(response)


@pytest.mark.slow
@pytest.mark.parametrize("site", ["", "other", "%00"])
def test_a_site_that_is_not_there_is_not_found(running, site):
    """Nothing is cancelled."""
    response = person("builder").post(f"{OVERVIEW}cancel/?site={site}", {"fence": running.fence})
    assert response.status_code == 404
    running.prove()


def test_before_the_first_publication_all_is_live(built):
    """The page says that nothing is published."""
    with acquire(SITE, makes_build=True):
        text = text_of(person("builder").get(CANCEL))
    assert "Nothing is published; all sections are served live." in text
