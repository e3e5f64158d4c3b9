"""The screens in an admin site of the project's own."""

import re
from types import ModuleType

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import include, path

from django_sitemapkit import models
from django_sitemapkit.admin import builds, extras, overrides, rules, sections, sidebar
from django_sitemapkit.builds import build
from tests.factories import SITE
from tests.testapp.models import Product
from tests.urls import urlpatterns

SCREENS = [
    *("sitemapsoverview/", "build/", "build/{build}/change/", "build/{build}/publish/"),
    *("build/{build}/differences/", "urloverride/", "urloverride/add/", "urloverride/import/"),
    *("urloverride/{row}/change/", "extraurl/", "extraurl/paste/", "exclusionrule/add/"),
    *(
        "sectionsettings/",
        "",
        "sitemapsoverview/inspect/?url=/about/",
        "sitemapsoverview/activity/",
    ),
]


def own_urls():
    """Return a URLconf with an admin site of one's own beside the default one."""
    site = AdminSite(name="desk")
    site.register(models.Build, builds.BuildAdmin)
    site.register(models.ExclusionRule, rules.ExclusionRuleAdmin)
    site.register(models.ExtraUrl, extras.ExtraUrlAdmin)
    site.register(models.SectionSettings, sections.SectionSettingsAdmin)
    site.register(models.SitemapsOverview, sidebar.SitemapsOverviewAdmin)
    site.register(models.UrlOverride, overrides.UrlOverrideAdmin)
    module = ModuleType("own_urls")
    module.urlpatterns = [path("desk/", site.urls), path("", include(urlpatterns))]
    return module


@pytest.mark.slow
@pytest.mark.django_db
def test_all_links_stay_in_the_site(built, client):
    """No screen of another admin site leads to the default one."""
    client.force_login(User.objects.create(username="chief", is_staff=True, is_superuser=True))
    first = build(SITE).build
    Product.objects.first().delete()
    second = build(SITE).build
    row = models.UrlOverride.objects.create(site=SITE.key, path="/about/", include=False)
    with override_settings(ROOT_URLCONF=own_urls()):
        for screen in SCREENS:
            address = f"/desk/sitemapkit/{screen.format(build=first, row=row.pk)}"
            response = client.get(address, headers={"host": "www.example.com"})
            assert response.status_code == 200, address
            links = re.findall(r'(?:href|action|data-url)="(/[^"]*)"', response.text)
            assert any(link.startswith("/desk/") for link in links)
            assert [link for link in links if link.startswith("/admin/")] == [], address
    assert first != second
