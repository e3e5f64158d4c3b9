"""The example project's addresses, with an icon."""

from django.http import HttpResponse
from django.urls import path

from example_project.urls import urlpatterns as examples

urlpatterns = [
    # Browsers ask for it on their own, and log that it is missing.
    path("favicon.ico", lambda request: HttpResponse(status=204)),
    *examples,
]
