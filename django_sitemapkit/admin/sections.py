"""The screens of section settings, which replace what a section declares."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_sitemapkit.admin.base import SiteFilter, site_by_key
from django_sitemapkit.admin.editor_settings import EditorSettingAdmin, EditorSettingForm
from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.models import SectionSettings
from django_sitemapkit.overrides.sections import extra_urls_of
from django_sitemapkit.protocol.values import format_changefreq, format_priority
from django_sitemapkit.reading import SectionReader
from django_sitemapkit.reading.sources import Constant
from django_sitemapkit.registry import registry
from django_sitemapkit.sites import SitemapSite

_FORMATTERS = {"changefreq": format_changefreq, "priority": format_priority}


def declared_sections(site: SitemapSite) -> dict[str, SectionReader]:
    """Return all declared sections of a site by name, enabled or not."""
    enabled = {section.get_name(): True for section in registry}
    sections = [*registry.of(site, enabled), extra_urls_of(site)]
    return {section.get_name(): section for section in sections}


def _declared_texts(section: SectionReader) -> dict[str, str]:
    """Return what a section declares, as text by field of ``SectionSettings``."""
    enabled = gettext("yes") if section.options.enabled else gettext("no")
    return {"enabled": enabled, **{tag: _declared_text(section, tag) for tag in _FORMATTERS}}


def _declared_text(section: SectionReader, tag: str) -> str:
    source = section.sources.get(tag)
    if source is None:
        return gettext("none")
    if not isinstance(source, Constant):
        return gettext("from each row")
    try:
        return _FORMATTERS[tag](source.value) or gettext("none")
    except InvalidValue:
        return gettext("none")


class SectionForm(EditorSettingForm):
    """A form for the settings of one of the registered sections."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.declared = {site: declared_sections(site) for site in self.sites}
        if "section" in self.fields:
            names = sorted({name for sections in self.declared.values() for name in sections})
            self.fields["section"] = forms.ChoiceField(
                label=capfirst(_("section")),
                choices=[("", "---------"), *((name, name) for name in names)],
            )
        site = site_by_key(self.sites, self.instance.site)
        section = self.declared[site].get(self.instance.section) if site else None
        for name, text in _declared_texts(section).items() if section else ():
            if name in self.fields:
                self.fields[name].help_text = format_html(
                    gettext("Leave empty to inherit the declared value: {}."), text
                )

    def clean(self) -> dict[str, Any]:
        """Reject a section that the site does not have, or that already has settings."""
        cleaned = super().clean() or self.cleaned_data
        name = cleaned.get("section", "")
        if self.site is not None and name:
            if name in self.declared[self.site]:
                self.reject_duplicate("section", section=name)
            else:
                error = ValidationError(_("The site does not have this section."))
                self.add_error("section", error)
        return cleaned


@admin.register(SectionSettings)
class SectionSettingsAdmin(EditorSettingAdmin):
    """Section settings: one row per section, whose empty fields inherit."""

    form = SectionForm
    fields = ("site", "section", "enabled", "changefreq", "priority")
    preview_template = "admin/sitemapkit/editor_settings/sections.html"
    list_display = ("section", "site", "is_enabled", "changefreq", "priority", "changed_at")
    list_filter = (SiteFilter, "enabled")
    search_fields = ("section",)
    ordering: ClassVar[Any] = ("site", "section")

    @admin.display(description=_("enabled"), ordering="enabled")
    def is_enabled(self, obj: SectionSettings) -> str:
        """Return whether the section is enabled, or that it inherits this."""
        labels = {None: _("inherits"), True: _("yes"), False: _("no")}
        return str(labels[obj.enabled])

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> Any:
        """Show on the page for a new row what each section declares."""
        form = context["adminform"].form
        if form.instance.pk is None:
            context["declared"] = [
                (site, {name: _declared_texts(section) for name, section in sections.items()})
                for site, sections in form.declared.items()
            ]
        return super().render_change_form(request, context, *args, **options)

    def preview_context(
        self, request: HttpRequest, site: SitemapSite, row: SectionSettings, *, stored: bool
    ) -> dict[str, Any]:
        """Return the values in force for the section and where they come from."""
        section = declared_sections(site).get(row.section)
        if section is None:
            raise ImproperlyConfigured(
                gettext("Section “%(section)s” does not exist, so these settings have no effect.")
                % {"section": row.section}
            )
        enabled = "" if row.enabled is None else gettext("yes") if row.enabled else gettext("no")
        priority = format_priority(row.priority) or ""
        declared = _declared_texts(section)
        values = [
            (gettext("enabled"), enabled, declared["enabled"]),
            ("changefreq", row.changefreq, declared["changefreq"]),
            ("priority", priority, declared["priority"]),
        ]
        return {"in_force": values, "section": row.section}
