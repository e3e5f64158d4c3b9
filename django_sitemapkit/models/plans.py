"""The stored plan: which rows are on which page."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models.leases import PrimaryManager


class Plan(models.Model):
    """How one section of one site is cut into pages."""

    site = models.CharField(_("site"), max_length=100)
    section = models.CharField(_("section"), max_length=100)
    key = models.CharField(_("key"), max_length=200)
    """The field whose values are the bounds of the pages."""
    rows_per_page = models.PositiveIntegerField(_("rows per page"))
    """The section's limit when this was planned."""
    last_number = models.PositiveIntegerField(_("last number"), default=0)
    """The highest page number given so far."""

    objects = PrimaryManager["Plan"]()

    class Meta:
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "section"], name="sitemapkit_plan_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.section} ({self.site})"


class Page(models.Model):
    """One page of a plan: the rows whose key is at least ``lower`` and below ``upper``."""

    plan = models.ForeignKey(Plan, models.CASCADE, related_name="pages", verbose_name=_("plan"))
    number = models.PositiveIntegerField(_("number"))
    """Part of the page's address; a new page always gets a new number."""
    lower = models.TextField(_("lower bound"), null=True)  # noqa: DJ001  null is an open end
    upper = models.TextField(_("upper bound"), null=True)  # noqa: DJ001
    lists = models.BooleanField(_("lists a URL"), default=True)
    """Whether it listed any when it was last read."""
    read_revision = models.PositiveIntegerField(_("read as of revision"), null=True)
    """The revision of the overrides at that time; null if its bounds are newer."""
    read_at = models.DateTimeField(_("read at"), null=True)
    """When it was last read up to its first URL."""

    objects = PrimaryManager["Page"]()

    class Meta:
        verbose_name = _("page")
        verbose_name_plural = _("pages")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["plan", "number"], name="sitemapkit_page_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.plan} {self.number}"
