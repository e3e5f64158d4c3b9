"""Tests with the readers that people use: ``pytest -m readers``, in tox's environment readers."""
