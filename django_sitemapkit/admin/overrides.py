"""The screen of URL overrides: one URL, or that of one object, listed otherwise or not at all."""

import logging
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ImproperlyConfigured, PermissionDenied, ValidationError
from django.db import models, router, transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.declared import listed_models
from django_sitemapkit.admin.history import changed_fields, log_changed
from django_sitemapkit.admin.objects import link_to, name_of_model
from django_sitemapkit.admin.steering import (
    SiteFilter,
    SteeringAdmin,
    SteeringForm,
    explained,
    known_sites,
    site_of,
)
from django_sitemapkit.admin.transfers import TransferAdmin
from django_sitemapkit.admin.wording import apart, told
from django_sitemapkit.builds.exclusion import exclude_now
from django_sitemapkit.exceptions import BuildRunning, RefusedValue, SitemapKitError
from django_sitemapkit.models import UrlOverride, hash_of
from django_sitemapkit.overrides.cells import OVERRIDES
from django_sitemapkit.overrides.objects import named_object
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.rendering.explanations import explain_object, explain_path
from django_sitemapkit.sections.objects import identity_of
from django_sitemapkit.sites import Site

logger = logging.getLogger("django_sitemapkit")

AT_ONCE = 500
"""Rows changed by one statement of an action."""


class IncludeSelect(forms.NullBooleanSelect):
    """Asks for what becomes of a URL, in words that say so."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        choices = (
            ("unknown", _("Inherit")),
            ("true", _("Yes, list it")),
            ("false", _("No, leave it out")),
        )
        forms.Select.__init__(self, attrs, choices)


class OverrideForm(SteeringForm):
    """A form for the values of an override, and for what it is found by while it is made."""

    class Meta:
        widgets: ClassVar = {"include": IncludeSelect}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "model" in self.fields:
            listed = listed_models(list(self.sites))
            names = sorted((capfirst(name_of_model(label)), label) for label in listed)
            self.fields["model"] = forms.ChoiceField(
                label=_("Or the object: its model"),
                required=False,
                choices=[("", "---------"), *((label, name) for name, label in names)],
            )
            self.fields["object_id"].label = _("And its key")
            self.fields["object_id"].help_text = _(
                "Its primary key. The override follows the object wherever its URL goes."
            )

    def clean(self) -> dict[str, Any]:
        """Find what it is for, which must not have an override yet."""
        cleaned = super().clean() or self.cleaned_data
        named = cleaned.get("model") or cleaned.get("object_id")
        if "path" in self.fields and named and cleaned.get("path"):
            raise ValidationError(_("Write a path, or choose an object, not both."))
        if named:
            self._find_object(cleaned)
        elif "path" in self.fields:
            if not cleaned.get("path") and "path" not in self.errors:
                self.add_error("path", ValidationError(_("Write a path."), code="required"))
            self.clean_pasted()
        self._refuse_duplicate(cleaned)
        return cleaned

    def _find_object(self, cleaned: dict[str, Any]) -> None:
        obj = named_object(cleaned.get("model", ""), cleaned.get("object_id", ""))
        if obj is None:
            self.add_error("object_id", ValidationError(_("There is no such object.")))
        else:
            cleaned["model"], cleaned["object_id"] = identity_of(obj)

    def _refuse_duplicate(self, cleaned: dict[str, Any]) -> None:
        if self.errors:
            return
        same = UrlOverride(
            path=cleaned.get("path", self.instance.path),
            model=cleaned.get("model", self.instance.model),
            object_id=cleaned.get("object_id", self.instance.object_id),
        )
        field = next((name for name in ("path", "object_id") if cleaned.get(name)), None)
        self.refuse_duplicate(field, hash=hash_of(same.identity))


class IncludeFilter(admin.SimpleListFilter):
    """Filters by what becomes of URLs."""

    title = _("include")
    parameter_name = "include"
    values: ClassVar = {"yes": True, "no": False, "inherit": None}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return what may become of them."""
        return [("yes", _("listed")), ("no", _("left out")), ("inherit", _("inherits"))]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Return the rows with the chosen value."""
        value = self.value()
        return queryset.filter(include=self.values[value]) if value in self.values else queryset


class KindFilter(admin.SimpleListFilter):
    """Filters by what overrides are found by."""

    title = _("set for")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return both kinds."""
        return [("path", _("a path")), ("object", _("an object"))]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Return the rows of the chosen kind."""
        if self.value() == "path":
            return queryset.exclude(path="")
        return queryset.filter(path="") if self.value() == "object" else queryset


@admin.register(UrlOverride)
class UrlOverrideAdmin(TransferAdmin, SteeringAdmin):
    """URL overrides: listed, set, previewed, changed many at once."""

    form = OverrideForm
    transfer = OVERRIDES
    preview_template = "admin/sitemapkit/steering/explanations.html"
    list_display = (
        *("subject", "site", "is_included", "priority", "changefreq", "lastmod", "note"),
        "changed_at",
    )
    list_filter = (SiteFilter, IncludeFilter, KindFilter, "changefreq")
    search_fields = ("path", "object_id", "note")
    actions = ("include_them", "exclude_them", "reset_them")

    def get_fieldsets(self, request: HttpRequest, obj: UrlOverride | None = None) -> Any:
        """Return the fields: what it is found by is chosen once, a path may be mended."""
        if obj is None:
            found_by = ["path", "model", "object_id"]
        else:
            found_by = ["path"] if obj.path else ["subject_object"]
        return [
            (None, {"fields": ["site", *found_by]}),
            (_("Values"), {"fields": ["include", "priority", "changefreq", "lastmod"]}),
            (None, {"fields": ["note"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the object, which is not to be changed once it is chosen."""
        return ("subject_object",)

    @admin.display(description=_("object"))
    def subject_object(self, obj: UrlOverride) -> str:
        """Return the object's name, linked to where it is edited, and where it stands."""
        found = named_object(obj.model, obj.object_id)
        if found is None:
            return format_html(
                "{} {} ({})", name_of_model(obj.model), obj.object_id, gettext("it is gone")
            )
        return format_html(
            "{}: {}", capfirst(name_of_model(obj.model)), link_to(self.admin_site, found)
        )

    @admin.display(description=_("URL or object"), ordering="path")
    def subject(self, obj: UrlOverride) -> str:
        """Return the path, or what names the object: its text may ask the database."""
        return obj.path or f"{capfirst(name_of_model(obj.model))} {obj.object_id}"

    @admin.display(description=_("include"), ordering="include", empty_value="")
    def is_included(self, obj: UrlOverride) -> str:
        """Return what becomes of the URL."""
        words = {None: _("inherits"), True: _("listed"), False: _("left out")}
        return str(words[obj.include])

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Search for the path of a URL that was pasted."""
        if "://" in search_term:
            for site in known_sites(request):
                try:
                    search_term = pasted_path(site, search_term)
                except RefusedValue:
                    continue
                break
        return super().get_search_results(request, queryset, search_term)

    def look(
        self, request: HttpRequest, site: Site, row: UrlOverride, *, stored: bool
    ) -> dict[str, Any]:
        """Return where the URL stands, with which values, or why it does not."""
        if row.path:
            return explained([explain_path(site, row.path)])
        obj = named_object(row.model, row.object_id)
        if obj is None:
            return {"failure": _("The object is gone: the override does nothing.")}
        return explained(explain_object(site, obj), _("No section of the site lists its model."))

    def has_override_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may include, exclude and reset by action."""
        return bool(request.user.has_perm("sitemapkit.override"))

    @admin.action(description=_("Include in the sitemap"), permissions=["override"])
    def include_them(self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]) -> None:
        """Include the chosen URLs."""
        self._set(request, queryset, {"include": True})

    @admin.action(description=_("Exclude from the sitemap"), permissions=["override"])
    def exclude_them(self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]) -> None:
        """Exclude the chosen URLs."""
        self._set(request, queryset, {"include": False})

    @admin.action(description=_("Reset to inherited values"), permissions=["override"])
    def reset_them(self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]) -> None:
        """Clear all values of the chosen overrides; their notes stay."""
        values = {"include": None, "priority": None, "changefreq": "", "lastmod": None}
        self._set(request, queryset, values)

    def _set(
        self,
        request: HttpRequest,
        queryset: models.QuerySet[UrlOverride],
        values: dict[str, Any],
    ) -> None:
        # The rows are named first: once changed, a filter of the list may not find them again.
        chosen = list(queryset.order_by("pk").values_list("pk", flat=True))
        message = changed_fields(self.model, values)
        with transaction.atomic(using=router.db_for_write(self.model)):
            for start in range(0, len(chosen), AT_ONCE):
                rows = self.model._default_manager.filter(pk__in=chosen[start : start + AT_ONCE])
                log_changed(request.user.pk, list(rows), message)
                rows.update(changed_at=timezone.now(), **values)
        text = ngettext("%(count)s override changed.", "%(count)s overrides changed.", len(chosen))
        self.message_user(request, text % {"count": f"{len(chosen):,}"}, messages.SUCCESS)

    def get_urls(self) -> list[URLPattern]:
        """Add the page that excludes at once."""
        view = self.admin_site.admin_view(self.exclude_now_view)
        own = path("<path:object_id>/exclude/", view, name="sitemapkit_urloverride_exclude")
        return [own, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Offer to exclude at once to those who may."""
        context["may_exclude"] = self.has_override_permission(request)
        return super().render_change_form(request, context, *args, **options)

    def exclude_now_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Exclude a URL, and publish its page without it."""
        row = self.get_object(request, object_id)
        seen = self.has_view_or_change_permission(request, row)
        if not seen or not self.has_override_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if row is None:
            raise Http404
        self._exclude(request, row)
        site = site_of(known_sites(request), row.site)
        if site is not None:
            self._publish_without(request, site, row)
        return HttpResponseRedirect(reverse(self._url_name("change"), args=[row.pk]))

    def _exclude(self, request: HttpRequest, row: UrlOverride) -> None:
        if row.include is not False:
            row.include = False
            with transaction.atomic(using=router.db_for_write(self.model)):
                row.save(update_fields=["include"])
                log_changed(request.user.pk, [row], changed_fields(self.model, ["include"]))

    def _publish_without(self, request: HttpRequest, site: Site, row: UrlOverride) -> None:
        level = messages.SUCCESS
        try:
            with apart():
                result = exclude_now(site, row, started_by=request.user.get_username())
        except BuildRunning as error:
            text = gettext("Live pages leave it out now, files with the next build: %(error)s")
            text, level = text % {"error": error}, messages.WARNING
        except (ImproperlyConfigured, SitemapKitError) as error:
            text, level = _no_file(error), messages.ERROR
        except Exception as error:
            logger.exception("%s could not be taken out of its file.", row)
            text, level = _no_file(f"{type(error).__name__}: {error}"), messages.ERROR
        else:
            text = gettext("It is left out, and its page is published without it.")
            if result is None:
                text = gettext("It is left out; no published file lists it.")
            elif result.status == "unchanged":
                text = gettext("It is left out; earlier files that listed it are withdrawn.")
            elif result.reason:
                text = gettext("Live pages leave it out now; the build is held back: %(reason)s")
                text, level = text % {"reason": result.reason}, messages.WARNING
            if self._is_listed(site, row):
                text, level = gettext("An override of its path lists it still."), messages.WARNING
        self.message_user(request, text, level)

    def _is_listed(self, site: Site, row: UrlOverride) -> bool:
        """Return whether an object that is excluded is listed all the same: a path wins."""
        obj = None if row.path else named_object(row.model, row.object_id)
        if obj is None:
            return False
        found, _why = told(lambda: explain_object(site, obj))
        return any(explanation.listed for explanation in found or ())


def _no_file(error: object) -> str:
    text = gettext("Live pages leave it out now, but no file could be made anew: %(error)s")
    return text % {"error": error}
