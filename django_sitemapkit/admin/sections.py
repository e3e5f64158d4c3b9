"""The table of section settings, which replace what sections declare."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.contrib.admin.utils import label_for_field, unquote
from django.core.exceptions import PermissionDenied
from django.db import router, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import SWITCHED_OFF, log_rows
from django_sitemapkit.admin.base import known_sites, number_text, paged_context
from django_sitemapkit.admin.differences import section_changes, url_counts_by_build
from django_sitemapkit.admin.editor_settings import (
    EditorSettingAdmin,
    EditorSettingForm,
    add_pending_message,
)
from django_sitemapkit.builds.report.published import problems_by_section
from django_sitemapkit.builds.report.status import unpublished_state
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import try_each, try_read
from django_sitemapkit.models import CHANGEFREQ_CHOICES, Build, Revision, SectionSettings
from django_sitemapkit.overrides.in_force import ExtraUrls
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading import UNSET, Constant, reader_of
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import SitemapSite, site_by_key
from django_sitemapkit.words import words_of

FIELDS = ("enabled", "changefreq", "priority")
"""The fields of the table, all of which can inherit."""

SECTIONS_PER_PAGE = 80
"""Sections on a page. Each sends six values, and Django accepts 1,000 by default."""

MAX_UNUSED_ROWS = 100
"""Settings without effect that a page lists."""

Sections = Mapping[str, type[BaseSection]]
"""Sections by name."""


def _all_sections(site: SitemapSite) -> Sections:
    """Return the section classes of a site by name, enabled or not, with that of extra URLs."""
    here: list[Any] = [each for each in registry.classes_of(site) if belongs_to(each, site)]
    return {each.get_name(): each for each in (*here, ExtraUrls)}


def _declared_texts(section: type[BaseSection], site: SitemapSite) -> dict[str, str]:
    """Return what a section declares for each field of the table, as text."""
    reader = reader_of(section(site))
    texts = {"enabled": _field_text("enabled", bool(reader.options.enabled))}
    for tag in ("changefreq", "priority"):
        source = reader.tag_sources.get(tag, UNSET)
        texts[tag] = (
            _field_text(tag, source.value) or gettext("none")
            if isinstance(source, Constant)
            else gettext("from each row")
        )
    return texts


def _field_text(name: str, value: Any) -> str:
    """Return the value of a field of the table as text; "" if it is empty or invalid."""
    if value is None or value == "":
        return ""
    if name == "enabled":
        return gettext("yes") if value else gettext("no")
    try:
        text = (format_changefreq if name == "changefreq" else format_priority)(value) or ""
    except InvalidValue:
        return ""
    return str(dict(CHANGEFREQ_CHOICES).get(text, text))


class SectionForm(EditorSettingForm):
    """A form for the settings of one section: a row of the table.

    Each value is compared with the one that the page has shown. What the user has not changed there
    is not stored, so that it replaces nothing that somebody else has saved meanwhile.
    """

    class Meta:
        model = SectionSettings
        fields = FIELDS
        help_texts: ClassVar[dict[str, str]] = dict.fromkeys(FIELDS, "")

    def __init__(self, row: SectionSettings, declared: Mapping[str, str], data: Any = None) -> None:
        super().__init__(
            data,
            instance=row,
            prefix=f"section-{row.section}",
            empty_permitted=True,
            use_required_attribute=False,
        )
        for name, field in self.fields.items():
            field.show_hidden_initial = True
            widget: Any = field.widget
            text = gettext("%(field)s of section “%(section)s”")
            widget.attrs["aria-label"] = text % {"field": field.label, "section": row.section}
            inherit = gettext("Default")
            if value := declared.get(name):
                inherit = gettext("Default (%(value)s)") % {"value": value}
            if isinstance(widget, forms.Select):
                (empty, _inherit), *others = widget.choices
                widget.choices = [(empty, inherit), *others]
            else:
                widget.attrs["placeholder"] = inherit


@admin.register(SectionSettings)
class SectionSettingsAdmin(EditorSettingAdmin):
    """The admin of section settings: one table of a site's sections, whose empty fields inherit."""

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Return the permissions that the admin's index shows links for; it has no link to add."""
        return {**super().get_model_perms(request), "add": False}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a page of the table of a site's sections, or store the posted changes."""
        # The table adds, changes and deletes rows.
        may_edit = all(
            getattr(self, f"has_{action}_permission")(request)
            for action in ("add", "change", "delete")
        )
        may_look = request.method != "POST" and self.has_view_or_change_permission(request)
        if not (may_edit or may_look):
            raise PermissionDenied
        sites = known_sites(request)
        key, query = request.GET.get("site", ""), request.GET.get("q", "").strip()
        site = sites[0] if len(sites) == 1 and not key else site_by_key(sites, key)
        if key and sites and site is None:
            raise Http404(_("This site does not exist."))
        sections, failure = try_read(partial(_all_sections, site)) if site else (None, "")
        table: dict[str, Any] = {}
        if site is not None and sections is not None:
            table = _table_context(request, site, sections, query)
            if request.method == "POST":
                rows = table["rows"]
                valid = [row["form"].is_valid() for row in rows]  # So that all show their errors.
                if all(valid):
                    self._save_table(
                        request, site, [row for row in rows if row["form"].has_changed()]
                    )
                    return HttpResponseRedirect(request.get_full_path())
                table["errors"] = valid.count(False)
        unused = _unused_rows(sites, site, sections)
        return self.render_page(
            request,
            "editor_settings/section_table",
            title=capfirst(self.opts.verbose_name_plural),
            sites=sites,
            site=site,
            query=query,
            several=len(sites) > 1,
            failure=failure,
            may_edit=may_edit,
            may_delete=self.has_delete_permission(request),
            may_view_builds=request.user.has_perm("sitemapkit.view_build"),
            labels=[capfirst(str(label_for_field(name, self.model))) for name in FIELDS],
            preserved_filters=self.get_preserved_filters(request),
            unused=unused[:MAX_UNUSED_ROWS],
            more_unused=len(unused) > MAX_UNUSED_ROWS,
            **table,
        )

    def _save_table(
        self, request: HttpRequest, site: SitemapSite, changed: Sequence[Mapping[str, Any]]
    ) -> None:
        """Store the changed rows of the table; say how many, and what the sitemap loses."""
        if not changed:
            messages.info(request, gettext("Nothing was changed."))
            return
        rows = _store_changes(request.user.pk, site, [row["form"] for row in changed])
        text = ngettext(
            "The settings of %(count)s section were saved.",
            "The settings of %(count)s sections were saved.",
            len(changed),
        )
        messages.success(request, text % {"count": number_text(len(changed))})
        if rows:
            is_new = len(rows) == 1 and changed[0]["form"].instance.pk is None
            lost = (row["urls"] for row in changed if row["form"].instance.enabled is False)
            add_pending_message(
                request,
                [site.key],
                undo=self.view_url("delete", rows[0].pk) if is_new else "",
                section=rows[0].section if len(rows) == 1 else "",
                lost=sum(urls.after for urls in lost if urls),
            )

    # The pages that the table replaces

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Redirect to the table: Django's own links to a row, as in the history, lead here."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        query = {}
        row = self.get_object(request, unquote(object_id)) if object_id else None
        if row is not None and site_by_key(known_sites(request), row.site) is not None:
            query = {"site": row.site, "q": row.section}
        return HttpResponseRedirect(self.screen_url("sectionsettings_changelist", **query))


def _table_context(
    request: HttpRequest, site: SitemapSite, sections: Sections, query: str
) -> dict[str, Any]:
    """Return the context of the table: a page of the sections whose names match a search.

    For a posted table, the rows are those that it contains.
    """
    names = [name for name in sorted(sections) if query.casefold() in name]
    page = paged_context(request, names, SECTIONS_PER_PAGE)
    shown = list(page["page"].object_list)
    data = request.POST if request.method == "POST" else None
    if data is not None:  # A section that is new may have moved others to another page.
        shown = [name for name in sorted(sections) if f"section-{name}-{FIELDS[0]}" in data]
    stored = {row.section: row for row in SectionSettings.objects.filter(site=site.key)}
    declarations = try_each([partial(_declared_texts, sections[name], site) for name in shown])
    published = _published_context(site)
    rows = []
    for name, (found, error) in zip(shown, declarations, strict=True):
        declared = found or {}
        row = stored.get(name) or SectionSettings(site=site.key, section=name)
        form = SectionForm(row, declared, data)
        rows.append(
            {
                "name": name,
                "urls": published["urls"].get(name),
                "is_published": name in published["names"],
                "problems": published["problems"].get(name, ""),
                "error": error,
                "form": form,
                "cells": [
                    {
                        "field": form[field],
                        "own": _field_text(field, getattr(row, field)),
                        "declared": declared.get(field, ""),
                    }
                    for field in FIELDS
                ],
            }
        )
    return {
        **page,
        "rows": rows,
        "count": ngettext("%(count)s section", "%(count)s sections", len(names))
        % {"count": number_text(len(names))},
        "live": published["build"],
        "unpublished": words_of(unpublished_state()),
    }


def _published_context(site: SitemapSite) -> dict[str, Any]:
    """Return the published build, and its URLs, their change and its problems by section."""
    build = Build.objects.published(site)
    if build is None:
        return {"build": None, "names": (), "urls": {}, "problems": {}}
    counts = url_counts_by_build([build.pk, build.previous_id])
    return {
        "build": build,
        "names": counts[build.pk],
        "urls": section_changes(counts[build.pk], counts[build.previous_id] or None),
        "problems": {
            name: number_text(count) for name, count in problems_by_section(build).items()
        },
    }


def _unused_rows(
    sites: Sequence[SitemapSite], site: SitemapSite | None, names: Collection[str] | None
) -> list[dict[str, Any]]:
    """Return template rows of settings without effect: their site or section does not exist.

    ``names`` are the sections of ``site``, whose unknown sections are included; None if they cannot
    be read. At most ``MAX_UNUSED_ROWS`` and one more are returned.
    """
    if not sites:
        return []
    gone = ~Q(site__in=[each.key for each in sites])
    if site is not None and names is not None:
        gone |= Q(site=site.key) & ~Q(section__in=list(names))
    rows = SectionSettings.objects.filter(gone).order_by("site", "section")
    return [
        {"row": row, "texts": [_field_text(name, getattr(row, name)) for name in FIELDS]}
        for row in rows[: MAX_UNUSED_ROWS + 1]
    ]


def _store_changes(
    user: Any, site: SitemapSite, changed: Sequence[SectionForm]
) -> list[SectionSettings]:
    """Store the changed values, log them, and return the rows that were stored or deleted.

    All other values stay as they are now, whatever the page showed. A row whose fields are all
    empty is deleted.
    """
    using = router.db_for_write(SectionSettings)
    rows = []
    with transaction.atomic(using=using):
        Revision.increment(site.key, using)  # From here on, other editors of the site wait.
        settings = SectionSettings.objects.using(using).filter(site=site.key)
        stored = {row.section: row for row in settings}
        for form in changed:
            name = form.instance.section
            row = stored.get(name) or SectionSettings(site=site.key, section=name)
            for field in form.changed_data:
                setattr(row, field, form.cleaned_data[field])
            is_new = row.pk is None
            is_empty = all(getattr(row, field) in {None, ""} for field in FIELDS)
            if is_empty and is_new:
                continue
            if is_empty:
                log_rows(user, [row], DELETION)
                row.delete(using=using)
            else:
                row.save(using=using, update_fields=None if is_new else form.changed_data)
                log_rows(
                    *(user, [row], ADDITION if is_new else CHANGE, form.changed_data),
                    SWITCHED_OFF if "enabled" in form.changed_data and row.enabled is False else "",
                )
            rows.append(row)
    return rows
