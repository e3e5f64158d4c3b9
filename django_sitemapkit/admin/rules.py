"""The screens of exclusion rules, and the URLs that a rule matches."""

import re
from collections.abc import MutableMapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from time import monotonic
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import BaseAdmin, SiteFilter, id_or_none, screen
from django_sitemapkit.admin.differences import match_texts
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, HashedSettingForm
from django_sitemapkit.builds.manifest import url_finder
from django_sitemapkit.builds.report.differences import LOSS
from django_sitemapkit.builds.report.published import COUNT_SECONDS, UrlMatches, match_counter
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import listed_locations_of, try_read
from django_sitemapkit.models import ExclusionRule, UrlOverride
from django_sitemapkit.overrides import Pattern, sections_of
from django_sitemapkit.planning import all_pages
from django_sitemapkit.protocol.locations import normalise_pattern
from django_sitemapkit.sites import SitemapSite

COUNTED = "sitemapkit_counted"
"""What a session keeps of the last count that took long."""


class RuleForm(HashedSettingForm):
    """A form for an exclusion rule, which asks for confirmation if the rule excludes many URLs."""

    session: ClassVar[Any] = None
    """The session of the request."""

    def normalised(self, site: SitemapSite, text: str) -> str:
        """Return a pattern in its normal form, without a pasted scheme and host.

        Raises InvalidValue with a translated message.
        """
        if "://" in text and not text.startswith(("/", "*")):
            text = super().normalised(site, text)
        try:
            return normalise_pattern(text)
        except InvalidValue as error:
            message = _(
                "A pattern starts with / or *. It cannot contain #, control characters,"
                " or a . or .. segment."
            )
            raise InvalidValue(error.code, message) from error

    def is_valid(self) -> bool:
        """Return whether the rule may be saved; if it matches many URLs, only once confirmed."""
        if not super().is_valid():
            return False
        if self.is_new and self.data.get("_confirmed") != self.confirmation:
            matches, _reason = try_read(lambda: self.matches)
            self.previewing = matches is None or needs_confirmation(
                matches, self.cleaned_data["pattern"]
            )
        return not self.previewing

    def prepare_preview(self) -> None:
        """Count the URLs that the rule matches, before the preview saves it."""
        try_read(lambda: self.matches)

    @property
    def confirmation(self) -> str:
        """The value to post to confirm this pattern on this site, and no other."""
        return f"{self.cleaned_data['site']} {self.cleaned_data['pattern']}"

    @property
    def is_new(self) -> bool:
        """Whether the rule is new, or its site or pattern is changed."""
        return self.instance.pk is None or not {"site", "pattern"}.isdisjoint(self.changed_data)

    @cached_property
    def matches(self) -> UrlMatches:
        """The number of published URLs that the pattern matches, and the first ones.

        For a stored rule whose pattern is unchanged, they include URLs that it has removed. Raises
        StorageFailure if a file is lost or damaged.
        """
        return count_matches(
            self.site,  # type: ignore[arg-type]
            self.cleaned_data["pattern"],
            self.session,
            None if self.is_new else self.instance,
        )


@screen("count/", "exclusionrule_count", "view", needs_site=True)
def count_view(model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite) -> HttpResponseBase:
    """Count the URLs that a pattern matches for another second, and show the numbers so far.

    The page loads itself again until all URLs are counted.
    """
    pattern, key = request.GET.get("pattern", ""), id_or_none(request.GET.get("rule"))
    stored = ExclusionRule.objects.filter(pk=key or 0, site=site.key, pattern=pattern).first()
    matches, failure = try_read(
        lambda: count_matches(site, normalise_pattern(pattern), request.session, stored)
    )
    page = model_admin.render_page(
        request,
        "editor_settings/count",
        title=_("Count what %(pattern)s matches") % {"pattern": pattern},
        changelist_url=model_admin.view_url("changelist"),
        save_url=model_admin.view_url("change", key) if key else model_admin.view_url("add"),
        site=site,
        matches=matches,
        texts=matches and match_texts(matches),
        failure=failure,
        has_included=UrlOverride.objects.filter(site=site.key, include=True).exists(),
        has_links=try_read(lambda: _has_language_links(site))[0],
        has_capitals=pattern != pattern.lower(),
        confirmation="" if stored else f"{site.key} {pattern}",
    )
    if matches and not matches.complete:
        # Without JavaScript, and not in the page: readers of screens may stop it there.
        page.headers["Refresh"] = f"0; url={request.get_full_path()}"
    return page


@admin.register(ExclusionRule)
class ExclusionRuleAdmin(EditorSettingAdmin):
    """The admin of exclusion rules, with a preview of the URLs that a rule matches."""

    screens = (count_view,)
    form = RuleForm
    fields = ("site", "pattern", "note")
    preview_template = "admin/sitemapkit/editor_settings/matches.html"
    list_display = ("pattern", "site", "note", "changed_at")
    list_filter = (SiteFilter, "changed_at")
    search_fields = ("pattern", "note")

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: ExclusionRule, form: Any
    ) -> dict[str, Any]:
        """Return how many URLs the rule matches, and the first ones, if a preview is asked for.

        Without that, the page only links the count.
        """
        query = {"site": site.key, "pattern": row.pattern, "note": row.note}
        query |= {"rule": form.instance.pk} if form.instance.pk else {}
        count_url = self.screen_url("exclusionrule_count", **query)
        if not form.is_bound:  # Reading all sections takes long.
            return {"matches": None, "count_url": count_url}
        matches, failure = try_read(lambda: form.matches)
        asks = form.is_new and (matches is None or needs_confirmation(matches, row.pattern))
        return {
            "matches": matches,
            "texts": matches and match_texts(matches),
            "everything": Pattern(row.pattern).matches_everything,
            "failure": failure,
            "has_included": UrlOverride.objects.filter(site=site.key, include=True).exists(),
            "has_links": try_read(lambda: _has_language_links(site))[0],
            "confirmation": form.confirmation if asks else "",
            "has_capitals": row.pattern != row.pattern.lower(),
            "count_url": count_url,
        }


def _has_language_links(site: SitemapSite) -> bool:
    """Return whether any section of a site links URLs to the same page in other languages."""
    return any("xhtml" in section.used_namespaces for section in sections_of(site))


def needs_confirmation(matches: UrlMatches, pattern: str) -> bool:
    """Return whether a rule must be confirmed, as it matches or may match many URLs.

    It may do so if not all URLs were counted.
    """
    return (
        Pattern(pattern).matches_everything
        or not matches.complete
        or matches.matched > LOSS * matches.read
    )


def count_matches(
    site: SitemapSite,
    pattern: str,
    session: MutableMapping[str, Any],
    stored: ExclusionRule | None = None,
) -> UrlMatches:
    """Count the published URLs of a site that a normalised pattern matches, for about a second.

    If the result is not ``complete``, call again with the same ``session`` to continue. The URLs
    that sections list now are counted instead if nothing is published, or if the published files
    lack URLs because ``stored``, the stored rule of this pattern, excludes them. Then overrides and
    rules are not applied. Raises StorageFailure if a file is lost or damaged.
    """
    matches = match_counter(site, stored)
    key = [site.key, pattern, matches.build and matches.build.pk]
    kept = session.pop(COUNTED, {})
    if key == kept.get("key"):
        matches = replace(matches, **kept["values"])
    if matches.build is None:
        _count_section_matches(matches, site, Pattern(pattern))
    elif not matches.complete:
        matches.continue_reading(url_finder(re.escape(site.origin) + Pattern(pattern).expression))
    if matches.build or not matches.complete:  # Rows may change; published files do not.
        values = {name: getattr(matches, name) for name in ("read", "matched", "last", "locations")}
        session[COUNTED] = {"key": key, "values": values}
    return matches


def _count_section_matches(matches: UrlMatches, site: SitemapSite, pattern: Pattern) -> None:
    """Continue to count matches in the URLs that sections list now, for ``COUNT_SECONDS``.

    It stops at the end of a page; at least one page is read.
    """
    end, origin = monotonic() + COUNT_SECONDS, len(site.origin)
    pages = ((section, page) for section in sections_of(site) for page in all_pages(section))
    for section, page in islice(pages, matches.last, None):
        for chunk in section.chunks(page.keys):
            found = listed_locations_of(section, chunk).values()
            matches.read += len(found)
            matches.add([location for location in found if pattern.matches(location[origin:])])
        matches.last += 1
        if monotonic() > end:
            return
    matches.total = matches.read
