"""The views that publish a build, pause and resume publishing, and cancel a build."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.activity import (
    BUILD_CANCELLED,
    BUILD_DISCARDED,
    PAUSED,
    PUBLISHED,
    RESUMED,
    ROLLED_BACK,
    edit_counts_context,
)
from django_sitemapkit.admin.base import (
    BaseAdmin,
    id_or_none,
    known_site_or_reason,
    may_view,
    number_or_blank,
    number_text,
    pause_text,
    progress_text,
    render_build_page,
    screen,
)
from django_sitemapkit.admin.differences import (
    KINDS,
    section_changes,
    total_change,
    url_counts_by_build,
)
from django_sitemapkit.admin.editor_settings import add_pending_message
from django_sitemapkit.builds import (
    Pause,
    cancel_build,
    pause_publishing,
    publish,
    resume_publishing,
)
from django_sitemapkit.builds.lease import cancellable_lease, discard_build
from django_sitemapkit.builds.publication.gates import is_valid_pause_end, pause_at
from django_sitemapkit.builds.report.differences import (
    MAX_COMPARED_TO_PUBLISH,
    MAX_KEPT,
    DifferenceKind,
    kept_differences,
    stored_or_quick_differences,
)
from django_sitemapkit.builds.report.published import is_complete, sections_served_live
from django_sitemapkit.builds.report.status import (
    build_progress,
    states_of_sites,
    unpublished_state,
)
from django_sitemapkit.inspection import reason_of, try_read
from django_sitemapkit.models import (
    Build,
    Publication,
    StoredNow,
    UrlOverride,
)
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

MAX_NAMED = 20
"""URLs that go, and that come, which are named before a build is published."""


class PauseForm(forms.Form):
    """A form to pause publishing: why, and until when."""

    reason = forms.CharField(
        label=_("Reason for the pause"),
        max_length=500,
        widget=forms.TextInput({"class": "vTextField"}),
    )
    until = forms.DateTimeField(
        label=_("Paused until"),
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local"}),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["until"].help_text = gettext(
            "In the time zone %(zone)s. If it is empty, publishing is paused until someone resumes"
            " it."
        ) % {"zone": timezone.get_current_timezone_name()}

    def clean_until(self) -> Any:
        """Return the end of the pause; reject one that has passed or is more than a year away."""
        until = self.cleaned_data["until"]
        if until is not None and not is_valid_pause_end(until):
            raise ValidationError(_("Enter a time in the future, at most a year from now."))
        return until

    def requested_pause(self, request: HttpRequest) -> Pause:
        """Return the pause that the valid form describes, by the user of the request."""
        values = self.cleaned_data
        return Pause(by=request.user.get_username(), reason=values["reason"], until=values["until"])


class RollBackForm(PauseForm):
    """A form to confirm a roll-back, which can also pause publishing."""

    pause = forms.BooleanField(
        label=_("Pause publishing after it"),
        required=False,
        help_text=_(
            "Otherwise the next build publishes the current content again. While publishing is"
            " paused, builds are held for review."
        ),
    )
    field_order = ("pause", "reason", "until")

    def __init__(self, *args: Any, is_paused: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].required = False
        if is_paused:
            self.fields["pause"].label = _("Replace the pause")
            self.fields["pause"].help_text = ""

    def clean(self) -> dict[str, Any]:
        """Require a reason if publishing is to be paused, and no reason or end if it is not."""
        cleaned = super().clean() or self.cleaned_data
        is_filled = bool(cleaned.get("reason") or cleaned.get("until"))
        if cleaned.get("pause") and not cleaned.get("reason") and "reason" not in self.errors:
            self.add_error("reason", ValidationError(_("Enter a reason."), code="required"))
        elif is_filled and not cleaned.get("pause"):
            text = _("Check this box to pause publishing, or clear the reason and the time.")
            self.add_error("pause", ValidationError(text))
        return cleaned


# Publishing --------------------------------------------------------------------------------------


@screen(
    "<path:object_id>/publish/",
    "build_publish",
    *("view", "sitemapkit.publish_build"),
    methods=["GET", "HEAD", "POST"],
)
def publish_view(model_admin: BaseAdmin, request: HttpRequest, obj: Build) -> HttpResponseBase:
    """Show what publishing a build would change; once confirmed, publish or discard the build."""
    is_back = obj.published_at is not None
    publications = Publication.objects.filter(site=obj.site).select_related("build")
    served = publications.annotate(now=StoredNow()).first()
    pause = pause_at(served, served.now) if served else None
    data = request.POST if request.method == "POST" else None
    form = RollBackForm(data, is_paused=bool(pause)) if is_back else None
    if request.method == "POST" and (form is None or form.is_valid()):
        new_pause = form.requested_pause(request) if form and form.cleaned_data["pause"] else None
        return HttpResponseRedirect(_publish_or_discard(model_admin, request, obj, new_pause))
    live = served.build_id if served else None
    counts = url_counts_by_build([obj.pk, live])
    site, _reason = known_site_or_reason(request, obj.site)
    replaces = served.build if served else None
    stay_live = _live_sections(site, obj, counts[live])
    were_live = _live_sections(site, replaces, counts[obj.pk]) if replaces else set()
    before = {name: urls for name, urls in counts[live].items() if name not in stay_live}
    before |= {name: counts[obj.pk][name] for name in were_live}  # Nobody counted them.
    goes_back = is_back and is_older_than_published(obj)
    edits = edit_counts_context(request, obj.pk)
    differences, added = _differences_from_served(site, obj, replaces, stay_live | were_live)
    return render_build_page(
        model_admin,
        request,
        obj,
        "publish",
        title=(
            gettext("Roll back to build %(build)s?")
            if goes_back
            else gettext("Publish build %(build)s?")
        )
        % {"build": obj.pk},
        base_url=site.base if site else obj.site,
        goes_back=goes_back,
        served=replaces,
        served_urls=number_text(sum(counts[live].values())) if served else "",
        urls=number_text(sum(counts[obj.pk].values())),
        change=total_change(counts[obj.pk], before if served else None),
        changes=section_changes(counts[obj.pk], before if served else None),
        served_live=sorted(stay_live),
        were_live=were_live,
        publish_error=publish_error(obj),
        edits=edits,
        **(_lost_exclusions(obj, edits["since"], added) if may_view(request, UrlOverride) else {}),
        differences=differences,
        differences_url=f"{model_admin.view_url('differences', obj.pk)}?before={live}",
        given_up=Build.objects.publishable(obj.site).filter(
            status=Build.Status.HELD, pk__lt=obj.pk
        ),
        # They compare it with what was live when it ended.
        warnings=[
            words_of(each) for each in obj.warnings if not is_back and obj.previous_id == live
        ],
        pause=pause_text(pause) if pause else "",
        form=form,
    )


def _differences_from_served(
    site: SitemapSite | None, build: Build, served: Build | None, live_sections: Collection[str]
) -> tuple[list[dict[str, Any]], list[str] | None]:
    """Return how a build differs from the one that is served, and the paths that it adds.

    The first are template rows by kind, with their number and the first URLs. The sections
    ``live_sections``, which are served live before or after, are left out. The paths are None if
    there are too many. If the builds cannot be compared in a moment, return ``([], None)``.
    """
    if site is None or served is None or publish_error(build):
        return [], None
    stored, _reason = try_read(
        lambda: stored_or_quick_differences(site, build, served, MAX_COMPARED_TO_PUBLISH)
    )
    if stored is None:
        return [], None
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for each, _tags in kept_differences(stored):
        if each.section not in live_sections and each.kind is not DifferenceKind.CHANGED:
            paths[each.kind.value].append(each.location.removeprefix(site.origin))
    found = [
        {
            "name": name,
            "title": title,
            "count": number_text(stored.count(kind.value, excluding=live_sections)),
            "first": [unquote(path) for path in paths[kind.value][:MAX_NAMED]],
            "more": number_or_blank(
                stored.count(kind.value, excluding=live_sections)
                - len(paths[kind.value][:MAX_NAMED])
            ),
        }
        for name, (kind, title) in KINDS.items()
    ]
    return found, paths["+"] if stored.count("+") <= MAX_KEPT else None


def _lost_exclusions(build: Build, revision: int, added: list[str] | None) -> dict[str, Any]:
    """Return the newest overrides whose exclusion of URLs is lost if a build is published.

    They have changed since a revision, and the build may list their URLs. ``added`` are the paths
    that it adds; if they are None, any such override is returned. ``all_are_listed`` says whether
    the build is known to list the URLs of all.
    """
    rows = UrlOverride.objects.filter(site=build.site, include=False, revision__gt=revision)
    excluded = [
        row
        for row in rows.order_by("-revision")[:MAX_NAMED]
        if added is None or not row.path or row.path in added
    ]
    return {
        "excluded": excluded,
        "all_are_listed": added is not None and all(row.path for row in excluded),
    }


def _live_sections(site: SitemapSite | None, build: Build, names: Collection[str]) -> set[str]:
    """Return the names of those sections that are served live while a build is published.

    These are sections of the site among ``names``.
    """
    declared, _why = try_read(
        lambda: [each.get_name() for each in sections_of(site)] if site else []
    )
    return sections_served_live(build, sorted({*names}.intersection(declared or ())))


def _publish_or_discard(
    model_admin: BaseAdmin, request: HttpRequest, build: Build, pause: Pause | None
) -> str:
    """Publish or discard a build as posted, pause publishing if asked to, and add messages.

    Return the URL to redirect to: the overview if the build is live, else the build's page.
    """
    page = model_admin.view_url("change", build.pk)
    site, reason = known_site_or_reason(request, build.site)
    if site is None or (reason := publish_error(build)):
        messages.error(request, reason)
        return page
    sentence = ROLLED_BACK if is_older_than_published(build) else PUBLISHED
    try:
        if "discard" in request.POST:
            discard_build(site, build, by=request.user.get_username())
            model_admin.log_change(request, build, BUILD_DISCARDED)
            messages.success(request, gettext("The build is discarded. Its changes still wait."))
        else:
            publish(site, build.pk, pause=pause)
    except Exception as failure:  # noqa: BLE001  each storage raises errors of its own
        messages.error(request, reason_of(failure, "Build %s could not be published.", build.pk))
    if Build.objects.published(site) != build:
        return page  # Otherwise only its export or its announcement has failed.
    model_admin.log_change(request, build, sentence)
    messages.success(
        request,
        gettext("Build %(build)s is now live at %(site)s.")
        % {"build": build.pk, "site": site.base},
    )
    _log_pause(model_admin, request, build, pause)
    return model_admin.screen_url("overview", site=site.key)


def is_older_than_published(build: Build) -> bool:
    """Return whether a build read the rows before the published one, so that it is a roll-back."""
    served = Publication.objects.filter(site=build.site).select_related("build").first()
    return served is not None and build.newness() < served.build.newness()


def publish_error(build: Build) -> str:
    """Return why a build cannot be published, as a sentence; "" if it can."""
    if build.pruned_at is not None:
        return gettext("The files of this build were deleted.")
    if not is_complete(build):
        return gettext("The build was never published and is not held for review.")
    return gettext("The site already serves this build.") if build.outcome == "live" else ""


# Pausing ------------------------------------------------------------------------------------------


@screen(
    "pause/",
    "pause",
    *("view", "sitemapkit.publish_build"),
    methods=["GET", "HEAD", "POST"],
    needs_site=True,
)
def pause_view(model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite) -> HttpResponseBase:
    """Ask for a reason and an end, then pause publishing of a site."""
    url = model_admin.screen_url("overview", site=site.key)
    build = Build.objects.published(site)
    if build is None:
        messages.error(request, gettext("Nothing is currently published."))
        return HttpResponseRedirect(url)
    form = PauseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        pause = form.requested_pause(request)
        pause_publishing(site, pause)
        _log_pause(model_admin, request, build, pause)
        return HttpResponseRedirect(url)
    return model_admin.render_page(
        request,
        "overview/pause",
        title=gettext("Pause publishing"),
        site=site,
        form=form,
        overview_url=url,
    )


@screen("resume/", "resume", "view", "sitemapkit.publish_build", methods=["POST"], needs_site=True)
def resume_view(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Resume publishing of a site, and redirect to its overview."""
    if resume_publishing(site):
        if build := Build.objects.published(site):
            model_admin.log_change(request, build, RESUMED)
        messages.success(request, gettext(RESUMED))
        add_pending_message(request, [site.key])
    return HttpResponseRedirect(model_admin.screen_url("overview", site=site.key))


def _log_pause(
    model_admin: BaseAdmin, request: HttpRequest, build: Build, pause: Pause | None
) -> None:
    """Log a pause in the history of the published build, and add a message; None does nothing."""
    if pause is not None:
        model_admin.log_change(request, build, f"{PAUSED}\n{pause.reason}")
        messages.success(request, pause_text(pause))


# Cancelling ---------------------------------------------------------------------------------------


@screen(
    "cancel/",
    "cancel",
    *("view", "sitemapkit.run_build"),
    methods=["GET", "HEAD", "POST"],
    needs_site=True,
)
def cancel_view(
    model_admin: BaseAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Show the progress of a site's build and ask for confirmation; then cancel that build only."""
    url = model_admin.screen_url("overview", site=site.key)
    if request.method == "POST":
        fence = id_or_none(request.POST.get("fence"))
        by = request.user.get_username()
        if fence is not None and (build := cancel_build(site, by=by, fence=fence)):
            model_admin.log_change(request, build, BUILD_CANCELLED)
            text = gettext("Build %(build)s is cancelled. It stops in a moment.")
            messages.success(request, text % {"build": build.pk})
        else:
            text = gettext("The build had ended before it could be cancelled.")
            messages.warning(request, text)
        return HttpResponseRedirect(url)
    lease = cancellable_lease(site)
    if lease is None:
        messages.warning(request, gettext("No build is running."))
        return HttpResponseRedirect(url)
    (state,), progress = states_of_sites([site]), build_progress(site)
    return model_admin.render_page(
        request,
        "overview/cancel",
        title=gettext("Cancel the build?"),
        site=site,
        fence=lease.fence,
        progress=progress,
        progress_text=progress_text(state, progress),
        running=words_of(state.running),
        published=Build.objects.published(site),
        unpublished=words_of(unpublished_state()),
        overview_url=url,
    )
