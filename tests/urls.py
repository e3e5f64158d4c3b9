from django.contrib import admin
from django.http import HttpResponse
from django.urls import include, path, re_path


def view(request, **kwargs):
    """Answer for every page of the tests' project."""
    return HttpResponse("ok")


urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("", include("django_sitemapkit.contrib.people.urls")),
    path("", include("django_sitemapkit.submission.urls")),
    path("admin/", admin.site.urls),
    path("", view, name="home"),
    path("about/", view, name="about"),
    path("products/<slug:shop>/<str:slug>/", view, name="product"),
    path("tokens/<uuid:id>/", view, name="token"),
    path("articles/<int:pk>/", view, name="article"),
    re_path(r"^readings/(?P<level>-?[0-9]+)/$", view, name="reading"),
]
