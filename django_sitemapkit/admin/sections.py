"""The screen of section settings: what holds for a section in the place of its declaration."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.declared import (
    declared_enabled,
    declared_sections,
    declared_value,
)
from django_sitemapkit.admin.steering import (
    SiteFilter,
    SteeringAdmin,
    SteeringForm,
)
from django_sitemapkit.models import SectionSettings
from django_sitemapkit.protocol.values import format_priority
from django_sitemapkit.sections import BaseSection
from django_sitemapkit.sites import Site


class EnabledSelect(forms.NullBooleanSelect):
    """Asks whether a section is listed, in words that say so."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        choices = (("unknown", _("Inherit")), ("true", _("Yes")), ("false", _("No")))
        forms.Select.__init__(self, attrs, choices)


class SectionForm(SteeringForm):
    """A form for the settings of one of the registered sections."""

    class Meta:
        widgets: ClassVar = {"enabled": EnabledSelect}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        known = {site.key: declared_sections(site) for site in self.sites}
        if "section" in self.fields:
            names = sorted({name for sections in known.values() for name in sections})
            self.fields["section"] = forms.ChoiceField(
                label=capfirst(_("section")),
                choices=[("", "---------"), *((name, name) for name in names)],
            )
        section = known.get(self.instance.site, {}).get(self.instance.section)
        if section is not None:
            self._tell(section)

    def _tell(self, section: BaseSection) -> None:
        """Say at each field what an empty one inherits."""
        inherited = {
            "enabled": declared_enabled(section),
            "changefreq": declared_value(section, "changefreq"),
            "priority": declared_value(section, "priority"),
        }
        for name, text in inherited.items():
            if name in self.fields:
                self.fields[name].help_text = format_html(
                    gettext("Empty inherits what is declared: {}."), text
                )

    def clean(self) -> dict[str, Any]:
        """Refuse a section that the site does not have, or that has settings already."""
        cleaned = super().clean() or self.cleaned_data
        name = cleaned.get("section", "")
        if self.site is not None and name:
            if name not in declared_sections(self.site):
                self.add_error("section", ValidationError(_("The site has no such section.")))
            else:
                self.refuse_duplicate("section", section=name)
        return cleaned


@admin.register(SectionSettings)
class SectionSettingsAdmin(SteeringAdmin):
    """Section settings: one row for a section, in which empty inherits."""

    form = SectionForm
    fields = ("site", "section", "enabled", "changefreq", "priority")
    preview_template = "admin/sitemapkit/steering/sections.html"
    list_display = ("section", "site", "is_enabled", "changefreq", "priority", "changed_at")
    list_filter = (SiteFilter, "enabled")
    search_fields = ("section",)
    ordering: ClassVar[Any] = ("site", "section")

    @admin.display(description=_("enabled"), ordering="enabled")
    def is_enabled(self, obj: SectionSettings) -> str:
        """Return whether the section is listed, or that this is inherited."""
        words = {None: _("inherits"), True: _("yes"), False: _("no")}
        return str(words[obj.enabled])

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> Any:
        """Tell on the page for a new row what all sections declare."""
        form = context["adminform"].form
        context["declared"] = [
            (site, _declarations(site))
            for site in getattr(form, "sites", ())
            if form.instance.pk is None
        ]
        return super().render_change_form(request, context, *args, **options)

    def look(
        self, request: HttpRequest, site: Site, row: SectionSettings, *, stored: bool
    ) -> dict[str, Any]:
        """Return what the section's rows inherit, and where from."""
        section = declared_sections(site).get(row.section)
        if section is None:
            raise ImproperlyConfigured(
                gettext("There is no section %(name)s any more: this does nothing.")
                % {"name": repr(row.section)}
            )
        enabled = "" if row.enabled is None else gettext("yes") if row.enabled else gettext("no")
        priority = format_priority(row.priority) or ""
        values = [
            (gettext("enabled"), enabled, declared_enabled(section)),
            ("changefreq", row.changefreq, declared_value(section, "changefreq")),
            ("priority", priority, declared_value(section, "priority")),
        ]
        return {"in_force": values, "section": row.section}


def _declarations(site: Site) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "enabled": declared_enabled(section),
            "changefreq": declared_value(section, "changefreq"),
            "priority": declared_value(section, "priority"),
        }
        for name, section in declared_sections(site).items()
    ]
