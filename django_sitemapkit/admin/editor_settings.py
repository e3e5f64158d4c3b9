"""What the editors' screens share: the site field, pasted paths, duplicates, previews."""

import json
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, ClassVar

from django import forms
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import models, router, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    known_sites,
    number,
    try_read,
)
from django_sitemapkit.admin.due_messages import add_due_message
from django_sitemapkit.admin.url_state import states_of
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import hash_of
from django_sitemapkit.models.fields import CHANGEFREQ_CHOICES
from django_sitemapkit.overrides.pasting import MAX_PASTED, pasted_path
from django_sitemapkit.sites import SitemapSite, site_by_key

MAX_LOGGED_ROWS = 1_000
"""Rows of an action that are logged one by one."""

YES_AND_NO = {
    "enabled": (_("Yes"), _("No")),
    "include": (_("Yes, include it"), _("No, exclude it")),
}
"""The choices of fields that can also inherit."""


def site_field(sites: Sequence[SitemapSite], current: str = "") -> forms.ChoiceField:
    """Return a field to choose a site; with a single site it is hidden."""
    choices = [(site.key, f"{site.key} ({site.origin}{site.path})") for site in sites]
    if len(sites) == 1 and current in {"", sites[0].key}:
        return forms.ChoiceField(
            label=capfirst(_("site")),
            choices=choices,
            initial=sites[0].key,
            widget=forms.HiddenInput,
        )
    return forms.ChoiceField(label=capfirst(_("site")), choices=[("", "---------"), *choices])


class EditorSettingForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form for one editor setting of a site."""

    sites: ClassVar[Sequence[SitemapSite]] = ()
    previewing: bool = False
    """Whether this is a preview. A preview is never valid, so nothing saves it."""
    change_url: ClassVar[str] = ""
    """The URL name of a row's change page, to link a duplicate."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "site" in self.fields:
            self.fields["site"] = site_field(self.sites, self.instance.site)
        if "changefreq" in self.fields:
            changefreq: Any = self.fields["changefreq"]
            changefreq.choices = [("", _("Inherit")), *CHANGEFREQ_CHOICES]
        for name, (yes, no) in YES_AND_NO.items():
            if name in self.fields:
                widget: Any = self.fields[name].widget
                widget.choices = [("unknown", _("Inherit")), ("true", yes), ("false", no)]
                self.fields[name].show_hidden_initial = True  # For clean().
        for name in ("note", "path", "pattern", "title"):
            if name in self.fields:
                self.fields[name].widget.attrs["class"] = "vLargeTextField sitemapkit-wide"
        if "lastmod" in self.fields:
            # The admin shows text next to both parts, but no labels.
            parts = getattr(self.fields["lastmod"].widget, "widgets", ())
            for part, kind in zip(parts, (_("date"), _("time")), strict=False):
                part.attrs["aria-label"] = f"{self.fields['lastmod'].label}, {kind}"
        if "path" in self.fields:
            # Pasted text may have a host, and may not be percent-encoded yet.
            self.fields["path"] = forms.CharField(
                label=self.fields["path"].label,
                help_text=self.fields["path"].help_text,
                required=self.fields["path"].required,
                max_length=MAX_PASTED,
                widget=self.fields["path"].widget,
            )

    def clean(self) -> dict[str, Any]:
        """Keep ``include`` as it is now, unless the user has changed what the page showed.

        Otherwise a page that was open while somebody excluded the URL would list it again.
        """
        cleaned = super().clean() or self.cleaned_data
        is_kept = self.instance.pk is not None and "include" not in self.changed_data
        if is_kept and "include" in cleaned:
            cleaned["include"] = self.instance.include
        return cleaned

    def prepare_preview(self) -> None:
        """Read what takes long before the row is saved, which lets other editors wait."""

    def is_valid(self) -> bool:
        """Return whether it may be saved."""
        return super().is_valid() and not self.previewing

    @property
    def site(self) -> SitemapSite | None:
        """The chosen site, once the field is clean."""
        return site_by_key(self.sites, self.cleaned_data.get("site", self.instance.site))

    def clean_lastmod(self) -> Any:
        """Reject a date in the future: the sitemap would leave it out until then."""
        lastmod = self.cleaned_data["lastmod"]
        if lastmod is not None and lastmod > timezone.now():
            raise ValidationError(_("This date is in the future."), code="future")
        return lastmod

    def clean_path_text(self) -> None:
        """Normalise the path, or report what is wrong with it."""
        if self.site is None or not self.cleaned_data.get("path"):
            return
        try:
            self.cleaned_data["path"] = pasted_path(self.site, self.cleaned_data["path"])
        except InvalidValue as error:
            self.add_error("path", ValidationError(str(error), code=error.code))

    def reject_duplicate(self, field: str | None, **identity: Any) -> None:
        """Report a stored row with the same identity, with a link to it."""
        if "site" not in self.cleaned_data:
            return  # The site field reports its own error.
        rows = self._meta.model._default_manager.filter(site=self.cleaned_data["site"], **identity)
        row = rows.exclude(pk=self.instance.pk).first()
        if row is not None:
            self.add_error(field, ValidationError(self._duplicate_link(row), code="unique"))

    def _duplicate_link(self, row: models.Model) -> str:
        url = reverse(self.change_url, args=[row.pk])
        return format_html(
            '{} <a href="{}">{}</a>', _("This already exists:"), url, str(row)[:200] or row.pk
        )


class PathForm(EditorSettingForm):
    """A form for a row that is identified by its path."""

    def clean(self) -> dict[str, Any]:
        """Normalise the path, and reject a duplicate."""
        cleaned = super().clean() or self.cleaned_data
        self.clean_path_text()
        if self.site is not None and cleaned.get("path"):
            self.reject_duplicate("path", hash=hash_of(cleaned["path"]))
        return cleaned


class EditorSettingAdmin(CheckedListAdmin):
    """A screen of editor settings; a subclass previews a row in ``preview_context``."""

    form = EditorSettingForm
    change_form_template = "admin/sitemapkit/editor_settings/change_form.html"
    ordering: ClassVar[Any] = ("-pk",)
    show_full_result_count = False
    preview_template: str
    """The template that shows what ``preview_context`` returns."""

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overrides.css"]}

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: Any, form: Any
    ) -> dict[str, Any]:
        """Return the context of ``preview_template`` for a row.

        Of the ``inspections`` in it, the page shows the states.
        The row is saved while this runs; ``form`` is bound if it is to be saved with other values.
        The page shows any exception.
        """
        raise NotImplementedError

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> type[Any]:
        """Return the form class with the sites of the request."""
        form = super().get_form(request, obj, change=change, **options)
        known = {
            "sites": known_sites(request),
            "previewing": "_preview" in request.POST,
            "change_url": self._url_name("change"),
        }
        return type(form.__name__, (form,), known)

    def _url_name(self, view: str) -> str:
        return f"{self.admin_site.name}:sitemapkit_{self.opts.model_name}_{view}"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show a preview of the row below the form, as saved or as it would be saved."""
        row = options["obj"]
        context |= {
            "preview_template": self.preview_template,
            "preview": self._preview(request, context["adminform"].form, row),
            "show_preview": row is None or self.has_change_permission(request, row),
        }
        return super().render_change_form(request, context, *args, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save a row, and say when the published files follow."""
        super().save_model(request, obj, form, change)
        undo = ""
        if not change and self.has_delete_permission(request, obj):
            undo = reverse(self._url_name("delete"), args=[obj.pk])
        before = form.initial.get("site") if change else None
        keys = {obj.site, before or obj.site}
        add_due_message(request, keys, path=getattr(obj, "path", ""), undo=undo)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a row, and say when the published files follow."""
        super().delete_model(request, obj)
        add_due_message(request, [obj.site], path=getattr(obj, "path", ""))

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        """Delete rows, and say when the published files follow."""
        keys = sites_of(queryset)
        super().delete_queryset(request, queryset)
        add_due_message(request, keys)

    def _preview(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any] | None:
        if form.is_bound:
            if not form.previewing or form.errors:
                return None
            form.prepare_preview()
            using = router.db_for_write(self.model)
            with transaction.atomic(using=using):
                row = copy(form.instance)
                row.save()
                context = self._try_preview(request, row, form)
                transaction.set_rollback(True, using=using)
            return {**self._with_states(request, row, context), "unsaved": True}
        if obj is None:
            return None
        return self._with_states(request, obj, self._try_preview(request, obj, form))

    def _with_states(
        self, request: HttpRequest, row: Any, context: dict[str, Any]
    ) -> dict[str, Any]:
        """Add the states of inspected URLs. Files are read while no other editor has to wait."""
        site, inspections = site_by_key(known_sites(request), row.site), context.get("inspections")
        if site is None or inspections is None:
            return context
        states, reason = try_read(lambda: states_of(site, inspections))
        return {**context, **(states or {"failure": reason})}

    def _try_preview(self, request: HttpRequest, row: Any, form: Any) -> dict[str, Any]:
        site = site_by_key(known_sites(request), row.site)
        if site is None:
            return {"failure": _("Site “%(site)s” does not exist.") % {"site": row.site}}
        context, reason = try_read(lambda: self.preview_context(request, site, row, form))
        return {"failure": reason} if context is None else context


def sites_of(rows: models.QuerySet[Any]) -> list[str]:
    """Return the keys of the sites that rows belong to."""
    return list(rows.order_by().values_list("site", flat=True).distinct())


def log_rows(
    user: Any,
    rows: Sequence[models.Model],
    flag: int,
    fields: Iterable[str] = (),
    message: str = "",
) -> None:
    """Record in the history that a user added, changed or deletes rows.

    ``user`` is the user's primary key, ``flag`` a constant of the admin's ``LogEntry``, ``fields``
    the names of the changed fields; ``message`` replaces what Django says of them. With more than
    ``MAX_LOGGED_ROWS`` there is one entry for all.
    """
    if len(rows) > MAX_LOGGED_ROWS:
        log_count(user, type(rows[0]), len(rows), flag, fields, message)
    elif rows:
        text = message or _change_message(type(rows[0]), flag, fields)
        LogEntry.objects.log_actions(user, rows, flag, text)


def log_count(
    user: Any,
    model: type[models.Model],
    count: int,
    flag: int,
    fields: Iterable[str] = (),
    message: str = "",
) -> None:
    """Record in one entry, which is in no row's own history, what was done to many rows."""
    LogEntry.objects.create(
        user_id=user,
        content_type=ContentType.objects.get_for_model(model),
        object_repr=f"{number(count)} {model._meta.verbose_name_plural}",
        action_flag=flag,
        change_message=message or _change_message(model, flag, fields),
    )


def _change_message(model: type[models.Model], flag: int, fields: Iterable[str]) -> str:
    """Return a message in the form in which Django translates it when it is shown."""
    if flag == ADDITION:
        return json.dumps([{"added": {}}])
    if flag != CHANGE:
        return ""
    meta = model._meta
    with override(None):
        names = [str(getattr(meta.get_field(name), "verbose_name", name)) for name in fields]
    return json.dumps([{"changed": {"fields": names}}])
