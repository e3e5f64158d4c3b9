"""Tests in Chromium: ``pytest -m browser``, in tox's environment browser.

The example project runs in a process of its own, with the settings beside this file.
"""
