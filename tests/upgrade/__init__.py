"""A site that a former commit built is stored here, with its tables and files, and built on.

`python -m tests.upgrade` stores it again; docs/releasing.md says when that is right.
"""
