"""The screens of exclusion rules."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import SiteFilter
from django_sitemapkit.admin.display import number
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, EditorSettingForm
from django_sitemapkit.admin.matches import MAX_MATCHES, find_matches
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import ExclusionRule, hash_of
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.overrides.patterns import normalise_pattern
from django_sitemapkit.sites import SitemapSite


class RuleForm(EditorSettingForm):
    """A form for a pattern."""

    def clean(self) -> dict[str, Any]:
        """Normalise the pattern, and reject a duplicate."""
        cleaned = super().clean() or self.cleaned_data
        if self.site is None or not cleaned.get("pattern"):
            return cleaned
        try:
            pattern = _normalised(self.site, cleaned["pattern"])
        except InvalidValue as error:
            self.add_error("pattern", ValidationError(str(error), code=error.code))
            return cleaned
        cleaned["pattern"] = pattern
        self.reject_duplicate("pattern", hash=hash_of(ExclusionRule(pattern=pattern).identity))
        return cleaned


def _normalised(site: SitemapSite, text: str) -> str:
    """Return a pattern in its normal form, without a pasted scheme and host.

    Raises InvalidValue with a translated message.
    """
    if "://" in text and not text.startswith(("/", "*")):
        text = pasted_path(site, text)
    try:
        return normalise_pattern(text)
    except InvalidValue as error:
        message = _(
            "A pattern starts with / or *. It cannot contain #, control characters,"
            " or a . or .. segment."
        )
        raise InvalidValue(error.code, message) from error


@admin.register(ExclusionRule)
class ExclusionRuleAdmin(EditorSettingAdmin):
    """Exclusion rules, with a preview of the URLs they match."""

    form = RuleForm
    fields = ("site", "pattern", "note")
    preview_template = "admin/sitemapkit/editor_settings/matches.html"
    list_display = ("pattern", "site", "note", "changed_at")
    list_filter = (SiteFilter,)
    search_fields = ("pattern", "note")

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: ExclusionRule, *, stored: bool
    ) -> dict[str, Any]:
        """Return the first URLs that the rule matches.

        Published files may lack URLs because of this very rule, so a stored rule is tested against
        the sections instead.
        """
        matches = find_matches(site, row.pattern, live=stored)
        return {"matches": matches, "url_count": number(matches.url_count), "most": MAX_MATCHES}
