"""Rows whose keys only grow, and rows that come in between."""

from django.db import models


class Item(models.Model):
    """Has an automatic key; one that is not public is not listed."""

    public = models.BooleanField(default=True)
    permanent = models.BooleanField(default=False)
    edited_at = models.DateTimeField(auto_now=True)

    def __str__(self):
        return str(self.pk)


class Word(models.Model):
    """Is paged by its text, so that a new one may come anywhere."""

    text = models.CharField(max_length=40, unique=True)
    permanent = models.BooleanField(default=False)
    edited_at = models.DateTimeField(auto_now=True)

    def __str__(self):
        return self.text
