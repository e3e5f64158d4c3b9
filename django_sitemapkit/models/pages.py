"""The stored plan, which says which rows are on which page; stored pages; files kept as rows."""

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
        base_manager_name = "objects"
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


class StoredPage(models.Model):
    """The stored file of a page, or of an index; it belongs to each build that lists it.

    It is written once and never changed.
    """

    site = models.CharField(_("site"), max_length=100)
    name = models.CharField(_("name in storage"), max_length=250)
    sha256 = models.CharField(_("SHA-256 of the XML"), max_length=64)
    urls = models.PositiveIntegerField(_("URLs"))
    xml_bytes = models.PositiveBigIntegerField(_("bytes of XML"))
    stored_bytes = models.PositiveBigIntegerField(_("bytes in storage"))
    lastmod = models.DateTimeField(_("last changed"))
    """When its XML became different from that of the file before it."""
    lastmods = models.JSONField(default=dict, blank=True, editable=False)
    """The ``oldest``, the ``newest`` and its ``key``, and the ``count``; empty without any."""

    objects = PrimaryManager["StoredPage"]()

    class Meta:
        base_manager_name = "objects"
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["site", "name"])]

    def __str__(self) -> str:
        return self.name


class StoredFile(models.Model):
    """A file that ``DatabaseStorage`` stores as rows: in pieces."""

    folder = models.CharField(max_length=250, blank=True)
    """The name up to the last slash, so that a folder is listed by its index."""
    name = models.CharField(max_length=250)
    """The name within the folder."""
    size = models.PositiveIntegerField(null=True)
    """Bytes of the content; null until all pieces are stored."""
    stored_at = models.DateTimeField()

    objects = PrimaryManager["StoredFile"]()

    class Meta:
        base_manager_name = "objects"
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["folder", "name"], name="sitemapkit_file_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}".lstrip("/")


class FilePiece(models.Model):
    """A part of a file's content."""

    file = models.ForeignKey(StoredFile, models.CASCADE, related_name="pieces", db_index=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    objects = PrimaryManager["FilePiece"]()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["file", "number"], name="sitemapkit_piece_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.file}, piece {self.number}"
