"""The message after a change of an editor: when published files follow, and what is offered."""

import re
from functools import partial
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from django_sitemapkit import StaticSection
from django_sitemapkit.builds import Pause, build, pause_publishing, publish
from django_sitemapkit.models import BuildRequest, ExclusionRule, ExtraUrl, UrlOverride
from tests.admin.editors import (
    ALL,
    add,
    change,
    chief,
    client_of,
    page,
    set_section,
    text_of,
)
from tests.builds import use_storage
from tests.factories import SITE, products

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

STAYS = "The published sitemap stays as it is until the next build."
BUTTON = "Publish all waiting changes now"
WAITS = "Changed on the Sitemaps screens since the live build: "


@pytest.fixture
def published(settings, sections):
    """Publish some pages."""
    for section in ALL:
        sections.add(section)
    use_storage(settings, "Memory")
    products(3)
    ExtraUrl.objects.create(site="default", path="/early/")  # Else its section is served live.
    build(SITE)


def override(path="/about/"):
    """Return a stored override, made without a message."""
    row = UrlOverride(site="default", path=path)
    row.save()
    return row


def do_action(client, model, row, **values):
    """Choose a row in a list, and do something with it."""
    data = {"_selected_action": [row.pk], **values}
    assert client.post(page(model, "changelist"), data).status_code == 302


def upload(client):
    """Import an override, and confirm the preview."""
    file = SimpleUploadedFile("x.csv", b"site,path,include\ndefault,/press/,no\n")
    preview = client.post(page("urloverride", "import"), {"file": file})
    client.post(page("urloverride", "import"), {"payload": preview.context["payload"]})


CHANGES = {
    "added": lambda client: add("urloverride", client=client, path="/about/", include="False"),
    "rule": lambda client: add("exclusionrule", client=client, pattern="/nowhere/"),
    "changed": lambda client: change(override(), client=client, priority="0.9"),
    "deleted": lambda client: client.post(
        page("urloverride", "delete", override().pk), {"post": "yes"}
    ),
    "deleted in the list": lambda client: do_action(
        client, "urloverride", override(), action="delete_selected", post="yes"
    ),
    "excluded in the list": lambda client: do_action(
        client, "urloverride", override(), action="exclude_urls", confirmed="1"
    ),
    "pasted": lambda client: client.post(
        page("extraurl", "paste"), {"site": "default", "urls": "/one/\n/two/"}
    ),
    "imported": upload,
    "section": lambda client: set_section("products", client=client, priority="0.5"),
}
"""Each way to change what is listed."""


def message(client):
    """Return what the next page says of the change."""
    return text_of(client.get(page("exclusionrule", "changelist")))


@pytest.mark.parametrize("what", CHANGES)
def test_each_change_can_be_published_from_its_message(published, what, monkeypatch):
    """The message says that published files follow, and its button has them built now."""
    monkeypatch.setattr(
        "django_sitemapkit.admin.overview.start_processing_on_commit", lambda *_args: None
    )
    client = chief()
    CHANGES[what](client)
    text = message(client)
    assert text.count(STAYS) == 1
    assert text.count(BUTTON) == 1
    assert f'action="{reverse("admin:sitemapkit_request")}"' in text
    sent = {"site": "default", "button": "changed"}
    client.post(reverse("admin:sitemapkit_request"), sent)
    assert BuildRequest.objects.get().kind == BuildRequest.Kind.BUILD


def test_the_button_says_what_waits(published):
    """Each kind of row that editors have changed since the build, with their number and list."""
    client = chief()
    add("urloverride", client=client, path="/about/", include="False")
    add("urloverride", client=client, path="/press/", priority="0.2")
    add("exclusionrule", client=client, pattern="/nowhere/")
    text = message(client)
    last = text[text.rindex(WAITS) :]
    (rows,) = re.findall('<a href="([^"]*)">URL overrides \\(2\\)</a>', last)
    assert "exclusion rules (1)</a>" in last
    assert "extra URLs" not in last.partition("</form>")[0]
    assert f'<a href="{reverse("admin:sitemapkit_activity")}">Activity' in last
    UrlOverride.objects.filter(path="/press/").update(note="x")
    override("/late/")
    build(SITE)
    override("/later/")
    assert text_of(client.get(unescape(rows))).count('class="field-subject"') == 4
    add("exclusionrule", client=client, pattern="/other/")
    last = message(client)
    (rows,) = re.findall('<a href="([^"]*)">URL overrides \\(1\\)</a>', last)
    text = text_of(client.get(unescape(rows)))
    assert text.count('class="field-subject"') == 1
    assert "/later/</a>" in text


def test_what_waits_is_on_the_overview_and_beside_publish_override(published):
    """It is seen before the click that publishes all or some of it, too."""
    client = chief()
    overview = partial(client.get, reverse("admin:sitemapkit_overview"))
    inspected = partial(
        client.get, reverse("admin:sitemapkit_inspect"), {"url": "/about/", "site": "default"}
    )
    also = "also publishes what else waits for the same sitemap files, such as changed objects."
    assert "Changed on the Sitemaps screens" not in text_of(inspected()).partition(also)[2]
    assert WAITS not in text_of(overview())
    add("exclusionrule", client=client, pattern="/nowhere/")
    assert f">{BUTTON}</button>" in text_of(overview())
    for text in (text_of(inspected()).partition(also)[2], text_of(overview())):
        assert "exclusion rules (1)</a>" in text[text.index(WAITS) :].partition("</p>")[0]
    build(SITE)
    assert WAITS not in text_of(overview())
    rule = page("exclusionrule", "delete", ExclusionRule.objects.get().pk)
    client.post(rule, {"post": "yes"})
    deleted = "Something was changed, removed or reset on the Sitemaps screens since the live build"
    assert deleted in text_of(overview())
    assert deleted in text_of(inspected()).partition(also)[2]
    build(SITE)
    assert deleted not in text_of(overview())


def test_after_publish_override_only_what_surely_waits_is_counted(published):
    """What was excluded at once is live already, and what else waits in other files is not."""
    client = chief()
    row = override("/press/")
    about = page("urloverride", "change", override("/about/").pk)
    assert "Exclude now" in text_of(client.get(about))
    client.post(about.replace("change", "exclude"))
    assert "Exclude now" not in text_of(client.get(about))
    assert "Changed on the Sitemaps screens" not in text_of(
        client.get(reverse("admin:sitemapkit_overview"))
    )
    UrlOverride.objects.filter(path="/about/").delete()
    something = "Something was changed, removed or reset"
    assert something in text_of(client.get(reverse("admin:sitemapkit_overview")))
    change(row, client=client, priority="0.2")
    assert something in message(client)
    build(SITE)
    override("/products/none/")
    change(row, client=client, priority="0.3")
    text = message(client)
    assert WAITS in text
    assert "URL overrides (2)</a>" in text


def test_extra_urls_that_were_built_alone_do_not_wait(published):
    """Other sections, which have no extra URLs, may have older files."""
    client = chief()
    ExtraUrl(site="default", path="/one/").save()
    build(SITE)
    for count in range(2):
        ExtraUrl(site="default", path=f"/more/{count}/").save()
        overview = text_of(client.get(reverse("admin:sitemapkit_overview")))
        assert WAITS in overview
        assert "extra URLs (1)</a>" in overview
        build(SITE, sections=["extra-urls"])
        assert "Changed on the Sitemaps screens" not in text_of(
            client.get(reverse("admin:sitemapkit_overview"))
        )


def test_what_changes_nothing_has_no_message(published):
    """Pasted URLs that are there already, and a table that is saved as it was."""
    ExtraUrl(site="default", path="/one/").save()
    client = chief()
    client.post(page("extraurl", "paste"), {"site": "default", "urls": "/one/"})
    set_section("products", client=client)
    assert STAYS not in message(client)


def test_the_button_is_for_users_who_may_build(published):
    """Others only read when the files follow."""
    may_add = ("add_exclusionrule", "view_exclusionrule", "view_build")
    client = client_of(*may_add)
    add("exclusionrule", client=client, pattern="/nowhere/")
    text = message(client)
    assert STAYS in text
    assert BUTTON not in text
    assert "Undo" not in text


def test_while_publishing_is_paused_nothing_is_offered(published):
    """A build would be held for review."""
    pause_publishing(SITE, Pause(by="chief", reason="Sale"))
    client = chief()
    add("exclusionrule", client=client, pattern="/nowhere/")
    text = message(client)
    assert (
        "The published sitemap stays as it is until the first build after publishing is resumed."
        in text
    )
    assert BUTTON not in text


def test_of_several_sites_the_overview_is_linked(settings, sections):
    """One button could not build all of them."""
    settings.SITEMAPKIT_SITES = {key: {"BASE_URL": f"https://{key}.example"} for key in ("a", "b")}
    settings.ALLOWED_HOSTS = ["*"]
    for section in ALL:
        sections.add(section)
    use_storage(settings, "Memory")
    products(3)
    from django_sitemapkit.sites import all_sites

    for site in all_sites():
        build(site)
        ExclusionRule(site=site.key, pattern="/about/").save()
    client = chief()
    data = {
        "action": "delete_selected",
        "post": "yes",
        "_selected_action": list(ExclusionRule.objects.values_list("pk", flat=True)),
    }
    client.post(page("exclusionrule", "changelist"), data)
    text = message(client)
    assert STAYS in text
    assert BUTTON not in text
    assert f'<a href="{reverse("admin:sitemapkit_overview")}">Sitemaps overview</a>' in text


def test_without_a_publication_only_an_addition_says_so(sections):
    """Live sitemaps have it at once; the way back is offered."""
    client = chief()
    add("exclusionrule", client=client, pattern="/nowhere/")
    text = message(client)
    assert "Live sitemaps follow at once." in text
    assert "Undo" in text
    change(ExclusionRule.objects.get(), client=client, note="n")
    assert "Live sitemaps follow" not in message(client)


def test_nothing_follows_where_only_files_are_served_and_none_is_published(settings, sections):
    """The message says what is served, as the overview does."""
    settings.SITEMAPKIT_SERVE_FROM = "published"
    client = chief()
    add("exclusionrule", client=client, pattern="/nowhere/")
    assert "Nothing is published, and only published files are served." in message(client)


def test_all_follows_at_once_where_no_file_is_served(settings, published):
    """No build has to be waited for, whatever is published."""
    settings.SITEMAPKIT_SERVE_FROM = "live"
    client = chief()
    add("exclusionrule", client=client, pattern="/nowhere/")
    text = message(client)
    assert "Live sitemaps follow at once." in text
    assert STAYS not in text


def test_a_section_that_a_roll_back_serves_live_loses_nothing(settings, sections):
    """The page that asks for confirmation says so, and leaves it out of the total."""
    for section in ALL:
        sections.add(section)
    use_storage(settings, "Memory")
    products(3)
    first = build(SITE).build
    sections.add(type("Late", (StaticSection,), {"items": ["/early/"]}))
    second = build(SITE).build
    text = text_of(chief().get(page("build", "publish", first)))
    row = '<th scope="row">late</th><td class="sitemapkit-number">'
    assert f"{row}served live</td>" in text
    assert "%" not in text[text.index("all sections") :].split("</tr>")[0]
    assert "<li>Removed: 0</li>" in text
    publish(SITE, first)
    text = text_of(chief().get(page("build", "publish", second)))  # Nor does it win anything then.
    assert f"{row}served live until now 1</td>" in text
    assert "%" not in text[text.index("all sections") :].split("</tr>")[0]
    assert "<li>Added: 0</li>" in text
    publish(SITE, second)
    settings.SITEMAPKIT_SERVE_FROM = "published"
    text = text_of(chief().get(page("build", "publish", first)))
    assert f"{row}not in this build 0 <span" in text
