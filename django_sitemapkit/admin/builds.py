"""The builds: what became of each, what it is made of, and publishing one of them."""

import datetime as dt
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet, Sum
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_sitemapkit.admin.lists import CheckedListAdmin
from django_sitemapkit.admin.manifests import differences_context, manifest_context
from django_sitemapkit.admin.overview import Overview
from django_sitemapkit.admin.wording import known_site, logger, number, told
from django_sitemapkit.builds import publish
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, BuildFile, Publication
from django_sitemapkit.sites import all_sites

MANY_SITES = 100
"""Sites from which on they are no list to choose from."""


class SiteFilter(admin.SimpleListFilter):
    """Filters by site; of many sites it has only the one that a link chose."""

    title = gettext_lazy("site")
    parameter_name = "site"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the sites to choose from; none where there is but one."""
        sites, _why = told(all_sites)
        keys = [site.key for site in sites or ()]
        chosen = request.GET.get(self.parameter_name)
        if len(keys) > MANY_SITES or (chosen and chosen not in keys):
            keys = [chosen] if chosen else []
        return [(key, key) for key in keys] if len(keys) > 1 or chosen else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Build]) -> QuerySet[Build]:
        """Return the builds of the chosen site."""
        return queryset.filter(site=self.value()) if self.value() else queryset


class BuildList(ChangeList):
    """A page of builds, with what each is made of: one query more, however many they are."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the builds of the page, and count their files."""
        super().get_results(request)
        done = Q(status=BuildFile.Status.DONE) & ~Q(section="")
        lines = BuildFile.objects.filter(build__in=[build.pk for build in self.result_list])
        totals = (
            lines.order_by()
            .values("build")
            .annotate(files=Count("pk", filter=done), urls=Sum("urls", filter=done, default=0))
        )
        known = {total["build"]: total for total in totals}
        for build in self.result_list:
            build.totals = known.get(build.pk, {})


@admin.register(Build)
class BuildAdmin(CheckedListAdmin):
    """Shows builds; nobody makes or changes one by hand."""

    list_display = (
        *("name", "site", "shown_status", "started_at", "duration"),
        *("url_count", "file_count", "started_by", "why"),
    )
    list_filter = (SiteFilter, "status")
    list_per_page = 50
    ordering = ("-pk",)
    show_full_result_count = False
    actions = None
    readonly_fields = (
        *("site", "shown_status", "reason", "warnings", "started_by"),
        *("started_at", "ended_at", "duration"),
        *("published_at", "replaced_at", "pruned_at", "shown_previous"),
    )

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overview.css"]}

    # Who may what

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a build by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Build | None = None) -> bool:
        """Nobody changes a build by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Build | None = None) -> bool:
        """Nobody deletes a build by hand: its files would be left."""
        return False

    def has_build_permission(self, request: HttpRequest) -> bool:
        """Whether one may have sitemaps built, checked and pruned."""
        return request.user.has_perm("sitemapkit.build")

    def has_publish_permission(self, request: HttpRequest) -> bool:
        """Whether one may publish held and earlier builds."""
        return request.user.has_perm("sitemapkit.publish")

    # The list

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """Return the list that counts files."""
        return BuildList

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Leave the site out where there is but one."""
        several = _only_site() is None
        return [name for name in self.list_display if several or name != "site"]

    @admin.display(description=gettext_lazy("build"), ordering="pk")
    def name(self, build: Build) -> str:
        """Return which build it is."""
        return _("Build %(build)s") % {"build": build.pk}

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, build: Build) -> str:
        """Return its status, marked so that a held or failed one is seen."""
        return format_html(
            '<span class="sitemapkit-status sitemapkit-{}">{}</span>',
            build.status,
            build.get_status_display(),
        )

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, build: Build) -> str:
        """Return how long it took."""
        if build.ended_at is None:
            return "-"
        seconds = (build.ended_at - build.started_at).total_seconds()
        if seconds < 60:
            return _("%(seconds)s s") % {"seconds": f"{seconds:.1f}"}
        return str(dt.timedelta(seconds=round(seconds)))

    @admin.display(description=gettext_lazy("URLs"))
    def url_count(self, build: Any) -> str:
        """Return how many URLs its files list."""
        return number(build.totals.get("urls"))

    @admin.display(description=gettext_lazy("files"))
    def file_count(self, build: Any) -> str:
        """Return how many files it has."""
        return number(build.totals.get("files"))

    @admin.display(description=gettext_lazy("why"))
    def why(self, build: Build) -> str:
        """Return why it ended as it did."""
        return Truncator(build.reason).chars(200)

    # The page of one build

    @admin.display(description=gettext_lazy("build before"))
    def shown_previous(self, build: Build) -> str:
        """Return a link to what was published when it was finished."""
        previous = build.previous
        address = self._address("change", previous.pk) if previous else ""
        return format_html('<a href="{}">{}</a>', address, self.name(previous)) if previous else "-"

    def get_fieldsets(self, request: HttpRequest, obj: Build | None = None) -> Any:
        """Leave out what says nothing of this build."""
        rows = (
            *("site", "shown_status", "reason", "warnings", "started_by"),
            ("started_at", "ended_at", "duration"),
            ("published_at", "replaced_at"),
            *("pruned_at", "shown_previous"),
        )
        names = {"shown_status": "status", "shown_previous": "previous"}
        named = [row if isinstance(row, tuple) else (row,) for row in rows]
        told_of = [row for row in named if getattr(obj, names.get(row[0], row[0]), None)]
        if _only_site() == getattr(obj, "site", None):
            told_of.remove(("site",))
        return [(None, {"fields": told_of})]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Build]:
        """Return the builds with those before them."""
        return super().get_queryset(request).select_related("previous")

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Show the build with its manifest; there is always one, for nobody adds any."""
        context["title"] = self.name(obj)
        context["subtitle"] = None
        may_publish = self.has_publish_permission(request)
        context["may_publish"] = may_publish and not self._why_not(obj)
        context["differs"] = _is_kept(obj) and obj.previous is not None
        context.update(manifest_context(request, obj))
        return super().render_change_form(request, context, add, change, form_url, obj)

    # Publishing

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses, those of the overview with them."""
        wrap = self.admin_site.admin_view
        own = [
            *Overview(self).urls(),
            path(
                "<path:object_id>/publish/",
                wrap(self.publish_view),
                name="sitemapkit_build_publish",
            ),
            path(
                "<path:object_id>/differences/",
                wrap(self.differences_view),
                name="sitemapkit_build_differences",
            ),
        ]
        return own + super().get_urls()

    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Ask whether a build is to be published, and publish it."""
        if not (self.has_view_permission(request) and self.has_publish_permission(request)):
            raise PermissionDenied
        build = self._asked(request, object_id)
        if request.method == "POST":
            self._publish(request, build)
            return HttpResponseRedirect(self._address("change", build.pk))
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        served = Publication.objects.filter(site=build.site).select_related("build").first()
        context = {
            "title": _("Publish build %(build)s?") % {"build": build.pk},
            "served": served.build if served else None,
            "served_urls": _urls(served.build) if served else "",
            "urls": _urls(build),
            "why_not": self._why_not(build),
        }
        return self._build_page(request, build, "publish", context)

    def _publish(self, request: HttpRequest, build: Build) -> None:
        """Publish a build and tell what came of it."""
        site, why = known_site(build.site)
        if site is None:
            messages.error(request, why)
            return
        try:
            publish(site, build.pk)
        except SitemapKitError as error:
            messages.error(request, str(error))
            return
        except Exception as error:  # noqa: BLE001  each storage has errors of its own
            logger.exception("Build %s could not be published.", build.pk)
            messages.error(request, f"{type(error).__name__}: {error}")
            return
        self.log_change(request, build, _("Published."))
        text = _("Site “%(site)s” now serves build %(build)s.")
        messages.success(request, text % {"site": site.key, "build": build.pk})

    def _why_not(self, build: Build) -> str:
        """Return why a build cannot be published, or ""."""
        if not _is_kept(build):
            if build.pruned_at is not None:
                return _("Its files were deleted.")
            return _("It has never been published, nor is it held back.")
        if Publication.objects.filter(site=build.site, build=build).exists():
            return _("The site serves it.")
        return ""

    # What it changes

    def differences_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the URLs that a build adds, removes and changes; it reads files."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        build = self._asked(request, object_id)
        context = {
            "title": _("What build %(build)s changes") % {"build": build.pk},
            **differences_context(build),
        }
        return self._build_page(request, build, "differences", context)

    def _asked(self, request: HttpRequest, object_id: str) -> Build:
        build: Build | None = self.get_object(request, unquote(object_id))
        if build is None:
            raise Http404(_("There is no such build."))
        return build

    def _address(self, view: str, pk: int) -> str:
        return reverse(f"{self.admin_site.name}:sitemapkit_build_{view}", args=[pk])

    def _build_page(
        self, request: HttpRequest, build: Build, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/sitemapkit/build/{name}.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "build": build,
                "build_title": self.name(build),
                "build_address": self._address("change", build.pk),
                **context,
            },
        )


def _only_site() -> str | None:
    """Return the key of the one site, with which nobody is to be bothered; None for several."""
    sites, _why = told(all_sites)
    return sites[0].key if sites is not None and len(sites) == 1 else None


def _is_kept(build: Build) -> bool:
    """Return whether the build was published or held back, and its files are there still."""
    ended_well = build.published_at is not None or build.status == Build.Status.HELD
    return ended_well and build.pruned_at is None


def _urls(build: Build) -> str:
    lines = BuildFile.objects.filter(build=build, status=BuildFile.Status.DONE)
    return number(lines.exclude(section="").aggregate(urls=Sum("urls", default=0))["urls"])
