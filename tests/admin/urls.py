"""An admin whose models have the inline, one for each kind of key."""

from django.contrib import admin
from django.contrib.sessions.models import Session
from django.urls import include, path

from django_sitemapkit.admin import SitemapOverrideInline
from django_sitemapkit.admin.overrides import UrlOverrideAdmin
from django_sitemapkit.models import UrlOverride
from tests.testapp.models import (
    Article,
    ArticleProxy,
    Day,
    Feature,
    Moment,
    Pass,
    Product,
    Reading,
    Token,
)

site = admin.AdminSite("inlines")


class WithOverride(admin.ModelAdmin):
    inlines = (SitemapOverrideInline,)
    save_as = True


FIELDS = {
    Product: ("slug", "shop"),
    Token: ("id",),
    Pass: ("id",),
    Reading: ("level",),
    Day: ("date",),
    Moment: ("at",),
    Session: ("session_key", "session_data", "expire_date"),
    Article: ("title", "edited_at"),
    ArticleProxy: ("title", "edited_at"),
    Feature: ("title", "edited_at"),
}
"""The models, with the fields of their pages."""

for model, fields in FIELDS.items():
    site.register(model, WithOverride, fields=fields)
site.register(UrlOverride, UrlOverrideAdmin)

urlpatterns = [
    path("", include("django_sitemapkit.urls")),
    path("office/", site.urls),
]
