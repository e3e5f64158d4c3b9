from django.http import HttpResponse
from django.urls import include, path


def view(request, **kwargs):
    """Answer for every page of the Spanish site."""
    return HttpResponse("ok")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", view, name="home"),
    path("lugares/<str:slug>/", view, name="place"),
]
