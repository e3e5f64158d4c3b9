"""Publish gates: what holds a build for review, and what a project adds to them."""

import pytest

from django_sitemapkit.builds import (
    Pause,
    pause_publishing,
    publish,
    register_gate,
    resume_publishing,
)
from django_sitemapkit.builds.publication import gates
from django_sitemapkit.models import Build, Publication
from tests.builds import ALL, SITE, Products, edit_product, fill, run, use_storage
from tests.management import run as command
from tests.testapp.models import Reading

pytestmark = pytest.mark.django_db


class Unlistable(Products):
    """One of its rows has a URL that no sitemap may list."""

    def location(self, product):
        """Return a path, or none for one of the rows."""
        return "no path" if product.slug == "p1" else f"/{product.slug}/"


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site of which one row is skipped."""
    for section in ALL:
        sections.add(type("Products", (Unlistable,), {}) if section is Products else section)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def gate(monkeypatch):
    """Return what a gate was asked, and what it answers."""
    monkeypatch.setattr(gates, "_gates", list(gates._gates))
    asked = []

    def judge(finished):
        asked.append(finished)
        return judge.answer

    judge.answer, judge.asked = "", asked
    register_gate(judge)
    register_gate(judge)
    return judge


@pytest.mark.slow
def test_a_strict_build_with_skipped_rows_is_held(storage):
    """The reason names section, count and first problem, in the result and with the build."""
    result = run(strict=True)
    assert result.status == "held"
    (skipped,) = result.cause["sections"]
    assert (skipped["section"], skipped["rows"]) == ("products", 1)
    assert "products" in skipped["problem"]
    record = Build.objects.get()
    assert (record.status, record.reason) == ("held", result.cause)
    assert not Publication.objects.exists()
    assert run(strict=True).build == record.pk


@pytest.mark.slow
def test_a_build_that_was_held_for_skipped_rows_can_be_published(storage):
    """As one that shrank too much can."""
    held = run(strict=True)
    publish(SITE, held.build)
    assert Publication.objects.get().build_id == held.build


@pytest.mark.slow
def test_without_strict_skipped_rows_are_published(storage):
    """And a strict build of the same rows changes nothing that it could hold."""
    assert run().status == "published"
    assert run(strict=True).status == "unchanged"


@pytest.mark.slow
def test_a_strict_build_without_skipped_rows_is_published(storage, sections):
    """There is nothing to look at."""
    sections.remove("products")
    sections.add(Products)
    assert run(strict=True).status == "published"


@pytest.mark.slow
def test_a_gate_of_a_project_holds_a_build(storage, gate):
    """It is asked once a build, and sees the pages and what is published."""
    run()
    edit_product()
    gate.answer = "not on a Friday"
    result = run()
    assert (result.status, result.reason) == ("held", "not on a Friday")
    first, second = gate.asked
    assert (first.site, len(first.published)) == (SITE, 0)
    assert {page.section for page in second.pages} == {"products", "readings", "articles"}
    assert len(second.published) == len(first.pages)
    gate.answer = ""
    assert run().status == "published"


@pytest.mark.slow
def test_a_build_that_is_published_already_passes_no_gate(storage, gate):
    """There is nothing to hold."""
    run()
    gate.asked.clear()
    assert run().status == "unchanged"
    assert not gate.asked


@pytest.mark.slow
def test_a_strict_build_of_one_section_is_not_held_for_another(storage):
    """Only the rows of the sections that were asked for count."""
    run()
    Reading.objects.create(level=77)
    result = run(strict=True, sections=["readings"])
    assert result.status == "published"


@pytest.mark.slow
@pytest.mark.parametrize("is_paused", [False, True])
def test_the_text_of_a_gate_is_never_read(storage, gate, is_paused):
    """Advice follows from what holds the build, not from how the reason begins."""
    run()
    edit_product()
    if is_paused:
        pause_publishing(SITE, Pause(by="ann", reason="sale"))
    else:
        gate.answer = "publishing was paused by the shop"
    held = run()
    assert (held.status, held.code) == ("held", "paused" if is_paused else "other")
    resume_publishing(SITE)
    advice = "The pause is over: run build_sitemaps to publish what is current."
    assert (advice in command("sitemap_status")[1]) == is_paused
