"""The key file of IndexNow; include this at the root, for it speaks for all URLs below it."""

from django.urls import path, register_converter

from django_sitemapkit.submission import views

app_name = "sitemapkit_submission"

register_converter(views.KeyConverter, "sitemapkit_indexnow_key")

urlpatterns = [path("<sitemapkit_indexnow_key:key>.txt", views.key_file, name="key")]
