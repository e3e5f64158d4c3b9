"""A project with Wagtail, which the other tests do without: it has settings of its own.

pytest --ds=tests.wagtail.settings --nomigrations tests/wagtail/pages.py
"""
