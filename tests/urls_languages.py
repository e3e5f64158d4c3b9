from django.conf.urls.i18n import i18n_patterns
from django.http import HttpResponse
from django.urls import include, path


def view(request, **kwargs):
    """Answer for every page of the tests' project."""
    return HttpResponse("ok")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    *i18n_patterns(
        path("", view, name="home"),
        path("places/<str:slug>/", view, name="place"),
        path("places/<slug:shop>/<str:slug>/", view, name="product"),
    ),
]
