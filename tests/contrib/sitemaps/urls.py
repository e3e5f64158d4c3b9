from django.urls import path

from tests.urls import urlpatterns as usual

urlpatterns = [
    path("sitemap-<section>.xml", lambda request, section: None, name="section"),
    *usual,
]
