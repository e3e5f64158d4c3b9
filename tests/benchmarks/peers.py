"""What is measured of other packages, each used as its documentation says."""

import gzip
import os
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from tests.benchmarks.browser import Browser
from tests.benchmarks.data import fill_offers
from tests.benchmarks.measuring import measured, median_of
from tests.benchmarks.ours import PAGE, rows


def prepare_site():
    """Give the sites framework its table and the domain."""
    from django.contrib.sites.models import Site

    call_command("migrate", verbosity=0)
    Site.objects.update_or_create(
        pk=settings.SITE_ID, defaults={"domain": "www.example.com", "name": "benchmarks"}
    )


def prepare_offers():
    """Have as many offers as products, too."""
    prepare_site()
    fill_offers(rows())


def contrib_build():
    """Write the pages of django.contrib.sitemaps into files; it has no command for that."""
    from django.contrib.sites.models import Site
    from django.template.loader import render_to_string

    from tests.benchmarks.contrib import SITEMAPS

    def build():
        site = Site.objects.get_current()
        for name, declared in SITEMAPS.items():
            sitemap = declared()
            for number in sitemap.paginator.page_range:
                urls = sitemap.get_urls(page=number, site=site, protocol="https")
                xml = render_to_string("sitemap.xml", {"urlset": urls})
                path = Path(settings.FOLDER, f"sitemap-{name}-{number}.xml.gz")
                with gzip.open(path, "wb", compresslevel=6) as file:
                    file.write(xml.encode())

    return measured(build)[0]


def contrib_page():
    """Ask for the tenth page, or the last of fewer."""
    return Browser().measure(_tenth_page())


def first_requests():
    """Ask for the index and a page, each for the first time: what they load counts as well."""
    browser = Browser()
    figures, _ = measured(lambda: [browser.get("/contrib/sitemap.xml"), browser.get(_tenth_page())])
    return figures | {"urls": browser.listed(_tenth_page())["urls"]}


def _tenth_page():
    return f"/contrib/sitemap-products.xml?p={min(10, -(-rows() // PAGE))}"


def contrib_index():
    """Ask for the index of a hundred sections."""
    browser = Browser()
    blocks = []
    # To warm up, a page will do: the index takes a minute or more, and what the first request has
    # to load takes some milliseconds.
    browser.get("/contrib/sitemap-c00.xml")

    def ask():
        blocks.clear()
        return browser.get("/contrib/sitemap.xml", blocks.append)

    figures, medians = measured(lambda: median_of(ask))
    return figures | medians | {"urls": b"".join(blocks).count(b"<loc>")}


def prepare_icv():
    """Declare the model as a section of django-icv-sitemaps."""
    from icv_sitemaps.models import SitemapSection
    from icv_sitemaps.services import create_section

    from tests.benchmarks.models import IcvProduct

    call_command("migrate", verbosity=0)
    SitemapSection.objects.all().delete()
    create_section("products", model_class=IcvProduct)


def icv_build():
    """Generate all sections."""
    from icv_sitemaps.services import generate_all_sections

    figures, result = measured(lambda: generate_all_sections(force=True))
    if result != {"products": rows()}:
        raise RuntimeError(f"It generated {result}, and logged why.")
    return figures


def static_build():
    """Run the command of django-static-sitemaps."""
    os.chdir(settings.FOLDER)
    return measured(lambda: call_command("refresh_sitemap", verbosity=0))[0]
