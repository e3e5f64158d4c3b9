from django.http import HttpResponse
from django.urls import include, path


def view(request, **kwargs):
    """Answer for every page that the sitemaps list."""
    return HttpResponse("ok")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("items/<int:pk>/", view, name="item"),
    path("words/<str:text>/", view, name="word"),
]
