"""What happens to builds is announced: by signals, and by records of the log."""

import logging
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from django_sitemapkit.builds import publish, publish_override, results
from django_sitemapkit.exceptions import LeaseLost, NothingToPublish, StorageFailure
from django_sitemapkit.models import Build, UrlOverride
from django_sitemapkit.signals import build_ended, build_started, page_built
from tests.builds import (
    SITE,
    Articles,
    Products,
    edit_product,
    fill,
    run,
    take_lease,
    use_storage,
)
from tests.builds.storages import Killed, failing
from tests.builds.test_adoption import Moving
from tests.testapp.models import Product

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).resolve().parents[2] / "docs" / "watching.md"
ALL = {"build_started": build_started, "page_built": page_built, "build_ended": build_ended}
COMMON = {"event", "site", "build"}
EXTRA = {
    "build_started": {"pages", "adopted", "started_by"},
    "page_built": {
        *("section", "page", "state", "urls", "skipped", "xml_bytes", "stored_bytes", "seconds"),
    },
    "problem": {"section", "problem", "count", "reason"},
    "published": set(),
    "build_ended": {"status", "reason", "code", "urls", "files", "stored", "skipped", "seconds"},
}
"""The attributes of the records of each event, besides those that all have."""

USUAL = set(logging.makeLogRecord({}).__dict__) | {"message"}


@pytest.fixture
def storage(settings, sections):
    """Give the storage of a site with rows in two sections."""
    for section in (Products, Articles):
        sections.add(section)
    fill()
    return use_storage(settings, "Memory")


@pytest.fixture
def heard(storage):
    """Listen to all signals of builds; give what came, by name."""
    heard = []

    def listener_of(name):
        def listener(sender, signal, site, **values):
            assert (sender, site) == (Build, SITE.key)
            heard.append((name, values))

        return listener

    listeners = {name: listener_of(name) for name in ALL}
    for name, signal in ALL.items():
        signal.connect(listeners[name])
    yield heard
    for name, signal in ALL.items():
        signal.disconnect(listeners[name])


def short_of(heard):
    """Return what came, in short, and forget it."""
    short = []
    for name, values in heard:
        match name:
            case "build_started":
                short.append(("started", values["build"], values["pages"], values["adopted"]))
            case "page_built":
                file = values["file"]
                short.append((file.section, file.number, file.state))
            case "build_ended":
                short.append((values["result"].status, values["build"]))
    heard.clear()
    return short


@contextmanager
def logged(caplog):
    """Collect the records of a block by event, and check which attributes they have."""
    caplog.clear()
    found = []
    with caplog.at_level(logging.INFO, "django_sitemapkit"):
        yield found
    for record in caplog.records:
        values = {k: v for k, v in vars(record).items() if k not in USUAL}
        if "event" in values:
            assert values.keys() == COMMON | EXTRA[values["event"]]
            assert (values["site"], record.name) == (SITE.key, "django_sitemapkit")
            found.append(record)


def events_of(records):
    """Return the events of some records with their levels."""
    return [(record.event, record.levelname) for record in records]


@pytest.mark.slow
@pytest.mark.inline_runner
def test_a_build_is_announced_from_its_start_to_its_end(heard):
    """With a signal for each page that is rendered, and none for the index."""
    first = run()
    pages = [("products", number, "stored") for number in (1, 2, 3)]
    assert short_of(heard) == [
        ("started", first.build, 4, 0),
        *pages,
        ("articles", 1, "stored"),
        ("published", first.build),
    ]
    edit_product()
    second = run()
    assert short_of(heard) == [
        ("started", second.build, 1, 0),
        ("products", 1, "stored"),
        ("published", second.build),
    ]
    third = run(full=True)
    assert [name for name, *_ in short_of(heard)] == [
        "started",
        *3 * ["products"],
        "articles",
        "unchanged",
    ]
    assert third.status == "unchanged"
    fourth = run()
    assert short_of(heard) == [("unchanged", fourth.build)]


def test_the_end_has_the_result(heard):
    """It is what the caller gets."""
    result = run()
    (values,) = [values for name, values in heard if name == "build_ended"]
    assert values == {"build": result.build, "result": result}


def test_a_build_that_is_held_says_why(heard, settings, caplog):
    """Each time; the build that equals a held one gives its number."""
    run()
    heard.clear()
    settings.SITEMAPKIT_MAX_SHRINK = 0.1
    Product.objects.exclude(slug="p0").delete()
    with logged(caplog) as records:
        held = run()
    assert heard[-1][1]["result"].code == records[-1].code == "shrinkage"
    assert short_of(heard)[-1] == ("held", held.build)
    assert events_of(records)[-1] == ("build_ended", "WARNING")
    assert records[-1].reason == held.reason
    again = run()
    assert again.build == held.build
    own = heard[0][1]["build"]
    assert own != held.build
    assert short_of(heard) == [("started", own, 0, 0), ("held", own)]


def test_a_build_that_fails_says_why(heard, storage, caplog):
    """What is raised is the reason, without the site, which is known; the build has its id."""
    storage.on_call = lambda place, *call: failing()(*call)
    with logged(caplog) as records, pytest.raises(StorageFailure) as failure:
        run()
    (ended,) = [values for name, values in heard if name == "build_ended"]
    build = Build.objects.get()
    assert (ended["build"], ended["result"].status) == (build.pk, "failed")
    assert ended["result"].reason == str(failure.value)
    assert events_of(records)[-1] == ("build_ended", "ERROR")
    storage.on_call = None
    Product.objects.all().delete()
    Articles.queryset.delete()
    heard.clear()
    with pytest.raises(NothingToPublish):
        run()
    assert heard[-1][1]["result"].reason == "no section has a URL."


def test_what_fails_before_there_is_a_page_is_announced(heard, monkeypatch):
    """Whatever it raises; it is one line, though the error has several."""

    def refresh(*args, **kwargs):
        raise ValueError("two\nlines")

    monkeypatch.setattr("django_sitemapkit.builds.steps.refresh_plan", refresh)
    with pytest.raises(ValueError, match="two"):
        run()
    ((name, values),) = heard
    assert (name, values["build"]) == ("build_ended", Build.objects.get().pk)
    assert values["result"].reason == "ValueError: two\\nlines"


def test_a_build_that_is_interrupted_is_announced(heard):
    """By Ctrl-C, for example; the next run adopts its pages, and announces that too."""

    def on_file(result, place, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(on_file=on_file)
    assert heard[-1][1]["result"].code == "interrupted"
    first = heard[-1][1]["build"]
    heard.clear()
    second = run().build
    found = short_of(heard)
    assert found[:2] == [("abandoned", first), ("started", second, 3, 1)]
    assert found[-1] == ("published", second)


@pytest.mark.slow
def test_problems_are_logged_once_where_a_build_is_adopted(heard, sections, caplog):
    """The build that follows has them too, so they are not logged for the resumed one."""
    wrong = {"name": "wrong", "location": lambda self, product: "//evil.example/"}
    sections.add(type("Wrong", (Products,), wrong))

    def on_file(result, place, total):
        raise Killed

    with pytest.raises(Killed):
        run(on_file=on_file)
    with logged(caplog) as records:
        last = run()
    problems = [record for record in records if record.event == "problem"]
    assert [(record.build, record.section, record.count) for record in problems] == [
        (last.build, "wrong", 5)
    ]
    (problem,) = problems
    assert problem.getMessage() == f"Site 'default': Problem (5 times): {problem.reason}"
    assert problem.problem == "url-not-allowed"


def test_a_build_whose_declaration_changed_is_abandoned(heard, settings, caplog):
    """The one of a killed process ends so; the run that finds it announces it, as a warning."""

    def on_file(result, place, total):
        raise Killed

    with pytest.raises(Killed):
        run(on_file=on_file)
    left = Build.objects.get()
    heard.clear()
    settings.SITEMAPKIT_MAX_BYTES = 10_000_000
    with logged(caplog) as records:
        built = run().build
    found = short_of(heard)
    assert found[:2] == [("abandoned", left.pk), ("started", built, 4, 0)]
    assert events_of(records)[:2] == [("build_ended", "WARNING"), ("build_started", "INFO")]
    assert records[0].code == "changed"


def test_a_build_that_another_process_takes_over_is_no_error(heard, caplog):
    """Nothing failed: that process resumes it."""
    with logged(caplog) as records, pytest.raises(LeaseLost):
        run(on_file=lambda *result: take_lease())
    left = Build.objects.get(status="running")
    assert short_of(heard)[-1] == ("abandoned", left.pk)
    assert events_of(records)[-1] == ("build_ended", "WARNING")


@pytest.mark.inline_runner
def test_a_build_that_begins_again_is_abandoned_and_another_one_follows(heard):
    """Each build that starts also ends."""
    runner = Moving()
    runner.moves = 1
    last = run(runner=runner)
    first = Build.objects.get(status="abandoned")
    found = short_of(heard)
    assert [each for each in found if each[0] in ("started", "abandoned", "published")] == [
        ("started", first.pk, 4, 0),
        ("abandoned", first.pk),
        ("started", last.build, 4, 0),
        ("published", last.build),
    ]


@pytest.mark.inline_runner
def test_a_build_is_one_record_for_each_moment(heard, caplog):
    """At INFO, with attributes for JSON; the messages say the same."""
    with logged(caplog) as records:
        build = run(started_by="test").build
    assert events_of(records) == [
        ("build_started", "INFO"),
        *4 * [("page_built", "INFO")],
        ("published", "INFO"),
        ("build_ended", "INFO"),
    ]
    messages = [record.getMessage() for record in records]
    assert messages[0] == f"Site 'default': Build {build} started: 4 pages."
    assert messages[1].startswith("Site 'default': products 1: stored, 2 URLs, ")
    assert messages[-2] == f"Site 'default': Build {build} is published."
    assert (
        messages[-1]
        == f"Site 'default': Build {build}: published; covers 6 URLs in 4 files and the index,"
        " wrote 5 files."
    )
    assert {record.build for record in records} == {build}
    assert (records[0].started_by, records[1].page, records[-1].urls) == ("test", 1, 6)


def test_the_page_lists_all_records():
    """Each event with its attributes."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    listed = {event: cells[-1] for event, *cells in rows if len(cells) == 2}
    for event, names in EXTRA.items():
        assert set(re.findall("`(.*?)`", listed[f"`{event}`"])) == names


def test_publishing_by_hand_is_logged(storage, caplog):
    """It is no build: nothing starts or ends."""
    first = run().build
    edit_product()
    run()
    with logged(caplog) as records:
        publish(SITE, first)
    assert [(record.event, record.build) for record in records] == [("published", first)]


def test_excluding_at_once_is_a_build(heard):
    """It is announced like one."""
    run()
    heard.clear()
    override = UrlOverride(site=SITE.key, path="/products/all/p0/", include=False)
    override.save()
    result = publish_override(SITE, override)
    assert [each[0] for each in short_of(heard)] == ["started", "products", "published"]
    assert result.status == "published"


def test_receivers_that_raise_stop_nothing(storage, caplog):
    """Each is logged with the name of its signal."""

    def broken(**values):
        raise ValueError("no such metric")

    for signal in ALL.values():
        signal.connect(broken)
    try:
        assert run().status == "published"
    finally:
        for signal in ALL.values():
            signal.disconnect(broken)
    own = [record for record in caplog.records if record.name == "django_sitemapkit"]
    assert {record.args[1] for record in own} == set(ALL)
    assert {record.levelname for record in own} == {"ERROR"}


def test_where_nobody_listens_a_page_costs_no_record(storage, monkeypatch):
    """Neither a signal nor a record is made."""
    monkeypatch.setattr(results, "send_signal", lambda name, *args, **values: names.append(name))

    def log_event(level, event, *args, **values):
        names.append(event)

    monkeypatch.setattr(results, "log_event", log_event)
    names = []
    run()
    assert "page_built" not in names


def test_without_a_handler_nothing_is_logged(storage, monkeypatch, capsys):
    """Python would print a warning besides what the command prints."""
    monkeypatch.setattr(logging.getLogger("django_sitemapkit"), "propagate", False)
    monkeypatch.setattr(
        "django_sitemapkit.builds.steps.refresh_plan", lambda *args, **kwargs: 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        run()
    assert capsys.readouterr().err == ""
