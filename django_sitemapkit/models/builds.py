"""Builds, their places, publications, and requests of the admin."""

import datetime as dt
from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any, ClassVar

from django.db import models
from django.db.models import Count, F, Max, Q, Sum
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.conf import settings
from django_sitemapkit.models.leases import PrimaryManager, StoredNow
from django_sitemapkit.models.pages import StoredPage
from django_sitemapkit.sites import SitemapSite
from django_sitemapkit.words import code_of, findings_of, words_of

INDEX_ORDER = ("position", "number")
"""How an index orders its pages."""


class BuildManager(PrimaryManager["Build"]):
    """Finds the builds that a site serves or may publish."""

    def published(self, site: SitemapSite) -> "Build | None":
        """Return the build that a site serves; None if nothing is published."""
        publication = Publication.objects.filter(site=site.key).select_related("build").first()
        return publication.build if publication else None

    def publishable(self, *sites: str) -> "models.QuerySet[Build]":
        """Return sites' builds, oldest first, that are held or were published and have files."""
        ended_well = Q(status=Build.Status.HELD) | Q(published_at__isnull=False)
        return self.filter(ended_well, site__in=sites, pruned_at=None).order_by("pk")

    def rolled_back(self, live: "Build | None") -> "Build | None":
        """Return the build with newer rows that a roll-back replaced by ``live``, or None."""
        return live and rolled_back_among(self.publishable(live.site), live)


def rolled_back_among(builds: Iterable["Build"], live: "Build | None") -> "Build | None":
    """Return the one of ``builds`` that a roll-back replaced by ``live``, or None.

    ``builds`` are the publishable ones of a site, ``live`` is what it serves. The one returned has
    newer rows, which the next build of all sections lists again.
    """
    published = [build for build in builds if build.published_at is not None]
    newest = max(published, key=Build.newness, default=None)
    return newest if live and newest != live else None


class PlaceQuerySet(models.QuerySet["Place"]):
    """The places of pages and indexes in builds."""

    def in_build(self, build: "Build | int") -> "PlaceQuerySet":
        """Return all places of a build, with their stored pages."""
        return self.filter(build=build).select_related("page")

    def pages(self) -> "PlaceQuerySet":
        """Return the places of pages that list URLs, in the order of the index."""
        done = self.filter(status=Place.Status.DONE).defer("override_hashes")
        return done.exclude(section="").select_related("page").order_by(*INDEX_ORDER)

    def totals(self, *by: str, **more: Any) -> Any:
        """Return the sums of pages, URLs, bytes and skipped rows for each build, section or both.

        ``by`` names the fields to group by, ``build`` and ``section``; ``more`` are further
        aggregates by name. Indexes are not counted.
        """
        return (
            self.exclude(self.model.withdrawing_condition() | Q(section=""))
            .order_by(*by)
            .values(*by)
            .annotate(
                **more,
                pages=Count("page"),
                urls=Sum("page__urls", default=0),
                xml_bytes=Sum("page__xml_bytes", default=0),
                skipped=Sum("skipped", default=0),
                changed_at=Max("page__lastmod"),
            )
        )

    def answering(self, site: SitemapSite) -> "PlaceQuerySet":
        """Return the places whose files a site serves, the one to serve for each address first.

        An address is served from the published build, else, within the grace period, from the build
        that was replaced last. A place without a file means 404: editors have excluded all its
        URLs.
        """
        grace = StoredNow() - dt.timedelta(seconds=settings.KEEP_REPLACED_SECONDS)
        emptied = Q(status=Place.Status.EMPTY) & ~Q(override_hashes=b"")
        return (
            self.filter(
                Q(build__replaced_at=None) | Q(build__replaced_at__gte=grace),
                Q(status=Place.Status.DONE) | emptied,
                build__site=site.key,
                build__status=Build.Status.PUBLISHED,
                build__pruned_at=None,
            )
            .select_related("page")
            .order_by(F("build__replaced_at").desc(nulls_first=True))
        )


class PlaceManager(PrimaryManager["Place"]):
    """Reads places without ``url_hashes``, which may be large."""

    def get_queryset(self) -> "models.QuerySet[Place]":
        """Return all places, with ``url_hashes`` deferred."""
        return super().get_queryset().defer("url_hashes")


OVERDUE_SECONDS = 600.0
"""Seconds for which a request may be open until its message counts as lost."""


class BuildRequestManager(PrimaryManager["BuildRequest"]):
    """Finds the open requests of sites."""

    def open(self, *sites: SitemapSite) -> "models.QuerySet[Any]":
        """Return the requests of sites that have not ended, oldest first, with ``is_overdue``."""
        late = Q(requested_at__lt=StoredNow() - dt.timedelta(seconds=OVERDUE_SECONDS))
        is_overdue = models.ExpressionWrapper(late, output_field=models.BooleanField())
        rows = self.filter(site__in=[site.key for site in sites], ended_at=None)
        return rows.annotate(is_overdue=is_overdue).order_by("pk")


class Build(models.Model):
    """One run that makes the files of a site, and its result."""

    class Status(models.TextChoices):
        """The state of a build."""

        RUNNING = "running", _("unfinished")
        PUBLISHED = "published", _("published: live or replaced")
        UNCHANGED = "unchanged", _("unchanged")
        HELD = "held", _("held or preview")
        ABANDONED = "abandoned", _("abandoned")
        FAILED = "failed", _("failed")

    site = models.CharField(_("site"), max_length=100)
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.RUNNING)
    fence = models.PositiveBigIntegerField(_("fencing token"))
    """The fencing token of its lease."""
    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    published_at = models.DateTimeField(_("published at"), null=True)
    replaced_at = models.DateTimeField(
        _("replaced at"), null=True, help_text=_("When another build replaced it.")
    )
    notified_at = models.DateTimeField(_("notified at"), null=True, editable=False)
    """When it was exported and the signal sent, the last time."""
    pruned_at = models.DateTimeField(
        _("pruned at"), null=True, help_text=_("When its files were deleted.")
    )
    reason = models.JSONField(_("reason"), default=str, blank=True)
    """Why it is held, failed or was abandoned: a code and its values, or a text; often ""."""
    started_by = models.CharField(_("started by"), max_length=200, blank=True)
    options = models.JSONField(default=dict, blank=True, editable=False)
    """What it was asked for, for its helpers and the build that adopts its pages; else empty.

    ``declaration`` is a digest of its code and settings, ``sections`` are the names of those to
    build, or none for all, ``full`` is whether it renders all pages, including unchanged ones, and
    ``distrusted`` are stored names that it must not reuse.
    """
    checked_by = models.JSONField(_("checked by"), default=dict, blank=True, editable=False)
    """The ids of later builds that compared sections with their rows, by section."""
    warnings = models.JSONField(
        _("warnings"),
        default=list,
        blank=True,
        help_text=_("Large losses of URLs, and implausible lastmods."),
    )
    """Each is a code and its values."""
    helpers = models.PositiveIntegerField(default=0, editable=False)
    """How many have begun to make its pages."""
    next_claim_at = models.DateTimeField(null=True, editable=False)
    """When the next page may be claimed, by the database's clock in UTC; null for at once."""
    previous = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("previous build"),
    )
    """The build that was live before this one went live first, or when it finished unpublished."""

    objects = BuildManager()

    class Meta:
        base_manager_name = "objects"
        verbose_name = _("build")
        verbose_name_plural = _("builds")
        indexes: ClassVar = [models.Index(fields=["site", "status"])]
        permissions: ClassVar = [
            ("run_build", _("Can build, check and prune sitemaps")),
            ("publish_build", _("Can publish held and earlier builds")),
        ]

    def __str__(self) -> str:
        return _("Build %(build)s") % {"build": self.pk}

    @property
    def outcome(self) -> str:
        """Its status, but "live" or "replaced" if published, and "preview" for a preview."""
        if self.status == self.Status.HELD and code_of(self.reason).startswith("preview"):
            return "preview"
        if self.status != Build.Status.PUBLISHED:
            return self.status
        return "live" if self.replaced_at is None else "replaced"

    @property
    def reason_text(self) -> str:
        """Why it is held, failed or was abandoned, in the active language; often ""."""
        return words_of(self.reason)

    @property
    def findings(self) -> list[tuple[str, str]]:
        """The URLs for which it is held, each with an explanation in the active language."""
        return findings_of(self.reason)

    def newness(self) -> tuple[int, int]:
        """Return a sort key of builds: larger if the rows that its files list were read later.

        A build of some sections, such as that of "Exclude now", takes over the files of all others.
        """
        return min(self.checked_by.values(), default=self.pk), self.pk

    def checking_build_ids(self, sections: Iterable[str]) -> dict[str, int]:
        """Return by section the id of the build that last compared its files with the rows.

        This build's own id stands for each section for which ``checked_by`` records none.
        """
        return {name: self.checked_by.get(name, self.pk) for name in sections}


class SitemapsOverview(Build):
    """A proxy without rows of its own: the entry of the overview in the admin's lists of models."""

    class Meta:
        proxy = True
        default_permissions: ClassVar = ()
        verbose_name = _("sitemaps overview")
        verbose_name_plural = _("sitemaps overview")


class Place(models.Model):
    """The place of a page, or of an index, in a build, with its stored page.

    A page that is pending, or that lists no URL, has no stored page.
    """

    class Status(models.TextChoices):
        """The state of a place."""

        PENDING = "pending", _("pending")
        DONE = "done", _("done")
        EMPTY = "empty", _("empty")

    build = models.ForeignKey(Build, models.CASCADE, related_name="places", verbose_name=_("build"))
    section = models.CharField(_("section"), max_length=100, blank=True)
    """Empty for an index."""
    number = models.PositiveIntegerField(_("number"), default=0)
    position = models.PositiveIntegerField(_("position"), default=0)
    """Its place in the index."""
    lower = models.TextField(_("lower bound"), null=True)  # noqa: DJ001  null is an open end
    upper = models.TextField(_("upper bound"), null=True)  # noqa: DJ001
    page: "models.ForeignKey[StoredPage | None, StoredPage]" = models.ForeignKey(  # type: ignore[misc]
        StoredPage,
        models.PROTECT,
        null=True,
        related_name="places",
        verbose_name=_("file"),
    )
    """Null unless it is done. Its type has no None, since code that reads it knows the status."""
    status = models.CharField(_("status"), max_length=20, choices=Status, default=Status.PENDING)
    first = models.TextField(_("first key"), null=True)  # noqa: DJ001  an index has none
    last = models.TextField(_("last key"), null=True)  # noqa: DJ001
    skipped = models.PositiveIntegerField(_("rows skipped"), default=0)
    problems = models.JSONField(_("problems"), default=dict)
    """By code their ``count``, and the first ``examples``: the place among all, and the text."""
    fingerprint = models.CharField(_("fingerprint"), max_length=100, blank=True)
    """Of code, settings and rows, taken before the rows were read."""
    revision = models.PositiveBigIntegerField(_("revision"), default=0)
    """The revision of the overrides that the file is known to follow."""
    override_hashes = models.BinaryField(_("override hashes"), default=b"")
    """The hashes of the overrides that met a row of this page, 8 bytes each."""
    changes_at = models.DateTimeField(_("changes at"), null=True)
    """The first lastmod that was left out because it is in the future."""
    duplicate_hashes = models.JSONField(_("duplicates"), default=dict)
    """What pages before it list: hashes of these URLs in hex, by the section that lists them."""
    prefix_digest = models.CharField(_("prefix digest"), max_length=16, blank=True)
    """Of all URLs of the pages before it, if what it leaves out is right for these.

    Empty if that is not known. Where a pending place has one, it says what to leave out.
    """
    urls_digest = models.CharField(_("URLs digest"), max_length=16, blank=True)
    """Of its own URLs."""
    claimed_until = models.DateTimeField(null=True, editable=False)
    """By the database's clock in UTC; null if nobody makes it."""
    failure = models.JSONField(default=dict, blank=True, editable=False)
    """How many ``attempts`` to make it failed, and the ``error`` and ``text`` of the last one."""
    url_hashes = models.BinaryField(null=True, editable=False)
    """Of what it lists or leaves out, sorted: as long as the process that compares needs them.

    Other processes leave them with each page that they make, and any process with a page that
    exceeds its limit. It is the last column, and never read with the others.
    """

    objects = PlaceManager.from_queryset(PlaceQuerySet)()

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["build", "section", "number"], name="sitemapkit_place_unique"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["build", "status", "position", "number"])]

    def __str__(self) -> str:
        name = self.section or "index"
        return f"{name}-{self.number}" if self.number else name

    @property
    def name(self) -> str:
        """The name of its file in the storage; "" if it has none."""
        return getattr(self.page, "name", "")

    @property
    def urls(self) -> int:
        """How many URLs its file lists."""
        return getattr(self.page, "urls", 0)

    @property
    def xml_bytes(self) -> int:
        """Bytes of XML in its file."""
        return getattr(self.page, "xml_bytes", 0)

    @property
    def duplicates(self) -> int:
        """How many URLs it left out because it, or a page before it, lists them."""
        return int(self.problems.get("duplicate-url", {}).get("count", 0))

    @property
    def problem_examples(self) -> list[str]:
        """The first examples of each kind of problem, as untranslated text, in the order found."""
        examples = chain.from_iterable(kind["examples"] for kind in self.problems.values())
        return [text for _place, text, _key in sorted(examples)]

    @classmethod
    def withdrawing_condition(cls) -> Q:
        """Return a condition: empty places whose page the build did not make.

        They exist to answer 404 for the page of an earlier build, and follow no revision.
        """
        return Q(status=cls.Status.EMPTY, revision=0) & ~Q(override_hashes=b"")


class BuildDifferences(models.Model):
    """The stored differences between a build and another one."""

    build = models.ForeignKey(
        Build, models.CASCADE, related_name="differences", verbose_name=_("build")
    )
    before = models.ForeignKey(
        Build, models.CASCADE, related_name="+", verbose_name=_("compared with")
    )
    groups = models.JSONField(_("groups"), default=list)
    """How many there are by kind, section and folder, the largest group first."""
    kept = models.BinaryField(_("kept URLs"))
    """The first of them, a line each, compressed by gzip."""

    objects = PrimaryManager["BuildDifferences"]()

    class Meta:
        verbose_name = _("differences")
        verbose_name_plural = _("differences")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["build", "before"], name="sitemapkit_compared_once")
        ]

    def __str__(self) -> str:
        return f"{self.before_id} → {self.build_id}"

    def count(self, kind: str, *, excluding: Collection[str] = ()) -> int:
        """Return how many URLs are added ("+"), removed ("-") or changed ("~").

        ``excluding`` names sections whose URLs are not counted.
        """
        return sum(
            count
            for each, section, _folder, count in self.groups
            if each == kind and section not in excluding
        )


class Publication(models.Model):
    """Which build a site serves, and whether publishing another one is paused."""

    site = models.CharField(_("site"), max_length=100, unique=True)
    build = models.ForeignKey(Build, models.PROTECT, related_name="+", verbose_name=_("build"))
    export_doubt = models.PositiveBigIntegerField(_("export in doubt"), default=0)
    """The fencing token of a process that lost its lease during the export; 0 for none."""
    pause = models.JSONField(default=dict, blank=True, editable=False)
    """The values of a ``Pause``, its moments as timestamps; empty if nobody paused publishing."""

    objects = PrimaryManager["Publication"]()

    class Meta:
        verbose_name = _("publication")
        verbose_name_plural = _("publications")

    def __str__(self) -> str:
        return self.site


class BuildRequest(models.Model):
    """A request by a user or by changed rows; it is open until its outcome is recorded."""

    is_new = False
    """Whether ``builds.requests.record_request()`` has recorded it just now."""

    class Kind(models.TextChoices):
        """The kind of a request."""

        BUILD = "build", _("build")
        CHECK = "check", _("check")
        PRUNE = "prune", _("prune")
        COMPARE = "compare", _("compare")
        PREVIEW = "preview", _("preview")

    site = models.CharField(_("site"), max_length=100)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind, default=Kind.BUILD)
    section = models.CharField(_("section"), max_length=100, blank=True)
    """Empty for all sections."""
    full = models.BooleanField(_("full"), default=False)
    """Whether to render all pages, including unchanged ones."""
    requested_by = models.CharField(_("requested by"), max_length=200, blank=True)
    requested_at = models.DateTimeField(_("requested at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    dedup_key = models.CharField(  # noqa: DJ001  null leaves the constraint
        _("deduplication key"),
        max_length=250,
        null=True,
        unique=True,
    )
    """What was requested, until it starts; so queued requests are unique."""
    build = models.ForeignKey(
        Build, models.SET_NULL, null=True, related_name="requests", verbose_name=_("build")
    )
    """The build that it came to, or that it is about."""
    before = models.ForeignKey(
        Build, models.SET_NULL, null=True, related_name="+", verbose_name=_("compared with")
    )
    """The build that it is compared with."""
    outcome = models.JSONField(_("outcome"), default=str, blank=True)
    """What it came to: a code and its values, or the text of an error; "" until it ends."""

    objects = BuildRequestManager()

    class Meta:
        verbose_name = _("request")
        verbose_name_plural = _("requests")
        indexes: ClassVar = [models.Index(fields=["site", "ended_at"])]

    def __str__(self) -> str:
        return f"{self.section} ({self.site})" if self.section else self.site

    @property
    def failed(self) -> bool:
        """Whether the request failed. The code "other" is that of the text of an error."""
        return code_of(self.outcome) in {"build-cancelled", "build-gone", "damaged", "other"}

    @property
    def outcome_text(self) -> str:
        """The outcome in the active language; "" until the request ends."""
        return words_of(self.outcome)
