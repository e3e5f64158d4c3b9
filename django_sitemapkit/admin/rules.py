"""The screen of exclusion rules: patterns whose URLs are left out."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.hits import SECONDS, SHOWN, hits_of
from django_sitemapkit.admin.steering import SiteFilter, SteeringAdmin, SteeringForm
from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.models import ExclusionRule, hash_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.overrides.patterns import normalise_pattern
from django_sitemapkit.sites import Site


class RuleForm(SteeringForm):
    """A form for a pattern."""

    def clean(self) -> dict[str, Any]:
        """Bring the pattern into its normal form, and refuse one that is there already."""
        cleaned = super().clean() or self.cleaned_data
        if self.site is None or not cleaned.get("pattern"):
            return cleaned
        try:
            pattern = _normalised(self.site, cleaned["pattern"])
        except RefusedValue as refusal:
            self.add_error("pattern", ValidationError(str(refusal), code=refusal.code))
            return cleaned
        cleaned["pattern"] = pattern
        self.refuse_duplicate("pattern", hash=hash_of(ExclusionRule(pattern=pattern).identity))
        return cleaned


def _normalised(site: Site, text: str) -> str:
    """Return a pattern in its normal form, without scheme and host if these were pasted too.

    Raises RefusedValue in the user's language.
    """
    if "://" in text and not text.startswith(("/", "*")):
        text = pasted_path(site, text)
    try:
        return normalise_pattern(text)
    except RefusedValue as refusal:
        message = _(
            "Begin it with / or *. It has no #, no control characters, and no . or .. segment."
        )
        raise RefusedValue(refusal.code, message) from refusal


@admin.register(ExclusionRule)
class ExclusionRuleAdmin(SteeringAdmin):
    """Exclusion rules, each with a look at what it hits."""

    form = RuleForm
    fields = ("site", "pattern", "note")
    preview_template = "admin/sitemapkit/steering/hits.html"
    list_display = ("pattern", "site", "note", "changed_at")
    list_filter = (SiteFilter,)
    search_fields = ("pattern", "note")

    def look(
        self, request: HttpRequest, site: Site, row: ExclusionRule, *, stored: bool
    ) -> dict[str, Any]:
        """Return the first URLs that it hits.

        What is published may be without them because of this very rule: one that is stored is
        tried on what the sections give.
        """
        hits = hits_of(site, row.pattern, live=stored)
        return {"hits": hits, "most": SHOWN, "seconds": SECONDS}
