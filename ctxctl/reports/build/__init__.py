"""Builders: from a result to a report, one per command."""
