from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path

from tests.urls_languages import view

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    *i18n_patterns(
        path("", view, name="home"),
        path("places/<str:slug>/", view, name="place"),
        prefix_default_language=False,
    ),
]
