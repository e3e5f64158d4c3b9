"""The sitemaps stand in a folder; products lie below it, readings do not."""

from django.urls import include, path, re_path

from tests.urls import view

urlpatterns = [
    path("deep/", include("django_sitemapkit.urls")),
    path("deep/products/<slug:shop>/<str:slug>/", view, name="product"),
    re_path(r"^readings/(?P<level>-?[0-9]+)/$", view, name="reading"),
]
