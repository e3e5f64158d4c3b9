"""What editors set, and its revision; and SitemapFields, for the project's own models."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connections, models, router, transaction
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.identities import identity_of, verbose_name_of
from django_sitemapkit.models.leases import PrimaryManager
from django_sitemapkit.protocol.limits import MAX_LOCATION
from django_sitemapkit.protocol.locations import check_length, normalise_path, normalise_pattern

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


def hash_of(text: str) -> int:
    """Return a signed 64-bit hash of a text, to find by an index the row that it identifies.

    Rows with equal hashes are compared by their text in Python: a collation may treat ``/Cafe`` and
    ``/café`` as equal.
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Revision(models.Model):
    """A number per site, incremented in the same transaction as each change of its settings.

    Unlike a timestamp it orders transactions: the second waits for the first.
    """

    site = models.CharField(_("site"), max_length=100, unique=True)
    number = models.PositiveBigIntegerField(_("number"))
    nonce = models.BigIntegerField(_("nonce"))
    """Random, because a rollback makes a number available again."""

    objects = PrimaryManager["Revision"]()

    class Meta:
        verbose_name = _("revision")
        verbose_name_plural = _("revisions")

    def __str__(self) -> str:
        return f"{self.site} {self.number}"

    @classmethod
    def increment(cls, site: str, using: str) -> int:
        """Increment and return the revision of a site; other transactions wait for the commit."""
        rows = cls._default_manager.using(using).filter(site=site)
        if not rows.exists():
            # If several transactions are the first, all but one wait here, and increment its row.
            # MySQL would let all update the missing row, and then none insert it. If conflicts were
            # ignored, it would let two share the row, and end one of them: a deadlock.
            features = connections[using].features
            rows.bulk_create(
                [cls(site=site, number=0, nonce=0)],
                update_conflicts=True,
                update_fields=["nonce"],
                unique_fields=["site"] if features.supports_update_conflicts_with_target else None,
            )
        rows.update(number=models.F("number") + 1, nonce=secrets.randbits(63))
        return rows.values_list("number", flat=True).get()

    @classmethod
    def increment_each(cls, sites: Iterable[str], using: str) -> dict[str, int]:
        """Increment the revisions of sites, in the order in which all transactions lock them."""
        return {site: cls.increment(site, using) for site in sorted(sites)}


class EditorSettingQuerySet(models.QuerySet[Any]):
    """Editor settings: every change, a bulk one too, increments the revisions of their sites."""

    def update(self, **values: Any) -> int:
        """Update rows, with one new revision per site.

        Raises TypeError for the fields that identify a row: only ``save()`` updates its hash.
        """
        if identity := {"site", "path", "pattern", "model", "object_id", "hash"} & set(values):
            raise TypeError(f"Set {', '.join(sorted(identity))} with save(), one row at a time.")
        database = self._write_alias()
        with transaction.atomic(using=database):
            rows = self.using(database)
            revisions = Revision.increment_each(rows.site_keys(), database)
            return sum(
                super(EditorSettingQuerySet, rows.filter(site=site)).update(
                    **values, revision=revision
                )
                for site, revision in revisions.items()
            )

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[Any], *args: Any, **options: Any) -> list[Any]:
        """Create rows as ``save()`` does: normalised, under one new revision per site."""
        objs = list(objs)
        if fields := options.get("update_fields"):
            options["update_fields"] = {*fields, *self.model.derived_fields}
        database = self._write_alias()
        with transaction.atomic(using=database):
            revisions = Revision.increment_each({obj.site for obj in objs}, database)
            for obj in objs:
                obj.revision = revisions[obj.site]
                obj.normalise()
            return super().bulk_create(objs, *args, **options)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete rows, and increment the revisions of their sites."""
        database = self._write_alias()
        with transaction.atomic(using=database):
            Revision.increment_each(self.using(database).site_keys(), database)
            return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def site_keys(self) -> list[str]:
        """Return the keys of the sites that the rows belong to, each once."""
        return list(self.order_by().values_list("site", flat=True).distinct())

    def _write_alias(self) -> str:
        """Return the alias of the database that the queryset writes to."""
        return self._db or router.db_for_write(self.model)  # type: ignore[attr-defined]


class EditorSetting(models.Model):
    """A row that editors set at one site; every change increments the site's revision."""

    site = models.CharField(_("site"), max_length=100)
    revision = models.PositiveBigIntegerField(_("revision"), default=0, editable=False)
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    objects = PrimaryManager.from_queryset(EditorSettingQuerySet)()

    derived_fields: ClassVar[Sequence[str]] = ("revision", "changed_at")
    """The fields that every write updates, including those that ``normalise`` sets."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        """Save the row, and increment the revisions of its site and of its previous site."""
        database = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=database):
            rows = type(self)._default_manager.using(database).filter(pk=self.pk)
            previous = set(rows.values_list("site", flat=True)) if self.pk else set()
            revisions = Revision.increment_each(previous | {self.site}, database)
            self.revision = revisions[self.site]
            self.normalise()
            if (fields := options.get("update_fields")) is not None:
                options["update_fields"] = {*fields, *self.derived_fields}
            super().save(*args, **options)

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Delete the row, and increment the revision of its site."""
        database = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=database):
            Revision.increment(self.site, database)
            return super().delete(*args, **options)

    def normalise(self) -> None:
        """Update the fields that are derived from others, if any; called before each write."""


class SectionSettings(EditorSetting):
    """Editors' settings of a section at one site, which replace the declared ones."""

    section = models.CharField(_("section"), max_length=100)
    enabled = models.BooleanField(
        _("enabled"),
        null=True,
        blank=True,
        choices=[(None, _("Inherit")), (True, _("Yes")), (False, _("No"))],
        help_text=_("Whether the sitemap lists the section."),
    )
    changefreq = changefreq_field()
    priority = priority_field()
    called_methods = models.CharField(max_length=16, default="", blank=True, editable=False)
    """The digest of methods that are called, because they gave other values than their source."""

    class Meta:
        verbose_name = _("section settings")
        verbose_name_plural = _("section settings")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "section"], name="sitemapkit_settings_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.section} ({self.site})"


class HashedEditorSetting(EditorSetting):
    """An editor setting that a text identifies; its hash is unique at the site."""

    hash = models.BigIntegerField(_("hash"), editable=False)
    note = models.CharField(
        _("note"), max_length=500, blank=True, help_text=_("For other editors, such as the reason.")
    )

    text_field: ClassVar[str] = "path"
    """The field that ``normalise`` brings into its normal form."""
    derived_fields: ClassVar[Sequence[str]] = (*EditorSetting.derived_fields, "hash", "path")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(getattr(self, self.text_field))

    @property
    def identity(self) -> str:
        """The text that is hashed, by which the row is found."""
        return str(self)

    def clean(self) -> None:
        """Normalise the text and its hash; raises ValidationError if the text is invalid."""
        super().clean()
        try:
            self.normalise()
        except InvalidValue as error:
            if getattr(self, self.text_field):  # The field itself reports an empty text.
                invalid = ValidationError(str(error), code=error.code)
                raise ValidationError({self.text_field: invalid}) from error

    def normalise(self) -> None:
        """Normalise the text in ``text_field`` and hash the identity.

        Raises InvalidValue if the text is invalid, or too long once it is percent-encoded.
        """
        text = check_length(self.normalise_text(str(getattr(self, self.text_field) or "")))
        setattr(self, self.text_field, text)
        self.hash = hash_of(self.identity)

    def normalise_text(self, text: str) -> str:
        """Return the normal form of ``text``, a path here; raises InvalidValue if it is invalid."""
        return normalise_path(text)


class UrlOverrideQuerySet(EditorSettingQuerySet):
    """URL overrides, which can be found by their object."""

    def for_object(self, obj: models.Model, *, site: str | None = None) -> "UrlOverrideQuerySet":
        """Return the overrides of an object, at all sites or at the ``site`` with that key.

        The object's primary key can be of any type. Proxies and multi-table children share the
        overrides of the model they derive from.

        Example::

            UrlOverride.objects.for_object(product, site="default").update(priority="0.9")
        """
        label, key = identity_of(obj)
        identity = UrlOverride(model=label, object_id=key).identity
        rows = self.filter(hash=hash_of(identity), model=label, object_id=key)
        return rows if site is None else rows.filter(site=site)

    def create_for_object(self, obj: models.Model, **values: Any) -> "UrlOverride":
        """Create an override of an object; ``values`` are the other fields."""
        label, key = identity_of(obj)
        override: UrlOverride = self.create(model=label, object_id=key, **values)
        return override

    create_for_object.alters_data = True  # type: ignore[attr-defined]


class UrlOverride(HashedEditorSetting):
    """Values for one URL, or for the URL of one object, that replace all others."""

    path = models.CharField(
        _("path"),
        max_length=MAX_LOCATION,
        blank=True,
        help_text=_(
            "Such as /about/. You can also paste a full URL of the site, with http or https."
        ),
    )
    model = models.CharField(_("model"), max_length=200, blank=True)
    object_id = models.CharField(_("object"), max_length=255, blank=True)
    include = models.BooleanField(
        _("include"),
        null=True,
        blank=True,
        choices=[
            (None, _("As the section says")),
            (True, _("Yes, include it")),
            (False, _("No, exclude it")),
        ],
        help_text=_(
            "“No” excludes the URL, or each URL of the object; the page may stay in search results."
            " “Yes” includes it despite exclusion rules."
        ),
    )
    priority = priority_field()
    changefreq = changefreq_field()
    lastmod = models.DateTimeField(
        _("last modified"),
        null=True,
        blank=True,
        help_text=_("When the page changed. Leave empty to inherit."),
    )

    objects = PrimaryManager.from_queryset(UrlOverrideQuerySet)()  # type: ignore[assignment, misc]

    class Meta:
        verbose_name = _("URL override")
        verbose_name_plural = _("URL overrides")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "hash"], name="sitemapkit_override_unique"),
        ]
        indexes: ClassVar = [models.Index(fields=["site", "model", "id"])]
        permissions: ClassVar = [
            ("bulk_urloverride", _("Can include, exclude and reset URLs by bulk action"))
        ]

    def __str__(self) -> str:
        return self.path or f"{capfirst(verbose_name_of(self.model))} {self.object_id}"

    @property
    def identity(self) -> str:
        """The path, or the model's label and the object's key with a space between them."""
        return self.path or f"{self.model} {self.object_id}"

    def normalise_text(self, text: str) -> str:
        """Return the normal form of a path, "" for an override by object; raises InvalidValue."""
        return text and normalise_path(text)


class ExtraUrl(HashedEditorSetting):
    """A URL that no section lists."""

    path_hash_field: ClassVar[str] = "hash"
    """The field with the hash of the path, by which the row of a URL is found."""

    path = models.CharField(
        _("path"),
        max_length=MAX_LOCATION,
        help_text=_(
            "Such as /about/. You can also paste a full URL of the site, with http or https."
        ),
    )
    title = models.CharField(
        _("title"),
        max_length=200,
        blank=True,
        help_text=_("The text of its link on the site map for people. By default its path."),
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


class ExclusionRule(HashedEditorSetting):
    """Excludes all URLs that match a pattern, written as in robots.txt."""

    text_field: ClassVar[str] = "pattern"
    derived_fields: ClassVar[Sequence[str]] = (*EditorSetting.derived_fields, "hash", "pattern")

    pattern = models.CharField(
        _("pattern"),
        max_length=MAX_LOCATION,
        help_text=_("The start of a path. * matches anything, $ matches the end."),
    )

    class Meta:
        verbose_name = _("exclusion rule")
        verbose_name_plural = _("exclusion rules")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["site", "hash"], name="sitemapkit_rule_unique"),
        ]

    @property
    def identity(self) -> str:
        """The pattern after the word ``rule``, so that its hash differs from that of a path."""
        return f"rule {self.pattern}"

    def normalise_text(self, text: str) -> str:
        """Return the normal form of a pattern; raises InvalidValue if it is invalid."""
        return normalise_pattern(text)
