"""System checks: each mistake has its own id, a message and the way out.

docs/checks.md lists them all. Importing this package registers them.
"""

from django_sitemapkit.checks import addresses, declarations, files, sites

__all__ = ["addresses", "declarations", "files", "sites"]
