"""How the editors' screens show objects of the project's models."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from django_sitemapkit.overrides.objects import named_model


def model_name(label: str) -> str:
    """Return the verbose name of the model with that label, or the label if there is none."""
    model = named_model(label)
    return str(model._meta.verbose_name) if model else label


def link_to(site: AdminSite, obj: Any) -> str:
    """Return an object's name, linked to its change page in the admin if it has one."""
    name = str(obj) or str(obj.pk)
    opts = obj._meta
    try:
        url = reverse(
            f"{site.name}:{opts.app_label}_{opts.model_name}_change", args=[quote(obj.pk)]
        )
    except NoReverseMatch:
        return format_html("{}", name)
    return format_html('<a href="{}">{}</a>', url, name)
