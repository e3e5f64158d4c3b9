"""Store the site again: ``python -m tests.upgrade``.

It is built twice, so that it has a previous build, with everything that an editor can set.
"""

import os
import shutil

import django
from django.core.management import call_command
from django.test.utils import override_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django_sitemapkit.builds import build  # noqa: E402  (they need the settings)
from django_sitemapkit.models import ExclusionRule, ExtraUrl, SectionSettings, UrlOverride  # noqa: E402
from django_sitemapkit.registry import registry  # noqa: E402
from django_sitemapkit.sites import SitemapSite  # noqa: E402
from tests.testapp.models import Product  # noqa: E402
from tests.upgrade import site  # noqa: E402


def main():
    """Build a site in memory and in `site.FILES`, and write its tables."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    shutil.rmtree(site.FILES, ignore_errors=True)
    files = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": site.FILES},
    }
    here = SitemapSite.at("https://www.example.com")
    with override_settings(STORAGES={"sitemaps": files}), registry.isolated():
        registry.add(site.Products)
        registry.add(site.Pages)
        site.create_rows()
        build(here)
        UrlOverride.objects.create(site=here.key, path="/products/attic/p03/", include=False)
        UrlOverride.objects.create_for_object(
            Product.objects.get(slug="p12"), site=here.key, priority="0.8"
        )
        ExclusionRule.objects.create(site=here.key, pattern="/products/attic/p2*9/")
        ExtraUrl.objects.create(site=here.key, path="/campaign/", title="Campaign")
        SectionSettings.objects.create(site=here.key, section="pages", changefreq="monthly")
        build(here)
    site.dump()


main()
