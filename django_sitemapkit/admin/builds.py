"""The screens of builds: the list, a build with its files, publishing, and differences."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten, unquote
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_sitemapkit.admin.activity import ActivityAdmin
from django_sitemapkit.admin.base import (
    SiteFilter,
    duration_text,
    known_site,
    known_sites,
    logger,
    number,
    pause_text,
    screen,
)
from django_sitemapkit.admin.cancelling import CancelAdmin
from django_sitemapkit.admin.differences import (
    REFRESH_SECONDS,
    differences_context,
    differences_csv,
)
from django_sitemapkit.admin.health.views import HealthAdmin
from django_sitemapkit.admin.log_messages import PUBLISHED, ROLLED_BACK
from django_sitemapkit.admin.manifests import file_context, manifest_context, name_of
from django_sitemapkit.admin.pausing import PauseAdmin, RollBackForm
from django_sitemapkit.admin.url_counts import (
    changes_of,
    counts_of,
    section_changes,
    total_change,
    url_counts,
)
from django_sitemapkit.admin.url_inspection import InspectionAdmin
from django_sitemapkit.builds import Pause, publish
from django_sitemapkit.builds.publication.gates import pause_at
from django_sitemapkit.builds.report.status import STATES, states_of
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, BuildDifferences, Place, Publication, StoredNow
from django_sitemapkit.words import words_of


class BuildList(ChangeList):
    """A page of builds with the totals of their files, by one more query."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the builds of the page, and add the totals of their files."""
        super().get_results(request)
        keys = [build.pk for build in self.result_list]
        totals = Place.objects.filter(build__in=keys).totals("build")
        by_build = {total["build"]: total for total in totals}
        changes = changes_of(self.result_list, counts_of(self.result_list))
        live = set(Publication.objects.filter(build__in=keys).values_list("build", flat=True))
        states = states_of(self.result_list)
        for build in self.result_list:
            build.totals = by_build.get(build.pk, {})
            build.change = changes.get(build.pk, "-")
            build.is_live = build.pk in live
            build.state = states[build.pk]


@admin.register(Build)
class BuildAdmin(ActivityAdmin, CancelAdmin, HealthAdmin, InspectionAdmin, PauseAdmin):
    """Shows builds, which nobody adds, changes or deletes by hand."""

    list_display = (
        *("name", "site", "shown_status", "started_at", "duration"),
        *("url_count", "file_count", "size", "started_by", "short_reason"),
    )
    list_filter = (SiteFilter, "status", "started_at")
    search_fields = ("reason", "started_by")
    list_per_page = 50
    ordering = ("-pk",)
    show_full_result_count = False
    actions = None
    fields = (
        *("site", "shown_status", "shown_reason", "shown_warnings", "started_by"),
        ("started_at", "ended_at", "duration"),
        ("published_at", "replaced_at"),
        *("pruned_at", "shown_previous"),
    )
    readonly_fields = flatten(fields)

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overview.css"]}

    # The list

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """Return the change list that adds the totals of files."""
        return BuildList

    @admin.display(description=gettext_lazy("build"), ordering="pk")
    def name(self, build: Build) -> str:
        """Return the name of the build."""
        return _("Build %(build)s") % {"build": build.pk}

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def shown_status(self, build: Any) -> str:
        """Return the status, highlighted if the build is held or failed, and the live one."""
        status = _status_html(build.state, str(STATES[build.state]))
        is_live = getattr(build, "is_live", False)
        return format_html("{} {}", status, _status_html("live", _("live"))) if is_live else status

    @admin.display(description=gettext_lazy("duration"))
    def duration(self, build: Build) -> str:
        """Return how long the build took."""
        return duration_text(build) or "-"

    @admin.display(description=gettext_lazy("URLs"))
    def url_count(self, build: Any) -> str:
        """Return how many URLs the build lists, and how that differs from the one before."""
        return str(build.change)

    @admin.display(description=gettext_lazy("files"))
    def file_count(self, build: Any) -> str:
        """Return how many files the build has."""
        return number(build.totals.get("pages"))

    @admin.display(description=gettext_lazy("size"))
    def size(self, build: Any) -> str:
        """Return how large the XML of its files is."""
        size = build.totals.get("xml_bytes")
        return "-" if size is None else filesizeformat(size)

    @admin.display(description=gettext_lazy("reason"))
    def short_reason(self, build: Build) -> str:
        """Return why the build ended with its status."""
        return Truncator(build.reason_text).chars(200)

    # The page of one build

    @admin.display(description=gettext_lazy("reason"))
    def shown_reason(self, build: Build) -> str:
        """Return why the build ended with its status, in full."""
        return build.reason_text

    @admin.display(description=gettext_lazy("warnings"))
    def shown_warnings(self, build: Build) -> str:
        """Return a line for each implausible lastmod."""
        return "\n".join(map(words_of, build.warnings))

    @admin.display(description=gettext_lazy("previous build"))
    def shown_previous(self, build: Build) -> str:
        """Return a link to the build that was published when this one finished."""
        previous = build.previous
        if previous is None:
            return "-"
        url = self._url("change", previous.pk)
        return format_html('<a href="{}">{}</a>', url, self.name(previous))

    def get_fieldsets(self, request: HttpRequest, obj: Build | None = None) -> Any:
        """Return the fields that have a value for this build."""
        fields = [
            row
            for row in self.fields
            if getattr(obj, flatten([row])[0].removeprefix("shown_"), None)
        ]
        if [site.key for site in known_sites(request)] == [getattr(obj, "site", None)]:
            fields.remove("site")
        return [(None, {"fields": fields})]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Build]:
        """Return the builds with their previous builds."""
        return super().get_queryset(request).select_related("previous")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show the build with its manifest."""
        build = options["obj"]
        build.is_live, build.state = _is_live(build), states_of([build])[build.pk]
        context |= {
            "title": self.name(build),
            "subtitle": None,
            "may_publish": self.has_publish_build_permission(request)
            and not self._publish_error(build),
            "differs": _is_publishable(build) and build.previous is not None,
            **manifest_context(request, build),
        }
        return super().render_change_form(request, context, *args, **options)

    # Publishing

    @screen(
        "<path:object_id>/publish/",
        "build_publish",
        *("view", "publish_build"),
        methods=["GET", "HEAD", "POST"],
    )
    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then publish a build."""
        build = self._get_build_or_404(request, object_id)
        form = None
        if build.published_at is not None:
            form = RollBackForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and (form is None or form.is_valid()):
            self._publish(request, build, form.pause_if_chosen(request) if form else None)
            return HttpResponseRedirect(self._url("change", build.pk))
        rows = Publication.objects.filter(site=build.site).select_related("build")
        served = rows.annotate(now=StoredNow()).first()
        pause = pause_at(served, served.now) if served else None
        live = served.build_id if served else None
        counts = url_counts([build.pk, live])
        before = counts[live] if served else None
        title = _("Publish build %(build)s?")
        if build.published_at is not None:
            title = _("Roll back to build %(build)s?")
        context = {
            "title": title % {"build": build.pk},
            "served": served.build if served else None,
            "served_urls": number(sum(before.values())) if before is not None else "",
            "urls": number(sum(counts[build.pk].values())),
            "change": total_change(counts[build.pk], before),
            "changes": section_changes(counts[build.pk], before),
            "publish_error": self._publish_error(build),
            "pause": pause_text(pause) if pause else "",
            "form": form,
        }
        return self._build_page(request, build, "publish", context)

    def _publish(self, request: HttpRequest, build: Build, pause: Pause | None) -> None:
        """Publish a build, pause publishing if asked to, and show a message with the result."""
        site, reason = known_site(build.site)
        if site is None:
            messages.error(request, reason)
            return
        if error := self._publish_error(build):
            messages.error(request, error)
            return
        try:
            publish(site, build.pk, pause=pause)
        except SitemapKitError as error:
            messages.error(request, str(error))
        except Exception as error:  # noqa: BLE001  each storage raises its own errors
            logger.exception("Build %s could not be published.", build.pk)
            messages.error(request, f"{type(error).__name__}: {error}")
        if Build.objects.published(site) != build:
            return  # Otherwise only its export or its announcement has failed.
        was_held = build.status == Build.Status.HELD
        self.log_change(request, build, PUBLISHED if was_held else ROLLED_BACK)
        text = _("Site “%(site)s” now serves build %(build)s.")
        messages.success(request, text % {"site": site.key, "build": build.pk})
        if pause is not None:
            self.record_pause(request, build, pause)

    def _publish_error(self, build: Build) -> str:
        """Return why a build cannot be published; "" if it can."""
        if not _is_publishable(build):
            if build.pruned_at is not None:
                return _("The files of this build were deleted.")
            return _("The build was never published and is not held for review.")
        if _is_live(build):
            return _("The site already serves this build.")
        return ""

    # Differences

    @screen("<path:object_id>/differences/", "build_differences", "view")
    def differences_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the URLs that a build adds, removes and changes, or as CSV with ``?csv``."""
        build = self._get_build_or_404(request, object_id)
        stored = (
            BuildDifferences.objects.filter(build=build).first() if "csv" in request.GET else None
        )
        if stored is not None:
            return differences_csv(request, stored)
        context = {
            "title": _("Changes in build %(build)s") % {"build": build.pk},
            "here": request.path,
            **differences_context(request, build),
        }
        page = self._build_page(request, build, "differences", context)
        if "waiting" in context:
            # Without JavaScript, and not in the page: readers of screens may stop it there.
            page.headers["Refresh"] = f"{REFRESH_SECONDS}; url={request.path}"
        return page

    # Files

    @screen("<path:object_id>/files/<int:file>/", "build_file", "view")
    def file_view(self, request: HttpRequest, object_id: str, file: int) -> HttpResponse:
        """Show the URLs of a stored file."""
        build = self._get_build_or_404(request, object_id)
        row = Place.objects.in_build(build).pages().filter(pk=file).first()
        if row is None:
            raise Http404(_("This file does not exist."))
        context = {"title": name_of(row), "file": row, **file_context(request, row)}
        return self._build_page(request, build, "file", context)

    def _get_build_or_404(self, request: HttpRequest, object_id: str) -> Build:
        build: Build | None = self.get_object(request, unquote(object_id))
        if build is None:
            raise Http404(_("This build does not exist."))
        return build

    def _url(self, view: str, pk: int) -> str:
        return reverse(f"{self.admin_site.name}:sitemapkit_build_{view}", args=[pk])

    def _build_page(
        self, request: HttpRequest, build: Build, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        shared = {
            "build": build,
            "build_title": self.name(build),
            "build_url": self._url("change", build.pk),
        }
        return self.render_page(request, f"build/{name}", {**shared, **context})


def _status_html(status: str, text: str) -> str:
    return format_html('<span class="sitemapkit-status sitemapkit-{}">{}</span>', status, text)


def _is_live(build: Build) -> bool:
    """Return whether the site serves a build."""
    return Publication.objects.filter(site=build.site, build=build).exists()


def _is_publishable(build: Build) -> bool:
    """Return whether the build was published or held for review and still has its files."""
    ended_well = build.published_at is not None or build.status == Build.Status.HELD
    return ended_well and build.pruned_at is None
