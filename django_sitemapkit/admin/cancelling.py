"""The view that cancels the build of a site, after a confirmation."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_sitemapkit.admin.base import progress_text, screen, site_or_404
from django_sitemapkit.admin.log_messages import CANCELLED
from django_sitemapkit.admin.overview import OverviewAdmin
from django_sitemapkit.builds import cancel_build
from django_sitemapkit.builds.lease import cancellable_lease
from django_sitemapkit.builds.report.status import build_progress, states_of_sites
from django_sitemapkit.models import Build
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import words_of


class CancelAdmin(OverviewAdmin):
    """The view that cancels a build, which belongs to the screens of builds."""

    @screen("overview/cancel/", "cancel", "view", "run_build", methods=["GET", "HEAD", "POST"])
    def cancel_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for confirmation, then cancel the build of the site in the query string."""
        site = site_or_404(request.GET.get("site", ""))
        if request.method == "POST":
            self._cancel(request, site, request.POST.get("fence", ""))
            return HttpResponseRedirect(self._overview_url(site))
        return self._confirm(request, site)

    def _confirm(self, request: HttpRequest, site: SitemapSite) -> HttpResponse:
        """Show how far the build is, and the button that cancels just this one."""
        lease = cancellable_lease(site)
        if lease is None:
            messages.warning(request, _("No build is running."))
            return HttpResponseRedirect(self._overview_url(site))
        (state,), progress = states_of_sites([site]), build_progress(site)
        context = {
            "title": _("Cancel the build?"),
            "site": site,
            "fence": lease.fence,
            "progress": progress,
            "progress_text": progress_text(state, progress),
            "running": words_of(state.running),
            "published": Build.objects.published(site),
            "overview_url": self._overview_url(site),
        }
        return self.overview_page(request, "overview/cancel", context)

    def _cancel(self, request: HttpRequest, site: SitemapSite, fence: str) -> None:
        """Cancel the build that was confirmed, and show a message."""
        by = request.user.get_username()
        is_number = fence.isascii() and fence.isdigit()
        build = cancel_build(site, by=by, fence=int(fence)) if is_number else None
        if build is None:
            messages.warning(request, _("The build had ended before it could be cancelled."))
            return
        self.log_change(request, build, CANCELLED)
        text = _("Build %(build)s is cancelled. It stops in a moment.")
        messages.success(request, text % {"build": build.pk})
