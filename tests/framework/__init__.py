"""Tests of a project that has the sites framework installed."""
