"""Replacing units by less: strategies, one file each."""
