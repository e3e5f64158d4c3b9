"""What the editors' screens share: the site field, pasted paths, duplicates, previews.

And the message after a change: when the published files follow it, and the button to build them.
"""

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.encoding import iri_to_uri
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import edit_counts_context
from django_sitemapkit.admin.base import (
    BUILDING,
    BaseAdmin,
    known_site_or_reason,
    known_sites,
    number_text,
    without_origin,
)
from django_sitemapkit.admin.url_inspection import inspection_states_context
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.builds.report.published import is_served_live
from django_sitemapkit.builds.report.status import unpublished_state
from django_sitemapkit.conf import settings
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.inspection import try_read
from django_sitemapkit.models import CHANGEFREQ_CHOICES, Publication
from django_sitemapkit.overrides.pasting import MAX_PASTED, pasted_path
from django_sitemapkit.sites import SitemapSite, site_by_key
from django_sitemapkit.words import words_of


def site_field(sites: Sequence[SitemapSite], current: str = "") -> forms.ChoiceField:
    """Return a form field to choose a site; with a single site it is hidden and preset.

    ``current`` is the key of the row's site. If that site is gone, the field is shown.
    """
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
    """Base class of forms for one editor setting of a site."""

    sites: ClassVar[Sequence[SitemapSite]] = ()
    previewing: bool = False
    """Whether this is a preview. A preview is never valid, so nothing saves it."""
    model_admin: ClassVar[Any] = None
    """The screen, which links a duplicate."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "site" in self.fields:
            self.fields["site"] = site_field(self.sites, self.instance.site)
        fields: dict[str, Any] = self.fields
        if "changefreq" in fields:
            fields["changefreq"].choices = [("", _("As the section says")), *CHANGEFREQ_CHOICES]
        if "include" in fields:
            fields["include"].show_hidden_initial = True  # For clean().
        for name in fields.keys() & {"note", "path", "pattern", "title"}:
            fields[name].widget.attrs["class"] = "vLargeTextField sitemapkit-wide"
        if "lastmod" in self.fields:
            # The admin shows text next to both parts, but no labels.
            parts = getattr(self.fields["lastmod"].widget, "widgets", ())
            for part, kind in zip(parts, (_("date"), _("time")), strict=False):
                part.attrs["aria-label"] = f"{self.fields['lastmod'].label}, {kind}"

    def clean(self) -> dict[str, Any]:
        """Keep the stored value of ``include``, unless the user has changed what the page showed.

        Otherwise a page that was open while somebody excluded the URL would list it again.
        """
        cleaned = super().clean() or self.cleaned_data
        is_kept = self.instance.pk is not None and "include" not in self.changed_data
        if is_kept and "include" in cleaned:
            cleaned["include"] = self.instance.include
        return cleaned

    def prepare_preview(self) -> None:
        """Read what takes long, before a preview saves the row; a hook that does nothing here.

        Once the row is saved, other editors have to wait until that is rolled back.
        """

    def is_valid(self) -> bool:
        """Return whether the row may be saved: the data are valid, and no preview is asked for."""
        return super().is_valid() and not self.previewing

    @property
    def site(self) -> SitemapSite | None:
        """The chosen site; None if the field is not valid or the site no longer exists."""
        return site_by_key(self.sites, self.cleaned_data.get("site", self.instance.site))

    def clean_lastmod(self) -> Any:
        """Return the date; reject one in the future, which the sitemap would leave out."""
        lastmod = self.cleaned_data["lastmod"]
        if lastmod is not None and lastmod > timezone.now():
            raise ValidationError(_("This date is in the future."), code="future")
        return lastmod


class HashedSettingForm(EditorSettingForm):
    """A form for a row that is identified by a text, such as a path, or by an object.

    It normalises the text, and links a stored row with the same identity.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "path" in self.fields:
            # Pasted text may have a host, and may not be percent-encoded yet.
            self.fields["path"] = forms.CharField(
                label=self.fields["path"].label,
                help_text=self.fields["path"].help_text,
                required=self.fields["path"].required,
                max_length=MAX_PASTED,
                widget=self.fields["path"].widget,
            )

    def normalised(self, site: SitemapSite, text: str) -> str:
        """Return the text as it is stored; raises InvalidValue with a translated message."""
        return pasted_path(site, text)

    def clean(self) -> dict[str, Any]:
        """Replace the text with its normal form, or report what is wrong with it."""
        cleaned = super().clean() or self.cleaned_data
        name = self.instance.text_field
        if self.site is not None and cleaned.get(name):
            try:
                cleaned[name] = self.normalised(self.site, cleaned[name])
            except InvalidValue as error:
                self.add_error(name, ValidationError(str(error), code=error.code))
        return cleaned

    def _post_clean(self) -> None:
        """Report an error with a link if a stored row has the same identity."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        rows = self._meta.model._default_manager.filter(site=self.instance.site)
        row = rows.filter(hash=self.instance.hash).exclude(pk=self.instance.pk).first()
        if row is not None:
            text = format_html(
                '{} <a href="{}">{}</a>',
                *(_("This already exists:"), self.model_admin.view_url("change", row.pk)),
                str(row)[:200] or row.pk,
            )
            names = (self.instance.text_field, "object_id")
            field = next(filter(self.cleaned_data.get, names), None)
            self.add_error(field, ValidationError(text, code="unique"))


class EditorSettingAdmin(BaseAdmin):
    """Base class of the admins of editor settings: a form with a preview, and messages.

    A subclass returns the preview of a row in ``preview_context()``.
    """

    form = EditorSettingForm
    change_form_template = "admin/sitemapkit/editor_settings/change_form.html"
    ordering: ClassVar[Any] = ("-pk",)
    show_full_result_count = False
    preview_template: str
    """The template that shows what ``preview_context`` returns."""

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: Any, form: Any
    ) -> dict[str, Any]:
        """Return the context of ``preview_template``, which shows what a row does.

        The row is stored while this runs. ``form`` is bound if the preview is of entered values,
        which are rolled back afterwards. If the context has ``inspections``, the states of these
        URLs are added to it. If this raises an exception, the page shows it.
        """
        raise NotImplementedError

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> type[Any]:
        """Return the form class with what it needs of the request, such as the sites."""
        form = super().get_form(request, obj, change=change, **options)
        return type(
            form.__name__,
            (form,),
            {
                "sites": known_sites(request),
                "previewing": "_preview" in request.POST,
                "model_admin": self,
                "session": request.session,
            },
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Render the form, with a preview of the row as stored or as it would be saved."""
        row = options["obj"]
        context |= {
            "preview_template": self.preview_template,
            "preview": self._preview(request, context["adminform"].form, row),
            "show_preview": row is None or self.has_change_permission(request, row),
            # From a page that answers a form, "No, take me back" leads to an error of the browser.
            "show_delete": not context["adminform"].form.is_bound,
        }
        return super().render_change_form(request, context, *args, **options)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save a row, and say that the published files change with the next build."""
        super().save_model(request, obj, form, change)
        undo = ""
        if not change and self.has_delete_permission(request, obj):
            undo = self.view_url("delete", obj.pk)
        before = form.initial.get("site") if change else None
        keys = {obj.site, before or obj.site}
        add_pending_message(request, keys, path=getattr(obj, "path", ""), undo=undo)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a row, and say that the published files change with the next build."""
        super().delete_model(request, obj)
        add_pending_message(request, [obj.site], path=getattr(obj, "path", ""))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete rows, and add a message that the published files change with the next build."""
        keys = queryset.site_keys()
        super().delete_queryset(request, queryset)
        add_pending_message(request, keys)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Return the rows that match a search term; of a pasted URL, its path is searched for."""
        path = without_origin(search_term)
        term = search_term if path == search_term else iri_to_uri(path)
        return super().get_search_results(request, queryset, term)

    def _preview(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any] | None:
        """Return the context of a row's preview, with the states of its URLs; or None.

        If the user asked for a preview, it is of the entered values: they are saved and rolled
        back. Otherwise it is of the stored row. A new row or an invalid form has none.
        """
        if form.is_bound and form.previewing and not form.errors:
            form.prepare_preview()
            using = router.db_for_write(self.model)
            with transaction.atomic(using=using):
                row = copy(form.instance)
                row.save()
                context = {**self._try_preview(request, row, form), "unsaved": form.has_changed()}
                transaction.set_rollback(True, using=using)
        elif obj is not None and not form.is_bound:
            row = obj
            context = self._try_preview(request, row, form)
        else:
            return None
        site, inspections = site_by_key(known_sites(request), row.site), context.get("inspections")
        if site is None or inspections is None:
            return context
        # Files are read while no other editor has to wait.
        states, reason = try_read(lambda: inspection_states_context(site, inspections))
        return {**context, **(states or {"failure": reason})}

    def _try_preview(self, request: HttpRequest, row: Any, form: Any) -> dict[str, Any]:
        """Return ``preview_context()`` of a row, or a context with the reason if that fails."""
        site, reason = known_site_or_reason(request, row.site)
        if site is None:
            return {"failure": reason}
        context, reason = try_read(lambda: self.preview_context(request, site, row, form))
        return {"failure": reason} if context is None else context


def add_pending_message(
    request: HttpRequest,
    keys: Collection[str],
    *,
    path: str = "",
    undo: str = "",
    section: str = "",
    lost: int = 0,
) -> None:
    """Add a message: the published files of the sites with these keys change with the next build.

    With one site it offers users who may build to build now, and links the inspection of ``path``.
    ``undo`` is the URL that undoes the change; "" if there is none. If the change is about one
    ``section`` only, and that is served live, the message says that it acts at once. ``lost`` is
    how many published URLs the change removes. Sites where nothing is published are left out.
    """
    rows = Publication.objects.filter(site__in=keys if settings.SERVE_FROM != "live" else ())
    published = dict(rows.values_list("site", "build"))
    sites = [site for site in known_sites(request) if site.key in published]
    if not (sites or undo):
        return
    site = sites[0] if len(sites) == 1 else None
    paused = site is not None and pause_of(site) is not None
    context = {
        "is_live": not sites and settings.SERVE_FROM != "published",
        "unpublished": "" if sites else words_of(unpublished_state()),
        "section": section,
        "section_is_live": site and section and is_served_live(site, section),
        "paused": paused,
        "site": site,
        "several": len(sites) > 1,
        "may_view_builds": request.user.has_perm(BUILDING[0]),
        "edits": edit_counts_context(request, published[site.key])
        if site and not paused and request.user.has_perms(BUILDING)
        else None,
        "path": path,
        "undo": undo,
        "lost": lost if sites else 0,
        "lost_text": number_text(lost),
    }
    messages.info(
        request,
        render_to_string("admin/sitemapkit/editor_settings/due_message.html", context, request),
    )
