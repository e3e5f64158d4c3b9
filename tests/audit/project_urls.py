"""The pages of a project that is killed while it audits them."""

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import include, path


def page(request, number):
    """Answer with one of five pages, four of which have a fault."""
    if number % 5 == 1:
        return HttpResponseRedirect("/page/0/")
    if number % 5 == 2:
        return HttpResponse(status=404)
    title = "Repeated" if number % 5 == 3 else f"Page {number}"
    robots = '<meta name="robots" content="noindex">' if number % 5 == 4 else ""
    return HttpResponse(f"<html><head><title>{title}</title>{robots}</head></html>")


urlpatterns = [path("", include("django_sitemapkit.urls")), path("page/<int:number>/", page)]
