"""The app's configuration."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PeopleConfig(AppConfig):
    """Contains the templates, the style sheet and the tags of the site map for people."""

    name = "django_sitemapkit.contrib.people"
    label = "sitemapkit_people"
    verbose_name = _("Site map")
