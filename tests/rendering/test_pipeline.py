"""From values to ready text: what is listed, what is left out, and how it is reported."""

import datetime as dt
import re
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.reading.chunks import Chunk
from django_sitemapkit.rendering import ProblemLog
from django_sitemapkit.rendering.pipeline import ChunkPipeline
from django_sitemapkit.rendering.problems import EXAMPLES_PER_KIND, Problem
from django_sitemapkit.sections import BaseSection
from tests.factories import declare

PAST = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC)
FUTURE = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)


def check(locations=None, normal=False, plain=None, **columns):
    """Return the entries of one chunk, and its problems; the keys are the row's numbers."""
    rows = len(locations or next(iter(columns.values())))
    pipeline = ChunkPipeline(declare(BaseSection, **(plain or {})))
    chunk = Chunk(
        range(rows),
        locations or [f"/{row}" for row in range(rows)],
        columns,
        normal=normal,
    )
    return pipeline.entries(chunk), pipeline.problems


def shown(problems):
    """Return which problems there were: key, code, and whether the row was skipped."""
    return [(problem.key, problem.code, problem.skipped) for problem in problems.examples]


def test_rows_without_fault_pass_as_they_are():
    """Nothing is reported, and nothing is copied row by row."""
    entries, problems = check(
        ["/a b", "https://www.example.com/ñ"],
        lastmod=[PAST, None],
        changefreq=["daily", "weekly"],
        priority=[0.5, Decimal(1)],
    )
    assert list(entries.keys) == [0, 1]
    assert entries.locations == [
        "https://www.example.com/a%20b",
        "https://www.example.com/%C3%B1",
    ]
    assert entries.tags == {
        "lastmod": ["2024-02-29T12:30:15+00:00", None],
        "changefreq": ["daily", "weekly"],
        "priority": ["0.5", "1.0"],
    }
    assert len(problems) == 0


@pytest.mark.parametrize(
    ("location", "code", "reason"),
    [
        pytest.param("/a\0b", "invalid-url", r"U\+0000", id="U+0000"),
        pytest.param("/a\ud800b", "invalid-url", r"U\+D800", id="lone-surrogate"),
        pytest.param("/a\nb", "invalid-url", r"U\+000A", id="line-feed"),
        pytest.param("/" + "x" * 2024, "invalid-url", "2,048 characters", id="2048-characters"),
        pytest.param("https://other.example/", "url-not-allowed", "not on", id="foreign-host"),
        pytest.param("http://www.example.com:8080/", "url-not-allowed", "not on", id="port"),
        pytest.param("//other.example/", "url-not-allowed", "two slashes", id="two-slashes"),
        pytest.param("relative/", "invalid-url", "begins with /", id="relative"),
        pytest.param("/a/../b", "invalid-url", "segment", id="dot-segment"),
        pytest.param("/a#b", "invalid-url", "fragment", id="fragment"),
        pytest.param("", "invalid-url", "absolute", id="empty"),
        pytest.param(b"/a", "invalid-url", "not a string", id="bytes"),
    ],
)
def test_a_location_that_may_not_be_listed_skips_its_row(location, code, reason):
    """Its neighbours stay, each with its own values; the reason is reported."""
    entries, problems = check(["/a", location, "/c"], priority=[0.1, 0.2, 0.3])
    assert list(entries.keys) == [0, 2]
    assert entries.locations == ["https://www.example.com/a", "https://www.example.com/c"]
    assert entries.tags == {"priority": ["0.1", "0.3"]}
    assert shown(problems) == [(1, code, True)]
    problems.examples[0].message.encode("utf-8")
    assert re.search(reason, problems.examples[0].message)


def test_paths_of_routes_are_checked_too():
    """They are in normal form, but may be too long, or climb."""
    refusal = InvalidValue("no-url", "No URL: none fits")
    paths = ["/a", "/" + "x" * 2100, refusal, "/b/../c"]
    entries, problems = check(paths, normal=True)
    assert entries.locations == ["https://www.example.com/a"]
    assert shown(problems) == [
        (1, "invalid-url", True),
        (2, "no-url", True),
        (3, "invalid-url", True),
    ]


@pytest.mark.parametrize(
    ("tag", "good", "text", "bad", "code"),
    [
        pytest.param("lastmod", PAST, "2024-02-29T12:30:15+00:00", "yesterday", "invalid-date"),
        pytest.param("lastmod", "2024-05-01", "2024-05-01", "zzzz", "invalid-date"),
        pytest.param("lastmod", PAST.date(), "2024-02-29", 20240229, "invalid-date"),
        pytest.param("lastmod", "2024-02-29", "2024-02-29", "2023-02-29", "invalid-date"),
        pytest.param("changefreq", "never", "never", "Daily", "invalid-tag-value"),
        pytest.param("changefreq", "daily", "daily", "", "invalid-tag-value"),
        pytest.param("priority", 0, "0.0", 1.01, "invalid-tag-value"),
        pytest.param("priority", 0.1 + 0.2, "0.3", float("nan"), "invalid-tag-value"),
        pytest.param("priority", "0.55", "0.55", "0,5", "invalid-tag-value"),
    ],
)
def test_a_wrong_value_costs_its_row_the_tag(tag, good, text, bad, code):
    """The URL is right, so it is listed; the mistake is named, and the neighbours keep theirs."""
    entries, problems = check(**{tag: [good, bad, None]})
    assert list(entries.keys) == [0, 1, 2]
    assert entries.tags == {tag: [text, None, None]}
    assert shown(problems) == [(1, code, False)]
    assert repr(bad) in problems.examples[0].message


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Anchorage", "Asia/Tokyo"])
@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(1, 1, 1),  # noqa: DTZ001  without a zone it has none that can be written
        dt.datetime(9999, 12, 31, 23, 59, 59),  # noqa: DTZ001
        dt.date.min,
        dt.date.max,
    ],
)
def test_a_moment_at_the_end_of_time_costs_its_row_no_more_than_the_tag(settings, zone, value):
    """Some of them have no offset that can be written, or lie before the first year in UTC."""
    settings.TIME_ZONE = zone
    entries, problems = check(lastmod=[value, PAST])
    assert list(entries.keys) == [0, 1]
    assert entries.tags["lastmod"][1] == "2024-02-29T12:30:15+00:00"
    assert problems.skipped == 0


def test_what_a_method_for_a_tag_raised_is_told_in_place_of_its_value():
    """It is a wrong value like any other, beside one that is refused by its form."""
    raised = InvalidValue("exception", "priority raised KeyError: 'a'")
    entries, problems = check(priority=[raised, 0.5, 7])
    assert entries.tags == {"priority": [None, "0.5", None]}
    assert shown(problems) == [(0, "exception", False), (2, "invalid-tag-value", False)]


@pytest.mark.parametrize(
    ("tag", "bad"),
    [
        *(("lastmod", value) for value in ("yesterday", FUTURE, FUTURE.date(), "2999-01-01")),
        *(("changefreq", "Daily"), ("priority", 2)),
    ],
)
def test_a_wrong_value_that_holds_for_all_is_left_out_and_told_once(tag, bad):
    """No row is skipped for it: the rows are not to blame."""
    entries, problems = check(["/a", "/b"], plain={tag: bad})
    assert len(entries.locations) == 2
    assert entries.tags == {}
    assert problems.skipped == 0
    assert len(problems) == 1
    assert (problems.examples[0].key, problems.examples[0].skipped) == (tag, False)


def test_a_row_is_told_once_however_much_is_wrong_with_it():
    """Counts are rows, and the first fault says enough."""
    entries, problems = check(["/\0"], lastmod=["never"], priority=[7])
    assert entries.locations == []
    assert shown(problems) == [(0, "invalid-url", True)]
    assert problems.skipped == 1


def test_a_row_refused_before_is_not_looked_at_again():
    """What its method raised is the reason, not the value that is missing for it."""
    refusal = InvalidValue("exception", "location raised ValueError: no")
    entries, problems = check([refusal, "/b"], lastmod=["nonsense", PAST], priority=[9, 1])
    assert list(entries.keys) == [1]
    assert entries.tags == {"lastmod": ["2024-02-29T12:30:15+00:00"], "priority": ["1.0"]}
    assert shown(problems) == [(0, "exception", True)]


# --- Dates


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        pytest.param([FUTURE, PAST], [None, "2024-02-29T12:30:15+00:00"], id="datetime"),
        pytest.param([FUTURE.date(), PAST.date()], [None, "2024-02-29"], id="date"),
        pytest.param(["2999-01-01", "2024-01-01"], [None, "2024-01-01"], id="text"),
        pytest.param([FUTURE.replace(tzinfo=None), PAST.date()], [None, "2024-02-29"], id="naive"),
        pytest.param([None, FUTURE, PAST.date()], [None, None, "2024-02-29"], id="mixed"),
        pytest.param([PAST.date(), "2999-01-01"], ["2024-02-29", None], id="date-and-text"),
        pytest.param(
            [FUTURE.replace(tzinfo=None), FUTURE, PAST],
            [None, None, "2024-02-29T12:30:15+00:00"],
            id="naive-and-aware",
        ),
    ],
)
@pytest.mark.parametrize("use_tz", [True, False], ids=["USE_TZ", "no-USE_TZ"])
def test_a_date_in_the_future_is_left_out_with_a_warning(settings, use_tz, values, texts):
    """The row is listed without it."""
    settings.USE_TZ = use_tz
    entries, problems = check(lastmod=values)
    assert entries.tags == {"lastmod": texts}
    expected = [row for row, value in enumerate(values) if value and texts[row] is None]
    assert shown(problems) == [(row, "future-date", False) for row in expected]
    assert problems.skipped == 0


def test_wrong_and_future_dates_are_told_apart():
    """A word that is no date is not compared with dates."""
    entries, problems = check(lastmod=["2024-01-01", "tomorrow", "2999-01-01", "zzz"])
    assert list(entries.keys) == [0, 1, 2, 3]
    assert entries.tags == {"lastmod": ["2024-01-01", None, None, None]}
    assert set(shown(problems)) == {
        (1, "invalid-date", False),
        (2, "future-date", False),
        (3, "invalid-date", False),
    }


@pytest.mark.parametrize("use_tz", [True, False], ids=["USE_TZ", "no-USE_TZ"])
def test_a_date_without_a_zone_is_in_that_of_the_project(settings, use_tz):
    """Summer time included; the visitor's zone does not matter."""
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Europe/Madrid"
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        winter = dt.datetime.fromisoformat("2024-01-01T09:00:00")
        entries, _ = check(lastmod=[winter, winter.replace(month=7)])
    assert entries.tags["lastmod"] == ["2024-01-01T09:00:00+01:00", "2024-07-01T09:00:00+02:00"]


def test_what_is_past_in_the_projects_zone_is_not_future(settings):
    """Today in Tokyo may be tomorrow in London."""
    settings.TIME_ZONE = "Pacific/Kiritimati"
    today = dt.datetime.now(ZoneInfo("Pacific/Kiritimati"))
    now = today.replace(tzinfo=None) - dt.timedelta(minutes=1)
    entries, problems = check(lastmod=[today.date(), now])
    assert entries.tags["lastmod"][0] == today.date().isoformat()
    assert entries.tags["lastmod"][1].endswith("+14:00")
    assert len(problems) == 0


@pytest.mark.parametrize("use_tz", [True, False], ids=["USE_TZ", "no-USE_TZ"])
def test_texts_are_compared_as_moments(settings, use_tz):
    """The greatest text may be an hour that has passed, the smaller one an hour to come."""
    settings.USE_TZ = use_tz
    now = dt.datetime.now(dt.UTC)
    past = (now - dt.timedelta(hours=1)).astimezone(dt.timezone(dt.timedelta(hours=14)))
    future = (now + dt.timedelta(hours=1)).astimezone(dt.timezone(-dt.timedelta(hours=11)))
    texts = [moment.isoformat(timespec="seconds") for moment in (past, future)]
    entries, _ = check(lastmod=texts)
    assert max(texts) == texts[0]
    assert entries.tags["lastmod"] == [texts[0], None]


# --- The log


def test_the_log_counts_all_and_remembers_some_of_each_kind():
    """A million bad rows do not fill the memory."""
    log = ProblemLog("things")
    for number in range(1000):
        log.add(number, InvalidValue("invalid-url", "Invalid URL"))
        log.add(number, InvalidValue("future-date", "Invalid date"), skipped=False)
    assert (len(log), log.skipped) == (2000, 1000)
    assert log.counts == {"invalid-url": 1000, "future-date": 1000}
    assert len(log.examples) == 2 * EXAMPLES_PER_KIND
    assert [p.key for p in log.examples if p.code == "invalid-url"] == list(
        range(EXAMPLES_PER_KIND)
    )


@pytest.mark.parametrize("normal", [False, True])
def test_a_url_that_is_escaped_twice_is_listed_and_reported(normal):
    """Its row is named, and nothing is left out: a page may be there."""
    urls = ["/a?x=1&amp;y=2", "/b?x=1&y=2;z", "/caf%25C3%25A9/", "/c/"]
    entries, problems = check(urls, normal=normal)
    assert entries.locations == [f"https://www.example.com{url}" for url in urls]
    assert shown(problems) == [(0, "escaped-twice", False), (2, "escaped-twice", False)]
    assert [str(problem).endswith("(listed)") for problem in problems.examples] == [True, True]


def test_a_problem_names_section_key_and_reason_in_text_for_any_log():
    """Also where the key is a character that no log can hold."""
    problem = Problem(section="things", key="\ud800", code="x", message="Invalid URL.")
    assert str(problem) == r"things '\ud800': Invalid URL. (skipped)"
    listed = Problem(section="things", key=5, code="x", message="Invalid date.", skipped=False)
    assert str(listed) == "things 5: Invalid date. (listed without it)"


def test_the_summary_is_one_line_with_the_first_of_each_kind():
    """Fit for a log."""
    log = ProblemLog("things")
    assert log.summary() == ""
    for key in (3, 4):
        log.add(key, InvalidValue("a", "A."))
    log.add(5, InvalidValue("b", "B."), skipped=False)
    assert log.summary() == ("2 x things 3: A. (skipped); 1 x things 5: B. (listed without it)")
