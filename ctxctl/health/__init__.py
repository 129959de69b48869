"""Measures of a session's health, and alerts."""
