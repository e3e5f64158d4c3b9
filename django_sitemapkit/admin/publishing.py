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

from django_sitemapkit.admin.activity import edits_since
from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    id_or_none,
    may_view,
    number,
    number_or_blank,
    pause_text,
    progress_text,
    render_build_page,
    screen,
    site_or_reason,
)
from django_sitemapkit.admin.differences import KINDS
from django_sitemapkit.admin.editor_settings import add_due_message
from django_sitemapkit.admin.history import (
    BUILD_CANCELLED,
    BUILD_DISCARDED,
    PAUSED,
    PUBLISHED,
    RESUMED,
    ROLLED_BACK,
)
from django_sitemapkit.admin.overview import overview_url
from django_sitemapkit.admin.url_counts import section_changes, total_change, url_counts_by_build
from django_sitemapkit.builds import (
    Pause,
    cancel_build,
    pause_publishing,
    publish,
    resume_publishing,
)
from django_sitemapkit.builds.lease import cancellable_lease, discard_build
from django_sitemapkit.builds.publication.gates import is_valid_pause_end, pause_at
from django_sitemapkit.builds.report.changes import is_complete
from django_sitemapkit.builds.report.differences import (
    MAX_COMPARED_TO_PUBLISH,
    MAX_KEPT,
    DifferenceKind,
    differences_if_quick,
    kept_differences,
)
from django_sitemapkit.builds.report.published import sections_served_live
from django_sitemapkit.builds.report.status import build_progress, states_of_sites
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.inspection.attempts import try_read
from django_sitemapkit.models import (
    Build,
    Publication,
    StoredNow,
    UrlOverride,
)
from django_sitemapkit.overrides import sections_of
from django_sitemapkit.printable import logger
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

MAX_NAMED = 20
"""URLs that go, and that come, which are named before a build is published."""


class PauseForm(forms.Form):
    """A form for why publishing is paused, and until when."""

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
        """Reject a time that has passed, or is too far away."""
        until = self.cleaned_data["until"]
        if until is not None and not is_valid_pause_end(until):
            raise ValidationError(_("Enter a time in the future, at most a year from now."))
        return until

    def pause_by(self, request: HttpRequest) -> Pause:
        """Return the pause that the user asks for."""
        values = self.cleaned_data
        return Pause(by=request.user.get_username(), reason=values["reason"], until=values["until"])


class RollBackForm(PauseForm):
    """A form that offers to pause publishing after a roll-back."""

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
        """Require a reason for a pause, and a pause for a reason."""
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
def publish_view(
    model_admin: CheckedListAdmin, request: HttpRequest, obj: Build
) -> HttpResponseBase:
    """Ask for confirmation, then publish a build, or discard one that is held."""
    is_back = obj.published_at is not None
    publications = Publication.objects.filter(site=obj.site).select_related("build")
    served = publications.annotate(now=StoredNow()).first()
    pause = pause_at(served, served.now) if served else None
    data = request.POST if request.method == "POST" else None
    form = RollBackForm(data, is_paused=bool(pause)) if is_back else None
    if request.method == "POST" and (form is None or form.is_valid()):
        new_pause = form.pause_by(request) if form and form.cleaned_data["pause"] else None
        return HttpResponseRedirect(_publish(model_admin, request, obj, new_pause))
    live = served.build_id if served else None
    counts = url_counts_by_build([obj.pk, live])
    site, _reason = site_or_reason(request, obj.site)
    replaces = served.build if served else None
    stay_live = _served_live(site, obj, counts[live])
    were_live = _served_live(site, replaces, counts[obj.pk]) if replaces else set()
    before = {name: urls for name, urls in counts[live].items() if name not in stay_live}
    before |= {name: counts[obj.pk][name] for name in were_live}  # Nobody counted them.
    goes_back = is_back and is_older(obj)
    edits = edits_since(request, obj.pk)
    differences, added = _differences_from(site, obj, replaces, stay_live | were_live)
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
        served_urls=number(sum(counts[live].values())) if served else "",
        urls=number(sum(counts[obj.pk].values())),
        change=total_change(counts[obj.pk], before if served else None),
        changes=section_changes(counts[obj.pk], before if served else None),
        served_live=sorted(stay_live),
        were_live=were_live,
        publish_error=publish_error(obj),
        edits=edits,
        **(_excluded_since(obj, edits["since"], added) if may_view(request, UrlOverride) else {}),
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


def _differences_from(
    site: SitemapSite | None, build: Build, served: Build | None, live: Collection[str]
) -> tuple[list[dict[str, Any]], list[str] | None]:
    """Return how a build differs from the one that is live, by kind, and the paths that it adds.

    Each kind has its count, and the first URLs that go or come. The sections ``live``, which are
    served live before or after, are left out. The paths are None if there are too many; of what is
    neither known nor found in a moment, it is `([], None)`.
    """
    if site is None or served is None or publish_error(build):
        return [], None
    stored, _reason = try_read(
        lambda: differences_if_quick(site, build, served, MAX_COMPARED_TO_PUBLISH)
    )
    if stored is None:
        return [], None
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for each, _tags in kept_differences(stored):
        if each.section not in live and each.kind is not DifferenceKind.CHANGED:
            paths[each.kind.value].append(each.location.removeprefix(site.origin))
    found = [
        {
            "name": name,
            "title": title,
            "count": number(stored.count(kind.value, excluding=live)),
            "first": [unquote(path) for path in paths[kind.value][:MAX_NAMED]],
            "more": number_or_blank(
                stored.count(kind.value, excluding=live) - len(paths[kind.value][:MAX_NAMED])
            ),
        }
        for name, (kind, title) in KINDS.items()
    ]
    return found, paths["+"] if stored.count("+") <= MAX_KEPT else None


def _excluded_since(build: Build, revision: int, added: list[str] | None) -> dict[str, Any]:
    """Return the overrides that exclude URLs since a revision, and that come back with a build.

    If ``all_are_listed``, each of them is among the paths that it adds; these are None if they are
    not known.
    """
    rows = UrlOverride.objects.filter(site=build.site, include=False, revision__gt=revision)
    some = rows.order_by("-revision")[:MAX_NAMED]
    excluded = [row for row in some if added is None or not row.path or row.path in added]
    return {
        "excluded": excluded,
        "all_are_listed": added is not None and all(row.path for row in excluded),
    }


def _served_live(site: SitemapSite | None, build: Build, names: Collection[str]) -> set[str]:
    """Return those sections that are served live while a build is live that does not have them."""
    declared, _why = try_read(
        lambda: [each.get_name() for each in sections_of(site)] if site else []
    )
    return sections_served_live(build, sorted({*names}.intersection(declared or ())))


def _publish(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, pause: Pause | None
) -> str:
    """Publish or discard a build, pause publishing if asked to, and show a message.

    Return the address of the page to show then: the overview, if the site serves the build.
    """
    page = model_admin.view_url("change", build.pk)
    site, reason = site_or_reason(request, build.site)
    if site is None or (reason := publish_error(build)):
        messages.error(request, reason)
        return page
    sentence = ROLLED_BACK if is_older(build) else PUBLISHED
    try:
        if "discard" in request.POST:
            discard_build(site, build, by=request.user.get_username())
            model_admin.log_change(request, build, BUILD_DISCARDED)
            messages.success(request, gettext("The build is discarded. Its changes still wait."))
        else:
            publish(site, build.pk, pause=pause)
    except SitemapKitError as failure:
        messages.error(request, str(failure))
    except Exception as failure:  # Each storage raises errors of its own.
        logger.exception("Build %s could not be published.", build.pk)
        messages.error(request, f"{type(failure).__name__}: {failure}")
    if Build.objects.published(site) != build:
        return page  # Otherwise only its export or its announcement has failed.
    model_admin.log_change(request, build, sentence)
    messages.success(
        request,
        gettext("Build %(build)s is now live at %(site)s.")
        % {"build": build.pk, "site": site.base},
    )
    _log_pause(model_admin, request, build, pause)
    return overview_url(model_admin, site.key)


def is_older(build: Build) -> bool:
    """Return whether a build lists older rows than the live one, so that it is a roll-back."""
    served = Publication.objects.filter(site=build.site).select_related("build").first()
    return served is not None and build.newness() < served.build.newness()


def publish_error(build: Build) -> str:
    """Return why a build cannot be published; "" if it can."""
    if not is_publishable(build):
        if build.pruned_at is not None:
            return gettext("The files of this build were deleted.")
        return gettext("The build was never published and is not held for review.")
    return gettext("The site already serves this build.") if build.outcome == "live" else ""


def is_publishable(build: Build) -> bool:
    """Return whether the build was published or held for review and still has its files."""
    return is_complete(build) and build.pruned_at is None


# Pausing ------------------------------------------------------------------------------------------


@screen(
    "pause/",
    "pause",
    *("view", "sitemapkit.publish_build"),
    methods=["GET", "HEAD", "POST"],
    of_site=True,
)
def pause_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Ask why and until when, then pause publishing of the site in the query string."""
    url = overview_url(model_admin, site.key)
    build = Build.objects.published(site)
    if build is None:
        messages.error(request, gettext("Nothing is currently published."))
        return HttpResponseRedirect(url)
    form = PauseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        pause = form.pause_by(request)
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


@screen("resume/", "resume", "view", "sitemapkit.publish_build", methods=["POST"], of_site=True)
def resume_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Resume publishing of the site in the query string."""
    if resume_publishing(site):
        if build := Build.objects.published(site):
            model_admin.log_change(request, build, RESUMED)
        messages.success(request, gettext(RESUMED))
        add_due_message(request, [site.key])
    return HttpResponseRedirect(overview_url(model_admin, site.key))


def _log_pause(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, pause: Pause | None
) -> None:
    """Add a pause, if there is one, to the history of the published build; show a message."""
    if pause is not None:
        model_admin.log_change(request, build, f"{PAUSED}\n{pause.reason}")
        messages.success(request, pause_text(pause))


# Cancelling ---------------------------------------------------------------------------------------


@screen(
    "cancel/",
    "cancel",
    *("view", "sitemapkit.run_build"),
    methods=["GET", "HEAD", "POST"],
    of_site=True,
)
def cancel_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Show how far the build of the site is, and ask for confirmation; then cancel just this."""
    url = overview_url(model_admin, site.key)
    if request.method == "POST":
        _cancel(model_admin, request, site)
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
        overview_url=url,
    )


def _cancel(model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite) -> None:
    """Cancel the build that was confirmed, and show a message."""
    by = request.user.get_username()
    fence = id_or_none(request.POST.get("fence"))
    build = None if fence is None else cancel_build(site, by=by, fence=fence)
    if build is None:
        messages.warning(request, gettext("The build had ended before it could be cancelled."))
        return
    model_admin.log_change(request, build, BUILD_CANCELLED)
    messages.success(
        request,
        gettext("Build %(build)s is cancelled. It stops in a moment.") % {"build": build.pk},
    )
