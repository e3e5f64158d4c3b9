"""A site whose sitemap is mounted in a folder."""

from django.urls import include, path

from tests.audit.crawl.linked import links
from tests.audit.faulty import canonical, page

urlpatterns = [
    path("folder/", include("django_sitemapkit.urls")),
    path("", page(body=links("/folder/a/", "/folder/b/", "/elsewhere/"))),
    path("folder/a/", page()),
    path("folder/b/", page()),
    path("elsewhere/", page()),
    path("canonical/", page(head=canonical("/nowhere/"))),
]
