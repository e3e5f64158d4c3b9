"""The addresses of the example project."""

from django.conf.urls.i18n import i18n_patterns
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
    # Outside of i18n_patterns(): one sitemap lists the pages of all languages.
    path("", include("django_sitemapkit.urls")),
    path("", include("django_sitemapkit.submission.urls")),
    # English addresses have no prefix, Spanish ones /es/ and French ones /fr/.
    *i18n_patterns(
        path("", include("django_sitemapkit.contrib.people.urls")),
        path("", include("example_project.gazetteer.urls")),
        prefix_default_language=False,
    ),
]
