"""The screens of extra URLs: the list, a form, and a page to paste many."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import log_rows
from django_sitemapkit.admin.base import BaseAdmin, SiteFilter, known_sites, number_text, screen
from django_sitemapkit.admin.editor_settings import (
    HashedSettingForm,
    add_pending_message,
    site_field,
)
from django_sitemapkit.admin.transfers import TransferAdmin
from django_sitemapkit.builds.report.published import count_published_paths
from django_sitemapkit.inspection import inspect_path, try_read
from django_sitemapkit.models import ExtraUrl
from django_sitemapkit.overrides import (
    EXTRA_URL_TABLE,
    Comparison,
    LineOutcome,
    compare_rows,
    overrides_of,
    section_of,
)
from django_sitemapkit.registry import EXTRA_URLS
from django_sitemapkit.scaffold.discovery import why_no_page_at
from django_sitemapkit.sites import SitemapSite, site_by_key

MAX_PASTED_LINES = 5_000
"""Lines of one paste."""

MAX_SECTION_LOOKUPS = 20
"""Pasted URLs to look up in the sections; each may take as long as rendering a page."""

MAX_INVALID_LINES = 200
"""Invalid lines shown on the page."""


class PasteForm(forms.Form):
    """A form to paste many extra URLs, one per line."""

    urls = forms.CharField(
        label=_("URLs"),
        strip=False,  # Errors name lines by number.
        widget=forms.Textarea(
            attrs={"rows": 15, "class": "vLargeTextField", "spellcheck": "false"}
        ),
        help_text=_(
            "One per line: a path such as /about/, or a full URL of the site, with http or https."
        ),
    )
    save_rest = forms.BooleanField(
        label=_("Add the valid lines and skip the invalid ones"), required=False
    )

    def __init__(self, *args: Any, sites: list[SitemapSite], **options: Any) -> None:
        super().__init__(*args, **options)
        self.sites = sites
        self.fields["site"] = site_field(sites)
        self.order_fields(["site", "urls", "save_rest"])

    def clean_urls(self) -> str:
        """Return the pasted text; reject an empty one, and one with too many lines."""
        text: str = self.cleaned_data["urls"]
        if not text.strip():
            raise forms.ValidationError(self.fields["urls"].error_messages["required"])
        if text.count("\n") >= MAX_PASTED_LINES:
            message = gettext("Paste at most %(count)s lines. To add more, import a CSV file.")
            raise forms.ValidationError(message % {"count": number_text(MAX_PASTED_LINES)})
        return text

    def comparison(self) -> Comparison:
        """Return the pasted lines compared with the stored extra URLs: new, known or invalid."""
        key = self.cleaned_data["site"]
        lines = enumerate(self.cleaned_data["urls"].split("\n"), start=1)
        rows = ((line_number, [key, line]) for line_number, line in lines if line.strip())
        sites = [site for site in self.sites if site.key == key]
        return compare_rows(EXTRA_URL_TABLE, ["site", "path"], rows, sites)


@screen("paste/", "extraurl_paste", "add", methods=["GET", "HEAD", "POST"])
def paste_view(model_admin: BaseAdmin, request: HttpRequest) -> HttpResponseBase:
    """Show a form for extra URLs, and add the posted ones.

    If some are invalid, only the valid ones are added, and only if the user has chosen that.
    """
    sites = known_sites(request)
    form = PasteForm(request.POST if request.method == "POST" else None, sites=sites)
    if not form.is_valid():
        return _paste_page(model_admin, request, form)
    comparison = form.comparison()
    if comparison.count(LineOutcome.INVALID) and not form.cleaned_data["save_rest"]:
        return _paste_page(model_admin, request, form, comparison)
    try:
        new, _changed = comparison.apply()
    except IntegrityError:
        messages.error(
            request, gettext("No URLs were added: another user has just added the same ones.")
        )
        return _paste_page(model_admin, request, form, comparison)
    log_rows(request.user.pk, new, ADDITION)
    text = ngettext(
        "%(count)s URL added. Whether its page answers was not looked at.",
        "%(count)s URLs added. Whether their pages answer was not looked at.",
        len(new),
    )
    messages.success(request, text % {"count": number_text(len(new))})
    site = site_by_key(sites, form.cleaned_data["site"])
    if new and site is not None:
        _warn_of_missing_pages(request, site, new)
        _warn_of_published(request, site, new)
        _warn_of_excluded(request, site, new)
    if invalid := comparison.lines_with(LineOutcome.INVALID):
        text = ngettext(
            "%(count)s invalid line was skipped: line %(line)s (%(error)s)",
            "%(count)s invalid lines were skipped, such as line %(line)s (%(error)s)",
            len(invalid),
        )
        values = {"line": invalid[0].number, "error": invalid[0].error.removeprefix("path: ")}
        messages.warning(request, text % {"count": number_text(len(invalid)), **values})
    if known := comparison.count(LineOutcome.UNCHANGED):
        text = ngettext("%(count)s URL already existed.", "%(count)s URLs already existed.", known)
        messages.info(request, text % {"count": number_text(known)})
    if new:
        add_pending_message(request, [form.cleaned_data["site"]])
    return HttpResponseRedirect(_return_url(model_admin, request))


def _paste_page(
    model_admin: BaseAdmin,
    request: HttpRequest,
    form: PasteForm,
    comparison: Comparison | None = None,
) -> HttpResponseBase:
    """Return the page with the form to paste URLs, and the invalid lines of what was pasted."""
    invalid = comparison.lines_with(LineOutcome.INVALID) if comparison else []
    pasted = form.cleaned_data["urls"].split("\n") if invalid else []
    return model_admin.render_page(
        request,
        "editor_settings/paste",
        title=gettext("Paste extra URLs"),
        form=form,
        invalid=[
            {
                "number": line.number,
                "text": pasted[line.number - 1],
                "error": line.error.removeprefix("path: "),
            }
            for line in invalid[:MAX_INVALID_LINES]
        ],
        invalid_count=len(invalid),
        formatted_invalid_count=number_text(len(invalid)),
        valid_count=comparison.count(LineOutcome.CREATED) if comparison else 0,
        max_lines=number_text(MAX_PASTED_LINES),
        changelist_url=_return_url(model_admin, request),
    )


def _return_url(model_admin: BaseAdmin, request: HttpRequest) -> str:
    """Return the URL of the list, or of the admin's index for users who may not see the list."""
    if model_admin.has_view_or_change_permission(request):
        return model_admin.view_url("changelist")
    return reverse(f"{model_admin.admin_site.name}:index")


def _warn_of_missing_pages(request: HttpRequest, site: SitemapSite, added: list[ExtraUrl]) -> None:
    """Warn that the site probably has no public page at some of the URLs added, and how many."""
    unknown = [row.path for row in added if why_no_page_at(site, row.path)]
    text = ngettext(
        "The site probably has no public page at %(count)s of these URLs: %(url)s",
        "The site probably has no public page at %(count)s of these URLs, such as %(url)s",
        len(unknown),
    )
    if unknown:
        messages.warning(request, text % {"count": number_text(len(unknown)), "url": unknown[0]})


def _warn_of_published(request: HttpRequest, site: SitemapSite, added: list[ExtraUrl]) -> None:
    """Warn that some of the URLs added are already in published files, and how many.

    If not all files could be read in time, and none was found, warn of those that sections list.
    """
    matches, reason = try_read(lambda: count_published_paths(site, [row.path for row in added]))
    if reason:
        messages.warning(request, reason)
    if matches is not None and matches.matched:
        text = ngettext(
            "%(count)s of these URLs is in the published sitemap already: %(url)s. To change its"
            " values, use a URL override.",
            "%(count)s of these URLs are in the published sitemap already, such as %(url)s. To"
            " change their values, use URL overrides.",
            matches.matched,
        )
        least = "%(count)s" if matches.complete else gettext("at least %(count)s")
        count = least % {"count": number_text(matches.matched)}
        messages.warning(request, text % {"count": count, "url": matches.locations[0]})
    elif matches is None or not matches.complete:
        _warn_of_listed(request, site, added[:MAX_SECTION_LOOKUPS])


def _warn_of_excluded(request: HttpRequest, site: SitemapSite, added: list[ExtraUrl]) -> None:
    """Warn that overrides or rules exclude some of the URLs added, and how many."""
    section = section_of(site, EXTRA_URLS)
    if section is None:
        return
    locations = [site.origin + row.path for row in added]
    effects = overrides_of(site).effects(section, [row.pk for row in added], locations)
    if excluded := effects.excluded:
        text = ngettext(
            "%(count)s of these URLs is excluded by an override or a rule: %(url)s",
            "%(count)s of these URLs are excluded by overrides or rules, such as %(url)s",
            len(excluded),
        )
        values = {"count": number_text(len(excluded)), "url": locations[min(excluded)]}
        messages.warning(request, text % values)


def _warn_of_listed(request: HttpRequest, site: SitemapSite, added: list[ExtraUrl]) -> None:
    """Warn of each URL added that another section already lists."""
    for row in added:
        found, _reason = try_read(partial(inspect_path, site, row.path, without_section=EXTRA_URLS))
        if found and found.listed:
            text = gettext(
                "Section %(section)s already lists %(url)s. To change its values, use a URL"
                " override."
            )
            messages.warning(request, text % {"section": found.section, "url": row.path})


@admin.register(ExtraUrl)
class ExtraUrlAdmin(TransferAdmin):
    """The admin of extra URLs, which are added one by one, pasted, or imported."""

    screens = (*TransferAdmin.screens, paste_view)
    form = HashedSettingForm
    transfer = EXTRA_URL_TABLE
    fields = ("site", "path", "title", "lastmod", "changefreq", "priority", "note")
    preview_template = "admin/sitemapkit/editor_settings/explanations.html"
    list_display = (
        *("path", "site", "title", "lastmod", "changefreq", "priority", "note", "changed_at"),
    )
    list_filter = (SiteFilter, "changefreq", "changed_at")
    search_fields = ("path", "title", "note")

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: ExtraUrl, form: Any
    ) -> dict[str, Any]:
        """Return the inspection of the URL: where it is listed, with which values, or why not."""
        return {"inspections": [inspect_path(site, row.path)]}

    def save_model(self, request: HttpRequest, obj: ExtraUrl, form: Any, change: bool) -> None:
        """Save the row; warn if the site has no page there, or a section already lists the URL."""
        super().save_model(request, obj, form, change)
        _warn_of_missing_pages(request, form.site, [obj])
        _warn_of_listed(request, form.site, [obj])
