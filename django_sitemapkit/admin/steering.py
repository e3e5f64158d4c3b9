"""What the editors' screens have in common: the choice of a site, pasted paths, previews."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models, router, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.lists import CheckedListAdmin
from django_sitemapkit.admin.wording import told
from django_sitemapkit.exceptions import RefusedValue
from django_sitemapkit.models import hash_of
from django_sitemapkit.models.fields import CHANGEFREQ_CHOICES
from django_sitemapkit.overrides.pasting import MAX_PASTED, pasted_path
from django_sitemapkit.rendering.explanations import Explanation
from django_sitemapkit.sites import Site, all_sites

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Any]
else:
    _ModelForm = forms.ModelForm

_SITES = "_sitemapkit_sites"


def known_sites(request: HttpRequest) -> list[Site]:
    """Return all sites; where none can be told, a message of the page says why."""
    sites: list[Site] | None = getattr(request, _SITES, None)
    if sites is None:
        try:
            sites = all_sites()
        except ImproperlyConfigured as error:
            messages.error(request, str(error))
            sites = []
        setattr(request, _SITES, sites)
    return sites


def site_of(sites: Sequence[Site], key: str) -> Site | None:
    """Return the site with that key, or None."""
    return next((site for site in sites if site.key == key), None)


def site_field(sites: Sequence[Site], current: str = "") -> forms.ChoiceField:
    """Return a field for one of the sites, which nobody sees where there is but one to choose."""
    choices = [(site.key, f"{site.key} ({site.origin}{site.path})") for site in sites]
    if len(sites) == 1 and current in {"", sites[0].key}:
        return forms.ChoiceField(
            label=capfirst(_("site")),
            choices=choices,
            initial=sites[0].key,
            widget=forms.HiddenInput,
        )
    return forms.ChoiceField(label=capfirst(_("site")), choices=[("", "---------"), *choices])


class SteeringForm(_ModelForm):
    """A form for what an editor sets for a site."""

    sites: ClassVar[Sequence[Site]] = ()
    previewing: ClassVar[bool] = False
    """Whether it is only looked at: then it is never valid, so that nobody saves it."""
    change_url: ClassVar[str] = ""
    """The name of the page of a row, which a duplicate is linked by."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "site" in self.fields:
            self.fields["site"] = site_field(self.sites, self.instance.site)
        if "changefreq" in self.fields:
            changefreq: Any = self.fields["changefreq"]
            changefreq.choices = [("", _("Inherit")), *CHANGEFREQ_CHOICES]
        for name in ("note", "path", "pattern"):
            if name in self.fields:
                self.fields[name].widget.attrs["class"] = "vLargeTextField sitemapkit-wide"
        if "lastmod" in self.fields:
            # The admin shows names beside both parts, but no labels.
            parts = getattr(self.fields["lastmod"].widget, "widgets", ())
            for part, kind in zip(parts, (_("date"), _("time")), strict=False):
                part.attrs["aria-label"] = f"{self.fields['lastmod'].label}, {kind}"
        if "path" in self.fields:
            # What is pasted has a host, and is not percent-encoded yet.
            self.fields["path"] = forms.CharField(
                label=self.fields["path"].label,
                help_text=self.fields["path"].help_text,
                required=self.fields["path"].required,
                max_length=MAX_PASTED,
                widget=self.fields["path"].widget,
            )

    def is_valid(self) -> bool:
        """Return whether it may be saved."""
        return super().is_valid() and not self.previewing

    @property
    def site(self) -> Site | None:
        """The site that was chosen, once that was looked at."""
        return site_of(self.sites, self.cleaned_data.get("site", self.instance.site))

    def clean_lastmod(self) -> Any:
        """Refuse what lies in the future: the sitemap would leave it out until then."""
        lastmod = self.cleaned_data["lastmod"]
        if lastmod is not None and lastmod > timezone.now():
            raise ValidationError(_("It lies in the future."), code="future")
        return lastmod

    def clean_pasted(self) -> None:
        """Bring the path into its normal form, or say what is wrong with it."""
        if self.site is None or not self.cleaned_data.get("path"):
            return
        try:
            self.cleaned_data["path"] = pasted_path(self.site, self.cleaned_data["path"])
        except RefusedValue as refusal:
            self.add_error("path", ValidationError(str(refusal), code=refusal.code))

    def refuse_duplicate(self, field: str | None, **found_by: Any) -> None:
        """Tell of the row that is there already, with a link to it."""
        if "site" not in self.cleaned_data:
            return  # None was chosen, which is told.
        rows = self._meta.model._default_manager.filter(site=self.cleaned_data["site"], **found_by)
        row = rows.exclude(pk=self.instance.pk).first()
        if row is not None:
            self.add_error(field, ValidationError(self._told(row), code="unique"))

    def _told(self, row: models.Model) -> str:
        url = reverse(self.change_url, args=[row.pk])
        return format_html(
            '{} <a href="{}">{}</a>', _("It is there already:"), url, str(row)[:200] or row.pk
        )


class PathForm(SteeringForm):
    """A form for something that is found by its path."""

    def clean(self) -> dict[str, Any]:
        """Bring the path into its normal form, and refuse one that is there already."""
        cleaned = super().clean() or self.cleaned_data
        self.clean_pasted()
        if self.site is not None and cleaned.get("path"):
            self.refuse_duplicate("path", hash=hash_of(cleaned["path"]))
        return cleaned


class SiteFilter(admin.SimpleListFilter):
    """Filters by a site, of those that there are: no query for it."""

    title = _("site")
    parameter_name = "site"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the sites."""
        return [(site.key, site.key) for site in known_sites(request)]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        """Return the rows of the chosen site."""
        return queryset if self.value() is None else queryset.filter(site=self.value())


class SteeringAdmin(CheckedListAdmin):
    """A screen of what editors set. A child says by ``look`` what its rows come to."""

    form = SteeringForm
    change_form_template = "admin/sitemapkit/steering/change_form.html"
    ordering: ClassVar[Any] = ("-pk",)
    show_full_result_count = False
    preview_template: str
    """What shows that which ``look`` returns."""

    class Media:
        css = {"all": ["sitemapkit/theme.css", "sitemapkit/overrides.css"]}

    def look(self, request: HttpRequest, site: Site, row: Any, *, stored: bool) -> dict[str, Any]:
        """Return what ``preview_template`` shows of a row, which is saved for that long at least.

        ``stored`` says whether it was saved before, be it with other values. The page tells what
        it raises.
        """
        raise NotImplementedError

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> type[Any]:
        """Return the form, which knows the sites."""
        form = super().get_form(request, obj, change=change, **options)
        known = {
            "sites": known_sites(request),
            "previewing": "_preview" in request.POST,
            "change_url": self._url_name("change"),
        }
        return type(form.__name__, (form,), known)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Leave out the site where there is but one."""
        return self._of_sites(request, super().get_list_display(request), "site")

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Leave out the site where there is but one."""
        return self._of_sites(request, super().get_list_filter(request), SiteFilter)

    def _of_sites(self, request: HttpRequest, names: Any, one: Any) -> list[Any]:
        several = len(known_sites(request)) > 1
        return [name for name in names if several or name != one]

    def _url_name(self, view: str) -> str:
        return f"{self.admin_site.name}:sitemapkit_{self.opts.model_name}_{view}"

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Show below the form what the row comes to, as it is saved or as it would be."""
        context["preview_template"] = self.preview_template
        context["preview"] = self._preview(request, context["adminform"].form, obj)
        context["show_preview"] = obj is None or self.has_change_permission(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _preview(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any] | None:
        if form.is_bound:
            if not form.previewing or form.errors:
                return None
            with undone(self.model):
                row = copy(form.instance)
                row.save()
                looked_at = self._looked_at(request, row, stored=obj is not None)
                return {**looked_at, "unsaved": True}
        return self._looked_at(request, obj, stored=True) if obj is not None else None

    def _looked_at(self, request: HttpRequest, row: Any, *, stored: bool) -> dict[str, Any]:
        site = site_of(known_sites(request), row.site)
        if site is None:
            return {"failure": _("There is no site %(site)s.") % {"site": repr(row.site)}}
        found, why = told(lambda: self.look(request, site, row, stored=stored))
        return {"failure": why} if found is None else found


@contextmanager
def undone(model: type[models.Model]) -> Iterator[None]:
    """Undo all that is written meanwhile to the database that ``model`` is written to."""
    using = router.db_for_write(model)
    with transaction.atomic(using=using):
        try:
            yield
        finally:
            transaction.set_rollback(True, using=using)


def explained(explanations: Sequence[Explanation], nothing: Any = "") -> dict[str, Any]:
    """Return the context of the template that shows explanations.

    ``nothing`` says why there is none.
    """
    return {"explanations": explanations, "nothing": "" if explanations else nothing}
