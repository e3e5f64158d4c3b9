"""Objects of the project's own models, as the editors' screens name them."""

from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from django_sitemapkit.overrides.objects import named_model
from django_sitemapkit.sections.objects import identity_of


def name_of_model(label: str) -> str:
    """Return the name of the model with that label; the label itself where there is none."""
    model = named_model(label)
    return str(model._meta.verbose_name) if model else label


def link_to(site: AdminSite, obj: Any) -> str:
    """Return an object's name, linked to its page in the admin where it has one."""
    name = str(obj) or str(obj.pk)
    opts = obj._meta
    try:
        url = reverse(
            f"{site.name}:{opts.app_label}_{opts.model_name}_change", args=[quote(obj.pk)]
        )
    except NoReverseMatch:
        return format_html("{}", name)
    return format_html('<a href="{}">{}</a>', url, name)


def stored_identity(obj: Any) -> tuple[str, str]:
    """Return what names an object, with its key as the database has it.

    A form may have given it the same key otherwise: a moment in another zone, 1.5 for 1.50.
    """
    label, text = identity_of(obj)
    if type(obj.pk) in (int, str, UUID):
        return label, text
    rows = type(obj)._base_manager.using(obj._state.db).filter(pk=obj.pk)
    key = rows.values_list("pk", flat=True).first()
    return label, text if key is None else str(key)
