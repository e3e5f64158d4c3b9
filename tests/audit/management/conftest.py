"""The fixtures of the core's commands, which this command shares."""

from tests.management.conftest import bad, products, storage, two_sites

__all__ = ["bad", "products", "storage", "two_sites"]
