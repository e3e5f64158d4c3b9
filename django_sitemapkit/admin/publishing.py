"""The views that publish a build, pause and resume publishing, and cancel a build."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import (
    CheckedListAdmin,
    id_or_none,
    known_site,
    number,
    pause_text,
    progress_text,
    screen,
)
from django_sitemapkit.admin.history import (
    BUILD_CANCELLED,
    PAUSED,
    PUBLISHED,
    RESUMED,
    ROLLED_BACK,
)
from django_sitemapkit.admin.overview import overview_url
from django_sitemapkit.admin.url_counts import section_changes, total_change, url_counts
from django_sitemapkit.builds import (
    Pause,
    cancel_build,
    pause_publishing,
    publish,
    resume_publishing,
)
from django_sitemapkit.builds.lease import cancellable_lease
from django_sitemapkit.builds.publication.gates import is_possible_end, pause_at
from django_sitemapkit.builds.report.status import build_progress, states_of_sites
from django_sitemapkit.exceptions import SitemapKitError
from django_sitemapkit.models import Build, Publication, StoredNow
from django_sitemapkit.printable import logger
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of

MAX_REASON = 500
"""Maximum length of a reason, in characters."""


class PauseForm(forms.Form):
    """A form for why publishing is paused, and until when."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON,
        widget=forms.TextInput({"class": "vTextField"}),
    )
    until = forms.DateTimeField(
        label=_("Until"),
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
        if until is not None and not is_possible_end(until):
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

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].required = False

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

    def pause_if_chosen(self, request: HttpRequest) -> Pause | None:
        """Return the pause that the user asks for; None without the check mark."""
        return self.pause_by(request) if self.cleaned_data["pause"] else None


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
    """Ask for confirmation, then publish a build."""
    is_back = obj.published_at is not None
    form = RollBackForm(request.POST if request.method == "POST" else None) if is_back else None
    if request.method == "POST" and (form is None or form.is_valid()):
        _publish(model_admin, request, obj, form.pause_if_chosen(request) if form else None)
        return HttpResponseRedirect(model_admin.url_of("change", obj.pk))
    rows = Publication.objects.filter(site=obj.site).select_related("build")
    served = rows.annotate(now=StoredNow()).first()
    pause = pause_at(served, served.now) if served else None
    live = served.build_id if served else None
    counts = url_counts([obj.pk, live])
    before = counts[live] if served else None
    title = gettext("Publish build %(build)s?")
    if is_back:
        title = gettext("Roll back to build %(build)s?")
    return build_page(
        model_admin,
        request,
        obj,
        "publish",
        title=title % {"build": obj.pk},
        served=served.build if served else None,
        served_urls=number(sum(before.values())) if before is not None else "",
        urls=number(sum(counts[obj.pk].values())),
        change=total_change(counts[obj.pk], before),
        changes=section_changes(counts[obj.pk], before),
        publish_error=publish_error(obj),
        pause=pause_text(pause) if pause else "",
        form=form,
    )


def _publish(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, pause: Pause | None
) -> None:
    """Publish a build, pause publishing if asked to, and show a message with the result."""
    site, reason = known_site(request, build.site)
    error = reason or publish_error(build)
    if site is None or error:
        messages.error(request, error)
        return
    try:
        publish(site, build.pk, pause=pause)
    except SitemapKitError as failure:
        messages.error(request, str(failure))
    except Exception as failure:  # Each storage raises errors of its own.
        logger.exception("Build %s could not be published.", build.pk)
        messages.error(request, f"{type(failure).__name__}: {failure}")
    if Build.objects.published(site) != build:
        return  # Otherwise only its export or its announcement has failed.
    was_held = build.status == Build.Status.HELD
    model_admin.log_change(request, build, PUBLISHED if was_held else ROLLED_BACK)
    text = gettext("Site “%(site)s” now serves build %(build)s.")
    messages.success(request, text % {"site": site.key, "build": build.pk})
    if pause is not None:
        _record_pause(model_admin, request, build, pause)


def publish_error(build: Build) -> str:
    """Return why a build cannot be published; "" if it can."""
    if not is_publishable(build):
        if build.pruned_at is not None:
            return gettext("The files of this build were deleted.")
        return gettext("The build was never published and is not held for review.")
    return gettext("The site already serves this build.") if is_live(build) else ""


def is_live(build: Build) -> bool:
    """Return whether the site serves a build."""
    return Publication.objects.filter(site=build.site, build=build).exists()


def is_publishable(build: Build) -> bool:
    """Return whether the build was published or held for review and still has its files."""
    ended_well = build.published_at is not None or build.status == Build.Status.HELD
    return ended_well and build.pruned_at is None


def build_page(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, name: str, **context: Any
) -> HttpResponseBase:
    """Return a page about a build from the template ``name``."""
    return model_admin.render_page(
        request,
        f"build/{name}",
        build=build,
        build_title=build_title(build),
        build_url=model_admin.url_of("change", build.pk),
        **context,
    )


def build_title(build: Build) -> str:
    """Return what a build is called."""
    return gettext("Build %(build)s") % {"build": build.pk}


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
        _record_pause(model_admin, request, build, pause)
        return HttpResponseRedirect(url)
    title = gettext("Pause publishing")
    return model_admin.render_page(
        request, "overview/pause", title=title, site=site, form=form, overview_url=url
    )


@screen("resume/", "resume", "view", "sitemapkit.publish_build", methods=["POST"], of_site=True)
def resume_view(
    model_admin: CheckedListAdmin, request: HttpRequest, site: SitemapSite
) -> HttpResponseBase:
    """Resume publishing of the site in the query string."""
    if resume_publishing(site):
        if build := Build.objects.published(site):
            model_admin.log_change(request, build, RESUMED)
        text = gettext("Publishing is resumed. The next build publishes what has changed.")
        messages.success(request, text)
    return HttpResponseRedirect(overview_url(model_admin, site.key))


def _record_pause(
    model_admin: CheckedListAdmin, request: HttpRequest, build: Build, pause: Pause
) -> None:
    """Add a pause to the history of the published build, and show a message."""
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
    text = gettext("Build %(build)s is cancelled. It stops in a moment.")
    messages.success(request, text % {"build": build.pk})
