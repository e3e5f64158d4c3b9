"""What states say: a code and its values become words where they are shown.

A state is stored as a code with its values, such as ``{"code": "cancelled", "by": "ann"}``. A text,
such as an error's message or the reason of a project's own gate, is a state as well: it is shown as
it is, and never read. "" says nothing.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext_lazy, override

State: TypeAlias = str | Mapping[str, Any]
"""A code with its values, or a text; both can be stored as JSON."""


def gettext_noop(message: str) -> str:
    """Return a text that ``makemessages`` finds; Django's own needs settings at import."""
    return message


SENTENCES: dict[str, Any] = {
    # Why a build is held for review, failed or was abandoned.
    "adopted": gettext_noop("it was interrupted, and another build adopted its pages"),
    "cancelled": gettext_noop("cancelled by %(by)s"),
    "changed": gettext_noop("the code, the settings or the chosen sections have changed"),
    "discarded": gettext_noop("discarded by %(by)s"),
    "identical": gettext_noop("it is identical to build %(build)s, which waits"),
    "interrupted": gettext_noop("it was interrupted"),
    "no-section": gettext_noop(
        "no section is registered; declare one in the module sitemaps.py of an installed app, with"
        " @register above it"
    ),
    "no-url": gettext_noop("no section has a URL"),
    "pages-moved": gettext_noop("its pages kept changing during the build; run it again"),
    "pause": gettext_noop("paused by %(by)s: %(why)s"),
    "pause-until": gettext_noop("paused by %(by)s until %(until)s: %(why)s"),
    "paused": gettext_noop("publishing was %(pause)s"),
    "preview": gettext_noop("it is a preview that %(by)s requested"),
    "preview-held": gettext_noop(
        "it is a preview that %(by)s requested; a build would be held for review: %(why)s"
    ),
    "shrinkage": gettext_noop(
        "section '%(section)s' would shrink from %(before)s to %(urls)s;"
        " a loss of %(allowed)s%% is allowed"
    ),
    "shrinkage-besides-moved": gettext_noop(
        "section '%(section)s' would shrink from %(before)s to %(urls)s (other sections list"
        " %(moved)s of those that go); a loss of %(allowed)s%% is allowed"
    ),
    "site-shrinkage": gettext_noop(
        "the site would shrink from %(before)s to %(urls)s; a loss of %(allowed)s%% is allowed"
    ),
    "skipped": gettext_noop("section '%(section)s' skipped %(rows)s, the first: %(problem)s"),
    "skipped-rows": "%(sections)s",
    "superseded": gettext_noop("superseded by build %(build)s"),
    "too-many-sitemaps": gettext_noop(
        "%(sitemaps)s sitemaps do not fit into one index, which has room for %(room)s; give the"
        " sections a larger limit, or divide them among several sites"
    ),
    # Why published files cannot be sent.
    "missing-here": gettext_noop(
        "Missing from %(folder)s on this server: %(files)s of the published build. If another"
        ' server has them, share the folder, or remove "sitemaps" from STORAGES: then the'
        " database stores the files. Otherwise find out what deletes them."
    ),
    # Who builds a site.
    "holder": gettext_noop("process %(pid)s on %(host)s since %(since)s UTC"),
    "silent": gettext_noop("%(holder)s; no recent heartbeat, so the next build takes over"),
    # What a site serves.
    "live": gettext_noop("Live: build %(build)s, %(urls)s in %(files)s"),
    "not-live": gettext_noop("Nothing is published; all sections are served live"),
    "only-live": gettext_noop("All sections are served live, whatever is published"),
    "unpublished": gettext_noop("Nothing is published, and only published files are served"),
    # How far a build is.
    "progress-at-rate": gettext_noop(
        "Build %(build)s: %(done)s of %(total)s files are done. %(urls)s so far;"
        " %(urls_per_second)s per second in new files."
    ),
    "progress-failed": gettext_noop("Build %(build)s failed. The next build adopts its pages."),
    "progress-idle": gettext_noop("No build is running."),
    "progress-interrupted": gettext_noop(
        "Build %(build)s was interrupted. The next build adopts its pages."
    ),
    "progress-planning": gettext_noop("In progress; nothing to count yet."),
    "progress-queued": gettext_noop("Queued requests start in the background."),
    "progress-running": gettext_noop("Build %(build)s: %(done)s of %(total)s files are done."),
    # What a build may have lost by mistake, and what lastmods say that can hardly be true.
    "loss": gettext_noop("%(section)s: %(lost)s of %(before)s URLs are gone (%(percent)s%%)."),
    "site-loss": gettext_noop(
        "The whole site: %(lost)s of %(before)s URLs are gone (%(percent)s%%)."
    ),
    "lastmods-alike": gettext_noop(
        "%(section)s: all URLs have the same lastmod, %(lastmod)s (for example %(key)s). A lastmod"
        " should say when the page itself last changed."
    ),
    "lastmods-of-now": gettext_noop(
        "%(section)s: on %(pages)s every lastmod is the time of the build or later (for example"
        " %(keys)s). Do not use the time of rendering as lastmod."
    ),
    "lastmod-backwards": gettext_noop(
        "%(section)s: the newest lastmod of page %(page)s went back from %(before)s"
        " (%(key_before)s) to %(lastmod)s (%(key)s)."
    ),
    "put-back": gettext_noop(
        "It puts back %(files)s of build %(build)s, which was rolled back: from %(before)s to"
        " %(urls)s."
    ),
    "returning": gettext_noop(
        "The next build puts back what build %(build)s changed, unless you correct it before:"
        " it had %(urls)s, the live build has %(before)s."
    ),
    # What a build or a request came to.
    "abandoned": gettext_noop("Build %(build)s was abandoned: %(reason)s."),
    "build-cancelled": gettext_noop("The build was cancelled by %(by)s."),
    "build-gone": gettext_noop("The build does not exist any more."),
    "compared": gettext_noop("%(added)s added, %(removed)s removed, %(changed)s changed."),
    "damaged": gettext_noop("Damaged: %(damaged)s of %(files)s and the index.\n%(faults)s"),
    "ended": gettext_noop("A build ended: %(reason)s."),
    "failed": gettext_noop("Build %(build)s failed: %(reason)s."),
    "held": gettext_noop("Build %(build)s was held for review: %(reason)s."),
    "intact": gettext_noop("%(files)s and the index checked, no damage found."),
    "nothing-published": gettext_noop("Nothing is published."),
    "orphans-unknown": gettext_noop(
        "The storage cannot list its files, so leftover files were not searched for."
    ),
    "pruned": gettext_noop("Deleted: %(files)s and %(orphans)s. %(more)s"),
    "previewed": gettext_noop(
        "Build %(build)s was made without publishing it: %(reason)s. %(more)s"
    ),
    "published": gettext_noop(
        "Build %(build)s: published; covers %(urls)s in %(files)s and the index, wrote"
        " %(stored)s. %(more)s"
    ),
    "rows-skipped": gettext_noop("%(rows)s skipped."),
    "unchanged": gettext_noop(
        "Build %(build)s: unchanged; covers %(urls)s in %(files)s and the index, wrote"
        " %(stored)s. %(more)s"
    ),
}
"""The words of each code, with the names of its values; apps add those of their own codes."""

COUNT_TEXTS = {
    "files": ngettext_lazy("%(count)s file", "%(count)s files", "count"),
    "orphans": ngettext_lazy("%(count)s leftover file", "%(count)s leftover files", "count"),
    "pages": ngettext_lazy("%(count)s page", "%(count)s pages", "count"),
    "rows": ngettext_lazy("%(count)s row", "%(count)s rows", "count"),
    "stored": ngettext_lazy("%(count)s file", "%(count)s files", "count"),
    "urls": ngettext_lazy("%(count)s URL", "%(count)s URLs", "count"),
}
"""The values that are shown with what they count."""

PLAIN_NUMBERS = frozenset({"build", "page"})
"""The values that number something, and are shown without separators."""


class Count(int):
    """A number of things that is shown with the separators of the language in force."""

    def __str__(self) -> str:
        return number_format(int(self), use_l10n=True, force_grouping=True)


def words_of(state: State) -> str:
    """Return the text of a state in the language in force; for an unknown code, the code."""
    if isinstance(state, str):
        return state
    values = {name: _value_text(name, value) for name, value in state.items()}
    return (gettext(SENTENCES.get(state["code"], "%(code)s")) % values).strip()


def english_of(state: State) -> str:
    """Return the text of a state in English, for errors, the log and commands."""
    with override("en"):
        return words_of(state)


def code_of(state: State) -> str:
    """Return the code of a state: "other" for plain text, "" for an empty state."""
    return str(state["code"]) if isinstance(state, Mapping) else state and "other"


def findings_of(state: State) -> list[tuple[str, str]]:
    """Return the URLs in a state, such as those that hold a build, each with an explanation.

    They are its value ``findings``: a list of states, each with a ``url``.
    """
    if not isinstance(state, Mapping):
        return []
    found = [(one["url"], words_of(one)) for one in state.get("findings", ())]
    return found or findings_of(state.get("why", ""))


def _value_text(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return words_of(value)
    if isinstance(value, list):
        return "; ".join(map(words_of, value))
    if isinstance(value, int) and name not in PLAIN_NUMBERS:
        return COUNT_TEXTS.get(name, "%(count)s") % {"count": Count(value)}
    return value
