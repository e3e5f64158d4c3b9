"""Runners: who makes the pages of a build.

Importing the package itself needs no apps: a worker process begins here before it has any.
"""
