"""The overview: what is published, what is due, what is asked for, and who may ask."""

import datetime as dt
import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.template.defaultfilters import filesizeformat
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

import django_sitemapkit
from django_sitemapkit import Section
from django_sitemapkit.admin import overview
from django_sitemapkit.builds import publish, requests, status_of
from django_sitemapkit.builds.lease import acquire
from django_sitemapkit.builds.make.reuse import Reason
from django_sitemapkit.builds.requests import process_requests, record_request
from django_sitemapkit.models import (
    Build,
    BuildRequest,
    ExclusionRule,
    ExtraUrl,
    Lease,
    Place,
    Publication,
    SectionSettings,
    StoredPage,
)
from django_sitemapkit.testing.factories import (
    BuildFactory,
    BuildRequestFactory,
    PlaceFactory,
    PublicationFactory,
)
from tests.admin.editors import Fields
from tests.admin.operating import (
    EVIL,
    OVERVIEW,
    PEOPLE,
    PROGRESS,
    REQUEST,
    page,
    person,
    text_of,
)
from tests.builds import (
    LEASE,
    SITE,
    Readings,
    age_lease,
    edit_product,
    let_time_pass,
    problems_of,
    run,
)
from tests.builds.storages import Killed
from tests.factories import products
from tests.management import run as command
from tests.testapp.models import Product, Reading

pytestmark = pytest.mark.django_db

WHATS = ("changed", "full", "preview", "section", "check", "prune")


def asked(what="changed", site="default", **values):
    """Return what a button sends; deleting files is confirmed."""
    sent = {"site": site, "button": what, "section": "products", **values}
    return sent | {"confirmed": "1"} if what == "prune" else sent


@pytest.fixture
def two_sites(settings):
    """Configure two sites, one of them with a key of all kinds of signs."""
    settings.SITEMAPKIT_SITES = {
        "one": {"BASE_URL": "https://one.example"},
        "two/<b>&": {"BASE_URL": "https://two.example"},
    }


# Who may what


@pytest.mark.thorough
@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("address", [OVERVIEW, PROGRESS])
def test_who_may_look(built, who, address):
    """Who may view builds, and nobody else; looking is all there is."""
    client = person(who)
    expected = {"anonymous": 302, "staff": 403}.get(who, 200)
    assert client.get(address, {"site": "default"}).status_code == expected
    expected = {"anonymous": 302, "staff": 403}.get(who, 405)
    assert client.post(address, {"site": "default"}).status_code == expected
    assert not BuildRequest.objects.exists()


def test_a_build_that_failed_before_its_first_page_is_one(sections, built):
    """The overview says that it failed, and why; nothing of it is said to run."""
    sections.add(Broken)
    with pytest.raises(ImproperlyConfigured):
        run()
    text = " ".join(re.sub("<[^>]+>", " ", text_of(person("builder").get(OVERVIEW))).split())
    assert "No build is running." in text
    assert re.search(r"Build \d+ failed .* ValueError: kaputt", text)
    assert "error Build failed" in text


class Broken(Section):
    """A section that never can be read."""

    name = "broken"
    queryset = Product.objects.all()

    def get_queryset(self):
        """Raise."""
        raise ValueError("kaputt")


@pytest.mark.thorough
@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("what", WHATS)
def test_who_may_ask(built, who, what):
    """Who may have sitemaps built, by POST and with a token, and nobody else."""
    client, strict = person(who), person(who, enforce_csrf_checks=True)
    outsider = {"anonymous": 302, "staff": 403, "viewer": 403, "publisher": 403}
    assert client.get(REQUEST, asked(what)).status_code == outsider.get(who, 405)
    assert strict.post(REQUEST, asked(what)).status_code == 403
    assert not BuildRequest.objects.exists()
    response = client.post(REQUEST, asked(what))
    assert response.status_code == outsider.get(who, 302)
    assert BuildRequest.objects.count() == (who == "builder")
    if who == "builder":
        assert response.url == f"{OVERVIEW}?site=default&request={BuildRequest.objects.get().pk}"
    if who == "anonymous":
        assert response.url.startswith("/admin/login/")


def test_a_token_lets_the_button_work(built):
    """The page has one in each of its forms."""
    client = person("builder", enforce_csrf_checks=True)
    text = text_of(client.get(OVERVIEW))
    assert text.count("csrfmiddlewaretoken") == text.count('method="post"')
    token = client.cookies["csrftoken"].value
    response = client.post(REQUEST, asked(csrfmiddlewaretoken=token))
    assert response.status_code == 302
    assert BuildRequest.objects.count() == 1


@pytest.mark.thorough
def test_to_ask_one_must_see_too(built):
    """The permission to build alone opens no page."""
    PEOPLE["half"] = ("run_build",)
    try:
        client = person("half")
    finally:
        del PEOPLE["half"]
    assert client.post(REQUEST, asked()).status_code == 403
    assert client.get(OVERVIEW).status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("who", ["viewer", "publisher", "builder"])
def test_only_who_may_ask_sees_buttons(built, who):
    """The others see what there is to see."""
    run()
    text = text_of(person(who).get(OVERVIEW))
    assert ('name="button"' in text) == (who == "builder")
    assert "products" in text


# Asking


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "kind", "section", "full", "said"),
    [
        ("changed", "build", "", False, "Build of changes"),
        ("full", "build", "", True, "Full build"),
        ("section", "build", "products", False, "Build of section “products”"),
        ("check", "check", "", False, "File check"),
        ("prune", "prune", "", False, "Cleanup"),
    ],
)
def test_a_button_records_what_it_says(built, what, kind, section, full, said):
    """And the page says what was asked for, by whom."""
    client = person("builder")
    text = text_of(client.post(REQUEST, asked(what), follow=True))
    recorded = BuildRequest.objects.get()
    assert (recorded.kind, recorded.section, recorded.full) == (kind, section, full)
    assert (recorded.site, recorded.requested_by) == ("default", "builder")
    assert f"{said} queued. It starts now." in text
    assert f"<li>{said} (builder, " in text


@pytest.mark.slow
def test_old_files_are_deleted_once_that_is_confirmed(built, settings):
    """The page says how many there are and how large; while a build runs it cannot know."""
    settings.SITEMAPKIT_KEEP_BUILDS = 1
    first = run().build
    edit_product()
    run()
    let_time_pass(200_000)
    client = person("builder")
    sent = {"site": "default", "button": "prune"}
    text = text_of(client.post(REQUEST, sent))
    gone = StoredPage.objects.filter(places__build=first)
    sizes = [page.stored_bytes for page in gone if page.places.count() == 1]
    assert sizes  # One of a product, and the index if the second build began in another second.
    size = filesizeformat(sum(sizes))
    said = f"files of builds that are over: {len(sizes)} ({size}). Files that no build has: 0."
    assert f"{SITE.base}, {said}" in text
    assert not BuildRequest.objects.exists()
    assert Fields(text).values["confirmed"] == "1"
    with acquire(SITE):
        assert "is held by process" in text_of(client.post(REQUEST, sent))
    client.post(REQUEST, {**Fields(text).values, "button": "prune"})
    assert BuildRequest.objects.get().kind == "prune"


@pytest.mark.slow
def test_two_clicks_make_one_build(built):
    """Anyone who clicks second is informed."""
    client = person("builder")
    client.post(REQUEST, asked())
    assert message_of(client)[1] == "Build of changes queued. It starts now."
    BuildRequest.objects.update(requested_by="ann")
    again = "Build of changes is already queued by ann. It runs only once. It starts now."
    assert message_of(client)[1] == again
    process_requests(SITE)
    assert BuildRequest.objects.count() == Build.objects.count() == 1


def message_of(client, what="changed"):
    """Return what the page says of a click: its kind and its text."""
    text = text_of(client.post(REQUEST, asked(what), follow=True))
    ((kind, said),) = re.findall(r'<li class="([\w-]+)">(.*?)</li>', text.partition("<h2")[0])
    return kind, said


@pytest.mark.slow
def test_a_click_while_others_build_says_when_it_starts(built):
    """What was queued before comes first."""
    client = person("builder")
    said = []
    run(on_file=lambda *_: said or said.append(message_of(client)))
    waits = "Build of changes queued. It starts when the work in progress has finished."
    assert said == [("sitemapkit-queued", waits)]
    waits = "Cleanup queued. It starts when the earlier requests have finished."
    assert message_of(client, what="prune") == ("sitemapkit-queued", waits)


@pytest.mark.slow
def test_a_click_while_files_are_pruned_says_that_it_waits(built):
    """There is no build to name; a process that died is not waited for."""
    Lease.objects.acquire(LEASE, seconds=60)
    client = person("builder")
    waits = "File check queued. It starts when the work in progress has finished."
    assert message_of(client, what="check") == ("sitemapkit-queued", waits)
    BuildRequest.objects.all().delete()
    age_lease()
    assert message_of(client, what="check") == (
        "sitemapkit-queued",
        "File check queued. It starts now.",
    )


@pytest.mark.slow
def test_the_request_that_runs_is_not_listed_as_queued(built):
    """Unless its process died: the next one runs it again."""
    record_request(SITE, "check")
    Lease.objects.acquire(LEASE, seconds=60)
    viewer = person("viewer")
    assert "<h3>Queued</h3>" in text_of(viewer.get(OVERVIEW))
    BuildRequest.objects.update(dedup_key=None)
    assert "<h3>Queued</h3>" not in text_of(viewer.get(OVERVIEW))
    age_lease()
    assert "<h3>Queued</h3>" in text_of(viewer.get(OVERVIEW))


@pytest.mark.slow
@pytest.mark.parametrize("fails", [True, False])
def test_what_came_of_a_click_is_told_where_it_was_made(built, monkeypatch, fails):
    """A failure in red, even where it is over before the page is shown; nothing else in green."""
    client = person("builder")
    if fails:
        monkeypatch.setattr(requests, "prune", lambda site: 1 / 0)
    monkeypatch.setattr(overview, "start_processing_on_commit", process_requests)
    text = text_of(client.post(REQUEST, asked("prune"), follow=True))
    assert "It starts now" not in text
    kind, said = (
        ("error", "ZeroDivisionError") if fails else ("success", "0 files and 0 leftover files")
    )
    assert re.search(rf'<li class="{kind}">\s*Cleanup (failed|finished)\. .*{said}', text)
    assert '<li class="success">' not in text or not fails
    other = BuildRequestFactory(site="other", kind="prune", ended_at=timezone.now())
    for wrong in ("x", "", "\x00", 10**30, -1, 10**6, other.pk):
        response = client.get(OVERVIEW, {"site": "default", "request": wrong})
        assert 'class="messagelist"' not in text_of(response)


def test_a_click_begins_it_once_it_is_recorded(built, django_capture_on_commit_callbacks):
    """After the transaction, with the runner of the settings."""
    began = []
    client = person("builder")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "start_processing_on_commit", lambda *shown: began.append(shown))
        client.post(REQUEST, asked())
    assert began == [(SITE, overview.get_runner)]
    with django_capture_on_commit_callbacks() as callbacks:
        client.post(REQUEST, asked())
    assert len(callbacks) == 1


@pytest.mark.thorough
def test_a_section_that_is_gone_is_told(built):
    """Someone may have the page open from before."""
    client = person("builder")
    response = client.post(REQUEST, asked("section", section=EVIL), follow=True)
    assert "Section “&lt;script&gt;" in text_of(response)
    assert not BuildRequest.objects.exists()


@pytest.mark.parametrize("values", [{"site": "other"}, {"button": "else"}, {"site": ""}])
def test_what_no_button_sends_is_not_found(built, values):
    """Nothing is recorded."""
    assert person("builder").post(REQUEST, asked() | values).status_code == 404
    assert not BuildRequest.objects.exists()


@pytest.mark.thorough
def test_a_site_is_asked_for_by_its_key(built, two_sites):
    """Whatever signs it has."""
    client = person("builder")
    text = text_of(client.get(OVERVIEW, {"site": "two/<b>&"}))
    assert 'name="site" value="two/&lt;b&gt;&amp;"' in text
    response = client.post(REQUEST, asked(site="two/<b>&"))
    assert BuildRequest.objects.get().site == "two/<b>&"
    assert client.get(response.url).status_code == 200


# What a site's page tells


@pytest.mark.slow
def test_the_page_tells_what_is_published(built):
    """Pages, URLs, and when that was."""
    text = text_of(person("viewer").get(OVERVIEW))
    assert "Nothing is published; all sections are served live" in text
    assert text.count("Not built, served live") == 3
    build = run().build
    response = person("viewer").get(OVERVIEW)
    assert f'<a href="{page("change", build)}">Build {build}</a>' in text_of(response)
    rows = {row["name"]: row for row in response.context["page"]}
    assert (rows["products"]["pages"], rows["products"]["urls"].count) == ("3", "5")
    assert rows["products"]["section"].xml_bytes > 500
    lines = Place.objects.filter(section="products")
    assert rows["products"]["section"].changed_at == max(line.page.lastmod for line in lines)


@pytest.mark.thorough
def test_the_page_tells_what_is_due_without_reading_rows(built):
    """A preview compares them."""
    run()
    edit_product()
    client = person("viewer")
    text = text_of(client.get(OVERVIEW))
    assert "rows changed" not in text
    assert "“What would change?” finds out" in text


@pytest.mark.slow
def test_every_reason_has_words(built):
    """The programs' words are English; people read their own language."""
    with translation.override("es"):
        assert all(reason.label != reason.value for reason in Reason)
    run()
    ExclusionRule.objects.create(site="default", pattern="/products/")
    assert "to be checked for edits" in text_of(person("viewer").get(OVERVIEW))


@pytest.mark.thorough
def test_the_page_tells_of_sections_that_came_and_went(built, sections):
    """One is never built, one is left out by the next build."""
    run()
    sections.remove("articles")
    new = type("Fresh", (Readings,), {"name": "fresh"})
    sections.add(new)
    text = text_of(person("builder").get(OVERVIEW))
    assert "not built" in text
    row = text.partition('<th scope="row">articles</th>')[2].partition("</tr>")[0]
    status = status_of(SITE)
    assert f'data-label="URLs">{status.sections[-1].urls}</td>' in row
    assert status.urls == sum(section.urls for section in status.sections)  # The table adds up.
    assert "No section lists these URLs any more. The next published build removes it." in row
    assert 'value="articles"' not in text
    SectionSettings.objects.create(site="default", section="products", enabled=False)
    link = '<a href="/admin/sitemapkit/sectionsettings/?site=default&amp;q=products">'
    off = "Switched off in the section settings"
    assert f"{link}{off}.</a>" in text_of(person("super").get(OVERVIEW))
    text = text_of(person("builder").get(OVERVIEW))
    assert f"{off}. The next published build removes it." in text
    assert link not in text
    run()  # It stays where editors look for it, with the loss of the last build.
    status = status_of(SITE)
    lost = {section.name: section.change.text for section in status.sections if section.removed}
    assert lost.keys() == {"articles", "products"}
    assert all(lost.values())
    text = text_of(person("builder").get(OVERVIEW))
    assert "served live from the database" not in text
    assert f"{off}.</span></td>" in text
    assert "The next published build removes it." not in text
    assert off in command("sitemap_status")[1]
    assert status_of(SITE).as_dict()["switched_off"] == ["products"]


@pytest.mark.slow
def test_what_a_preview_contains_is_not_doubted(built):
    """What is due says what the preview has found; what was compared, when it was."""
    run()
    text = text_of(person("builder").get(OVERVIEW))
    assert "not compared" not in text
    assert text.count("last compared by a build:") == 3
    ExclusionRule.objects.create(site="default", pattern=Product.objects.first().get_absolute_url())
    text = text_of(person("builder").get(OVERVIEW))
    assert text.count("to be checked for edits") == 3
    run(preview=True)
    text = text_of(person("builder").get(OVERVIEW))
    assert "to be checked for edits" not in text
    assert text.count("built, but not live: 1 file") == 1
    assert text.count("last compared by a build:") == 2


@pytest.mark.thorough
def test_a_section_that_cannot_be_read_is_told_with_its_error(built, sections):
    """The others are shown."""

    class Broken(Readings):
        name = "broken"

        def get_queryset(self):
            raise RuntimeError(EVIL)

    sections.add(Broken)
    text = text_of(person("viewer").get(OVERVIEW))
    assert "RuntimeError: &lt;script&gt;" in text
    assert "products" in text


@pytest.mark.thorough
def test_a_preview_that_waits_is_no_warning(built):
    """Its changes can be published, or be left to the next build."""
    run()
    edit_product("p0")
    held = run(preview=True).build
    response = person("publisher").get(OVERVIEW)
    text = text_of(response)
    assert response.context["level"] == "ok"
    assert f"A preview waits: build {held}, without what has changed since it began." in text
    assert f'<a href="{page("publish", held)}">Publish it</a>' in text
    assert "is held for review" not in text
    assert "Nothing needs your attention." in text
    assert "A preview waits" in text_of(person("viewer").get(f"{OVERVIEW}health/"))
    for address in (OVERVIEW, page("changelist"), page("change", held)):
        text = text_of(person("publisher").get(address))
        assert 'sitemapkit-preview">preview</span>' in text
        assert ">held</span>" not in text
    text = text_of(person("publisher").get(page("publish", held)))
    assert "This build waits: it is a preview that" in text
    assert "This build is held" not in text


@pytest.mark.slow
def test_of_two_previews_only_the_newer_one_waits(built, settings):
    """What is held for review is not given up for a preview."""
    run()
    edit_product("p0")
    first = run(preview=True).build
    edit_product("p1", day=2)
    second = run(preview=True).build
    assert Build.objects.get(pk=first).reason_text == f"superseded by build {second}"
    settings.SITEMAPKIT_MAX_SHRINK = 0
    Reading.objects.filter(level=0).delete()
    held = run().build
    edit_product("p0", day=3)
    third = run(preview=True).build
    states = dict(Build.objects.values_list("pk", "status"))
    assert [states[pk] for pk in (second, held, third)] == ["abandoned", "held", "held"]


@pytest.mark.slow
def test_a_preview_from_before_a_deletion_says_so(built):
    """Publishing it lists again what somebody has taken out since."""
    run()
    added = ExtraUrl.objects.create(site="default", path="/summer/")
    held = run(preview=True).build
    publisher, offer = person("publisher"), f'<a href="{page("publish", held)}">Publish it</a>'
    assert offer in text_of(publisher.get(OVERVIEW))
    assert "It lacks what editors" not in text_of(publisher.get(OVERVIEW))
    assert "Editors have changed" not in text_of(publisher.get(page("publish", held)))
    added.delete()
    text = text_of(publisher.get(OVERVIEW))
    assert offer in text
    assert "It lacks what editors have changed since" in text
    assert "Editors have changed something since this" in text_of(
        publisher.get(page("publish", held))
    )


@pytest.mark.thorough
def test_a_preview_of_a_large_loss_is_a_preview(built, settings):
    """It says that a build would be held, and is none: who asked has built nothing.

    Of all URLs of the site the loss is small, but a section has none left.
    """
    products(200)
    run()
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    Reading.objects.all().delete()
    preview = run(preview=True).build
    text = text_of(person("publisher").get(OVERVIEW))
    assert f"A preview waits: build {preview}," in text
    assert "is held for review" not in text
    assert "Build held for review" not in text
    text = text_of(person("publisher").get(page("publish", preview)))
    assert "requested; a build would be held for review: section &#x27;readings&#x27;" in text
    assert 'sitemapkit-danger">Yes, publish it' in text
    assert run().status == "held"
    assert "is held for review: section" in text_of(person("publisher").get(OVERVIEW))


@pytest.mark.slow
def test_the_page_tells_of_a_held_build_and_links_it(built, settings):
    """With its reason, to be reviewed."""
    run()
    settings.SITEMAPKIT_MAX_SHRINK = 0.5
    Product.objects.all().delete()
    held = run().build
    text = text_of(person("viewer").get(OVERVIEW))
    assert (
        f"Build {held} is held for review: section &#x27;products&#x27; would shrink from 5" in text
    )
    assert f'<a href="{page("change", held)}">Review this build</a>' in text


@pytest.mark.thorough
def test_rows_that_were_left_out_are_counted_and_linked(built):
    """To the problems of the published build."""
    build = run().build
    Place.objects.filter(section="products", number=1).update(skipped=1234)
    text = text_of(person("viewer").get(OVERVIEW))
    assert f'<a href="{page("change", build)}#problems">1,234</a>' in text


@pytest.mark.thorough
def test_outcomes_are_told(built):
    """The last ones, those that failed marked."""
    record_request(SITE, "check", by="ann")
    record_request(SITE, "build", section="gone", by=EVIL)
    process_requests(SITE)
    text = text_of(person("viewer").get(OVERVIEW))
    assert "Nothing is published." in text
    assert "has no section &#x27;gone&#x27;" in text
    assert text.count(">failed<") == 1


@pytest.mark.thorough
def test_an_outcome_has_the_present_state_of_its_build(built):
    """What it came to may be over: a preview that was published since is live."""
    run()
    Product.objects.first().delete()
    record_request(SITE, "preview", by="ann")
    process_requests(SITE)
    build = Build.objects.latest("pk").pk
    assert f"Build {build} (now: preview)</a>" in text_of(person("viewer").get(OVERVIEW))
    publish(SITE, build)
    assert f"Build {build} (now: live)</a>" in text_of(person("viewer").get(OVERVIEW))


@pytest.mark.thorough
def test_what_people_and_programs_wrote_is_harmless(built):
    """In names, reasons, warnings, outcomes and sections."""
    build = Build.objects.get(pk=run().build)
    values = {"reason": EVIL, "warnings": [EVIL], "started_by": EVIL}
    Build.objects.update(**values)
    left = BuildFactory(status="held", **values)
    running = BuildFactory(status="running", **values)
    Lease.objects.filter(name=LEASE).update(owner=f"{EVIL}:1:x", heartbeat=timezone.now())
    problems = problems_of(EVIL)
    PlaceFactory(build=build, section=EVIL, problems=problems, skipped=3, page__name=EVIL, urls=0)
    for ended_at in (None, timezone.now()):
        BuildRequest.objects.create(
            site="default",
            kind="build",
            section=EVIL,
            requested_by=EVIL,
            requested_at=timezone.now(),
            ended_at=ended_at,
            outcome=EVIL,
            build=left,
        )
    text = text_of(person("builder").get(OVERVIEW))
    assert text.count("&lt;script&gt;") > 10
    assert person("viewer").get(PROGRESS, {"site": "default"}).json()["done"] == 0
    for record in (build, left, running):
        assert "&lt;script&gt;" in text_of(person("super").get(page("change", record.pk)))
        text_of(person("super").get(page("publish", record.pk)))
        text_of(person("super").get(page("differences", record.pk)))
    assert "&lt;script&gt;" in text_of(person("super").get(page("changelist")))


# What goes on


def poll(client):
    """Return what the page asks for again and again."""
    return client.get(PROGRESS, {"site": "default"}).json()


@pytest.mark.slow
def test_progress_goes_from_asked_for_to_done(built):
    """The page has its address, and reloads when the state is another one."""
    client = person("builder")
    idle = poll(client)
    assert idle["text"] == "No build is running."
    assert "data-state" not in text_of(client.get(OVERVIEW))
    client.post(REQUEST, asked())
    waiting = poll(client)
    assert waiting["state"] != idle["state"]
    text = text_of(client.get(OVERVIEW))
    assert f'data-url="{PROGRESS}?site=default" data-state="{waiting["state"]}"' in text
    assert "sitemapkit/progress.js" in text
    shown = []
    run(on_file=lambda *_: shown.append(poll(client)))
    assert [(each["done"], each["total"]) for each in shown[:-1]] == [(n, 8) for n in range(1, 8)]
    # After a second, the rate is shown, too.
    assert shown[2]["text"].startswith(f"Build {Build.objects.get().pk}: 3 of 8 files are done.")
    (running,) = {each["state"] for each in shown}  # The page then lists it no longer as queued.
    assert running not in {waiting["state"], idle["state"]}
    assert poll(client) == idle


@pytest.mark.thorough
def test_a_build_of_others_is_shown_with_who_started_it(built):
    """Without a request there is progress all the same."""
    pages = []
    client = person("viewer")

    def look(*shown):
        pages.append(text_of(client.get(OVERVIEW)))

    run(on_file=look, started_by="command on <host>")
    assert "Started by command on &lt;host&gt;." in pages[0]
    assert 'data-state="running"' in pages[0]
    assert '<progress aria-label="Progress" value="1" max="8"></progress>' in pages[0]


@pytest.mark.thorough
def test_before_the_pages_are_known_there_is_no_measure(built):
    """The bar runs without one."""
    Lease.objects.acquire(LEASE, seconds=60)
    client = person("viewer")
    assert poll(client)["total"] == 0
    assert poll(client)["text"] == "In progress; nothing to count yet."
    assert '<progress aria-label="Progress"></progress>' in text_of(client.get(OVERVIEW))


@pytest.mark.thorough
def test_a_build_that_died_is_told(built):
    """Nobody works at it until the next one begins."""

    def die(*shown):
        raise Killed

    with pytest.raises(Killed):
        run(on_file=die)
    build = Build.objects.get().pk
    text = f"Build {build} was interrupted. The next build adopts its pages."
    assert poll(person("viewer"))["text"] == text


@pytest.mark.thorough
def test_the_progress_of_no_site_is_not_found(built):
    """And of one that cannot be determined, neither."""
    assert person("viewer").get(PROGRESS).status_code == 404


def test_the_script_breaks_no_policy():
    """It evaluates nothing and writes text alone."""
    static = Path(django_sitemapkit.__file__).parent / "static" / "sitemapkit"
    source = (static / "progress.js").read_text()
    assert "innerHTML" not in source
    assert "eval(" not in source


# Several sites


@pytest.mark.thorough
def test_several_sites_are_listed_with_links(built, two_sites):
    """Each with what is published, held back and going on."""
    build = BuildFactory(site="one")
    PublicationFactory(build=build)
    PlaceFactory(build=build, section="a", number=1, urls=7, skipped=3)
    PlaceFactory(build=build, section="a", number=2, status="empty", page=None)
    PlaceFactory(build=build, section="", number=0)
    BuildFactory(site="two/<b>&", status="held")
    record_request(SITE, "check")
    BuildRequest.objects.update(site="two/<b>&")
    assert Lease.objects.acquire("build:one", seconds=60)
    response = person("viewer").get(OVERVIEW)
    text = text_of(response)
    # What needs attention comes first.
    rows = response.context["rows"]
    assert [rows[1][name] for name in ("pages", "urls", "skipped")] == ["1", "7", "3"]
    two, one = (row["state"] for row in rows)
    assert (one.is_running, one.held) == (True, None)
    assert (two.build, two.is_running, two.held.status) == (None, False, "held")
    assert len(two.queue) == 1
    assert 'href="/admin/sitemapkit/sitemapsoverview/?site=two%2F%3Cb%3E%26"' in text
    assert "being built" in text
    assert "held for review" in text
    assert "queued" in text
    age_lease("build:one")
    assert not person("viewer").get(OVERVIEW).context["rows"][1]["state"].is_running


@pytest.mark.thorough
def test_a_thousand_sites_cost_as_much_as_sixty(settings):
    """They are listed a page at a time, and one is found by its name."""
    client = person("viewer")

    def configure(count):
        settings.SITEMAPKIT_SITES = {
            f"site-{n}": {"BASE_URL": f"https://site-{n}.example"} for n in range(count)
        }
        now = timezone.now()
        builds = Build.objects.bulk_create(
            Build(site=f"site-{n}", fence=1, started_at=now, published_at=now, status="published")
            for n in range(count)
        )
        Publication.objects.all().delete()
        Publication.objects.bulk_create(
            Publication(site=build.site, build=build) for build in builds
        )

    counts = []
    for count in (60, 1000):
        configure(count)
        client.get(OVERVIEW)
        with CaptureQueriesContext(connection) as queries:
            text = text_of(client.get(OVERVIEW))
        counts.append(len(queries))
        assert text.count("https://site-") == 50
    assert counts[0] == counts[1] <= 14
    text = text_of(client.get(OVERVIEW, {"q": "site-99", "p": "1"}))
    assert text.count("https://site-99") == 11
    assert "11 sites" in text
    text = text_of(client.get(OVERVIEW, {"q": "<none>"}))
    assert "No sites found." in text
    assert 'value="&lt;none&gt;"' in text
    assert '<a href="?p=20">20</a>' in text_of(client.get(OVERVIEW))
    assert client.get(OVERVIEW, {"site": "none"}).status_code == 404


@pytest.mark.thorough
def test_a_site_costs_the_same_whatever_it_has(built):
    """Neither files nor builds nor requests count."""
    client = person("builder")
    build = run().build
    client.get(OVERVIEW)
    counts = []
    for count in (5, 300):
        now = timezone.now()
        Place.objects.bulk_create(
            Place(build_id=build, section="products", number=count + n, status="done")
            for n in range(count)
        )
        Build.objects.bulk_create(
            Build(site="default", fence=1, started_at=now, ended_at=now, status="unchanged")
            for n in range(4 * count)
        )
        BuildRequest.objects.bulk_create(
            BuildRequest(
                site="default", requested_at=now, ended_at=now - dt.timedelta(days=n), outcome="-"
            )
            for n in range(count)
        )
        with CaptureQueriesContext(connection) as queries:
            text_of(client.get(OVERVIEW))
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_the_sidebar_marks_the_screen(built):
    """The overview and those below it are its entry; builds are another one."""
    run()
    client = person("viewer")
    marked = re.compile(r'<a href="([^"]+)" aria-current="page">')
    for screen in ("", "health/", "activity/", "inspect/"):
        assert marked.findall(text_of(client.get(f"{OVERVIEW}{screen}"))) == [OVERVIEW]
    build_page = page("change", Build.objects.get().pk)
    assert marked.findall(text_of(client.get(build_page))) == [page("changelist")]


# What cannot be shown


def test_a_site_that_cannot_be_told_is_a_message(settings):
    """The page says what to set."""
    settings.SITEMAPKIT_BASE_URL = None
    client = person("super")
    assert "set SITEMAPKIT_BASE_URL or SITEMAPKIT_SITES" in text_of(client.get(OVERVIEW))
    assert client.post(REQUEST, asked()).status_code == 404
    assert client.get(PROGRESS, {"site": "default"}).status_code == 404
    assert "Sitemaps overview" in text_of(client.get(page("changelist")))


@pytest.mark.thorough
def test_a_site_without_addresses_is_a_message(settings, built):
    """Its URLconf does not include the package's."""
    run()
    settings.SITEMAPKIT_SITES = {
        "default": {"BASE_URL": "https://www.example.com", "URLCONF": "tests.urls_without"}
    }
    client = person("viewer")
    assert client.get(OVERVIEW).status_code == 200
    assert client.get(page("change", Build.objects.get().pk)).status_code == 200


@pytest.mark.thorough
@pytest.mark.parametrize("several", [False, True])
def test_a_missing_table_is_a_message(built, monkeypatch, settings, request, several):
    """The page asks to migrate."""
    if several:
        request.getfixturevalue("two_sites")

    def fail(*arguments, **options):
        raise DatabaseError("no such table: <b>")

    monkeypatch.setattr(overview, "status_of", fail)
    monkeypatch.setattr(overview, "states_of_sites", fail)
    text = text_of(person("viewer").get(OVERVIEW))
    assert "Are all migrations applied? (no such table: &lt;b&gt;)" in text


@pytest.mark.thorough
@pytest.mark.skipif("connection.vendor == 'mysql'", reason="a changed table ends a transaction")
def test_a_table_that_is_really_missing_is_a_message(built):
    """Whatever the request has begun goes on."""
    client = person("viewer")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sitemapkit_publication RENAME TO gone")
    try:
        assert "Are all migrations applied?" in text_of(client.get(OVERVIEW))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE gone RENAME TO sitemapkit_publication")


@pytest.mark.thorough
def test_any_error_of_the_project_is_a_message(built, monkeypatch):
    """What sections declare may raise anything."""

    def fail(*arguments, **options):
        raise KeyError("oops")

    monkeypatch.setattr(overview, "status_of", fail)
    assert "KeyError: &#x27;oops&#x27;" in text_of(person("viewer").get(OVERVIEW))


# Where it is linked


@pytest.mark.thorough
@pytest.mark.parametrize("who", ["staff", "viewer", "super"])
def test_the_overview_is_linked_for_those_who_may_see_it(who):
    """From the app's index and from the list of builds."""
    client = person(who)
    index = client.get("/admin/sitemapkit/")
    if who == "staff":
        assert index.status_code == 404
        return
    assert f'href="{OVERVIEW}"' in text_of(index)
    assert f'href="{OVERVIEW}"' in text_of(client.get(page("changelist")))


@pytest.mark.thorough
def test_who_may_do_something_else_only_sees_no_link(built):
    """An editor of overrides has no business there."""
    PEOPLE["editor"] = ("change_urloverride",)
    try:
        client = person("editor")
    finally:
        del PEOPLE["editor"]
    index = client.get("/admin/sitemapkit/")
    assert index.status_code in {200, 404}  # 404 where no screen of overrides is registered.
    assert OVERVIEW not in index.content.decode()


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "it is identical to build 7"), ("fr", "elle est identique à la génération 7")],
)
def test_states_are_shown_in_the_language_of_the_reader(built, language, words):
    """In any language, whatever made the build: it has a code and its values."""
    BuildFactory(status="abandoned", reason={"code": "identical", "build": 7})
    with translation.override(language):
        assert words in text_of(person("viewer").get(OVERVIEW))


@pytest.mark.slow
def test_naive_moments_are_shown(built, settings):
    """As a project with USE_TZ = False stores them, also in the chart of several builds."""
    settings.USE_TZ = False
    for number in range(3):
        ExtraUrl.objects.create(site="default", path=f"/{number}/")
        run()
    client = person("super")
    assert "URLs of the last" in text_of(client.get(OVERVIEW))
    first = Build.objects.earliest("pk").pk
    for url in (
        *(page(name, first) for name in ("change", "publish")),
        page("differences", Build.objects.latest("pk").pk),
        *(reverse(f"admin:sitemapkit_{name}") for name in ("health", "activity", "inspect")),
        *(f"{reverse('admin:sitemapkit_inspect')}?url={path}" for path in ("/0/", "/nowhere/")),
    ):
        assert client.get(url).status_code == 200
