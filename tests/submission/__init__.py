"""Submission to search engines, against local servers that follow the documented protocols."""
