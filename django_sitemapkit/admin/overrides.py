"""The screens of URL overrides: list, form, bulk actions, and "Exclude now"."""

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models, router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import (
    SiteFilter,
    known_sites,
    link_to,
    logger,
    number,
    savepoint_if_atomic,
    screen,
    try_read,
)
from django_sitemapkit.admin.due_messages import add_due_message
from django_sitemapkit.admin.editor_settings import (
    MAX_LOGGED_ROWS,
    EditorSettingForm,
    log_count,
    log_rows,
    sites_of,
)
from django_sitemapkit.admin.log_messages import EXCLUDED, INCLUDED, exclusion_message
from django_sitemapkit.admin.transfers import TransferAdmin
from django_sitemapkit.admin.url_counts import LOSS, url_counts
from django_sitemapkit.builds import exclude_now
from django_sitemapkit.builds.publication.gates import pause_of
from django_sitemapkit.exceptions import BuildRunning, InvalidValue, SitemapKitError
from django_sitemapkit.identities import identity_model, identity_of, model_name
from django_sitemapkit.inspection import inspect_object, inspect_path
from django_sitemapkit.models import Publication, UrlOverride, hash_of
from django_sitemapkit.overrides.cells import OVERRIDE_TABLE
from django_sitemapkit.overrides.objects import named_object
from django_sitemapkit.overrides.pasting import pasted_path
from django_sitemapkit.reading import reader_of
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import SitemapSite, site_by_key
from django_sitemapkit.words import words_of

ROWS_PER_UPDATE = 500
"""Rows that a bulk action changes with one statement."""

EXCLUDING = (
    *("sitemapkit.add_urloverride", "sitemapkit.change_urloverride"),
    "sitemapkit.bulk_urloverride",
)
"""What a user has to have who may take any URL out of the sitemap at once."""

NO_SECTION = _("No section of this site lists objects of this model.")


class OverrideForm(EditorSettingForm):
    """A form for an override: its values and, when it is added, its path or object."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "model" in self.fields:
            listed = _listed_models(list(self.sites))
            names = sorted((capfirst(model_name(label)), label) for label in listed)
            self.fields["model"] = forms.ChoiceField(
                label=_("Object: model"),
                required=False,
                choices=[("", "---------"), *((label, name) for name, label in names)],
            )
            self.fields["object_id"].label = _("Object: primary key")
            self.fields["object_id"].help_text = _(
                "The override stays with the object when its URL changes."
            )

    def clean(self) -> dict[str, Any]:
        """Find the path or object, and reject a second override for it."""
        cleaned = super().clean() or self.cleaned_data
        named = cleaned.get("model") or cleaned.get("object_id")
        if "path" in self.fields and named and cleaned.get("path"):
            raise ValidationError(_("Enter a path or choose an object, not both."))
        if named:
            self._find_object(cleaned)
        elif "path" in self.fields:
            if not cleaned.get("path") and "path" not in self.errors:
                self.add_error("path", ValidationError(_("Enter a path."), code="required"))
            self.clean_path_text()
        self._reject_duplicate(cleaned)
        return cleaned

    def _find_object(self, cleaned: dict[str, Any]) -> None:
        obj = named_object(cleaned.get("model", ""), cleaned.get("object_id", ""))
        if obj is None:
            self.add_error("object_id", ValidationError(_("This object does not exist.")))
        else:
            cleaned["model"], cleaned["object_id"] = identity_of(obj)

    def _reject_duplicate(self, cleaned: dict[str, Any]) -> None:
        if self.errors:
            return
        same = UrlOverride(
            path=cleaned.get("path", self.instance.path),
            model=cleaned.get("model", self.instance.model),
            object_id=cleaned.get("object_id", self.instance.object_id),
        )
        field = next((name for name in ("path", "object_id") if cleaned.get(name)), None)
        self.reject_duplicate(field, hash=hash_of(same.identity))


class IncludeFilter(admin.SimpleListFilter):
    """Filters by ``include``."""

    title = _("include")
    parameter_name = "include"
    values: ClassVar = {"yes": True, "no": False, "inherit": None}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the choices."""
        return [("yes", _("included")), ("no", _("excluded")), ("inherit", _("inherits"))]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Return the rows with the chosen value."""
        value = self.value()
        return queryset.filter(include=self.values[value]) if value in self.values else queryset


class KindFilter(admin.SimpleListFilter):
    """Filters by whether overrides are by path or by object."""

    title = _("set for")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the choices."""
        return [("path", _("a path")), ("object", _("an object"))]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Return the rows with the chosen value."""
        if self.value() == "path":
            return queryset.exclude(path="")
        return queryset.filter(path="") if self.value() == "object" else queryset


@admin.register(UrlOverride)
class UrlOverrideAdmin(TransferAdmin):
    """URL overrides, with previews, bulk actions, import and export."""

    form = OverrideForm
    transfer = OVERRIDE_TABLE
    preview_template = "admin/sitemapkit/editor_settings/explanations.html"
    list_display = (
        *("subject", "site", "is_included", "priority", "changefreq", "lastmod", "note"),
        "changed_at",
    )
    list_filter = (SiteFilter, IncludeFilter, KindFilter, "changefreq", "changed_at")
    search_fields = ("path", "object_id", "note")
    actions = ("include_them", "exclude_them", "reset_them")

    def get_fieldsets(self, request: HttpRequest, obj: UrlOverride | None = None) -> Any:
        """Return the fields; an object is chosen once, a path may be corrected later."""
        if obj is None:
            identity = ["path", "model", "object_id"]
        else:
            identity = ["path"] if obj.path else ["subject_object"]
        return [
            (None, {"fields": ["site", *identity]}),
            (_("Values"), {"fields": ["include", "priority", "changefreq", "lastmod"]}),
            (None, {"fields": ["note"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the object, which is read-only once it is chosen."""
        return ("subject_object",)

    @admin.display(description=_("object"))
    def subject_object(self, obj: UrlOverride) -> str:
        """Return the object's name, linked to its change page."""
        found = named_object(obj.model, obj.object_id)
        if found is None:
            return format_html(
                "{} {} ({})", model_name(obj.model), obj.object_id, gettext("deleted")
            )
        return format_html(
            "{}: {}", capfirst(model_name(obj.model)), link_to(self.admin_site, found)
        )

    @admin.display(description=_("URL or object"), ordering="path")
    def subject(self, obj: UrlOverride) -> str:
        """Return the path, or the model and key of the object, without a query."""
        return str(obj)

    @admin.display(description=_("include"), ordering="include", empty_value="")
    def is_included(self, obj: UrlOverride) -> str:
        """Return whether the URL is included."""
        labels = {None: _("inherits"), True: _("included"), False: _("excluded")}
        return str(labels[obj.include])

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Search for the path if the search term is a URL."""
        if "://" in search_term:
            for site in known_sites(request):
                try:
                    search_term = pasted_path(site, search_term)
                except InvalidValue:
                    continue
                break
        return super().get_search_results(request, queryset, search_term)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return what the history says: that the URL was excluded, or which fields changed."""
        usual = super().construct_change_message(request, form, formsets, add)
        return exclusion_message(form.instance, form.changed_data) or usual

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: UrlOverride, form: Any
    ) -> dict[str, Any]:
        """Return where the URL is listed and with which values, or why it is not."""
        if row.path:
            return {"inspections": [inspect_path(site, row.path)]}
        obj = named_object(row.model, row.object_id)
        if obj is None:
            return {"failure": _("The object was deleted, so the override has no effect.")}
        return {"inspections": inspect_object(site, obj), "nothing": NO_SECTION}

    def has_bulk_urloverride_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may use the bulk actions and "Exclude now"."""
        return bool(request.user.has_perm("sitemapkit.bulk_urloverride"))

    @admin.action(description=_("Include in the sitemap"), permissions=["bulk_urloverride"])
    def include_them(self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]) -> None:
        """Include the chosen URLs."""
        self._set(request, queryset, {"include": True})

    @admin.action(description=_("Exclude from the sitemap"), permissions=["bulk_urloverride"])
    def exclude_them(
        self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]
    ) -> HttpResponse | None:
        """Exclude the chosen URLs; many of a site's, only once that is confirmed."""
        losses = [] if "confirmed" in request.POST else _losses(queryset)
        if losses:
            context = {
                "title": gettext("Exclude these URLs?"),
                "changelist_url": reverse(self._url_name("changelist")),
                "losses": losses,
                "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
                "across": request.POST.get("select_across", "0"),
            }
            return self.render_page(request, "editor_settings/exclude", context)
        self._set(request, queryset, {"include": False})
        return None

    @admin.action(description=_("Reset to inherited values"), permissions=["bulk_urloverride"])
    def reset_them(self, request: HttpRequest, queryset: models.QuerySet[UrlOverride]) -> None:
        """Clear all values of the chosen overrides, but keep their notes."""
        values = {"include": None, "priority": None, "changefreq": "", "lastmod": None}
        self._set(request, queryset, values)

    def _set(
        self,
        request: HttpRequest,
        queryset: models.QuerySet[UrlOverride],
        values: dict[str, Any],
    ) -> None:
        # The keys are read first: once changed, rows may no longer match the list's filter.
        chosen = list(queryset.order_by("pk").values_list("pk", flat=True))
        keys = sites_of(queryset)
        message = {True: INCLUDED, False: EXCLUDED}.get(values["include"], "")
        with transaction.atomic(using=router.db_for_write(self.model)):
            if len(chosen) > MAX_LOGGED_ROWS:
                log_count(request.user.pk, self.model, len(chosen), CHANGE, values, message)
            for start in range(0, len(chosen), ROWS_PER_UPDATE):
                rows = self.model._default_manager.filter(
                    pk__in=chosen[start : start + ROWS_PER_UPDATE]
                )
                if len(chosen) <= MAX_LOGGED_ROWS:
                    log_rows(request.user.pk, list(rows), CHANGE, values, message)
                rows.update(changed_at=timezone.now(), **values)
        text = ngettext("%(count)s override changed.", "%(count)s overrides changed.", len(chosen))
        self.message_user(request, text % {"count": number(len(chosen))}, messages.SUCCESS)
        add_due_message(request, keys)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show "Exclude now" to users with the permission."""
        context["may_exclude"] = self.has_bulk_urloverride_permission(request)
        return super().render_change_form(request, context, *args, **options)

    @screen(
        "<path:object_id>/exclude/",
        "urloverride_exclude",
        *("view_or_change", "bulk_urloverride"),
        methods=["POST"],
    )
    def exclude_now_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Exclude a URL, and publish its sitemap file without it."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        self._exclude(request, row)
        site = site_by_key(known_sites(request), row.site)
        if site is not None:
            self._publish_without(request, site, row)
        return HttpResponseRedirect(reverse(self._url_name("change"), args=[row.pk]))

    def has_exclude_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may exclude any URL at once."""
        return request.user.has_perms(EXCLUDING)

    @screen("exclude/", "urloverride_exclude_path", "exclude", methods=["POST"])
    def exclude_path_view(self, request: HttpRequest) -> HttpResponse:
        """Exclude the URL of a posted site and path as ``exclude_now_view`` does.

        An override for it is added if there is none. Redirects to what becomes of the URL.
        """
        site = site_by_key(known_sites(request), request.POST.get("site", ""))
        if site is None:
            raise Http404
        try:
            url_path = pasted_path(site, request.POST.get("path", ""))
        except InvalidValue as error:
            raise Http404(str(error)) from error
        row = self.model.objects.filter(site=site.key, hash=hash_of(url_path)).first()
        row = row or self.model(site=site.key, path=url_path)
        self._exclude(request, row)
        self._publish_without(request, site, row)
        query = urlencode({"site": site.key, "url": url_path})
        return HttpResponseRedirect(
            f"{reverse(f'{self.admin_site.name}:sitemapkit_inspect')}?{query}"
        )

    def _exclude(self, request: HttpRequest, row: UrlOverride) -> None:
        if row.include is not False:
            row.include = False
            flag, fields = (CHANGE, ["include"]) if row.pk else (ADDITION, None)
            with transaction.atomic(using=router.db_for_write(self.model)):
                row.save(update_fields=fields)
                log_rows(request.user.pk, [row], flag, message=EXCLUDED)

    def _publish_without(self, request: HttpRequest, site: SitemapSite, row: UrlOverride) -> None:
        level = messages.SUCCESS
        try:
            with savepoint_if_atomic():
                result = exclude_now(site, row, started_by=request.user.get_username())
        except BuildRunning as error:
            text = gettext(
                "Live sitemaps exclude the URL now. Published files exclude it after the next"
                " build: %(error)s"
            )
            if pause_of(site):
                text = gettext(
                    "Live sitemaps exclude the URL now. Publishing is paused: click “Exclude now”"
                    " again when the build has finished. %(error)s"
                )
            text, level = text % {"error": error}, messages.WARNING
        except Exception as error:  # noqa: BLE001  each storage raises its own errors
            reason = str(error)
            if not isinstance(error, ImproperlyConfigured | SitemapKitError):
                logger.exception("Override %s: its URL is still in published files.", row)
                reason = f"{type(error).__name__}: {error}"
            text = gettext(
                "Live sitemaps exclude the URL now, but its file could not be rebuilt: %(error)s"
            )
            text, level = text % {"error": reason}, messages.ERROR
        else:
            text = gettext("The URL is excluded, and its sitemap file is published without it.")
            if result is None:
                text = gettext("The URL is excluded. No published file lists it.")
            elif result.status == "unchanged":
                text = gettext(
                    "The URL is excluded. Earlier files that listed it are no longer served."
                )
            elif result.cause:
                text = gettext(
                    "Live sitemaps exclude the URL now. Published files still list it, because the"
                    " build is held for review: %(reason)s"
                )
                text, level = text % {"reason": words_of(result.cause)}, messages.WARNING
            if self._is_listed(site, row):
                text = gettext("The URL is still listed: an override by path includes it.")
                level = messages.WARNING
        self.message_user(request, text, level)

    def _is_listed(self, site: SitemapSite, row: UrlOverride) -> bool:
        """Return whether an excluded object is still listed because of an override by path."""
        obj = None if row.path else named_object(row.model, row.object_id)
        if obj is None:
            return False
        found, _reason = try_read(lambda: inspect_object(site, obj))
        return any(each.listed for each in found or ())


def _losses(queryset: models.QuerySet[UrlOverride]) -> list[dict[str, Any]]:
    """Return the sites that would lose many of their published URLs, with the numbers."""
    chosen = dict(queryset.order_by().values_list("site").annotate(models.Count("pk")))
    published = dict(
        Publication.objects.filter(site__in=chosen).order_by("site").values_list("site", "build")
    )
    counts = url_counts(published.values())
    found = []
    for site, build in published.items():
        total = sum(counts[build].values())
        if chosen[site] > LOSS * total:
            count, percent = chosen[site], min(100, round(100 * chosen[site] / max(total, 1)))
            found.append(
                {"site": site, "count": number(count), "total": number(total), "percent": percent}
            )
    return found


def _listed_models(sites: list[SitemapSite]) -> dict[str, type[models.Model]]:
    """Return the models whose objects the sections list, by model label.

    A section that several sites have is read at one of them.
    """
    classes: dict[type[BaseSection], SitemapSite] = {}
    for site in sites:
        known, _reason = try_read(partial(registry.at, site))
        classes |= {section: site for section in known or () if belongs_to(section, site)}
    reads = [partial(_model_of, section, site) for section, site in classes.items()]
    found, _reason = try_read(lambda: [read() for read in reads])
    if found is None:  # In a transaction, the first try takes one savepoint for all of them.
        found = [try_read(read)[0] for read in reads]
    return {model._meta.label_lower: model for model in found if model is not None}


def _model_of(section: type[BaseSection], site: SitemapSite) -> type[models.Model] | None:
    """Return the model whose objects a section lists; None if it lists no objects."""
    keyset = reader_of(section(site)).keyset
    return None if keyset is None else identity_model(keyset.queryset.model)
