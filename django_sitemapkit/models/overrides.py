"""What editors set beyond the declarations, and the number that tells when any of it changed."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models, router, transaction
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.models.fields import changefreq_field, priority_field
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import normalise_path, normalise_pattern


def hash_of(text: str) -> int:
    """Return 64 bits, signed, that stand for a path or an object in an index of the database.

    Where they are equal the texts themselves are compared: a collation takes ``/Cafe`` and
    ``/café`` for one, and so may a hash.
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Revision(models.Model):
    """How often what editors set for a site has changed: each change raises it, as one with it.

    Two transactions cannot both be the last one, as with a time: the second waits for the first.
    """

    site = models.CharField(_("site"), max_length=100, unique=True)
    number = models.PositiveBigIntegerField(_("number"))
    mark = models.BigIntegerField(
        _("mark"), help_text=_("Drawn anew with each number, which a rollback gives out again.")
    )

    class Meta:
        verbose_name = _("revision")
        verbose_name_plural = _("revisions")

    def __str__(self) -> str:
        return f"{self.site} {self.number}"

    @classmethod
    def next_of(cls, site: str, using: str) -> int:
        """Raise a site's number and return it; whoever comes next waits for the commit."""
        rows = cls._default_manager.using(using).filter(site=site)
        if not rows.exists():
            # Of two that come first together one waits here, and adds to the other's row. MySQL
            # would let both update the row that is not there yet, and then neither insert it.
            rows.bulk_create([cls(site=site, number=0, mark=0)], ignore_conflicts=True)
        rows.update(number=models.F("number") + 1, mark=secrets.randbits(63))
        return rows.values_list("number", flat=True).get()


class SteeringQuerySet(models.QuerySet[Any]):
    """Raises the sites' revisions with every change, also those that call no ``save()``."""

    def update(self, **values: Any) -> int:
        """Update rows, with one new revision for each of their sites.

        Raises TypeError for what a row is found by: its hash has to be taken anew by ``save()``.
        """
        if found_by := {"site", "path", "pattern", "model", "object_id", "hash"} & set(values):
            raise TypeError(f"Set {', '.join(sorted(found_by))} by save(), a row at a time.")
        database = self._for_write_alias()
        with transaction.atomic(using=database):
            rows = self.using(database)
            return sum(
                super(SteeringQuerySet, rows.filter(site=site)).update(
                    **values, revision=Revision.next_of(site, database)
                )
                for site in rows._sites()
            )

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[Any], *args: Any, **options: Any) -> list[Any]:
        """Create rows, with one new revision for each of their sites."""
        objs = list(objs)
        if fields := options.get("update_fields"):
            options["update_fields"] = {*fields, *self.model.always}
        database = self._for_write_alias()
        with transaction.atomic(using=database):
            for site in sorted({obj.site for obj in objs}):
                revision = Revision.next_of(site, database)
                for obj in objs:
                    if obj.site == site:
                        obj.revision = revision
                        obj.prepare()
            return super().bulk_create(objs, *args, **options)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete rows, and raise the revisions of their sites."""
        database = self._for_write_alias()
        with transaction.atomic(using=database):
            for site in self.using(database)._sites():
                Revision.next_of(site, database)
            return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _sites(self) -> list[str]:
        """Return the sites of the rows, in the one order in which all take their locks."""
        return sorted(self.order_by().values_list("site", flat=True).distinct())

    def _for_write_alias(self) -> str:
        return self._db or router.db_for_write(self.model)  # type: ignore[attr-defined]


class Steering(models.Model):
    """One thing that an editor set for a site."""

    site = models.CharField(_("site"), max_length=100)
    revision = models.PositiveBigIntegerField(_("revision"), default=0, editable=False)
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    objects = SteeringQuerySet.as_manager()

    always: ClassVar[Sequence[str]] = ("revision", "changed_at")
    """The fields that are written with whatever else is: those that ``prepare`` fills, too."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        """Write the row, and raise the revision of its site, and of the one it leaves."""
        database = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=database):
            rows = type(self)._default_manager.using(database).filter(pk=self.pk)
            left = set(rows.values_list("site", flat=True)) if self.pk else set()
            for site in sorted(left | {self.site}):
                revision = Revision.next_of(site, database)
                self.revision = revision if site == self.site else self.revision
            self.prepare()
            if (fields := options.get("update_fields")) is not None:
                options["update_fields"] = {*fields, *self.always}
            super().save(*args, **options)

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Delete the row, and raise the revision of its site."""
        database = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=database):
            Revision.next_of(self.site, database)
            return super().delete(*args, **options)

    def prepare(self) -> None:
        """Bring what is derived from other fields up to date, before the row is written."""


class SectionSettings(Steering):
    """What holds for a section of a site in the place of what is declared."""

    section = models.CharField(_("section"), max_length=100)
    enabled = models.BooleanField(
        _("enabled"), null=True, blank=True, help_text=_("Whether the section is listed at all.")
    )
    changefreq = changefreq_field()
    priority = priority_field()

    class Meta:
        verbose_name = _("section settings")
        verbose_name_plural = _("section settings")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "section"], name="sitemapkit_settings_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.section} ({self.site})"


class HashedSteering(Steering):
    """Something that is found by a hash of its text: each text once for a site."""

    hash = models.BigIntegerField(_("hash"), editable=False)
    note = models.CharField(_("note"), max_length=500, blank=True, help_text=_("Why, for people."))

    always: ClassVar[Sequence[str]] = (*Steering.always, "hash")

    class Meta:
        abstract = True

    normalised: ClassVar[str] = "path"
    """The field that ``prepare`` brings into its normal form."""

    @property
    def identity(self) -> str:
        """The text whose hash it is."""
        raise NotImplementedError

    def clean(self) -> None:
        """Bring the text into its normal form; raises ValidationError where it has none."""
        super().clean()
        try:
            self.prepare()
        except RefusedValue as refusal:
            if getattr(self, self.normalised):  # That it is empty is told by its field.
                error = ValidationError(str(refusal), code=refusal.code)
                raise ValidationError({self.normalised: error}) from refusal

    def prepare(self) -> None:
        """Take the hash of its identity."""
        self.hash = hash_of(self.identity)


class UrlOverride(HashedSteering):
    """What holds for one URL, or for the URL of one object, in the place of all else."""

    path = models.CharField(
        _("path"),
        max_length=MAX_LOCATION,
        blank=True,
        help_text=_("Such as /about/; a whole URL of the site may be pasted too."),
    )
    model = models.CharField(_("model"), max_length=200, blank=True)
    object_id = models.CharField(_("object"), max_length=255, blank=True)
    include = models.BooleanField(
        _("include"),
        null=True,
        blank=True,
        help_text=_("No leaves the URL out. Yes lists it whatever the exclusion rules say."),
    )
    priority = priority_field()
    changefreq = changefreq_field()
    lastmod = models.DateTimeField(
        _("last modified"),
        null=True,
        blank=True,
        help_text=_("When the page changed, where the rows do not tell. Empty inherits."),
    )

    class Meta:
        verbose_name = _("URL override")
        verbose_name_plural = _("URL overrides")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "hash"], name="sitemapkit_override_unique"),
        ]
        indexes: ClassVar = [models.Index(fields=["site", "model", "id"])]
        permissions: ClassVar = [("override", _("Can include, exclude and reset URLs by action"))]

    def __str__(self) -> str:
        return self.identity

    always: ClassVar[Sequence[str]] = (*HashedSteering.always, "path")

    @property
    def identity(self) -> str:
        """The path, which begins with a slash, or the object, which does not."""
        return self.path or f"{self.model} {self.object_id}"

    def prepare(self) -> None:
        """Bring the path into its normal form; raises RefusedValue where it has none."""
        if self.path:
            self.path = normalise_path(self.path)
        super().prepare()


class ExtraUrl(HashedSteering):
    """A URL that no section gives."""

    path = models.CharField(
        _("path"),
        max_length=MAX_LOCATION,
        help_text=_("Such as /about/; a whole URL of the site may be pasted too."),
    )
    lastmod = models.DateTimeField(
        _("last modified"), null=True, blank=True, help_text=_("When the page changed.")
    )
    changefreq = changefreq_field()
    priority = priority_field()

    class Meta:
        verbose_name = _("extra URL")
        verbose_name_plural = _("extra URLs")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "hash"], name="sitemapkit_extra_unique"),
        ]

    def __str__(self) -> str:
        return self.path

    always: ClassVar[Sequence[str]] = (*HashedSteering.always, "path")

    @property
    def identity(self) -> str:
        """The path."""
        return self.path

    def prepare(self) -> None:
        """Bring the path into its normal form; raises RefusedValue where it has none."""
        self.path = normalise_path(self.path)
        super().prepare()


class ExclusionRule(HashedSteering):
    """Leaves out all URLs that match a pattern, as robots.txt has them."""

    always: ClassVar[Sequence[str]] = (*HashedSteering.always, "pattern")
    normalised = "pattern"

    pattern = models.CharField(
        _("pattern"),
        max_length=MAX_LOCATION,
        help_text=_("A path that URLs begin with; * stands for anything, $ for the end."),
    )

    class Meta:
        verbose_name = _("exclusion rule")
        verbose_name_plural = _("exclusion rules")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "hash"], name="sitemapkit_rule_unique"),
        ]

    def __str__(self) -> str:
        return self.pattern

    @property
    def identity(self) -> str:
        """The pattern, told from the path that is spelt like it."""
        return f"rule {self.pattern}"

    def prepare(self) -> None:
        """Bring the pattern into its normal form; raises RefusedValue where it has none."""
        self.pattern = normalise_pattern(self.pattern)
        super().prepare()
