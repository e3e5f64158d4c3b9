"""Files as rows, which ``DatabaseStorage`` writes and reads."""

from typing import ClassVar

from django.db import models

from django_sitemapkit.models.leases import PrimaryManager


class StoredFile(models.Model):
    """A file that the database stores, in pieces."""

    folder = models.CharField(max_length=250, blank=True)
    """The name up to the last slash, so that a folder is listed by its index."""
    name = models.CharField(max_length=250)
    """The name within the folder."""
    size = models.PositiveIntegerField(null=True)
    """Bytes of the content; null until all pieces are stored."""
    stored_at = models.DateTimeField()

    objects = PrimaryManager["StoredFile"]()

    class Meta:
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
