from django.apps import AppConfig
from django.conf import settings


class BenchmarksConfig(AppConfig):
    name = "tests.benchmarks"
    label = "benchmarks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self):
        """Let rows go value by value, if that is what is measured."""
        if settings.BENCHMARKS_BY_ROWS:
            from django_sitemapkit.rendering import pages

            pages.why_not_as_text = lambda section: "measured by column"
