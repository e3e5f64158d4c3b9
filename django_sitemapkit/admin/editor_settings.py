"""What the editors' screens share: the site field, pasted paths, duplicates, previews."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.core.exceptions import ValidationError
from django.db import models, router, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from django_sitemapkit.admin.base import CheckedListAdmin, known_sites, site_by_key, try_read
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import Build, hash_of
from django_sitemapkit.models.fields import CHANGEFREQ_CHOICES
from django_sitemapkit.overrides.pasting import MAX_PASTED, pasted_path
from django_sitemapkit.sites import SitemapSite

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
    previewing: ClassVar[bool] = False
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
        self, request: HttpRequest, site: SitemapSite, row: Any, *, stored: bool
    ) -> dict[str, Any]:
        """Return the context of ``preview_template`` for a row.

        The row is saved while this runs. ``stored`` says whether it was saved before, possibly
        with other values. The page shows any exception.
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
        context["preview_template"] = self.preview_template
        context["preview"] = self._preview(request, context["adminform"].form, row)
        context["show_preview"] = row is None or self.has_change_permission(request, row)
        return super().render_change_form(request, context, *args, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save a row, and say when the published files follow."""
        super().save_model(request, obj, form, change)
        self._tell_when(request, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a row, and say when the published files follow."""
        super().delete_model(request, obj)
        self._tell_when(request, obj)

    def _tell_when(self, request: HttpRequest, row: Any) -> None:
        """Say that published files follow with the next build; link to what becomes of a URL."""
        site = site_by_key(known_sites(request), row.site)
        if site is None or Build.objects.published(site) is None:
            return
        text: Any = _("The published sitemap stays as it is until the next build.")
        if path := getattr(row, "path", ""):
            query = urlencode({"site": site.key, "url": path})
            url = f"{reverse(f'{self.admin_site.name}:sitemapkit_inspect')}?{query}"
            text = format_html('{} <a href="{}">{}</a>', text, url, _("What becomes of the URL"))
        messages.info(request, text)

    def _preview(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any] | None:
        if form.is_bound:
            if not form.previewing or form.errors:
                return None
            using = router.db_for_write(self.model)
            with transaction.atomic(using=using):
                row = copy(form.instance)
                row.save()
                context = self._try_preview(request, row, stored=obj is not None)
                transaction.set_rollback(True, using=using)
            return {**context, "unsaved": True}
        return self._try_preview(request, obj, stored=True) if obj is not None else None

    def _try_preview(self, request: HttpRequest, row: Any, *, stored: bool) -> dict[str, Any]:
        site = site_by_key(known_sites(request), row.site)
        if site is None:
            return {"failure": _("Site “%(site)s” does not exist.") % {"site": row.site}}
        context, reason = try_read(lambda: self.preview_context(request, site, row, stored=stored))
        return {"failure": reason} if context is None else context


def log_rows(
    user: Any, rows: Sequence[models.Model], flag: int, fields: Iterable[str] = ()
) -> None:
    """Record in the history that a user added, changed or deletes rows.

    ``user`` is the user's primary key, ``flag`` a constant of the admin's ``LogEntry``, ``fields``
    the names of the changed fields.
    """
    if not rows:
        return
    meta = rows[0]._meta
    with override(None):  # The history translates the names when it is shown.
        names = [str(getattr(meta.get_field(name), "verbose_name", name)) for name in fields]
    messages: dict[int, list[Any]] = {
        ADDITION: [{"added": {}}],
        CHANGE: [{"changed": {"fields": names}}],
    }
    LogEntry.objects.log_actions(user, rows, flag, messages.get(flag, ""))
