"""The addresses of the example project."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

urlpatterns = [
    path("admin/", admin.site.urls),
    path(
        "robots.txt",
        TemplateView.as_view(template_name="robots.txt", content_type="text/plain; charset=utf-8"),
        name="robots",
    ),
    path("", include("django_sitemapkit.urls")),
    path("", include("example_project.gazetteer.urls")),
]
