"""The override of an object on the object's own page in the admin, be its key what it may."""

from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.checks import InlineModelAdminChecks
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms.models import BaseModelFormSet, modelformset_factory
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.history import (
    changed_fields,
    log_added,
    log_changed,
    log_deleted,
)
from django_sitemapkit.admin.objects import stored_identity
from django_sitemapkit.admin.overrides import IncludeSelect
from django_sitemapkit.admin.steering import SteeringForm, explained, known_sites, site_of
from django_sitemapkit.admin.wording import told
from django_sitemapkit.models import UrlOverride, hash_of
from django_sitemapkit.rendering.explanations import explain_object
from django_sitemapkit.sites import Site

if TYPE_CHECKING:
    _FormSet = BaseModelFormSet[UrlOverride, SteeringForm]
    _Inline = admin.StackedInline[UrlOverride, Model]
else:
    _FormSet, _Inline = BaseModelFormSet, admin.StackedInline


class InlineForm(SteeringForm):
    """A form for the override of one site, which is not to be chosen here."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["site"] = forms.ChoiceField(
            choices=[(site.key, site.key) for site in self.sites],
            widget=forms.HiddenInput,
            disabled=self.instance.pk is not None,
        )
        if self.instance.pk is None and self.initial.get("site"):
            self.instance.site = self.initial["site"]  # Which the page tells of.

    def has_changed(self) -> bool:
        """Return whether anything is set: the site alone says nothing."""
        return not {"site"}.issuperset(self.changed_data)


class OverrideFormSet(_FormSet):
    """The overrides of one object: one for each site."""

    sites: list[Site]
    user: Any = None
    """The key of who changes them, for the history; None records nothing."""

    def __init__(
        self,
        data: Any = None,
        files: Any = None,
        instance: Model | None = None,
        save_as_new: bool = False,
        prefix: str | None = None,
        queryset: QuerySet[UrlOverride] | None = None,
        **options: Any,
    ) -> None:
        self.instance = instance
        self.save_as_new = save_as_new
        rows = UrlOverride._default_manager.all() if queryset is None else queryset
        rows = self._rows_of(rows, instance)
        taken = set(rows.values_list("site", flat=True)) if instance is not None else set()
        options["initial"] = [
            {"site": site.key} for site in self.sites if save_as_new or site.key not in taken
        ]
        super().__init__(data, files, prefix=prefix, queryset=rows, **options)

    def _rows_of(
        self, rows: QuerySet[UrlOverride], instance: Model | None
    ) -> QuerySet[UrlOverride]:
        if instance is None or instance.pk is None:
            return rows.none()
        label, object_id = stored_identity(instance)
        found = rows.filter(
            site__in=[site.key for site in self.sites],
            hash=hash_of(f"{label} {object_id}"),
            model=label,
            object_id=object_id,
        )
        return found.order_by("site")

    @classmethod
    def get_default_prefix(cls) -> str:
        """Return what the names of its fields begin with."""
        return "sitemapkit-override"

    def initial_form_count(self) -> int:
        """Return how many forms are for overrides that there are."""
        return 0 if self.save_as_new else super().initial_form_count()

    def _construct_form(self, i: int, **options: Any) -> Any:
        form = super()._construct_form(i, **options)  # type: ignore[misc]
        form.instance.told = partial(self.told, form.instance.site)
        return form

    def told(self, key: str) -> dict[str, Any]:
        """Return the context that tells what the object's URL comes to on a site."""
        obj, site = self.instance, site_of(self.sites, key)
        context: dict[str, Any] = {"site": site if len(self.sites) > 1 else None}
        if site is None or obj is None or obj._state.adding:
            return {**context, "failure": _("It is shown once the object is saved.")}
        nothing = _("No section of the site lists objects of this kind.")
        explanations, why = told(lambda: explain_object(site, obj))
        if explanations is None:
            return {**context, "failure": why}
        return {**context, **explained(explanations, nothing)}

    @property
    def told_of_others(self) -> list[dict[str, Any]]:
        """What is told of sites that have no form: who may not add sees no empty one."""
        shown = {form.instance.site for form in self.forms}
        return [self.told(site.key) for site in self.sites if site.key not in shown]

    def clean(self) -> None:
        """Refuse two overrides for one site, and one that someone else has just made."""
        super().clean()
        # The admin looks at none of the forms that the user may only see.
        looked_at = [form for form in self.forms if getattr(form, "cleaned_data", {}).get("site")]
        changed = [form for form in looked_at if form.has_changed() and not form.errors]
        sites = [form.cleaned_data["site"] for form in changed]
        if len(set(sites)) < len(sites):
            raise ValidationError(_("There is one override for each site."))
        stored = self._rows_of(UrlOverride._default_manager.all(), self.instance)
        for form in changed:
            site = form.cleaned_data["site"]
            if form.instance.pk is None and stored.filter(site=site).exists():
                form.add_error(None, ValidationError(_("It is there already.")))

    def save_new(self, form: Any, commit: bool = True) -> UrlOverride:
        """Save an override of the object, which has its key by now."""
        assert self.instance is not None  # noqa: S101  it was saved just now
        form.instance.model, form.instance.object_id = stored_identity(self.instance)
        row: UrlOverride = super().save_new(form, commit=commit)
        if commit and self.user is not None:
            log_added(self.user, [row])
        return row

    def save_existing(self, form: Any, obj: Any, commit: bool = True) -> UrlOverride:
        """Save an override that was there."""
        row: UrlOverride = super().save_existing(form, obj, commit=commit)
        if commit and self.user is not None:
            log_changed(self.user, [row], changed_fields(UrlOverride, form.changed_data))
        return row

    def delete_existing(self, obj: Any, commit: bool = True) -> None:
        """Delete an override."""
        if commit and self.user is not None:
            log_deleted(self.user, [obj])
        super().delete_existing(obj, commit=commit)


class SitemapOverrideInlineChecks(InlineModelAdminChecks):
    """The checks of inlines, without the foreign key that overrides do not have."""

    def _check_exclude_of_parent_model(self, obj: Any, parent_model: Any) -> list[Any]:
        return []

    def _check_relation(self, obj: Any, parent_model: Any) -> list[Any]:
        return []


class SitemapOverrideInline(_Inline):
    """Lets editors say on an object's own page whether and how its URL is listed.

    Add it to ``inlines`` of any ``ModelAdmin``. It shows what the object's URL comes to in the
    sitemap, and why; who may see and change it is told by the permissions on URL overrides.
    """

    model = UrlOverride
    form = InlineForm
    formset = OverrideFormSet  # type: ignore[assignment]
    checks_class = SitemapOverrideInlineChecks
    template = "admin/sitemapkit/steering/inline.html"
    verbose_name = _("Sitemap")
    verbose_name_plural = _("Sitemap")
    show_change_link = True
    fields = ("site", "in_the_sitemap", "include", "priority", "changefreq", "lastmod", "note")
    readonly_fields = ("in_the_sitemap",)

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overrides.css"]}

    def get_max_num(self, request: HttpRequest, obj: Any = None, **options: Any) -> int:
        """Return how many overrides an object may have: one for each site."""
        sites = len(known_sites(request))
        return sites if self.max_num is None else min(self.max_num, sites)

    def get_min_num(self, request: HttpRequest, obj: Any = None, **options: Any) -> int:
        """Return as many: a form that a script has taken away could not be put back."""
        return self.get_max_num(request, obj, **options)

    def get_extra(self, request: HttpRequest, obj: Any = None, **options: Any) -> int:
        """Return that there are no more."""
        return 0

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        """Return the formset, which finds its rows by what names the object."""
        fields = options.pop("fields", None) or flatten_fieldsets(self.get_fieldsets(request, obj))
        exclude = [*(self.get_exclude(request, obj) or []), *self.get_readonly_fields(request, obj)]
        may_change = self.has_change_permission(request, obj)
        may_add = self.has_add_permission(request, obj)
        base_form = self.form

        class PermittedForm(base_form):  # type: ignore[valid-type,misc]
            sites = known_sites(request)
            may_write = {True: may_add, False: may_change}

            def has_changed(self) -> bool:
                """Take nothing from who may not write."""
                return self.may_write[self.instance._state.adding] and super().has_changed()

        formset = modelformset_factory(
            self.model,
            **{
                "form": PermittedForm,
                "formset": self.formset,
                "formfield_callback": partial(self.formfield_for_dbfield, request=request),
                "widgets": {"include": IncludeSelect},
                "fields": fields,
                "exclude": exclude,
                "extra": self.get_extra(request, obj),
                "min_num": self.get_min_num(request, obj),
                "max_num": self.get_max_num(request, obj),
                "can_delete": self.can_delete and self.has_delete_permission(request, obj),
                **options,
            },
        )
        known = {"sites": known_sites(request), "user": request.user.pk}
        return type(formset.__name__, (formset,), known)

    @admin.display(description=_("in the sitemap"))
    def in_the_sitemap(self, row: UrlOverride) -> SafeString:
        """Return what the object's URL comes to as all is saved now, or why it is not listed."""
        told = getattr(row, "told", dict)  # The form that scripts copy tells nothing.
        return render_to_string("admin/sitemapkit/steering/explanations.html", told())
