"""Giving a lease back, whatever state the work under it has left the connection in."""

import logging

from django.db import Error, router, transaction

from django_sitemapkit.models import Lease

logger = logging.getLogger("django_sitemapkit")


def give_back(lease: Lease) -> None:
    """Give a lease back; where that cannot be done, say so and let it expire.

    Never raises an error of the database: it would replace the one that ended the work.
    """
    connection = transaction.get_connection(router.db_for_write(Lease))
    for is_last in (False, True):
        try:
            # Closing a cursor raises the driver's own errors, which Django leaves as they are.
            with connection.wrap_database_errors:
                lease.release()
        except Error as error:
            if is_last or connection.in_atomic_block:
                logger.warning("%s could not be given back, and expires: %s", lease, error)
                return
            # An exception out of a signal handler leaves mysqlclient in the middle of a query:
            # all that follows on that connection fails with "Commands out of sync".
            connection.close()
        else:
            return
