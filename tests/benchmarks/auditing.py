"""What is measured of audits: all web pages that a site lists, fetched within the process."""

from django.core.management import call_command
from django.test import Client

from tests.benchmarks.measuring import measured
from tests.benchmarks.models import Product
from tests.benchmarks.ours import clear_and_publish
from tests.benchmarks.web_pages import pages, served

USUAL_PAGES = 2_000
"""Pages of the usual size that are fetched, where there are as many."""


def usual_pages():
    """Return how many products have one of the usual size that is listed."""
    return min(USUAL_PAGES, pages())


def clear():
    """Forget all audits, and publish what is to be audited."""
    from django_sitemapkit.audit.models import AuditRun

    call_command("migrate", verbosity=0)
    AuditRun.objects.all().delete()
    clear_and_publish()


def audit():
    """Audit all URLs."""
    from django_sitemapkit.audit.auditing import audit
    from django_sitemapkit.sites import all_sites

    figures, run = measured(lambda: audit(all_sites()[0], sample=None))
    if run.checked != served.pages or run.counts:
        raise RuntimeError(f"{run.checked:,} of {served.pages:,} are checked: {run.counts}.")
    return figures | served.figures


def get_by_client():
    """Get the same pages by Django's test client, and do nothing with them."""
    products = Product.objects.order_by("pk")[: usual_pages()]
    paths = [product.get_absolute_url() for product in products]

    def get():
        client = Client()
        for path in paths:
            response = client.get(path, secure=True, headers={"host": "www.example.com"})
            if response.status_code != 200:
                raise RuntimeError(f"{path} was answered {response.status_code}.")

    return measured(get)[0] | served.figures
