"""Admin inline for an object's sitemap override, for primary keys of any type."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.checks import InlineModelAdminChecks
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.forms.models import BaseModelFormSet, modelformset_factory
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import exclusion_message, log_rows
from django_sitemapkit.admin.base import MAX_LISTED_SITES, known_sites
from django_sitemapkit.admin.editor_settings import EditorSettingForm, add_pending_message
from django_sitemapkit.admin.overrides import NO_SECTION
from django_sitemapkit.admin.url_inspection import inspection_states_context
from django_sitemapkit.identities import identity_of
from django_sitemapkit.inspection import inspections_of, try_read
from django_sitemapkit.models import UrlOverride, UrlOverrideQuerySet
from django_sitemapkit.sites import SitemapSite, site_by_key

OPEN_SITE = "sitemap_site"
"""The parameter of the object's page that names the site whose override it shows."""


class InlineForm(EditorSettingForm):
    """A form for an object's override at a site that the user does not choose."""

    may_add = may_change = True
    """Whether the user may; else what is sent is ignored."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["site"] = forms.ChoiceField(
            choices=[(site.key, site.key) for site in self.sites],
            widget=forms.HiddenInput,
            disabled=self.instance.pk is not None,
        )
        if self.instance.pk is None and self.initial.get("site"):
            self.instance.site = self.initial["site"]

    def has_changed(self) -> bool:
        """Return whether a field besides the site has a value that the user may set."""
        is_permitted = self.may_add if self.instance._state.adding else self.may_change
        return is_permitted and not {"site"}.issuperset(self.changed_data)


class OverrideFormSet(BaseModelFormSet):  # type: ignore[type-arg]
    """The override of one object at the only site, or at the one that the request names."""

    sites: list[SitemapSite]
    """This site; none if there are several and the request names none."""
    other_sites: Sequence[SitemapSite] = ()
    """All sites to choose from, if there are several."""
    request: HttpRequest | None = None
    """The request that shows messages, and whose user the history names; None for neither."""

    def __init__(
        self,
        data: Any = None,
        files: Any = None,
        instance: Model | None = None,
        save_as_new: bool = False,
        prefix: str | None = None,
        queryset: UrlOverrideQuerySet | None = None,
        **options: Any,
    ) -> None:
        self.instance = instance
        self.save_as_new = save_as_new
        rows = UrlOverride._default_manager.all() if queryset is None else queryset
        rows = self._overrides_of(rows, instance)
        used = set(rows.values_list("site", flat=True)) if instance is not None else set()
        options["initial"] = [
            {"site": site.key} for site in self.sites if save_as_new or site.key not in used
        ]
        super().__init__(data, files, prefix=prefix, queryset=rows, **options)

    def _overrides_of(
        self, rows: UrlOverrideQuerySet, instance: Model | None
    ) -> UrlOverrideQuerySet:
        """Return the object's overrides at the sites of the formset; none for an unsaved object."""
        if instance is None or instance.pk is None:
            return rows.none()
        sites = [site.key for site in self.sites]
        return rows.for_object(instance).filter(site__in=sites).order_by("site")

    @classmethod
    def get_default_prefix(cls) -> str:
        """Return the prefix of the names of all form fields."""
        return "sitemapkit-override"

    def initial_form_count(self) -> int:
        """Return how many forms are for stored overrides; 0 if the object is saved as new."""
        return 0 if self.save_as_new else super().initial_form_count()

    def _construct_form(self, i: int, **options: Any) -> Any:
        """Return a form, on whose row ``explanation_context()`` is set."""
        form = super()._construct_form(i, **options)  # type: ignore[misc]
        form.instance.explanation_context = partial(self.explanation_context, form.instance.site)
        return form

    def explanation_context(self, key: str) -> dict[str, Any]:
        """Return the context of ``explanations.html`` for the object at the site with a key."""
        obj, site = self.instance, site_by_key(self.sites, key)
        context: dict[str, Any] = {"site": site if self.other_sites else None}
        if site is None or obj is None or obj._state.adding:
            return {**context, "failure": _("Save the object first to see its entry.")}
        states, reason = try_read(
            lambda: inspection_states_context(site, inspections_of(site, obj))
        )
        if states is None:
            return {**context, "failure": reason}
        return {**context, **states, "nothing": NO_SECTION}

    @property
    def explanations_without_form(self) -> list[dict[str, Any]]:
        """Return the explanations for sites without a form, as the user may not add an override."""
        shown = {form.instance.site for form in self.forms}
        return [self.explanation_context(site.key) for site in self.sites if site.key not in shown]

    @property
    def rows_of_sites(self) -> list[dict[str, Any]]:
        """Return a template row for each site to choose from, those with an override first.

        At most ``MAX_LISTED_SITES`` are returned; none if there is a single site.
        """
        overrides = {}
        if self.instance is not None and self.instance.pk is not None:
            found = UrlOverride._default_manager.for_object(self.instance)
            overrides = {row.site: row for row in found}
        sites = sorted(self.other_sites, key=lambda site: site.key not in overrides)
        return [
            {"site": site, "override": overrides.get(site.key), "is_open": site in self.sites}
            for site in sites[:MAX_LISTED_SITES]
        ]

    def clean(self) -> None:
        """Report an error if another user has added the same override meanwhile."""
        super().clean()
        # The admin does not validate forms that the user may only view.
        changed = [
            form
            for form in self.forms
            if getattr(form, "cleaned_data", {}).get("site")
            and form.has_changed()
            and not form.errors
        ]
        stored = self._overrides_of(UrlOverride._default_manager.all(), self.instance)
        for form in changed:
            if form.instance.pk is None and stored.filter(site=form.cleaned_data["site"]).exists():
                form.add_error(None, ValidationError(_("This override already exists.")))

    def save(self, commit: bool = True) -> list[UrlOverride]:
        """Save what has changed, and say that the published files change with the next build."""
        saved: list[UrlOverride] = super().save(commit=commit)
        if self.request is not None:
            changed = (row for row, _fields in self.changed_objects)
            rows = (*self.new_objects, *changed, *self.deleted_objects)
            add_pending_message(self.request, {row.site for row in rows})
        return saved

    def save_new(self, form: Any, commit: bool = True) -> UrlOverride:
        """Save a new override of the object, which has a primary key by now, and log it."""
        assert self.instance is not None  # noqa: S101  it was saved just now
        form.instance.model, form.instance.object_id = identity_of(self.instance)
        row: UrlOverride = super().save_new(form, commit=commit)
        self._log_change(row, ADDITION, commit, form.changed_data)
        return row

    def save_existing(self, form: Any, obj: Any, commit: bool = True) -> UrlOverride:
        """Save a stored override, and log the change."""
        row: UrlOverride = super().save_existing(form, obj, commit=commit)
        self._log_change(row, CHANGE, commit, form.changed_data)
        return row

    def delete_existing(self, obj: Any, commit: bool = True) -> None:
        """Delete an override, and log that."""
        self._log_change(obj, DELETION, commit)
        super().delete_existing(obj, commit=commit)

    def _log_change(
        self, row: UrlOverride, flag: int, commit: bool, changed: Sequence[str] = ()
    ) -> None:
        """Record a change of a row in Django's admin log, if it is written and a request is set."""
        if commit and self.request is not None:
            log_rows(self.request.user.pk, [row], flag, changed, exclusion_message(row, changed))


class SitemapOverrideInlineChecks(InlineModelAdminChecks):
    """The checks of inlines without those of a foreign key, which overrides do not have."""

    def _check_exclude_of_parent_model(self, obj: Any, parent_model: Any) -> list[Any]:
        """Return no errors: no foreign key can be excluded."""
        return []

    def _check_relation(self, obj: Any, parent_model: Any) -> list[Any]:
        """Return no errors: no foreign key to the parent is required."""
        return []


class SitemapOverrideInline(admin.StackedInline):  # type: ignore[type-arg]
    """Edits an object's sitemap override on the object's own page.

    Add it to ``inlines`` of any ``ModelAdmin``. It shows the object's sitemap entry, or why the
    sitemap does not list it. The permissions on URL overrides apply. If there are several sites,
    it has a row for each with what its override sets, and opens the one that the user chooses.

    Example::

        @admin.register(Product)
        class ProductAdmin(admin.ModelAdmin):
            inlines = [SitemapOverrideInline]
    """

    model = UrlOverride
    form = InlineForm
    formset = OverrideFormSet  # type: ignore[assignment]
    checks_class = SitemapOverrideInlineChecks
    template = "admin/sitemapkit/editor_settings/inline.html"
    verbose_name = _("Sitemap")
    verbose_name_plural = _("Sitemap")
    extra = 0
    """The site that is open has a form already."""
    show_change_link = True
    fields = ("site", "in_the_sitemap", "include", "priority", "changefreq", "lastmod", "note")
    readonly_fields = ("in_the_sitemap",)

    class Media:
        css = {"all": ["sitemapkit/theme.css"]}
        js = ["sitemapkit/inline.js"]

    def get_max_num(self, request: HttpRequest, obj: Any = None, **options: Any) -> int:
        """Return how many forms there are: one if a site is open, else none."""
        sites = len(_open_sites(request))
        return sites if self.max_num is None else min(self.max_num, sites)

    def get_min_num(self, request: HttpRequest, obj: Any = None, **options: Any) -> int:
        """Return ``get_max_num()``: a form that a script removed could not be restored."""
        return self.get_max_num(request, obj, **options)

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        """Return the formset class, which finds overrides by the object's model and primary key."""
        fields = options.pop("fields", None) or flatten_fieldsets(self.get_fieldsets(request, obj))
        exclude = [*(self.get_exclude(request, obj) or []), *self.get_readonly_fields(request, obj)]
        permitted: dict[str, Any] = {
            "sites": _open_sites(request),
            "may_add": self.has_add_permission(request, obj),
            "may_change": self.has_change_permission(request, obj),
        }
        formset = modelformset_factory(
            self.model,
            **{
                "form": type(self.form.__name__, (self.form,), permitted),
                "formset": self.formset,
                "formfield_callback": partial(self.formfield_for_dbfield, request=request),
                "fields": fields,
                "exclude": exclude,
                "extra": self.get_extra(request, obj),
                "min_num": self.get_min_num(request, obj),
                "max_num": self.get_max_num(request, obj),
                "absolute_max": len(permitted["sites"]),  # An object has one override per site.
                "can_delete": self.can_delete and self.has_delete_permission(request, obj),
                **options,
            },
        )
        sites = known_sites(request)
        shared = {
            "sites": permitted["sites"],
            "other_sites": sites if len(sites) > 1 else (),
            "request": request,
        }
        return type(formset.__name__, (formset,), shared)

    @admin.display(description=_("in the sitemap"))
    def in_the_sitemap(self, row: UrlOverride) -> SafeString:
        """Return HTML of the object's sitemap entry as stored now, or of why it is not listed."""
        return render_to_string(
            "admin/sitemapkit/editor_settings/explanations.html",
            getattr(row, "explanation_context", dict)(),  # The empty form for scripts has none.
        )


def _open_sites(request: HttpRequest) -> list[SitemapSite]:
    """Return the site whose override has a form: the only site, or the one that the URL names.

    The list is empty if there are several sites and the query string names none.
    """
    sites, key = known_sites(request), request.GET.get(OPEN_SITE)
    return [site for site in sites if len(sites) == 1 or site.key == key]
