"""The views that pause and resume publishing, and their forms."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import pause_text, screen, site_or_404
from django_sitemapkit.admin.log_messages import PAUSED, RESUMED
from django_sitemapkit.admin.overview import OverviewAdmin
from django_sitemapkit.builds import Pause, pause_publishing, resume_publishing
from django_sitemapkit.builds.publication.gates import is_possible_end
from django_sitemapkit.models import Build

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


class PauseAdmin(OverviewAdmin):
    """The views that pause and resume publishing, which belong to the screens of builds."""

    @screen("overview/pause/", "pause", "view", "publish_build", methods=["GET", "HEAD", "POST"])
    def pause_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask why and until when, then pause publishing of the site in the query string."""
        site = site_or_404(request.GET.get("site", ""))
        build = Build.objects.published(site)
        if build is None:
            messages.error(request, gettext("Nothing is currently published."))
            return HttpResponseRedirect(self._overview_url(site))
        form = PauseForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            pause = form.pause_by(request)
            pause_publishing(site, pause)
            self.record_pause(request, build, pause)
            return HttpResponseRedirect(self._overview_url(site))
        context = {
            "title": gettext("Pause publishing"),
            "site": site,
            "form": form,
            "overview_url": self._overview_url(site),
        }
        return self.overview_page(request, "overview/pause", context)

    @screen("overview/resume/", "resume", "view", "publish_build", methods=["POST"])
    def resume_view(self, request: HttpRequest) -> HttpResponseBase:
        """Resume publishing of the site in the query string."""
        site = site_or_404(request.GET.get("site", ""))
        if resume_publishing(site):
            if build := Build.objects.published(site):
                self.log_change(request, build, RESUMED)
            text = gettext("Publishing is resumed. The next build publishes what has changed.")
            messages.success(request, text)
        return HttpResponseRedirect(self._overview_url(site))

    def record_pause(self, request: HttpRequest, build: Build, pause: Pause) -> None:
        """Add a pause to the history of the published build, and show a message."""
        self.log_change(request, build, f"{PAUSED}\n{pause.reason}")
        messages.success(request, pause_text(pause))
