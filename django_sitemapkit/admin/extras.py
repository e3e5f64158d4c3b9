"""The screen of extra URLs, which no section gives, and the page to paste many of them."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.history import log_added
from django_sitemapkit.admin.steering import (
    PathForm,
    SiteFilter,
    explained,
    known_sites,
    site_field,
    site_of,
)
from django_sitemapkit.admin.transfers import TransferAdmin
from django_sitemapkit.admin.wording import number, told
from django_sitemapkit.models import ExtraUrl
from django_sitemapkit.overrides.cells import EXTRA_URLS
from django_sitemapkit.overrides.transfer import (
    Comparison,
    Outcome,
    compared_rows,
)
from django_sitemapkit.registry import EXTRA_URLS as EXTRA_SECTION
from django_sitemapkit.rendering.explanations import explain_path
from django_sitemapkit.sites import Site

MAX_PASTED_LINES = 5_000
"""URLs that are pasted at a time."""

LOOKED_UP = 20
"""Pasted URLs that are looked for in the sections: each may take as long as a page does."""

SHOWN = 200
"""Lines that the page tells of."""


class PasteForm(forms.Form):
    """Asks for many URLs."""

    urls = forms.CharField(
        label=_("URLs"),
        strip=False,  # Lines are told by their numbers.
        widget=forms.Textarea(
            attrs={"rows": 15, "class": "vLargeTextField", "spellcheck": "false"}
        ),
        help_text=_("One on each line: a path such as /about/, or a whole URL of the site."),
    )
    save_rest = forms.BooleanField(
        label=_("Add the others, and leave out the lines that are refused"), required=False
    )

    def __init__(self, *args: Any, sites: list[Site], **options: Any) -> None:
        super().__init__(*args, **options)
        self.sites = sites
        self.fields["site"] = site_field(sites)
        self.order_fields(["site", "urls", "save_rest"])

    def clean_urls(self) -> str:
        """Refuse nothing, and more than can be looked at."""
        text: str = self.cleaned_data["urls"]
        if not text.strip():
            raise forms.ValidationError(self.fields["urls"].error_messages["required"])
        if text.count("\n") >= MAX_PASTED_LINES:
            message = gettext("Paste %(count)s lines at most; there is an import for more.")
            raise forms.ValidationError(message % {"count": number_format(MAX_PASTED_LINES)})
        return text

    def compared(self) -> Comparison:
        """Return the lines beside what is stored."""
        key = self.cleaned_data["site"]
        lines = enumerate(self.cleaned_data["urls"].split("\n"), start=1)
        rows = ((number, [key, line]) for number, line in lines if line.strip())
        site = site_of(self.sites, key)
        return compared_rows(EXTRA_URLS, ["site", "path"], rows, [site] if site else [])


@admin.register(ExtraUrl)
class ExtraUrlAdmin(TransferAdmin):
    """Extra URLs: one by one, pasted, or imported."""

    form = PathForm
    transfer = EXTRA_URLS
    fields = ("site", "path", "lastmod", "changefreq", "priority", "note")
    preview_template = "admin/sitemapkit/steering/explanations.html"
    list_display = ("path", "site", "lastmod", "changefreq", "priority", "note", "changed_at")
    list_filter = (SiteFilter, "changefreq")
    search_fields = ("path", "note")

    def look(
        self, request: HttpRequest, site: Site, row: ExtraUrl, *, stored: bool
    ) -> dict[str, Any]:
        """Return where the URL stands, with which values, or why it does not."""
        return explained([explain_path(site, row.path)])

    def save_model(self, request: HttpRequest, obj: ExtraUrl, form: Any, change: bool) -> None:
        """Save it, and warn of a section that gives the URL already."""
        super().save_model(request, obj, form, change)
        self._warn_of_sections(request, [obj])

    def _warn_of_sections(self, request: HttpRequest, added: list[ExtraUrl]) -> None:
        """Warn of each URL that a section gives already, where the sections can be asked."""
        sites = known_sites(request)
        for row in added:
            site = site_of(sites, row.site)
            if site is None:
                continue
            found, _why = told(partial(explain_path, site, row.path, without=EXTRA_SECTION))
            if found and found.listed:
                text = gettext(
                    "The section %(section)s gives %(url)s already: the sitemaps list it twice."
                    " To change its values, use an override."
                )
                messages.warning(request, text % {"section": found.section, "url": row.path})

    def get_urls(self) -> list[URLPattern]:
        """Add the page to paste URLs."""
        view = self.admin_site.admin_view(self.paste_view)
        return [path("paste/", view, name="sitemapkit_extraurl_paste"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Link the page to those who may use it."""
        may = self.has_add_permission(request)
        context = {"paste_url": may and reverse(self._url_name("paste"))}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def paste_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for URLs, and add them: all of them or, where that is asked for, the right ones."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        sites = known_sites(request)
        if request.method != "POST":
            return self._paste_page(request, PasteForm(sites=sites))
        form = PasteForm(request.POST, sites=sites)
        if not form.is_valid():
            return self._paste_page(request, form)
        comparison = form.compared()
        if comparison.count(Outcome.REFUSED) and not form.cleaned_data["save_rest"]:
            return self._paste_page(request, form, comparison)
        try:
            new, _changed = comparison.apply()
        except IntegrityError:
            messages.error(
                request, gettext("Nothing is added: others have just added the same URLs.")
            )
            return self._paste_page(request, form, comparison)
        log_added(request.user.pk, new)
        self._warn_of_sections(request, new[:LOOKED_UP])
        self._tell(request, len(new), comparison)
        return HttpResponseRedirect(self._way_out(request))

    def _way_out(self, request: HttpRequest) -> str:
        """Return where who has pasted goes on: not all who may add may see the list."""
        seen = self.has_view_or_change_permission(request)
        index = f"{self.admin_site.name}:index"
        return reverse(self._url_name("changelist") if seen else index)

    def _tell(self, request: HttpRequest, new: int, comparison: Comparison) -> None:
        text = ngettext("%(count)s URL added.", "%(count)s URLs added.", new)
        messages.success(request, text % {"count": number_format(new)})
        if known := comparison.count(Outcome.UNCHANGED):
            text = ngettext("%(count)s was there before.", "%(count)s were there before.", known)
            messages.info(request, text % {"count": number_format(known)})

    def _paste_page(
        self, request: HttpRequest, form: PasteForm, comparison: Comparison | None = None
    ) -> HttpResponse:
        refused = comparison.of(Outcome.REFUSED) if comparison else []
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Paste extra URLs"),
            "opts": self.opts,
            "form": form,
            "media": self.media,
            "refused": refused[:SHOWN],
            "refused_count": len(refused),
            "right_count": comparison.count(Outcome.CREATED) if comparison else 0,
            "max_lines": number(MAX_PASTED_LINES),
            "changelist_url": self._way_out(request),
        }
        return TemplateResponse(request, "admin/sitemapkit/steering/paste.html", context)
