"""The stored plan: which rows stand on which page."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.models.managers import PrimaryManager


class Plan(models.Model):
    """How one section of one site is cut into pages."""

    site = models.CharField(_("site"), max_length=100)
    section = models.CharField(_("section"), max_length=100)
    key = models.CharField(
        _("key"), max_length=200, help_text=_("The field whose values bound the pages.")
    )
    rows_per_page = models.PositiveIntegerField(
        _("rows per page"), help_text=_("What a page may hold, as it was when this was planned.")
    )
    last_number = models.PositiveIntegerField(
        _("last number"), default=0, help_text=_("The highest page number given so far.")
    )
    revision = models.PositiveIntegerField(
        _("revision"), default=0, help_text=_("Raised by every change; a change checks it first.")
    )
    planned_at = models.DateTimeField(_("planned at"))

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
    number = models.PositiveIntegerField(
        _("number"), help_text=_("Part of the page's address; a new page always gets a new number.")
    )
    lower = models.TextField(_("lower bound"), null=True)  # noqa: DJ001  null is an open end
    upper = models.TextField(_("upper bound"), null=True)  # noqa: DJ001
    lists = models.BooleanField(
        _("lists a URL"), default=True, help_text=_("Whether it had any when it was last read.")
    )
    read_revision = models.PositiveIntegerField(
        _("read as of revision"),
        null=True,
        help_text=_("Of what editors set; none where its bounds are new since."),
    )
    read_at = models.DateTimeField(
        _("read at"), null=True, help_text=_("When it was last looked at for a URL.")
    )

    objects = PrimaryManager["Page"]()

    class Meta:
        verbose_name = _("page")
        verbose_name_plural = _("pages")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["plan", "number"], name="sitemapkit_page_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.plan} {self.number}"
