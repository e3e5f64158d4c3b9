"""A URLconf without the key file of IndexNow."""

from django.urls import include, path

from tests.urls import view

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("products/<slug:shop>/<str:slug>/", view, name="product"),
]
