"""The addresses of the gazetteer."""

from django.urls import path
from django.utils.translation import gettext_lazy as _

from . import views

app_name = "gazetteer"

urlpatterns = [
    path("", views.Home.as_view(), name="home"),
    path(_("about/"), views.About.as_view(), name="about"),
    path(_("countries/"), views.CountryList.as_view(), name="countries"),
    path(_("countries/<slug:country>/"), views.CountryPage.as_view(), name="country"),
    path(
        _("countries/<slug:country>/<str:city>-<int:geonameid>/"),
        views.CityPage.as_view(),
        name="city",
    ),
    path(_("articles/"), views.ArticleList.as_view(), name="articles"),
    path(_("articles/<slug:article>/"), views.ArticlePage.as_view(), name="article"),
]
