"""The screens of URL overrides: list, form, bulk actions, and "Exclude now"."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import ADDITION, CHANGE
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import (
    EXCLUDED,
    INCLUDED,
    MAX_LOGGED_ROWS,
    NO_LONGER_EXCLUDED,
    exclusion_message,
    log_bulk_action,
    log_rows,
)
from django_sitemapkit.admin.base import (
    BUILDING,
    EXCLUDING,
    BaseAdmin,
    SiteFilter,
    known_site_or_reason,
    known_sites,
    link_to,
    number_text,
    screen,
)
from django_sitemapkit.admin.differences import match_texts
from django_sitemapkit.admin.editor_settings import (
    HashedSettingForm,
    add_pending_message,
)
from django_sitemapkit.admin.transfers import TransferAdmin
from django_sitemapkit.builds import publish_override
from django_sitemapkit.builds.report.differences import LOSS
from django_sitemapkit.builds.report.published import count_published_paths
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_of, object_by_key, verbose_name_of
from django_sitemapkit.inspection import (
    inspect_object,
    inspect_path,
    label_or_none,
    reason_of,
    savepoint_if_atomic,
    try_each,
    try_read,
)
from django_sitemapkit.models import Build, UrlOverride, UrlOverrideQuerySet, hash_of
from django_sitemapkit.overrides import (
    OVERRIDE_TABLE,
    first_matching_patterns,
    overrides_of,
    pasted_path,
)
from django_sitemapkit.reading import reader_of
from django_sitemapkit.registry import belongs_to, registry
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

INHERITED = {"include": None, "priority": None, "changefreq": "", "lastmod": None}
"""The values of an override that replaces none."""

NO_SECTION = _("No section of this site lists objects of this model.")


class OverrideForm(HashedSettingForm):
    """A form for an override: its values and, for a new one, its path or object."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "model" in self.fields:
            labels = _listed_labels(self.sites)
            names = sorted((capfirst(verbose_name_of(label)), label) for label in labels)
            self.fields["model"] = forms.ChoiceField(
                label=_("Kind of object"),
                required=False,
                choices=[("", "---------"), *((label, name) for name, label in names)],
            )
            self.fields["object_id"].label = _("Its primary key")
            self.fields["object_id"].help_text = _(
                "The override stays with the object when its URL changes."
            )

    def clean(self) -> dict[str, Any]:
        """Require either a path or an existing object, and clean the object to its identity."""
        cleaned = super().clean() or self.cleaned_data
        named = cleaned.get("model") or cleaned.get("object_id")
        if "path" in self.fields and named and cleaned.get("path"):
            raise ValidationError(_("Enter a path or choose an object, not both."))
        if named:
            obj = object_by_key(cleaned.get("model", ""), cleaned.get("object_id", ""))
            if obj is None:
                self.add_error("object_id", ValidationError(_("This object does not exist.")))
            else:
                cleaned["model"], cleaned["object_id"] = identity_of(obj)
        elif "path" in self.fields and not cleaned.get("path") and "path" not in self.errors:
            self.add_error("path", ValidationError(_("Enter a path."), code="required"))
        return cleaned


@screen(
    "<path:object_id>/exclude/",
    "urloverride_exclude",
    *("view_or_change", "bulk_urloverride"),
    methods=["POST"],
)
def exclude_now_view(
    model_admin: BaseAdmin, request: HttpRequest, obj: UrlOverride
) -> HttpResponseBase:
    """Exclude the URL of an override at once: publish its sitemap file without it."""
    _publish_include(
        model_admin, request, known_site_or_reason(request, obj.site)[0], obj, include=False
    )
    return HttpResponseRedirect(model_admin.view_url("change", obj.pk))


@screen("include/", "urloverride_set_include", *EXCLUDING, methods=["POST"], needs_site=True)
def set_include_view(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Exclude or include the URL of a posted path at once: publish its sitemap file again.

    It is included if "include" is "1": an override that excludes it is reset, unless a rule would
    exclude it; else it is listed in spite of exclusion rules. A missing override is added. Redirect
    to the inspection of the URL.
    """
    try:
        url_path = pasted_path(site, request.POST.get("path", ""))
    except InvalidValue as error:
        raise Http404(str(error)) from error
    stored = UrlOverride.objects.filter(site=site.key, hash=hash_of(url_path))
    row = stored.first() or UrlOverride(site=site.key, path=url_path)
    patterns, location = overrides_of(site).patterns, site.origin + url_path
    has_rule = any(first_matching_patterns(patterns, site.origin, [location]))
    # In spite of a rule, even of one that waits; else by the rules again.
    again = None if row.include is False and not has_rule else True
    include = again if request.POST.get("include") == "1" else False
    _publish_include(model_admin, request, site, row, include=include)
    return HttpResponseRedirect(
        model_admin.screen_url("inspect", site=site.key, url=url_path, all=1)
    )


def _publish_include(
    model_admin: BaseAdmin,
    request: HttpRequest,
    site: SitemapSite | None,
    row: UrlOverride,
    *,
    include: bool | None,
) -> None:
    """Save an override's ``include``, publish the URL's sitemap file again, and add messages.

    Without a site, as if it no longer exists, nothing is published.
    """
    _save_include(request, row, include)
    if site is None:
        return
    before = Build.objects.published(site)
    level, text = _publish_override(site, row, request.user.get_username())
    after = Build.objects.published(site)
    if after and after != before and request.user.has_perm(BUILDING[0]):
        text = format_html(
            '{} <a href="{}">{}</a>',
            *(text, model_admin.screen_url("build_differences", after.pk), gettext("Show changes")),
        )
    if text:
        messages.add_message(request, level, text)
    if level != messages.SUCCESS:
        found, _reason = try_read(lambda: inspect_path(site, row.path) if row.path else None)
        if include is not False and found and not found.listed:
            messages.warning(request, gettext("Something else still excludes the URL."))
        add_pending_message(request, [site.key], section=found.section if found else "")


def _save_include(request: HttpRequest, row: UrlOverride, include: bool | None) -> None:
    """Save an override's ``include``, and record the change in Django's admin log.

    An override that then sets no value, and has no note, is deleted.
    """
    if row.include is not include:
        row.include = include
        flag, fields = (CHANGE, ["include"]) if row.pk else (ADDITION, None)
        with transaction.atomic(using=router.db_for_write(UrlOverride)):
            row.save(update_fields=fields)
            log_rows(
                *(request.user.pk, [row], flag, fields or ()),
                {True: INCLUDED, False: EXCLUDED, None: NO_LONGER_EXCLUDED}[include],
            )
            UrlOverride.objects.filter(pk=row.pk, note="", **INHERITED).delete()


def _publish_override(site: SitemapSite, row: UrlOverride, user: str) -> tuple[int, str]:
    """Publish the sitemap file of an override's URL again; return a message's level and text.

    The level is SUCCESS only if published files have changed as wanted. The text may be "".
    """
    is_excluded = row.include is False
    try:
        with savepoint_if_atomic():
            result = publish_override(site, row, started_by=user)
    except Exception as error:  # noqa: BLE001  each storage raises errors of its own
        reason = reason_of(error, "Override %s: published files do not follow it yet.", row)
        text = gettext(
            "Live sitemaps follow now, but the published file could not be made again: %(error)s"
        )
        return messages.WARNING, text % {"error": reason}
    if is_excluded and _is_still_listed(site, row):
        return (
            messages.WARNING,
            gettext("The URL is still listed: an override by path includes it."),
        )
    if result is not None and result.cause:
        text = gettext(
            "Live sitemaps follow now. Published files do not, because the build is held for"
            " review: %(reason)s"
        )
        return messages.WARNING, text % {"reason": words_of(result.cause)}
    if not is_excluded:
        text = gettext(
            "The URL is included, and its sitemap file is published again, with any changes that"
            " waited for this file, except new rules."
        )
        return (messages.SUCCESS, text) if result else (messages.INFO, "")
    text = gettext(
        "The URL is excluded, and its sitemap file is published without it, with any changes that"
        " waited for this file, except new rules."
    )
    if result is None:
        text = gettext("The URL is excluded. No published file lists it.")
    elif result.status == "unchanged":
        text = gettext("The URL is excluded. Earlier files that listed it are no longer served.")
    return messages.SUCCESS, text


def _is_still_listed(site: SitemapSite, row: UrlOverride) -> bool:
    """Return whether an excluded object is still listed, as an override by path includes it.

    It is False for an override by path.
    """
    obj = None if row.path else object_by_key(row.model, row.object_id)
    found, _reason = try_read(lambda: inspect_object(site, obj) if obj else [])
    return any(each.listed for each in found or ())


@admin.register(UrlOverride)
class UrlOverrideAdmin(TransferAdmin):
    """The admin of URL overrides, with previews, bulk actions, import and export."""

    screens = (*TransferAdmin.screens, exclude_now_view, set_include_view)
    form = OverrideForm
    transfer = OVERRIDE_TABLE
    preview_template = "admin/sitemapkit/editor_settings/explanations.html"
    list_display = (
        *("subject", "site", "include", "priority", "changefreq", "lastmod", "note"),
        "changed_at",
    )
    list_filter = (SiteFilter, "include", "changefreq", "changed_at")
    search_fields = ("path", "object_id", "note")
    actions = ("include_urls", "exclude_urls", "reset_overrides")
    readonly_fields = ("subject_object",)

    def get_fieldsets(self, request: HttpRequest, obj: UrlOverride | None = None) -> Any:
        """Return the fields: a path or an object, the values, and the note.

        The object of a stored override cannot be changed; its path can. If the link to the form has
        a path, no object is asked for.
        """
        if obj is None:
            identity = ["path"] if request.GET.get("path") else ["path", "model", "object_id"]
        else:
            identity = ["path"] if obj.path else ["subject_object"]
        return [
            (None, {"fields": ["site", *identity]}),
            (_("Values"), {"fields": ["include", "priority", "changefreq", "lastmod"]}),
            (None, {"fields": ["note"]}),
        ]

    @admin.display(description=_("object"))
    def subject_object(self, obj: UrlOverride) -> str:
        """Return HTML with the kind and the name of the override's object, linked to its page."""
        found = object_by_key(obj.model, obj.object_id)
        if found is None:
            return format_html(
                "{} {} ({})", verbose_name_of(obj.model), obj.object_id, gettext("deleted")
            )
        return format_html(
            "{}: {}", capfirst(verbose_name_of(obj.model)), link_to(self.admin_site, found)
        )

    @admin.display(description=_("URL or object"), ordering="path")
    def subject(self, obj: UrlOverride) -> str:
        """Return the override's path, or the model and primary key of its object.

        It takes no query.
        """
        return str(obj)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return the message for Django's admin log: ``EXCLUDED``, or which fields changed."""
        return exclusion_message(form.instance, form.changed_data) or (
            super().construct_change_message(request, form, formsets, add)
        )

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: UrlOverride, form: Any
    ) -> dict[str, Any]:
        """Return the inspections of the override's URLs: where they are listed, or why not."""
        if row.path:
            return {"inspections": [inspect_path(site, row.path)]}
        obj = object_by_key(row.model, row.object_id)
        if obj is None:
            return {"failure": _("The object was deleted, so the override has no effect.")}
        return {"inspections": inspect_object(site, obj), "nothing": NO_SECTION}

    def has_bulk_urloverride_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run the bulk actions and "Exclude now"."""
        return bool(request.user.has_perm("sitemapkit.bulk_urloverride"))

    @admin.action(description=_("Include in the sitemap"), permissions=["bulk_urloverride"])
    def include_urls(self, request: HttpRequest, queryset: UrlOverrideQuerySet) -> None:
        """Include the URLs of the chosen overrides in the sitemap."""
        self._update_overrides(request, queryset, {"include": True})

    @admin.action(description=_("Exclude from the sitemap"), permissions=["bulk_urloverride"])
    def exclude_urls(
        self, request: HttpRequest, queryset: UrlOverrideQuerySet
    ) -> HttpResponse | None:
        """Exclude the URLs of the chosen overrides; many of one site, only after confirmation."""
        losses = [] if "confirmed" in request.POST else _losses_by_site(request, queryset)
        if losses:
            return self.render_page(
                request,
                "editor_settings/exclude",
                title=gettext("Exclude these URLs?"),
                changelist_url=self.view_url("changelist"),
                losses=losses,
                chosen=request.POST.getlist(ACTION_CHECKBOX_NAME),
                across=request.POST.get("select_across", "0"),
            )
        self._update_overrides(request, queryset, {"include": False})
        return None

    @admin.action(description=_("Reset to inherited values"), permissions=["bulk_urloverride"])
    def reset_overrides(self, request: HttpRequest, queryset: UrlOverrideQuerySet) -> None:
        """Clear all values of the chosen overrides, but keep their notes."""
        self._update_overrides(request, queryset, INHERITED)

    def _update_overrides(
        self,
        request: HttpRequest,
        queryset: UrlOverrideQuerySet,
        values: dict[str, Any],
    ) -> None:
        """Set values of the chosen overrides, log the changes, and add messages."""
        keys = queryset.site_keys()
        count = queryset.count()
        message = {True: INCLUDED, False: EXCLUDED}.get(values["include"], "")
        with transaction.atomic(using=router.db_for_write(self.model)):
            if count > MAX_LOGGED_ROWS:
                log_bulk_action(request.user.pk, self.model, count, CHANGE, values, message)
            else:
                log_rows(request.user.pk, list(queryset), CHANGE, values, message)
            queryset.update(changed_at=timezone.now(), **values)
        text = ngettext("%(count)s override changed.", "%(count)s overrides changed.", count)
        self.message_user(request, text % {"count": number_text(count)}, messages.SUCCESS)
        add_pending_message(request, keys)


def _losses_by_site(request: HttpRequest, queryset: UrlOverrideQuerySet) -> list[dict[str, Any]]:
    """Return a template row for each site that would lose many published URLs.

    ``queryset`` are the overrides that would exclude them.
    """
    keys = queryset.site_keys()
    found = [
        _loss_of(site, queryset.filter(site=site.key))
        for site in known_sites(request)
        if site.key in keys
    ]
    return [loss for loss in found if loss is not None]


def _loss_of(site: SitemapSite, rows: UrlOverrideQuerySet) -> dict[str, Any] | None:
    """Return the template row of how many published URLs a site would lose; None for few.

    The URLs of ``rows`` are looked for in the published files. If that fails, the row says why.
    """
    objects = rows.filter(path="").count()
    matches, failure = try_read(
        lambda: count_published_paths(site, rows.exclude(path="").values_list("path", flat=True))
    )
    if matches is None:
        return {"site": site.key, "failure": failure} if failure else None
    if matches.complete and matches.matched + objects <= LOSS * matches.read:
        return None
    return {
        "site": site.key,
        "matches": matches,
        "texts": match_texts(matches),
        "objects": objects,
        "object_text": number_text(objects),
    }


def _listed_labels(sites: Sequence[SitemapSite]) -> set[str]:
    """Return the labels of the models whose objects some section of the sites lists.

    A section class that several sites have is read at one of them.
    """
    classes: dict[Any, SitemapSite] = {}
    for site in sites:
        known, _reason = try_read(partial(registry.classes_of, site))
        classes |= {section: site for section in known or () if belongs_to(section, site)}
    found = try_each([partial(_model_label, *each) for each in classes.items()])
    return {label for label, _reason in found if label is not None}


def _model_label(section: Any, site: SitemapSite) -> str | None:
    """Return the label of the model that a section class lists at a site; None without one."""
    return label_or_none(reader_of(section(site)))
