"""The URLconf of another site."""

from django.http import HttpResponse
from django.urls import path

urlpatterns = [path("only/", lambda request: HttpResponse(request.get_host()))]
