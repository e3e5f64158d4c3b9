"""The views of Wagtail's admin: a page's state in the sitemaps, and the report of all sites."""

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.mixins import PermissionRequiredMixin
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm, modelform_factory
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.generic import TemplateView
from wagtail.admin.views.generic import WagtailAdminTemplateMixin
from wagtail.log_actions import log
from wagtail.models import Page

from django_sitemapkit.builds import status_of
from django_sitemapkit.builds.requests import record_request, start_processing_on_commit
from django_sitemapkit.contrib.wagtail import sites_of_page
from django_sitemapkit.identities import identity_of
from django_sitemapkit.inspection import inspect_object, try_read
from django_sitemapkit.models import BuildRequest, UrlOverride
from django_sitemapkit.runners.choosing import get_runner
from django_sitemapkit.sites import SitemapSite, all_sites, site_by_key
from django_sitemapkit.words import Count, words_of

CHANGING = ("sitemapkit.add_urloverride", "sitemapkit.change_urloverride")
"""The permissions that a user needs to change a page's override."""

LOGGED = "sitemapkit.change"
"""The action in Wagtail's log."""


def may_inspect_page(user: Any, page: Page) -> bool:
    """Return whether a user may edit a page, and view or change URL overrides."""
    names = ("sitemapkit.view_urloverride", "sitemapkit.change_urloverride")
    return bool(page.permissions_for_user(user).can_edit()) and any(map(user.has_perm, names))


PageOverrideForm = modelform_factory(
    UrlOverride, fields=("include", "priority", "changefreq", "note")
)
"""The form of a page's override at one site: what an editor may set."""


class SitemapAdminView(WagtailAdminTemplateMixin, TemplateView):
    """Base of the views here: the breadcrumbs in the header end with the view's title."""

    header_icon = "site"

    def get_breadcrumbs_items(self) -> list[dict[str, Any]]:
        """Return Wagtail's breadcrumbs, and the title of the view as the last one."""
        title = {"url": "", "label": self.get_page_title(), "sublabel": self.get_page_subtitle()}
        return [*super().get_breadcrumbs_items(), title]


class PageSitemapView(SitemapAdminView):
    """Shows a page's state in the sitemaps of its sites, with a form for each to change it."""

    page_title = _("Sitemap")
    template_name = "sitemapkit_wagtail/page.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Load the page and its sites; 403 for users who may not inspect the page."""
        self.page = get_object_or_404(Page, pk=kwargs["pk"]).specific
        if not may_inspect_page(request.user, self.page):
            raise PermissionDenied
        is_locked = self.page.permissions_for_user(request.user).page_locked()
        self.may_change = not is_locked and request.user.has_perms(CHANGING)
        self.may_see_builds = request.user.has_perm("sitemapkit.view_build")
        self.sites, self.failure = try_read(lambda: sites_of_page(self.page))
        return super().dispatch(request, *args, **kwargs)

    def get_page_subtitle(self) -> str:
        """Return the title of the page."""
        return str(self.page.get_admin_display_title())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the template context: the page's state at each site, with its form."""
        invalid = kwargs.pop("invalid", {})
        entries = []
        for site in self.sites or ():
            inspections, failure = try_read(partial(inspect_object, site, self.page))
            form = invalid.get(site.key) or self._override_form(site)
            entry: dict[str, Any] = _status_context(site) if self.may_see_builds else {"site": site}
            entry |= {"inspections": inspections, "form": form}
            entries.append(entry | {"failure": failure or entry.get("failure")})
        context = {
            "page": self.page,
            "entries": entries,
            "failure": self.failure,
            "several": len(self.sites or ()) > 1,
            "may_change": self.may_change,
        }
        return super().get_context_data(**context, **kwargs)

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        """Save the override of the page at one site, or delete it if it sets nothing."""
        if not self.may_change:
            raise PermissionDenied
        key = request.POST.get("site", "")
        site = site_by_key(self.sites or (), key)
        if site is None:
            raise Http404(gettext("This site does not exist."))
        form = self._override_form(site, request.POST)
        if not form.is_valid():
            return self.render_to_response(self.get_context_data(invalid={key: form}))
        if form.has_changed():
            row = form.instance
            values = (row.include, row.priority, row.changefreq, row.lastmod, row.note)
            if any(value not in {None, ""} for value in values):
                form.save()
            elif row.pk is not None:
                row.delete()
            log(instance=self.page, action=LOGGED, user=request.user)
            text = gettext("Saved. Live sitemaps follow at once, published ones with a build.")
            messages.success(request, text)
        return redirect(reverse("sitemapkit_page", args=[self.page.pk]))

    def _override_form(self, site: SitemapSite, data: Any = None) -> ModelForm:  # type: ignore[type-arg]
        """Return the form of the page's override at a site, which may not be stored yet."""
        row = UrlOverride.objects.for_object(self.page, site=site.key).first()
        if row is None:
            model, object_id = identity_of(self.page)
            row = UrlOverride(site=site.key, model=model, object_id=object_id)
        return PageOverrideForm(data, instance=row, prefix=site.key)


class SitemapReportView(PermissionRequiredMixin, SitemapAdminView):
    """Shows the published state of each site, with a button to build it."""

    permission_required = "sitemapkit.view_build"
    page_title = _("Sitemaps")
    template_name = "sitemapkit_wagtail/report.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return the template context: the status of each site."""
        sites, failure = try_read(all_sites)
        context = {
            "reports": [_status_context(site) for site in sites or ()],
            "failure": failure,
            "several": len(sites or ()) > 1,
            "may_build": self.request.user.has_perm("sitemapkit.run_build"),
        }
        return super().get_context_data(**context, **kwargs)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Request a build of the changes of one site."""
        if not request.user.has_perm("sitemapkit.run_build"):
            raise PermissionDenied
        key = request.POST.get("site", "")
        site = site_by_key(try_read(all_sites)[0] or (), key)
        if site is None:
            raise Http404(gettext("This site does not exist."))
        record_request(site, BuildRequest.Kind.BUILD, by=request.user.get_username())
        start_processing_on_commit(site, get_runner)
        messages.success(request, gettext("Build of changes requested."))
        return redirect(reverse("sitemapkit_report"))


def _status_context(site: SitemapSite) -> dict[str, Any]:
    """Return a site's status for the templates, or why it cannot be read."""
    status, failure = try_read(lambda: status_of(site, rows=False, export=False))
    index, no_index = try_read(lambda: site.address("index"))
    asked = BuildRequest.objects.filter(site=site.key).exclude(kind=BuildRequest.Kind.COMPARE)
    return {
        "site": site,
        "status": status,
        "problems": str(Count(status.problems)) if status and status.problems else "",
        "sections": [
            {
                "name": section.name,
                "counted": not section.served_live,
                "change": section.change,
                "problems": str(Count(section.problems)) if section.problems else "",
                "files": str(Count(section.pages)),
            }
            for section in (status.sections if status else ())
        ],
        "headline": words_of(status.headline) if status else "",
        "missing": words_of(status.missing) if status else "",
        "index": index,
        "failure": failure or no_index,
        "last": asked.order_by("-pk").first(),
    }
