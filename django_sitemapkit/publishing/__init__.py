"""Publishing: files put into a storage whole or not at all, under names never used before.

Which of these files a site serves is decided by ``builds.publication``.
"""

from django_sitemapkit.publishing.database import DatabaseStorage
from django_sitemapkit.publishing.storage import SitemapStorage, file_name, folder_of, sync_file

__all__ = ["DatabaseStorage", "SitemapStorage", "file_name", "folder_of", "sync_file"]
