"""IndexNow: what is sent, what is recorded, and what is never sent twice."""

import datetime as dt
import threading
from io import StringIO

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.utils.http import http_date

from django_sitemapkit.builds import publish
from django_sitemapkit.builds.lease import BuildLease
from django_sitemapkit.exceptions import BuildFailed, BuildRunning, LeaseLost
from django_sitemapkit.models import Build, Lease, Place
from django_sitemapkit.submission import indexnow, ledger
from django_sitemapkit.submission.indexnow import batches_by_host
from django_sitemapkit.submission.management.commands.submit_sitemaps import Command
from django_sitemapkit.submission.models import SubmittedSite, UrlBatch
from django_sitemapkit.submission.options import submit_options
from django_sitemapkit.submission.submit import SubmissionResult, submit
from tests.builds import BASE, SITE, age_lease, edit_product, run
from tests.builds.test_lease import wait_for_heartbeat
from tests.submission.conftest import KEY
from tests.submission.engines import Dripping, answering, serving
from tests.testapp.models import Product, Shop

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """The process ends here."""


def products(*names):
    """Add products."""
    shop = Shop.objects.first()
    Product.objects.bulk_create(Product(shop=shop, slug=name) for name in names)


def addresses(*names):
    """Return the URLs of products."""
    return [f"{BASE}/products/{Shop.objects.first().slug}/{name}/" for name in names]


def begin(*names):
    """Build and submit for the first time, then add products and build again."""
    run()
    submit(SITE)
    products(*names)
    run()


def let_time_pass():
    """Let the time that an engine asked to wait be over."""
    SubmittedSite.objects.update(wait_until=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))


def statuses():
    """Return the status of each batch, in order."""
    return list(UrlBatch.objects.order_by("pk").values_list("status", flat=True))


# What is sent


@pytest.mark.slow
def test_a_first_build_submits_nothing(engine):
    """What was there before is never sent in bulk."""
    run()
    result = submit(SITE)
    assert engine.seen == 0
    assert result.notes[0].startswith("This is the first submission")
    assert submit(SITE).notes == ["Nothing has been published since the last submission."]


@pytest.mark.slow
def test_added_changed_and_removed_urls_are_sent(engine):
    """Once, in one request, with the key's address."""
    run()
    submit(SITE)
    changed, gone = Product.objects.order_by("pk")[:2]
    products("new")
    Product.objects.filter(pk=changed.pk).update(updated_at=dt.datetime(2026, 5, 1, tzinfo=dt.UTC))
    expected = [BASE + changed.get_absolute_url(), BASE + gone.get_absolute_url()]
    gone.delete()
    run()
    result = submit(SITE)
    assert result.changes == {"added": 1, "changed": 1, "removed": 1}
    (sent,) = engine.requests
    assert sorted(sent.pop("urlList")) == sorted([*expected, *addresses("new")])
    assert sent == {
        "host": "www.example.com",
        "key": KEY,
        "keyLocation": f"{BASE}/{KEY}.txt",
    }
    assert (result.requests, result.accepted, result.pending) == (1, 3, 0)
    assert submit(SITE).requests == 0
    assert engine.seen == 1


@pytest.mark.slow
def test_several_builds_are_one_submission(engine):
    """What was added and removed in between is not sent at all."""
    begin("short-lived", "kept")
    Product.objects.get(slug="short-lived").delete()
    run()
    submit(SITE)
    assert engine.urls == addresses("kept")


@pytest.mark.slow
def test_a_roll_back_is_a_change(engine):
    """The URLs of the build that is replaced are gone."""
    begin("new")
    submit(SITE)
    publish(SITE, Build.objects.published(SITE).previous.pk)
    assert submit(SITE).changes == {"added": 0, "changed": 0, "removed": 1}
    assert engine.urls == addresses("new", "new")


@pytest.mark.slow
def test_since_sends_what_changed_since_a_build(engine):
    """Even if that has been submitted already."""
    begin("a")
    first = Build.objects.published(SITE).previous.pk
    submit(SITE)
    products("b")
    run()
    assert submit(SITE, since=first).changes == {"added": 2, "changed": 0, "removed": 0}
    assert sorted(engine.urls) == sorted(addresses("a", "a", "b"))
    with pytest.raises(BuildFailed, match="has not published a build 999"):
        submit(SITE, since=999)


@pytest.mark.slow
def test_since_a_pruned_build_is_an_error(engine):
    """The message names the oldest build that can be named."""
    begin("a")
    published = Build.objects.published(SITE)
    Build.objects.filter(pk=published.previous.pk).update(pruned_at=dt.datetime.now(dt.UTC))
    message = f"have been pruned.*The oldest build that can be named is {published.pk}"
    with pytest.raises(BuildFailed, match=message):
        submit(SITE, since=published.previous.pk)


@pytest.mark.slow
def test_since_says_how_to_go_on_if_the_last_submission_is_pruned(engine):
    """Without --since those changes are given up; then it works."""
    begin("a")
    since = Build.objects.published(SITE).pk
    products("b")
    run()
    Build.objects.filter(pk=SubmittedSite.objects.get().build).update(
        pruned_at=dt.datetime.now(dt.UTC)
    )
    with pytest.raises(BuildFailed, match=r"submitted last, have been pruned.*without"):
        submit(SITE, since=since)
    assert engine.seen == 0
    submit(SITE)
    submit(SITE, since=since)
    assert engine.urls == addresses("b")


@pytest.mark.slow
def test_since_a_later_build_leaves_nothing_out(engine):
    """What was not submitted before that build is sent, too."""
    begin("a")
    products("b")
    last = run().build
    products("c")
    run()
    submit(SITE, since=last)
    assert sorted(engine.urls) == addresses("a", "b", "c")


@pytest.mark.slow
def test_a_build_that_is_published_meanwhile_is_for_the_next_run(engine, monkeypatch):
    """The changes are those of the build that was published at the start."""
    begin("a")
    collect = ledger.Ledger.collect_changes

    def late(self, published, locations):
        products("b")
        run()
        collect(self, published, locations)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.Ledger, "collect_changes", late)
        submit(SITE)
    submit(SITE)
    assert engine.urls == addresses("a", "b")


@pytest.mark.slow
def test_lost_files_do_not_stop_what_is_pending(engine, site):
    """They are a problem of this run."""
    begin("a")
    engine.answers.append((500,))
    submit(SITE)
    let_time_pass()
    products("b")
    run()
    for row in Place.objects.in_build(Build.objects.published(SITE)).pages():
        site.delete(row.name)
    result = submit(SITE)
    assert result.accepted == 1
    assert "cannot be read" in result.problems[0]


@pytest.mark.slow
def test_pruned_files_are_a_note(engine):
    """What cannot be compared is not sent; the next build's changes are."""
    begin("a")
    Build.objects.filter(published_at__isnull=False).exclude(
        pk=Build.objects.published(SITE).pk
    ).update(pruned_at=dt.datetime.now(dt.UTC))
    assert "have been pruned" in submit(SITE).notes[0]
    products("b")
    run()
    submit(SITE)
    assert engine.urls == addresses("b")


@pytest.mark.slow
def test_a_dry_run_sends_and_records_nothing(engine):
    """It counts."""
    begin("a", "b")
    before = SubmittedSite.objects.get().build
    result = submit(SITE, dry_run=True)
    assert result.changes == {"added": 2, "changed": 0, "removed": 0}
    assert result.requests == 1
    assert (engine.seen, UrlBatch.objects.count()) == (0, 0)
    assert SubmittedSite.objects.get().build == before


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ([f"https://a.example/{number}" for number in range(10_001)], {"a.example": [10_000, 1]}),
        (["https://a.example/", "https://b.example/"], {"a.example": [1], "b.example": [1]}),
        (["https://a.example/1", "http://a.example/2"], {"a.example": [2]}),
        ([f"https://a.example/{'x' * 2_000_000}"] * 3, {"a.example": [1, 1, 1]}),
        ([], {}),
    ],
)
def test_batches(urls, expected):
    """At most 10,000 URLs of one host, whatever the scheme; no request of any size."""
    found = {}
    for host, batch in batches_by_host(urls):
        found.setdefault(host, []).append(len(batch))
    assert found == expected


@pytest.mark.slow
def test_large_changes_take_several_requests(engine, monkeypatch):
    """All URLs are sent, each once."""
    monkeypatch.setattr(indexnow, "URLS_PER_REQUEST", 2)
    begin("a", "b", "c", "d", "e")
    result = submit(SITE)
    assert (result.requests, result.accepted) == (3, 5)
    assert sorted(engine.urls) == addresses("a", "b", "c", "d", "e")


# What engines answer


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 422, 404, 302])
def test_what_is_refused_is_not_sent_again(engine, status):
    """Until someone asks for it; the other requests are sent."""
    begin("a")
    engine.answers.append((status, ("Location", "/elsewhere")))
    result = submit(SITE)
    assert result.rejected == 1
    assert f"IndexNow, www.example.com: {status}: " in result.problems[0]
    assert submit(SITE).requests == 0
    products("b")
    run()
    submit(SITE)
    assert engine.urls == addresses("b")
    assert statuses() == ["rejected", "accepted"]
    assert submit(SITE, retry=True).accepted == 1
    assert engine.urls == addresses("b", "a")


@pytest.mark.slow
def test_a_wrong_key_stops_all_of_its_host(engine, monkeypatch):
    """Each request would be refused for the same reason."""
    monkeypatch.setattr(indexnow, "URLS_PER_REQUEST", 1)
    begin("a", "b", "c")
    engine.answers.append((403,))
    result = submit(SITE)
    assert (engine.seen, result.rejected, result.pending) == (1, 3, 0)
    assert "the key is not valid" in result.problems[0]
    assert statuses() == ["rejected"] * 3
    assert submit(SITE, retry=True).accepted == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        (None, 600, 610),
        ("5", 600, 610),
        ("1200", 1200, 1210),
        ("date", 1100, 1210),
        ("soon", 600, 610),
        ("9999999999999", 86_400, 86_410),
    ],
)
def test_too_many_requests(engine, header, least, most):
    """At least ten minutes, and as long as the server says, up to a day."""
    begin("a")
    if header == "date":
        header = http_date(dt.datetime.now(dt.UTC).timestamp() + 1200)
    engine.answers.append((429, *([("Retry-After", header)] if header else [])))
    result = submit(SITE)
    wait = (result.wait_until - dt.datetime.now(dt.UTC)).total_seconds()
    assert least - 10 <= wait <= most
    assert (result.pending, result.rejected) == (1, 0)
    assert submit(SITE).requests == submit(SITE, retry=True).requests == 0
    let_time_pass()
    assert submit(SITE).accepted == 1
    assert engine.urls == addresses("a")
    assert UrlBatch.objects.get().failures == 0


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 503])
def test_what_waits_is_sent_once(engine, status):
    """Three builds of the same URLs, while the engine refuses, and a fourth URL: one request."""
    names = [f"n{number}" for number in range(10)]
    begin(*names)
    for day in (2, 3, 4):
        engine.answers.append((status,))
        submit(SITE)
        Product.objects.filter(slug__in=names).update(
            updated_at=dt.datetime(2026, 5, day, tzinfo=dt.UTC)
        )
        run()
    products("last")
    run()
    assert submit(SITE).pending == 11
    let_time_pass()
    engine.answers.clear()
    assert submit(SITE).accepted == 11
    assert sorted(engine.urls) == sorted(addresses(*names, "last"))
    assert len(engine.requests) == 1


@pytest.mark.slow
def test_a_refusal_loses_and_doubles_nothing(engine):
    """What changes again after it is sent with the rest, and not once more by a retry."""
    begin("a", "b")
    engine.answers.append((403,))
    assert submit(SITE).rejected == 2
    edit_product("a")
    products("c")
    run()
    engine.answers.append((403,))
    assert submit(SITE).rejected == 2
    edit_product("a", day=2)
    run()
    assert submit(SITE).accepted == 1
    assert submit(SITE, retry=True).accepted == 2
    assert sorted(engine.urls) == addresses("a", "b", "c")
    assert submit(SITE, retry=True).requests == 0


@pytest.mark.slow
def test_what_is_merged_is_given_up_in_time(engine):
    """New changes do not make a server that always fails be asked for ever."""
    begin("a")
    for number in range(ledger.MAX_FAILURES):
        products(f"n{number}")
        run()
        engine.answers.append((500,))
        submit(SITE)
        let_time_pass()
    assert statuses() == ["failed"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", [(500,), (503,), "hang up"])
def test_a_failure_is_sent_again_later(engine, answer):
    """The wait doubles; after ten failures it is given up."""
    begin("a")
    waits = []
    for _ in range(ledger.MAX_FAILURES):
        engine.answers.append(answer)
        result = submit(SITE)
        assert result.requests == 1
        if result.wait_until:
            waits.append(round((result.wait_until - dt.datetime.now(dt.UTC)).total_seconds(), -1))
        let_time_pass()
    assert waits == [min(60 * 2**number, 21_600) for number in range(9)]
    assert (result.rejected, statuses()) == (1, ["failed"])
    assert submit(SITE).requests == 0
    assert submit(SITE, retry=True).accepted == 1


@pytest.mark.slow
def test_a_server_that_does_not_answer_in_time(engine, monkeypatch):
    """Its request is sent again later, like one that failed."""
    monkeypatch.setattr(indexnow, "READ_SECONDS", 0.05)
    begin("a")
    over = threading.Event()
    engine.answers.append(lambda: over.wait(5))
    result = submit(SITE)
    over.set()
    assert result.problems == ["IndexNow, www.example.com: no answer: timed out."]
    assert result.pending == 1


@pytest.mark.slow
def test_a_server_that_answers_a_byte_at_a_time(engine, settings, monkeypatch):
    """No read takes long, but the request has a time limit too."""
    monkeypatch.setattr(indexnow, "REQUEST_SECONDS", 0.2)
    begin("a")
    with serving(Dripping) as address:
        settings.SITEMAPKIT_SUBMIT = {"indexnow_key": KEY, "indexnow_endpoint": address}
        result = submit(SITE)
    assert result.problems == [
        "IndexNow, www.example.com: no answer: the time limit of 0.2 seconds was reached."
    ]
    assert result.pending == 1


RAW_ANSWERS = {
    "ill-formed redirect": b"HTTP/1.1 302 Found\r\nLocation: http://[::1/x\r\n\r\n",
    "redirect to a label that is too long": b"HTTP/1.1 302 Found\r\nLocation: http://"
    + b"a" * 99
    + b".[/\r\n\r\n",
    "no status line": b"hello\r\n\r\n",
    "wrong status": b"HTTP/1.1 abc\r\n\r\n",
    "huge header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 200 + b"\r\n",
    "wrong chunk": b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no time": b"HTTP/1.1 503 X\r\nRetry-After: Mon, 99 Foo 99999 99:99:99 +9999\r\n\r\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("raw", RAW_ANSWERS.values(), ids=RAW_ANSWERS)
def test_any_failure_waits_and_stops_nothing_else(engine, settings, raw):
    """It is recorded; the next run sends nothing before the time, and other sites are submitted."""
    begin("a")

    with serving(answering(raw)) as address:
        settings.SITEMAPKIT_SUBMIT |= {"indexnow_endpoint": address}
        result = submit(SITE)
    assert (result.requests, result.pending, result.rejected) == (1, 1, 0)
    assert result.wait_until is not None
    assert UrlBatch.objects.get().answer
    assert submit(SITE).requests == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "endpoint",
    ["http://a..b/", f"http://{'a' * 70}.example/", "https://127.0.0.1:1/"],
)
def test_an_endpoint_that_is_none_waits_too(engine, settings, endpoint):
    """Whatever kind of error it is: of the address, of its name, of TLS."""
    begin("a")
    settings.SITEMAPKIT_SUBMIT |= {"indexnow_endpoint": endpoint}
    result = submit(SITE)
    assert (result.pending, result.wait_until is not None) == (1, True)


# Kills and other processes


@pytest.mark.slow
def test_only_the_batch_in_flight_is_sent_again(engine, monkeypatch):
    """A process that is killed after the engine has taken a request has not recorded it."""
    monkeypatch.setattr(indexnow, "URLS_PER_REQUEST", 1)
    begin("a", "b", "c")
    record = ledger.Ledger.record_answer

    def die(self, batch, answer):
        if len(engine.requests) == 2:
            raise Killed
        return record(self, batch, answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger.Ledger, "record_answer", die)
        with pytest.raises(Killed):
            submit(SITE)
    submit(SITE)
    assert engine.urls == addresses("a", "b", "b", "c")


@pytest.mark.slow
def test_a_kill_while_collecting_leaves_nothing_half(engine, monkeypatch):
    """The next run collects all again."""
    monkeypatch.setattr(indexnow, "URLS_PER_REQUEST", 1)
    begin("a", "b", "c")
    prove = BuildLease.prove

    def die(self):
        if UrlBatch.objects.count() == 2:
            raise Killed
        prove(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BuildLease, "prove", die)
        with pytest.raises(Killed):
            submit(SITE)
    assert statuses() == ["collecting"] * 2
    submit(SITE)
    assert sorted(engine.urls) == addresses("a", "b", "c")


@pytest.mark.slow
def test_one_process_submits_at_a_time(engine):
    """The other one says so; one that lost its lease stops."""
    begin("a")
    lease = Lease.objects.acquire("submit:default", seconds=60)
    with pytest.raises(BuildRunning, match="The submit lease of site 'default' is held by"):
        submit(SITE)
    lease.release()
    assert submit(SITE).accepted == 1


@pytest.mark.slow
def test_a_killed_process_keeps_the_next_one_waiting_as_long_as_a_build_does(engine, settings):
    """Its lease expires SITEMAPKIT_LEASE_SECONDS after its last heartbeat."""
    settings.SITEMAPKIT_LEASE_SECONDS = 30
    begin("a")
    assert Lease.objects.acquire("submit:default", seconds=30)
    with pytest.raises(BuildRunning):
        submit(SITE)
    age_lease("submit:default", 40)
    assert submit(SITE).accepted == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_answer_may_take_longer_than_the_lease(engine, settings, monkeypatch):
    """A heartbeat is sent meanwhile, so no other process sends the same."""
    settings.SITEMAPKIT_LEASE_SECONDS = 1
    begin("a")
    send = indexnow.send_urls

    def slowly(*args, **options):
        age_lease("submit:default")
        wait_for_heartbeat("submit:default")
        with pytest.raises(BuildRunning):
            submit(SITE)
        return send(*args, **options)

    monkeypatch.setattr(indexnow, "send_urls", slowly)
    assert submit(SITE).accepted == 1
    assert engine.urls == addresses("a")


@pytest.mark.slow
def test_a_lost_lease_ends_the_submission(engine, monkeypatch):
    """Before the next request."""
    monkeypatch.setattr(indexnow, "URLS_PER_REQUEST", 1)
    begin("a", "b")
    record = ledger.Ledger.record_answer

    def lose(self, batch, answer):
        Lease.objects.filter(name="submit:default").update(owner="elsewhere")
        return record(self, batch, answer)

    monkeypatch.setattr(ledger.Ledger, "record_answer", lose)
    with pytest.raises(LeaseLost, match="submit:default"):
        submit(SITE)
    assert engine.seen == 1


@pytest.mark.slow
def test_accepted_batches_are_forgotten_in_time(engine):
    """The ledger does not grow without end; the URLs of what is accepted are gone at once."""
    begin("a")
    submit(SITE)
    assert UrlBatch.objects.get().urls == ""
    UrlBatch.objects.update(created_at=dt.datetime.now(dt.UTC) - dt.timedelta(days=91))
    submit(SITE)
    assert not UrlBatch.objects.exists()


# The key


@pytest.mark.parametrize("key", ["a" * 8, "a" * 128, "A-z-09-x"])
def test_keys(client, settings, key):
    """The key file is at the root, as UTF-8 text, and nowhere else."""
    settings.SITEMAPKIT_SUBMIT = {"indexnow_key": key}
    response = client.get(f"/{key}.txt")
    assert (response.content, response["Content-Type"]) == (
        key.encode(),
        "text/plain; charset=utf-8",
    )
    assert client.get("/another-key.txt").status_code == 404
    assert client.post(f"/{key}.txt").status_code == 405


@pytest.mark.parametrize(
    "key", ["a" * 7, "a" * 129, "key_with_underscores", "clé-de-huit", 12345678]
)
def test_keys_that_are_none(settings, key):
    """The protocol has 8 to 128 letters, digits and hyphens."""
    settings.SITEMAPKIT_SUBMIT = {"indexnow_key": key}
    with pytest.raises(ImproperlyConfigured, match="must be 8 to 128 letters"):
        submit_options()


@pytest.mark.slow
def test_a_site_without_our_urls(engine, settings):
    """The engine looks for the key file at the root of the host."""
    begin("a")
    settings.ROOT_URLCONF = "tests.urls_without_key"
    submit(SITE)
    assert "keyLocation" not in engine.requests[0]


def test_a_key_file_that_is_not_at_the_root(engine, settings):
    """It is the likely reason of a refusal, of which the answer says nothing."""
    begin("a")
    settings.ROOT_URLCONF = "tests.submission.urls_below"
    engine.answers.append((422,))
    _refusal, hint = submit(SITE).problems
    assert hint == (
        f"The key file {BASE}/maps/{KEY}.txt is only for paths below /maps/: include"
        " django_sitemapkit.submission.urls at the root of the host."
    )


# The command


def command(*arguments):
    """Run the command, and return what it prints."""
    out = StringIO()
    call_command("submit_sitemaps", *arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.slow
def test_the_command_says_what_was_sent(engine):
    """In words, or as JSON."""
    begin("a", "b")
    assert command("--dry-run") == (
        "Site 'default':\n  Changed URLs: 2 added.\n  Would send 1 request to IndexNow.\n"
    )
    assert command() == (
        "Site 'default':\n  Changed URLs: 2 added.\n  IndexNow: 1 request, 2 URLs accepted.\n"
    )
    assert '"accepted": 0' in command("--json")


@pytest.mark.slow
def test_the_command_says_what_was_rejected(engine):
    """And what to do about it."""
    begin("a", "b")
    engine.answers.append((403,))
    out = StringIO()
    with pytest.raises(CommandError, match="the key is not valid"):
        call_command("submit_sitemaps", stdout=out)
    last = "  IndexNow: 2 URLs rejected. Correct the cause, then use --retry.\n"
    assert out.getvalue().endswith(last)
    assert "IndexNow" not in command()


def test_the_command_says_that_there_is_nothing_to_do():
    """As for a site without a key of IndexNow, whose sitemap has been submitted."""
    out = StringIO()
    Command(stdout=out)._print_result(SubmissionResult(site="shop"), dry_run=False)
    assert out.getvalue() == "Site 'shop':\n  Nothing to submit.\n"


def test_a_retry_is_no_dry_run(engine):
    """It makes batches pending again."""
    with pytest.raises(CommandError, match="--retry cannot be combined with --dry-run") as raised:
        command("--retry", "--dry-run")
    assert raised.value.returncode == 2


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ({"a": BuildRunning("busy"), "b": BuildRunning("busy")}, 4),
        ({"a": BuildFailed("lost"), "b": BuildRunning("busy")}, 1),
        ({"a": BuildRunning("busy"), "b": BuildFailed("lost")}, 1),
        ({"a": BuildRunning("busy"), "b": SubmissionResult(site="b", problems=["403"])}, 1),
        ({"a": SubmissionResult(site="a", problems=["403"]), "b": BuildRunning("busy")}, 1),
        ({"a": BuildRunning("busy"), "b": SubmissionResult(site="b")}, 4),
    ],
)
def test_a_failed_site_decides_the_exit_code_whatever_its_place(
    settings, monkeypatch, outcomes, code
):
    """That another process submits a site hides no failure of the sites before or after it."""

    def submit_as_told(site, **options):
        outcome = outcomes[site.key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(
        "django_sitemapkit.submission.management.commands.submit_sitemaps.submit", submit_as_told
    )
    settings.SITEMAPKIT_SUBMIT = {"indexnow_key": KEY}
    settings.SITEMAPKIT_SITES = {
        key: {"BASE_URL": f"https://{key}.example.com"} for key in outcomes
    }
    with pytest.raises(CommandError) as raised:
        command()
    assert raised.value.returncode == code
