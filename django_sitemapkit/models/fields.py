"""Model fields for sitemap values, and a mixin for the project's own models."""

from decimal import Decimal
from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

CHANGEFREQ_CHOICES = [
    ("always", _("always")),
    ("hourly", _("hourly")),
    ("daily", _("daily")),
    ("weekly", _("weekly")),
    ("monthly", _("monthly")),
    ("yearly", _("yearly")),
    ("never", _("never")),
]
"""The values of the protocol with their translated labels."""


def priority_field() -> "models.DecimalField[Decimal | None, Decimal | None]":
    """Return a model field for a priority from 0.00 to 1.00; null inherits it."""
    return models.DecimalField(
        _("priority"),
        max_digits=3,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0)), MaxValueValidator(Decimal(1))],
        help_text=_(
            "From 0.0 to 1.0, relative to this site. Leave empty to inherit."
            " Google and Bing ignore it."
        ),
    )


def changefreq_field() -> "models.CharField[str, str]":
    """Return a model field for a changefreq; "" inherits it."""
    return models.CharField(
        _("change frequency"),
        max_length=10,
        blank=True,
        choices=CHANGEFREQ_CHOICES,
        help_text=_(
            "How often the page changes. Leave empty to inherit. Google and Bing ignore it."
        ),
    )


class SitemapFields(models.Model):
    """Adds sitemap fields to a project's model: each row sets its own values.

    Sections exclude the rows whose ``sitemap_include`` is off. The other two fields take
    precedence over the section's settings and declaration, but not over a URL override.
    """

    has_sitemap_fields: ClassVar[bool] = True

    sitemap_include = models.BooleanField(_("list in the sitemap"), default=True)
    sitemap_priority = priority_field()
    sitemap_changefreq = changefreq_field()

    class Meta:
        abstract = True
