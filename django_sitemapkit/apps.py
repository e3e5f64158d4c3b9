"""The app's place in Django: what happens once all models are loaded."""

from django.apps import AppConfig, apps
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class SitemapKitConfig(AppConfig):
    """Finds the project's sections: models with ``SitemapMixin``, then ``sitemaps`` modules."""

    name = "django_sitemapkit"
    label = "sitemapkit"
    verbose_name = _("Sitemaps")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the sections and system checks, and import the tasks of the runner.

        The sites framework is followed, and so are changes of rows if REBUILD is "on_change".
        """
        from django_sitemapkit import checks  # noqa: F401, PLC0415
        from django_sitemapkit.mixins import register_models  # noqa: PLC0415
        from django_sitemapkit.rebuild import watch_if_set  # noqa: PLC0415
        from django_sitemapkit.runners.choosing import import_configured_runner  # noqa: PLC0415
        from django_sitemapkit.sites import install_active_site_id  # noqa: PLC0415

        if apps.is_installed("django.contrib.sites"):
            install_active_site_id()
        register_models()
        autodiscover_modules("sitemaps")
        import_configured_runner()
        watch_if_set()
