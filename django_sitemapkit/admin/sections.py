"""The table of section settings, which replace what sections declare."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.contrib.admin.utils import label_for_field, unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import router, transaction
from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import known_sites, number, try_read
from django_sitemapkit.admin.due_messages import add_due_message
from django_sitemapkit.admin.editor_settings import (
    EditorSettingAdmin,
    EditorSettingForm,
    log_rows,
    site_field,
)
from django_sitemapkit.admin.url_counts import section_changes, url_counts
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Build, Place, Revision, SectionSettings
from django_sitemapkit.models.fields import CHANGEFREQ_CHOICES
from django_sitemapkit.overrides.sections import extra_urls_of
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading import SectionReader, reader_of
from django_sitemapkit.reading.sources import UNSET, Constant
from django_sitemapkit.registry import EXTRA_URLS, belongs_to, registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import SitemapSite, site_by_key

FIELDS = ("enabled", "changefreq", "priority")
"""The fields of the table, all of which can inherit."""

SECTIONS_PER_PAGE = 100
"""Sections on a page. Each sends six values, and Django accepts 1,000 by default."""

MAX_UNUSED_ROWS = 100
"""Settings without effect that a page lists."""

Readers = Mapping[str, Callable[[], SectionReader]]
"""What makes the readers of sections, by name. A call may raise any exception."""


def _readers(site: SitemapSite) -> Readers:
    """Return what makes the reader of each section that a site has, enabled or not."""
    classes = [section for section in registry.at(site) if belongs_to(section, site)]
    return {
        **{section.get_name(): partial(_read, section, site) for section in classes},
        EXTRA_URLS: partial(extra_urls_of, site),
    }


def _read(section: type[BaseSection], site: SitemapSite) -> SectionReader:
    return reader_of(section(site))


def _declarations(
    readers: Readers, names: Collection[str]
) -> dict[str, tuple[dict[str, str] | None, str]]:
    """Return what each section declares, or None and why that cannot be read."""

    def read(name: str) -> dict[str, str]:
        return _declared_texts(readers[name]())

    found, _reason = try_read(lambda: {name: read(name) for name in names})
    if found is not None:  # In a transaction, this takes one savepoint for all of them.
        return {name: (texts, "") for name, texts in found.items()}
    return {name: try_read(partial(read, name)) for name in names}


def _declared_texts(section: SectionReader) -> dict[str, str]:
    """Return what a section declares, as text by field of ``SectionSettings``."""
    texts = {"enabled": _text("enabled", bool(section.options.enabled))}
    for tag in ("changefreq", "priority"):
        source = section.sources.get(tag, UNSET)
        if isinstance(source, Constant):
            texts[tag] = _text(tag, source.value) or gettext("none")
        else:
            texts[tag] = gettext("from each row")
    return texts


def _text(name: str, value: Any) -> str:
    """Return a field's value as text; "" for none, and for one that no sitemap may have."""
    if value is None or value == "":
        return ""
    if name == "enabled":
        return gettext("yes") if value else gettext("no")
    try:
        text = (format_changefreq if name == "changefreq" else format_priority)(value) or ""
    except InvalidValue:
        return ""
    return str(dict(CHANGEFREQ_CHOICES).get(text, text))


class SearchForm(forms.Form):
    """A form for a site, and for a part of the names of its sections."""

    q = forms.CharField(label=_("Section"), required=False, widget=forms.SearchInput)

    def __init__(self, sites: Sequence[SitemapSite], site: SitemapSite | None, query: str) -> None:
        key = site.key if site else ""
        super().__init__(initial={"site": key, "q": query}, label_suffix="")
        self.fields["site"] = site_field(sites, key)
        self.order_fields(["site", "q"])


class SectionForm(EditorSettingForm):
    """The settings of one section: a row of the table.

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
            inherit = gettext("Inherit")
            if value := declared.get(name):
                inherit = gettext("Inherit (%(value)s)") % {"value": value}
            if isinstance(widget, forms.Select):
                (empty, _inherit), *others = widget.choices
                widget.choices = [(empty, inherit), *others]
            else:
                widget.attrs["placeholder"] = inherit


@admin.register(SectionSettings)
class SectionSettingsAdmin(EditorSettingAdmin):
    """Section settings: one table of all sections of a site, whose empty fields inherit."""

    # Permissions

    def has_edit_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change the table, which adds, changes and deletes rows."""
        return (
            self.has_add_permission(request)
            and self.has_change_permission(request)
            and self.has_delete_permission(request)
        )

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Return what the admin's index links: the table, but no form for a new row."""
        return {**super().get_model_perms(request), "add": False}

    # The table

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the settings of all sections of a site as one form, and store what it changes."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        may_edit = self.has_edit_permission(request)
        if request.method == "POST" and not may_edit:
            raise PermissionDenied
        sites = known_sites(request)
        key, query = request.GET.get("site", ""), request.GET.get("q", "").strip()
        site = sites[0] if len(sites) == 1 and not key else site_by_key(sites, key)
        if key and sites and site is None:
            raise Http404(_("This site does not exist."))
        readers, failure = try_read(partial(_readers, site)) if site else (None, "")
        context: dict[str, Any] = {
            "title": capfirst(self.opts.verbose_name_plural),
            "search": SearchForm(sites, site, query),
            "site": site,
            "several": len(sites) > 1,
            "failure": failure,
            "may_edit": may_edit,
            "may_delete": self.has_delete_permission(request),
            "may_view_builds": request.user.has_perm("sitemapkit.view_build"),
            "labels": [capfirst(str(label_for_field(name, self.model))) for name in FIELDS],
            "preserved_filters": self.get_preserved_filters(request),
        }
        if site is not None and readers is not None:
            context |= _table(request, site, readers, query)
            if request.method == "POST":
                rows = [row["form"] for row in context["rows"]]
                valid = [form.is_valid() for form in rows]  # Of all, so that all show their errors.
                if all(valid):
                    self._save(request, site, [form for form in rows if form.has_changed()])
                    return HttpResponseRedirect(request.get_full_path())
                context["errors"] = valid.count(False)
        unused = _unused_rows(sites, site, readers)
        context |= {
            "unused": unused[:MAX_UNUSED_ROWS],
            "more_unused": len(unused) > MAX_UNUSED_ROWS,
        }
        return self.render_page(request, "editor_settings/section_table", context)

    def _save(
        self, request: HttpRequest, site: SitemapSite, changed: Sequence[SectionForm]
    ) -> None:
        """Store what the user has changed, and say so."""
        if not changed:
            messages.info(request, gettext("Nothing was changed."))
            return
        rows = _store(request.user.pk, site, changed)
        text = ngettext(
            "The settings of %(count)s section were saved.",
            "The settings of %(count)s sections were saved.",
            len(changed),
        )
        messages.success(request, text % {"count": number(len(changed))})
        if rows:
            add_due_message(request, [site.key])

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
        url = reverse(self._url_name("changelist"))
        row = self.get_object(request, unquote(object_id)) if object_id else None
        if row is not None and site_by_key(known_sites(request), row.site) is not None:
            url = f"{url}?{urlencode({'site': row.site, 'q': row.section})}"
        return HttpResponseRedirect(url)


def _table(request: HttpRequest, site: SitemapSite, readers: Readers, query: str) -> dict[str, Any]:
    """Return a page of the sections whose names match a search, as context of the template."""
    names = [name for name in sorted(readers) if query.casefold() in name]
    page = Paginator(names, SECTIONS_PER_PAGE).get_page(request.GET.get("p"))
    shown = list(page.object_list)
    if request.method == "POST":  # A section that is new may have moved others to another page.
        shown = [name for name in sorted(readers) if f"section-{name}-{FIELDS[0]}" in request.POST]
    stored = {row.section: row for row in SectionSettings.objects.filter(site=site.key)}
    declarations = _declarations(readers, shown)
    published = _published(site)
    rows = []
    for name in shown:
        row = stored.get(name) or SectionSettings(site=site.key, section=name)
        declared, error = declarations[name]
        data = request.POST if request.method == "POST" else None
        form = SectionForm(row, declared or {}, data)
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
                        "own": _text(field, getattr(row, field)),
                        "declared": (declared or {}).get(field, ""),
                    }
                    for field in FIELDS
                ],
            }
        )
    return {
        "rows": rows,
        "page": page,
        "range": page.paginator.get_elided_page_range(page.number),
        "count": ngettext("%(count)s section", "%(count)s sections", len(names))
        % {"count": number(len(names))},
        "live": published["build"],
    }


def _published(site: SitemapSite) -> dict[str, Any]:
    """Return what the published build has of each section: its URLs, their change, its problems."""
    build = Build.objects.published(site)
    if build is None:
        return {"build": None, "names": (), "urls": {}, "problems": {}}
    counts = url_counts([build.pk, build.previous_id])
    files = Place.objects.in_build(build).exclude(section="").exclude(problems={}, skipped=0)
    faulty = files.order_by().values_list("section")
    return {
        "build": build,
        "names": counts[build.pk],
        "urls": section_changes(counts[build.pk], counts[build.previous_id] or None),
        "problems": {
            section: _problems_text(skipped, count)
            for section, skipped, count in faulty.annotate(rows=Sum("skipped"), files=Count("pk"))
        },
    }


def _problems_text(skipped: int, files: int) -> str:
    """Return how many rows of a section were skipped, or how many files have other problems."""
    if skipped:
        text = ngettext("%(count)s row skipped", "%(count)s rows skipped", skipped)
        return text % {"count": number(skipped)}
    text = ngettext("%(count)s file with problems", "%(count)s files with problems", files)
    return text % {"count": number(files)}


def _unused_rows(
    sites: Sequence[SitemapSite], site: SitemapSite | None, names: Collection[str] | None
) -> list[dict[str, Any]]:
    """Return the settings of sites that no longer exist, and of sections that ``site`` lacks.

    ``names`` are the sections of ``site``; None if they cannot be read.
    """
    if not sites:
        return []
    gone = ~Q(site__in=[each.key for each in sites])
    if site is not None and names is not None:
        gone |= Q(site=site.key) & ~Q(section__in=list(names))
    rows = SectionSettings.objects.filter(gone).order_by("site", "section")
    return [
        {"row": row, "texts": [_text(name, getattr(row, name)) for name in FIELDS]}
        for row in rows[: MAX_UNUSED_ROWS + 1]
    ]


def _store(user: Any, site: SitemapSite, changed: Sequence[SectionForm]) -> list[SectionSettings]:
    """Store the changed values, record who changed them, and return the rows.

    All other values stay as they are now, whatever the page showed. A row whose fields are all
    empty is deleted.
    """
    using = router.db_for_write(SectionSettings)
    rows = SectionSettings.objects.using(using).filter(site=site.key)
    created, deleted = [], []
    updated: dict[tuple[str, ...], list[SectionSettings]] = {}
    with transaction.atomic(using=using):
        Revision.next_of(site.key, using)  # From here on, other editors of the site wait.
        names = [form.instance.section for form in changed]
        stored = {row.section: row for row in rows.filter(section__in=names)}
        for form in changed:
            name = form.instance.section
            row = stored.get(name) or SectionSettings(site=site.key, section=name)
            for field in form.changed_data:
                setattr(row, field, form.cleaned_data[field])
            row.changed_at = timezone.now()
            is_empty = all(getattr(row, field) in {None, ""} for field in FIELDS)
            if row.pk is not None and not is_empty:
                updated.setdefault(tuple(form.changed_data), []).append(row)
            elif row.pk is not None:
                deleted.append(row)
            elif not is_empty:
                created.append(row)
        rows.bulk_create(created)
        # Not every database returns the keys of rows created in bulk.
        created = list(rows.filter(section__in=[row.section for row in created]))
        log_rows(user, created, ADDITION)
        for fields, group in updated.items():
            rows.bulk_update(group, [*fields, "changed_at"])
            log_rows(user, group, CHANGE, fields)
        log_rows(user, deleted, DELETION)
        rows.filter(pk__in=[row.pk for row in deleted]).delete()
    return [*created, *(row for group in updated.values() for row in group), *deleted]
