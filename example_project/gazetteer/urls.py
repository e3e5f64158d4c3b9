"""The addresses of the gazetteer."""

from django.urls import path

from . import views

app_name = "gazetteer"

urlpatterns = [
    path("", views.Home.as_view(), name="home"),
    path("about/", views.About.as_view(), name="about"),
    path("countries/", views.CountryList.as_view(), name="countries"),
    path("countries/<slug:country>/", views.CountryPage.as_view(), name="country"),
    path(
        "countries/<slug:country>/<str:city>-<int:geonameid>/",
        views.CityPage.as_view(),
        name="city",
    ),
    path("articles/", views.ArticleList.as_view(), name="articles"),
    path("articles/<slug:article>/", views.ArticlePage.as_view(), name="article"),
]
