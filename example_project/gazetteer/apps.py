"""The app's configuration."""

from django.apps import AppConfig


class GazetteerConfig(AppConfig):
    name = "example_project.gazetteer"
    label = "gazetteer"
    verbose_name = "Gazetteer"
