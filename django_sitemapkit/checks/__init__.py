"""System checks: each mistake has its own, with an id, a message and the way out.

docs/checks.md lists them all. Importing this registers them.
"""

from django_sitemapkit.checks.addresses import check_shadowed_addresses
from django_sitemapkit.checks.declarations import (
    DECLARATION_IDS,
    check_costs,
    check_current_sites,
    check_declarations,
    check_mixin_querysets,
    check_mixins,
)
from django_sitemapkit.checks.externals import (
    check_external_hosts,
    check_external_items,
    check_external_lastmods,
    check_external_options,
    check_external_sitemaps,
)
from django_sitemapkit.checks.files import (
    check_codec,
    check_export_elsewhere,
    check_export_encodes,
    check_export_overwrites,
    check_sendfile,
    check_storage,
    check_storage_methods,
    check_storage_reads_as_stored,
)
from django_sitemapkit.checks.registered import check_left_modules, check_registered
from django_sitemapkit.checks.sites import (
    check_addresses,
    check_addresses_differ,
    check_allowed_hosts,
    check_host,
    check_migrations,
    check_robots,
    check_runner,
    check_scope,
    check_section_sites,
    check_settings,
    check_site_sections,
    check_unknown_settings,
    check_urlconfs,
)

__all__ = [
    "DECLARATION_IDS",
    "check_addresses",
    "check_addresses_differ",
    "check_allowed_hosts",
    "check_codec",
    "check_costs",
    "check_current_sites",
    "check_declarations",
    "check_export_elsewhere",
    "check_export_encodes",
    "check_export_overwrites",
    "check_external_hosts",
    "check_external_items",
    "check_external_lastmods",
    "check_external_options",
    "check_external_sitemaps",
    "check_host",
    "check_left_modules",
    "check_migrations",
    "check_mixin_querysets",
    "check_mixins",
    "check_registered",
    "check_robots",
    "check_runner",
    "check_scope",
    "check_section_sites",
    "check_sendfile",
    "check_settings",
    "check_shadowed_addresses",
    "check_site_sections",
    "check_storage",
    "check_storage_methods",
    "check_storage_reads_as_stored",
    "check_unknown_settings",
    "check_urlconfs",
]
