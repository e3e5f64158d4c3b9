"""Every code has words: each sentence stands here once, and nowhere else in the tests."""

import json

import pytest
from django.utils.translation import override

from django_sitemapkit.audit.kinds import ADVICE, FindingKind
from django_sitemapkit.words import SENTENCES, code_of, english_of, words_of

EXAMPLES = {
    "abandoned": (
        {"build": 7, "reason": {"code": "cancelled", "by": "ann"}},
        "Build 7 was abandoned: cancelled by ann.",
    ),
    "bad-changes-sampled": (
        {
            "section": "shop",
            "bad": 9,
            "checked": 50,
            "kinds": "gone 9",
            "share": "18",
            "least": "9.8",
            "greatest": "30.8",
            "urls": 4_000,
        },
        (
            "section 'shop': 9 of 50 new or changed web pages that were audited are bad or"
            " undetermined (gone 9): 18%, and with 95% confidence 9.8 to 30.8% of 4,000 URLs that"
            " are new or changed"
        ),
    ),
    "bad-page": (
        {"kind": {"code": "finding-gone"}, "detail": ": 410", "advice": {"code": "advice-gone"}},
        "Gone: 410. Exclude the URL, or correct what the section lists.",
    ),
    "bad-pages": (
        {"sections": [{"code": "no-url"}], "allowed": "10", "findings": []},
        'no section has a URL; SITEMAPKIT_AUDIT["max_bad"] allows 10% of each section',
    ),
    "bad-section": (
        {"section": "shop", "bad": 1_200, "checked": 2_000, "kinds": "gone 1,200", "share": "60"},
        "section 'shop': 1,200 of 2,000 web pages are bad or undetermined (gone 1,200): 60%",
    ),
    "bad-section-sampled": (
        {
            "section": "shop",
            "bad": 9,
            "checked": 50,
            "kinds": "gone 9",
            "share": "18",
            "least": "9.8",
            "greatest": "30.8",
            "urls": 4_000,
        },
        (
            "section 'shop': 9 of 50 web pages that were audited are bad or undetermined (gone 9):"
            " 18%, and with 95% confidence 9.8 to 30.8% of all 4,000 URLs"
        ),
    ),
    "build-cancelled": ({"by": "ann"}, "The build was cancelled by ann."),
    "build-gone": ({}, "The build does not exist any more."),
    "cancelled": ({"by": "ann"}, "cancelled by ann"),
    "adopted": ({}, "it was interrupted, and another build adopted its pages"),
    "changed": ({}, "the code, the settings or the chosen sections have changed"),
    "compared": (
        {"added": 1, "removed": 0, "changed": 2_000},
        "1 added, 0 removed, 2,000 changed.",
    ),
    "damaged": (
        {"damaged": 2, "files": 8, "faults": "a: lost\nb: lost"},
        "Damaged: 2 of 8 files and the index.\na: lost\nb: lost",
    ),
    "discarded": ({"by": "ann"}, "discarded by ann"),
    "ended": ({"reason": {"code": "interrupted"}}, "A build ended: it was interrupted."),
    "failed": ({"build": 7, "reason": "lost"}, "Build 7 failed: lost."),
    "held": (
        {"build": 1_200, "reason": {"code": "no-url"}},
        "Build 1200 was held for review: no section has a URL.",
    ),
    "holder": (
        {"pid": "1200", "host": "web-1", "since": "2026-01-01 09:00:00"},
        "process 1200 on web-1 since 2026-01-01 09:00:00 UTC",
    ),
    "identical": ({"build": 1_200}, "it is identical to build 1200, which waits"),
    "intact": ({"files": 1}, "1 file and the index checked, no damage found."),
    "interrupted": ({}, "it was interrupted"),
    "lastmod-backwards": (
        {
            "section": "shop",
            "page": 1_200,
            "before": "2026-02-01",
            "key_before": "7",
            "lastmod": "2026-01-01",
            "key": "9",
        },
        "shop: the newest lastmod of page 1200 went back from 2026-02-01 (7) to 2026-01-01 (9).",
    ),
    "lastmods-alike": (
        {"section": "shop", "lastmod": "2026-01-01", "key": "9"},
        (
            "shop: all URLs have the same lastmod, 2026-01-01 (for example 9). A lastmod should say"
            " when the page itself last changed."
        ),
    ),
    "lastmods-of-now": (
        {"section": "shop", "pages": 1, "keys": "7, 9"},
        (
            "shop: on 1 page every lastmod is the time of the build or later (for example 7, 9)."
            " Do not"
            " use the time of rendering as lastmod."
        ),
    ),
    "missing-here": (
        {"files": 1, "folder": "/srv/sitemaps"},
        (
            "Missing from /srv/sitemaps on this server: 1 file of the published build. If another"
            ' server has them, share the folder, or remove "sitemaps" from STORAGES: then the'
            " database stores the files. Otherwise find out what deletes them."
        ),
    ),
    "no-section": (
        {},
        (
            "no section is registered; declare one in the module sitemaps.py of an installed app,"
            " with"
            " @register above it"
        ),
    ),
    "no-url": ({}, "no section has a URL"),
    "nothing-published": ({}, "Nothing is published."),
    "orphans-unknown": (
        {},
        "The storage cannot list its files, so leftover files were not searched for.",
    ),
    "pages-moved": ({}, "its pages kept changing during the build; run it again"),
    "pause": ({"by": "ann", "why": "sale"}, "paused by ann: sale"),
    "pause-until": (
        {"by": "ann", "why": "sale", "until": "2026-01-01 09:00+00:00"},
        "paused by ann until 2026-01-01 09:00+00:00: sale",
    ),
    "paused": (
        {"pause": {"code": "pause", "by": "ann", "why": "sale"}},
        "publishing was paused by ann: sale",
    ),
    "previewed": (
        {
            "build": 1_200,
            "reason": {"code": "preview", "by": "ann"},
            "more": {"code": "compared", "added": 1, "removed": 0, "changed": 2_000},
        },
        (
            "Build 1200 was made without publishing it: it is a preview that ann requested. 1"
            " added, 0 removed, 2,000 changed."
        ),
    ),
    "preview": ({"by": "ann"}, "it is a preview that ann requested"),
    "preview-held": (
        {"by": "ann", "why": {"code": "no-url"}},
        (
            "it is a preview that ann requested; a build would be held for review: no section has a"
            " URL"
        ),
    ),
    "progress-at-rate": (
        {"build": 1_200, "done": 1_000, "total": 2_000, "urls": 1, "urls_per_second": 3_000},
        "Build 1200: 1,000 of 2,000 files are done. 1 URL so far; 3,000 per second in new files.",
    ),
    "progress-failed": ({"build": 1_200}, "Build 1200 failed. The next build adopts its pages."),
    "progress-idle": ({}, "No build is running."),
    "progress-interrupted": (
        {"build": 1_200},
        "Build 1200 was interrupted. The next build adopts its pages.",
    ),
    "progress-planning": ({}, "In progress; nothing to count yet."),
    "progress-queued": ({}, "Queued requests start in the background."),
    "progress-running": (
        {"build": 1_200, "done": 1_000, "total": 2_000},
        "Build 1200: 1,000 of 2,000 files are done.",
    ),
    "pruned": (
        {"files": 1, "orphans": 2_000, "more": {"code": "orphans-unknown"}},
        (
            "Deleted: 1 file and 2,000 leftover files. The storage cannot list its files, so"
            " leftover files were not searched for."
        ),
    ),
    "published": (
        {
            "build": 7,
            "urls": 9,
            "files": 8,
            "stored": 8,
            "more": {"code": "rows-skipped", "rows": 1},
        },
        (
            "Build 7: published; covers 9 URLs in 8 files and the index, wrote 8 files."
            " 1 row skipped."
        ),
    ),
    "put-back": (
        {"build": 1_200, "files": 1, "before": 1_000, "urls": 2_000},
        "It puts back 1 file of build 1200, which was rolled back: from 1,000 to 2,000 URLs.",
    ),
    "returning": (
        {"build": 1_200, "before": 1_000, "urls": 2_000},
        (
            "The next build puts back what build 1200 changed, unless you correct it before: it had"
            " 2,000 URLs, the live build has 1,000."
        ),
    ),
    "rows-skipped": ({"rows": 2_000}, "2,000 rows skipped."),
    "shrinkage": (
        {"section": "shop", "before": 2_000, "urls": 1, "moved": 0, "allowed": "12.5"},
        "section 'shop' would shrink from 2,000 to 1 URL; a loss of 12.5% is allowed",
    ),
    "shrinkage-besides-moved": (
        {"section": "shop", "before": 2_000, "urls": 100, "moved": 1_000, "allowed": "50"},
        (
            "section 'shop' would shrink from 2,000 to 100 URLs (other sections list 1,000 of those"
            " that go); a loss of 50% is allowed"
        ),
    ),
    "live": (
        {"build": 1_200, "urls": 2_000, "files": 1},
        "Live: build 1200, 2,000 URLs in 1 file",
    ),
    "not-live": ({}, "Nothing is published; all sections are served live"),
    "only-live": ({}, "All sections are served live, whatever is published"),
    "unpublished": ({}, "Nothing is published, and only published files are served"),
    "loss": (
        {"section": "shop", "before": 2_000, "lost": 1_200, "percent": "60"},
        "shop: 1,200 of 2,000 URLs are gone (60%).",
    ),
    "site-loss": (
        {"section": "", "before": 2_000, "lost": 200, "percent": "10"},
        "The whole site: 200 of 2,000 URLs are gone (10%).",
    ),
    "site-shrinkage": (
        {"section": "", "before": 2_000, "urls": 1, "moved": 0, "allowed": "30"},
        "the site would shrink from 2,000 to 1 URL; a loss of 30% is allowed",
    ),
    "silent": (
        {"holder": {"code": "interrupted"}},
        "it was interrupted; no recent heartbeat, so the next build takes over",
    ),
    "skipped": (
        {"section": "shop", "rows": 1, "problem": "shop 7: No URL"},
        "section 'shop' skipped 1 row, the first: shop 7: No URL",
    ),
    "skipped-rows": (
        {"sections": [{"code": "no-url"}, {"code": "interrupted"}]},
        "no section has a URL; it was interrupted",
    ),
    "superseded": ({"build": 1_200}, "superseded by build 1200"),
    "too-many-sitemaps": (
        {"sitemaps": 50_001, "room": 50_000},
        (
            "50,001 sitemaps do not fit into one index, which has room for 50,000; give the"
            " sections"
            " a larger limit, or divide them among several sites"
        ),
    ),
    "unchanged": (
        {"build": 7, "urls": 1, "files": 1, "stored": 0, "more": ""},
        "Build 7: unchanged; covers 1 URL in 1 file and the index, wrote 0 files.",
    ),
}
"""By code: values as they are stored, and what they are in English."""

with override("en"):
    EXAMPLES |= {f"finding-{kind}": ({}, str(kind.label)) for kind in FindingKind}
    EXAMPLES |= {f"advice-{kind}": ({}, str(advice)) for kind, advice in ADVICE.items()}


def test_every_code_has_an_example():
    """So each sentence is checked with its values."""
    assert EXAMPLES.keys() == SENTENCES.keys()


@pytest.mark.parametrize("code", EXAMPLES)
@pytest.mark.parametrize("language", ["en", "fr", None])
def test_the_words_of_a_code_in_english(code, language):
    """In whatever language the process runs: the log and the commands speak English."""
    values, words = EXAMPLES[code]
    state = {"code": code, **values}
    with override(language):
        assert english_of(json.loads(json.dumps(state))) == words
    assert code_of(state) == code


def test_words_are_in_the_language_of_the_reader():
    """Numbers and plural forms, and the states within a state, are, too."""
    values, _words = EXAMPLES["published"]
    with override("fr"):
        assert words_of({"code": "published", **values, "urls": 2_000}) == (
            "Génération 7 : publiée ; couvre 2\xa0000 URL dans 8 fichiers et l’index, a écrit"
            " 8 fichiers. Ignorées : 1 ligne."
        )


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_text_is_shown_as_it_is(language):
    """It is an error's or a gate's, and never read: not even its percent signs."""
    with override(language):
        assert words_of("100% of %(files)s") == "100% of %(files)s"
    assert (code_of("100%"), code_of("")) == ("other", "")


def test_an_unknown_code_is_shown():
    """As of an app that is no longer installed."""
    assert words_of({"code": "of-a-guest", "files": 3}) == "of-a-guest"
